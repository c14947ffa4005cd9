"""The names under which caller and workers meet.

sabir.<context>.<policy>         requests; workers share them in a queue group
sabir-all.<context>              notices to every worker of the context: cancelled and sought requests
sabir-worker.<worker>.<context>.<policy>    requests for one worker that offered to take them
<inbox>.<request>.<sending>      replies to one sending of a request
<inbox>.alive                    beats of workers, one for all their requests of that caller

So the server's permissions can decide who may call which policy: a request whose envelope names another policy than
its subject is refused. An inbox begins with `_INBOX.`, or with the prefix that both sides were given; a worker answers
nowhere else, or callers could make it publish where they may not.
"""

import re
from functools import cache

from sabir_runtime import RuntimeFault

QUEUE = "sabir-workers"
ALIVE = "alive"
INBOXES = "_INBOX"
"""The prefix of an inbox's subject, unless callers have their own prefix."""
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
    """The subject of requests for a policy."""
    return f"sabir.{context}.{policy}"


def all_of(context: str) -> str:
    """The subject of notices to every worker of a context."""
    return f"sabir-all.{context}"


def requests_for(worker: str, context: str, policy: str) -> str:
    """The subject of requests for a policy at one worker."""
    return f"sabir-worker.{worker}.{context}.{policy}"


def beats_for(reply: str) -> str:
    """The subject of beats for the caller of a request with this reply subject."""
    return f"{reply.rsplit('.', 2)[0]}.{ALIVE}"


def asker_of(policy: str, reply: str) -> str:
    """The asker of a request: all its sendings have one policy, and reply subjects that differ only in the number."""
    return f"{policy} {reply.rpartition('.')[0]}"


def check_inbox(prefix: str) -> str:
    """The prefix of inboxes, if it is valid; raises ValueError otherwise."""
    if len(prefix) > LONGEST_NAME or not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"no prefix of inboxes; expected names with dots between them, as {INBOXES}.alice, and no sabir"
        )
    return prefix


def is_inbox(reply: str, prefix: str) -> bool:
    """Whether a reply subject and its beats' subject are an inbox, with the usual or the given prefix."""
    starts = (f"{INBOXES}.", f"{prefix}.")
    return bool(_PLAIN.fullmatch(reply)) and reply.startswith(starts) and beats_for(reply).startswith(starts)
