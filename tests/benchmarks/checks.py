"""Whether a contender did the work: what it sent and read says what everybody's says.

evidence ──check──▶ ""            the same as all others
                └─▶ "entry 3: …"  where it differs; the contender is then left out, by name and with this reason
"""

import json
from collections.abc import Callable
from typing import Any

from tests.benchmarks import work
from tests.benchmarks.work import Given


def differs(task: str, given: Given, evidence: Any) -> str:
    """Where the evidence differs from what it should be; "" where it does not."""
    return _CHECKS[task](given, evidence)


def refused(task: str, given: Given, evidence: Any) -> int:
    """How many ids a request has that the wire refuses: it is measured, and the page says so."""
    body = evidence[0] if task == "call" else evidence
    return work.refused_ids(given.wire, body) if task in ("render", "call") and body else 0


def _request(given: Given, body: Any) -> str:
    return _facts(given, work.entries_of(given), body)


def _call(given: Given, evidence: Any) -> str:
    body, text = evidence
    return (body and _request(given, body)) or _same("reply", work.reply_text(), text)


def _shared(given: Given, bodies: Any) -> str:
    asked = [[*work.entries_of(given), entry] for entry in work.last_messages()]
    wrong = (_facts(given, entries, body) for entries, body in zip(asked, bodies, strict=True))
    return next(filter(None, wrong), "")


def _loop(given: Given, evidence: Any) -> str:
    *earlier, last = work.turns(given)
    sent = [*work.start(), *(entry for entries in earlier for entry in entries)]
    is_plain = given.talk != work.AGENTS
    wrong = is_plain and _same("number of messages", len(sent) + len(last), evidence["messages"])
    return wrong or (_facts(given, sent, evidence["body"]) if evidence["body"] else "")


def _facts(given: Given, entries: list[work.Entry], body: Any) -> str:
    right, found = work.expected(given.wire, entries), work.normalised(given.wire, body)
    for number, (one, other) in enumerate(zip(right, found, strict=False)):
        if tuple(one) != tuple(other):
            return f"entry {number}: {other!r:.80} instead of {one!r:.80}"
    return _same("number of entries", len(right), len(found))


def _texts(given: Given, evidence: Any) -> str:
    texts = evidence if isinstance(evidence, list) else [evidence]
    return next((wrong for text in texts if (wrong := _same("reply", work.reply_text(), text))), "")


def _records(given: Given, evidence: Any) -> str:
    """As many as there should be; the last ones hold the conversation's messages, each in its place."""
    right = json.loads(work.stored((given.size + work.BATCH + 3) // 4 * 4))[given.size : given.size + work.BATCH]
    for expected, body in zip(right, map(json.loads, evidence["bodies"]), strict=True):
        found = [(body["sequence"], _said(message["payload"])) for message in body["messages"]]
        if wrong := _same("record", [(right.index(expected) + given.size, expected["payload"])], found):
            return wrong
    return _same("number of records", given.size + work.BATCH, evidence["count"])


def _said(value: Any) -> Any:
    """A stored value without the fields that say nothing."""
    if isinstance(value, dict):
        return {name: _said(each) for name, each in value.items() if each not in (None, False, [])}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _replies(count: int, evidence: Any) -> str:
    return _same("replies", [work.reply_text()], evidence["texts"]) or _same("number", count, evidence["count"])


def _progress(size: int) -> dict[str, Any]:
    """That all threads were in progress together, none far behind, and all ended."""
    return {"together": size, "completed": size, "phases": [size] * 3, "begun": size}


def _same(what: str, right: object, found: object) -> str:
    return "" if right == found else f"{what}: {found!r:.80} instead of {right!r:.80}"


_CHECKS: dict[str, Callable[[Given, Any], str]] = {
    "render": _request,
    "render_warm": lambda given, body: _request(given._replace(size=given.size + 2), body),
    "shared": _shared,
    "call": _call,
    "loop": _loop,
    "decode": lambda given, found: _same("reply", work.answered(given.wire), found),
    "stream": lambda given, found: _same("reply", work.streamed(given.wire, given.size), found),
    "loopback": _texts,
    "send": lambda given, found: "" if work.reply_text() in found["text"] else "the answer was not read",
    "memory": lambda given, found: _same("fields", {"held", "json"}, set(found)),
    "history": lambda given, count: _same("number of messages", given.size, count),
    "append": lambda given, found: _same("append", {"count": given.size + 1, "text": work.reply_text()}, found),
    "policy": _texts,
    "checkpoint": _records,
    "durable_step": lambda given, found: _replies(work.STEPS, found),
    "remote": lambda given, found: _replies(work.ASKED * given.concurrency, found),
    "throughput": lambda given, found: _replies(given.size, found),
    "actor_message": _texts,
    "actor_heartbeat": lambda given, found: _same("threads", _progress(given.size), found),
    "actor_phase": lambda given, found: _same("phases", {"phases": [*work.PHASES], "text": work.reply_text()}, found),
    "actor_workers": lambda given, found: _same("threads", {"completed": work.THREADS, "workers": given.size}, found),
    "actor_memory": lambda given, found: _same("threads", {given.wire.partition(",")[0]: given.size}, found["states"]),
}
