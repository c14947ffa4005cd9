"""A secret is planted in one exchange with a server of this machine, which is recorded; what the file holds of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from sabir_testing.cassettes import Scrubbing, exchanges, recording
from sabir_testing.loopback import Server, whole

PROVENANCE = {
    "server": "a server of this test, not a vendor's own service",
    "version": "1",
    "model": "small",
    "date": "2026-11-21",
    "client": "httpx2 2",
}
PLAIN = "plum-orchard-velvet"
NOWHERE = "http://127.0.0.1:9"
EVENTS = "text/event-stream"


def sse(*values: object) -> bytes:
    return b"".join(b"event: said\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values)


def post(url: str, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
    with httpx2.Client(trust_env=False, verify=False) as client:
        return client.post(url, content=body, headers=dict(headers))


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


def record(path: Path, planted: Planted) -> str:
    """Record it; everything that was said on the wire."""
    with Server([whole(planted.answer, kind=planted.kind, **planted.answer_headers)]) as server:
        with recording(path, PROVENANCE, scrub=planted.scrub):
            told = post(server.url + planted.target, planted.body, planted.headers)
    (asked,) = server.requests
    return "\n".join([asked.path, str(asked.headers), repr(asked.body), str(told.headers), told.text])


def recorded_answer(path: Path, key: str, answer: bytes, **how: str) -> bytes:
    """What is kept of an answer to a request that carried the key."""
    record(path, Planted(answer=answer, headers={"x-api-key": key}, **how))
    return exchanges(path)[0].response_body
