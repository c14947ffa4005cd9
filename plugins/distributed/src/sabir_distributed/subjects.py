"""The names under which caller and workers meet.

sabir.<context>.<policy>         requests; workers share them in a queue group
sabir-all.<context>              what every worker of the context hears: what callers gave up, and whom they seek
sabir-worker.<worker>.<context>.<policy>    requests for one worker, that said that it would take them
<inbox>.<request>.<sending>      what is said about one sending of a request
<inbox>.alive                    beats of workers, one for all that they do for that caller

So the server's permissions can say who may ask for which policy: a request whose envelope names another than its
subject is refused. An inbox begins with `_INBOX.`, or with the prefix that both sides were given; a worker answers
nowhere else, or its callers could have it say things where they may not.
"""

import re
from functools import cache

from sabir_runtime import RuntimeFault

QUEUE = "sabir-workers"
ALIVE = "alive"
INBOXES = "_INBOX"
"""What an inbox's subject begins with, unless callers have a prefix of their own."""
LONGEST_NAME = 200
"""Characters of a name."""
_NAME = re.compile(rf"[\w-]{{1,{LONGEST_NAME}}}")
_PREFIX = re.compile(r"(?!sabir)[\w-]+(\.[\w-]+)*")
_PLAIN = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")


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


def requests_for(worker: str, context: str, policy: str) -> str:
    """Where requests for a policy of one worker go."""
    return f"sabir-worker.{worker}.{context}.{policy}"


def beats_for(reply: str) -> str:
    """Where the caller hears beats whose request has this reply subject."""
    return f"{reply.rsplit('.', 2)[0]}.{ALIVE}"


def asker_of(policy: str, reply: str) -> str:
    """Who asks: all sendings of a request are for one policy, and their reply subjects differ in the number alone."""
    return f"{policy} {reply.rpartition('.')[0]}"


def check_inbox(prefix: str) -> str:
    """What inboxes begin with, if it can be that; ValueError otherwise."""
    if len(prefix) > LONGEST_NAME or not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"no prefix of inboxes; expected names with dots between them, as {INBOXES}.alice, and no sabir"
        )
    return prefix


def is_inbox(reply: str, prefix: str) -> bool:
    """Whether a reply subject, and that of its beats, is an inbox: of the usual prefix, or of the one given."""
    starts = (f"{INBOXES}.", f"{prefix}.")
    return bool(_PLAIN.fullmatch(reply)) and reply.startswith(starts) and beats_for(reply).startswith(starts)
