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


def _request(given: Given, body: Any) -> str:
    return _facts(given, work.conversation(given.size), body)


def _call(given: Given, evidence: Any) -> str:
    body, text = evidence
    return (body and _request(given, body)) or _same("reply", work.reply_text(), text)


def _loop(given: Given, evidence: Any) -> str:
    entries = work.start()
    for turn in range(given.size):
        entries += [work.call(turn), work.result(turn)]
    wrong = _same("number of messages", len(entries), evidence["messages"])
    if not evidence["body"]:
        return wrong
    return wrong or _facts(given, entries[:-2], evidence["body"])


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


def _same(what: str, right: object, found: object) -> str:
    return "" if right == found else f"{what}: {found!r:.80} instead of {right!r:.80}"


_CHECKS: dict[str, Callable[[Given, Any], str]] = {
    "render": _request,
    "render_warm": lambda given, body: _request(given._replace(size=given.size + 2), body),
    "call": _call,
    "loop": _loop,
    "decode": lambda given, found: _same("reply", work.answered(given.wire), found),
    "stream": lambda given, found: _same("reply", work.streamed(given.wire, given.size), found),
    "loopback": _texts,
    "memory": lambda given, found: _same("fields", {"held", "json"}, set(found)),
    "history": lambda given, count: _same("number of messages", given.size, count),
    "policy": _texts,
    "checkpoint": _records,
    "durable_step": lambda given, found: _replies(work.STEPS, found),
    "remote": lambda given, found: _replies(work.ASKED * given.concurrency, found),
    "throughput": lambda given, found: _replies(given.size, found),
}
