"""The names under which caller and workers meet.

sabir.<context>.<policy>         requests; workers share them in a queue group
sabir-all.<context>              what every worker of the context hears: what callers gave up, and whom they seek
sabir-worker.<worker>            requests for one worker, that said that it would take them
<inbox>.<request>.<sending>      what is said about one sending of a request
<inbox>.alive                    beats of workers, one for all that they do for that caller
"""

import re
from functools import cache

from sabir_runtime import RuntimeFault

QUEUE = "sabir-workers"
ALIVE = "alive"
_NAME = re.compile(r"[\w-]+")


@cache
def check_context(name: str) -> str:
    """The name of a context, if it can be part of a subject; RuntimeFault otherwise."""
    if not _NAME.fullmatch(name):
        raise RuntimeFault(
            f"{name!r} is no name for a context: use letters, digits, '_' and '-', for example 'Desk-v2'"
        )
    return name


def requests_of(context: str, policy: str) -> str:
    """Where requests for a policy go."""
    return f"sabir.{context}.{policy}"


def all_of(context: str) -> str:
    """Where every worker of a context hears what is said."""
    return f"sabir-all.{context}"


def requests_for(worker: str) -> str:
    """Where requests for one worker go."""
    return f"sabir-worker.{worker}"


def beats_for(reply: str) -> str:
    """Where the caller hears beats whose request has this reply subject."""
    return f"{reply.rsplit('.', 2)[0]}.{ALIVE}"
