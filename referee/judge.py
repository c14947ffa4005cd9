"""The judgment of one cell: what the target refuses, which marks are missing, and whether the library reports it.

    history ──marks──▶ each text, argument, result, image and setting has its own mark
    body    ──────────▶ complaints of the target · marks that are not in the body     ──▶ verdict
    reports ──────────▶ those that the library does not also make for the plain conversation

The same function judges all libraries. A mark may be anywhere in the body, in whatever form the library chose.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from referee.pairs import pairs
from referee.rules import complaints

Entry = dict[str, Any]
COMPLETE, REPORTED, RAISED, SILENT, REFUSED, UNCLAIMED = (
    "complete", "lost and reported", "raised an error", "lost silently", "refused", "not claimed",
)  # fmt: skip
VERDICTS = (COMPLETE, REPORTED, RAISED, SILENT, REFUSED, UNCLAIMED)
FAILING = (SILENT, REFUSED)
MARK = re.compile(r"MARK\d{4}")
MEDIUM = re.compile(r"(?:data:[\w/;=-]+;base64,)?[\w+/=-]+")


class Mark(NamedTuple):
    """One thing that must arrive, and the message that contains it (None: an option or a setting)."""

    text: str
    kind: str
    message: int | None = None


def marks(history: Entry, wire: str) -> Iterator[Mark]:
    """Yield all marks of a history; a signature counts only at the API that created it."""
    for number, message in enumerate(history["messages"]):
        for part in message["content"]:
            parts = [part, *(part["content"] if part["kind"] == "result" else ())]
            for each in parts:
                kind = "result" if part["kind"] == "result" and each["kind"] == "text" else each["kind"]
                if each["kind"] == "image":
                    yield Mark(max(re.findall(r"\w+", each["data"]), key=len), "image", number)
                words = each.get("text") or json.dumps(each.get("arguments")) + each.get("arguments_text", "")
                yield from (Mark(word, kind, number) for word in MARK.findall(words))
                if "signature" in each and message.get("from") == wire:
                    yield Mark(_bare(each["signature"]), "signature", number)
    for option in history["options"]:
        yield from (Mark(word, "option") for word in MARK.findall(json.dumps(option)))
    for name, value in history.get("settings", {}).items():
        yield Mark(str(value[0] if isinstance(value, list) else value), f"setting {name}")


def missing(history: Entry, wire: str, body: Entry) -> list[Mark]:
    """Return the marks of a history that are not in a request's body."""
    text = json.dumps(body)
    texts = list(_strings(body))
    return [
        mark
        for mark in marks(history, wire)
        if not (
            any(mark.text in each and MEDIUM.fullmatch(each) for each in texts)
            if mark.kind == "image"
            else mark.text in (_bare(text) if mark.kind == "signature" else text)
        )
    ]


def judge(history: Entry, wire: str, answer: Entry, usual: list[str]) -> Entry:
    """Return the verdict on a library's answer; `usual` are its reports for the plain conversation."""
    body, reports = answer["body"], unusual(answer["reports"], usual)
    if body is None:
        return {"verdict": RAISED, "reasons": [answer["error"]], "lost": [], "reports": reports, "marks": []}
    lost = [*missing(history, wire, body), *mispaired(history, wire, body)]
    refused = complaints(wire, body, foreign(history, wire))
    verdict = REFUSED if refused else (REPORTED if reports else SILENT) if lost else COMPLETE
    return {
        "verdict": verdict,
        "reasons": refused,
        "lost": [f"{mark.kind} {mark.text}" for mark in lost],
        "reports": reports,
        "marks": lost,
    }


def mispaired(history: Entry, wire: str, body: Entry) -> Iterator[Mark]:
    """Yield the results of a history that the request presents as the results of other calls."""
    sent = {word: MARK.findall(call) for call, result in pairs(wire, body) for word in MARK.findall(result)}
    called: dict[str, list[str]] = {}
    for number, message in enumerate(history["messages"]):
        for part in message["content"]:
            words = MARK.findall(json.dumps(part))
            if part["kind"] == "call":
                called[part["id"]] = words
            elif part["kind"] == "result" and part["id"] in called:
                right = called[part["id"]]
                yield from (Mark(word, "pair", number) for word in words if sent.get(word, right) not in (right, []))


def foreign(history: Entry, wire: str) -> set[str]:
    """Return the signatures in a history that another API created."""
    return {
        part["signature"]
        for message in history["messages"]
        for part in message["content"]
        if "signature" in part and message.get("from") != wire
    }


def unusual(reports: list[str], usual: list[str]) -> list[str]:
    """Return the reports that the library does not make for the plain conversation; numbers and ids may differ."""
    known = {shape(each) for each in usual}
    return [each for each in reports if shape(each) not in known]


def says_nothing_of(reports: list[str], without: list[str]) -> bool:
    """Return whether all reports also occur if the lost message is removed from the history."""
    return not Counter(map(shape, reports)) - Counter(map(shape, without))


def shape(report: str) -> str:
    """Return a report without marks, ids and numbers, which differ from request to request."""
    return re.sub(r"MARK\d{4}|\b[0-9a-f]{8}\b|[\w-]*\d[\w-]*", "#", report)


def _bare(signature: str) -> str:
    """Return a signature in the standard alphabet of base64, without padding: libraries may write it otherwise."""
    return signature.replace("-", "+").replace("_", "/").rstrip("=")


def _strings(body: Any) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict):
        for each in body.values():
            yield from _strings(each)
    elif isinstance(body, list):
        for each in body:
            yield from _strings(each)
