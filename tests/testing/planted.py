"""A secret is planted in one exchange with a server of this machine, which is recorded; what the file holds of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import yaml
from sabir_testing.cassettes import exchanges, recording
from sabir_testing.loopback import Server, whole
from sabir_testing.reading.documents import documents
from sabir_testing.scrubbing import Scrubbing

PROVENANCE = {
    "server": "a server of this test, not a vendor's own service",
    "version": "1",
    "model": "small",
    "date": "2026-11-21",
    "client": "httpx2 2",
}
PLAIN = "plum-orchard-velvet"
LONG = "velvet-plum-orchard"
NOWHERE = "http://127.0.0.1:9"
EVENTS = "text/event-stream"


def sse(*values: object) -> bytes:
    return b"".join(b"event: said\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values)


@dataclass(frozen=True)
class Planted:
    """One exchange that holds a secret, and how it may be written there."""

    body: bytes = b'{"say":"something"}'
    answer: bytes = b'{"text":"something"}'
    kind: str = "application/json"
    target: str = "/v1/answers"
    headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    secret: str = PLAIN
    scrub: Scrubbing = field(default_factory=Scrubbing)


def record(path: Path, planted: Planted) -> tuple[str, list[str]]:
    """Record it; everything that was said on the wire, and every text that the file holds."""
    answer_headers = dict(planted.answer_headers)
    with Server([whole(planted.answer, kind=planted.kind, **answer_headers)]) as server:
        with recording(path, PROVENANCE, scrub=planted.scrub), httpx2.Client(trust_env=False, verify=False) as client:
            told = client.post(server.url + planted.target, content=planted.body, headers=dict(planted.headers))
    (asked,) = server.asked
    said = [asked.path, str(asked.headers), repr(asked.body), str(told.headers), joined(told.content)]
    return "\n".join(said), _held(yaml.safe_load(path.read_text("utf-8")))


def joined(body: bytes) -> str:
    """A body, and its events' texts put together."""
    text = body.decode("utf-8", "replace")
    return text + "".join(str(leaf) for document in documents(text) for leaf in _held(document.value, names=False))


def _held(value: object, *, names: bool = True) -> list[str]:
    if isinstance(value, dict):
        own = [str(name) for name in value] if names else []
        return own + [text for member in value.values() for text in _held(member, names=names)]
    if isinstance(value, list):
        return [text for member in value for text in _held(member, names=names)]
    return [value.decode("latin-1") if isinstance(value, bytes) else str(value)]


def recorded_answer(path: Path, key: str, answer: bytes, *, kind: str = "application/json", **asked: object) -> bytes:
    """What is kept of an answer to a request that carried the key."""
    headers = asked.get("headers", {"x-api-key": key})
    record(path, Planted(answer=answer, kind=kind, headers=headers, target=str(asked.get("target", "/v1"))))
    return exchanges(path)[0].response_body
