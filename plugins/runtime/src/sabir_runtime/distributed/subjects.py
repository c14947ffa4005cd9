"""The NATS subjects, the addresses of messages on a NATS server, that callers and workers use.

sabir.<context>.<policy>         requests; one worker of a queue group receives each
sabir-all.<context>              notices to all workers of the context: cancelled requests, and searches for a worker
sabir-worker.<worker>.<context>.<policy>    requests for one worker that offered to perform them
<inbox>.<request>.<sending>      replies to one sending of a request
<inbox>.alive                    beats: a worker sends one for all requests of a caller

So the server's permissions can decide who may call which policy: a worker refuses a request whose envelope (JSON body)
names another policy than its subject. An inbox, the subject of a caller's replies, begins with `_INBOX.`, or with the
prefix in both sides' settings. A worker answers to no other subjects, because callers could otherwise make the worker
publish on subjects that are forbidden for the callers.
"""

import re
from functools import cache

from sabir_runtime import RuntimeFault

QUEUE = "sabir-workers"
ALIVE = "alive"
INBOXES = "_INBOX"
"""The default prefix of an inbox's subject."""
LONGEST_NAME = 200
"""The maximum number of characters of a name."""
_NAME = re.compile(rf"[\w-]{{1,{LONGEST_NAME}}}")
_PREFIX = re.compile(r"(?!sabir)[\w-]+(\.[\w-]+)*")
_PLAIN = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")


@cache
def check_context(name: str) -> str:
    """Return a context's name. Raises RuntimeFault if the name cannot be part of a subject."""
    if not _NAME.fullmatch(name):
        raise RuntimeFault(
            f"{name!r} is not a valid name of a context; use letters, digits, '_' and '-', for example 'Desk-v2'"
        )
    return name


def requests_of(context: str, policy: str) -> str:
    """Return the subject of requests for a policy."""
    return f"sabir.{context}.{policy}"


def all_of(context: str) -> str:
    """Return the subject of notices to all workers of a context."""
    return f"sabir-all.{context}"


def requests_for(worker: str, context: str, policy: str) -> str:
    """Return the subject of requests for a policy at one worker."""
    return f"sabir-worker.{worker}.{context}.{policy}"


def beats_for(reply: str) -> str:
    """Return the subject on which a caller receives beats (reports of workers), from the reply subject of a request."""
    return f"{reply.rsplit('.', 2)[0]}.{ALIVE}"


def asker_of(policy: str, reply: str) -> str:
    """Return a text that identifies a request, its caller and its policy, from the reply subject of any sending."""
    return f"{policy} {reply.rpartition('.')[0]}"


def check_inbox(prefix: str) -> str:
    """Return an inbox prefix unchanged. Raises ValueError for a prefix that is invalid or too long."""
    if len(prefix) > LONGEST_NAME or not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"not a valid inbox prefix; expected names with dots between them, like {INBOXES}.alice, and not "
            "beginning with sabir"
        )
    return prefix


def is_inbox(reply: str, prefix: str) -> bool:
    """Return whether a reply subject and its beats' subject are below `_INBOX` or below `prefix`."""
    starts = (f"{INBOXES}.", f"{prefix}.")
    return bool(_PLAIN.fullmatch(reply)) and reply.startswith(starts) and beats_for(reply).startswith(starts)
