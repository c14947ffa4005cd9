"""What vendors' own services returned, and a walker that knows nothing of the decoders.

The exchanges lie outside the project, in the folder that SABIR_VENDOR_CASSETTES names; tests of them are skipped where
it is not set.
"""

import gzip
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sabir.contract.dialect import Dialect
from sabir.contract.framing import ServerEventReader
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import Fold
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target

FOLDER = os.environ.get("SABIR_VENDOR_CASSETTES")

WIRES = {
    "openai.chat": ("openai.chat", "openai.chat_at_azure"),
    "openai.responses": ("openai.responses",),
    "anthropic.messages": ("anthropic.messages",),
    "google.generate_content": ("gemini.generateContent",),
}
"""Dialect → the files of its exchanges."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; `id` names it in a failing test's message."""

    id: str
    host: str
    path: str
    status: int
    model: str
    features: frozenset[str]
    request: dict[str, Any] | None
    response_headers: dict[str, str]
    response: Any
    events: list[Any] | None
    sse: str | None
    provenance: str
    wire_exact: bool

    @property
    def body(self) -> bytes:
        """The answer's body, where it was no stream."""
        return json.dumps(self.response).encode()

    @property
    def stream(self) -> bytes:
        """The answer's bytes, where it was a stream: as recorded, or made of its parsed events."""
        if self.sse:
            return self.sse.encode()
        return "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in self.events or ()).encode()


def exchanges(wire: str) -> list[Exchange]:
    """The exchanges of one wire; skips the module where the folder is not given."""
    if not FOLDER:
        pytest.skip("SABIR_VENDOR_CASSETTES names no folder of vendors' exchanges", allow_module_level=True)
    path = Path(FOLDER) / f"{wire}.jsonl.gz"
    if not path.is_file():
        pytest.fail(f"{path} is missing; SABIR_VENDOR_CASSETTES must name the folder of vendors' exchanges")
    names = Exchange.__dataclass_fields__
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    known = ({name: row.get(name) for name in names} for row in rows)
    return [Exchange(**{**row, "features": frozenset(row["features"] or ())}) for row in known]


def exchanges_of(dialect: str) -> list[Exchange]:
    """The exchanges of a dialect."""
    return [each for file in WIRES[dialect] for each in exchanges(file)]


def scope_for(exchange: Exchange, dialect: str, provider: str = "openai") -> DecodeScope:
    """The scope in which an exchange is decoded."""
    return DecodeScope(target=Target(provider=provider, dialect=dialect, model=exchange.model or "unknown"))


def fold(dialect: Dialect, stream: bytes, scope: DecodeScope, chunk: int = 0) -> Reply:
    """The reply that a stream folds to, its bytes cut into chunks of a size (0: all at once)."""
    reader, decoder, whole = ServerEventReader(), dialect.decoder(scope), Fold(scope)
    size = chunk or max(len(stream), 1)
    for start in range(0, len(stream), size):
        for event in reader.feed(stream[start : start + size]):
            for block in decoder.feed(event):
                whole.feed(block)
    for event in reader.close():
        for block in decoder.feed(event):
            whole.feed(block)
    for block in decoder.close():
        whole.feed(block)
    return whole.reply()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar of a JSON value with its path; list positions are `[]`."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]")
    else:
        yield path, value


def missing(body: Any, reply: Reply, ignored: Collection[str] = ()) -> list[tuple[str, Any]]:
    """The scalars of a body that the reply's dump does not hold; nulls, empty texts and ignored paths aside.

    A text counts as held where it is, or is within, a text of the reply: a sound's base64 is within its data URL.
    """
    found = list(leaves(reply.model_dump(mode="json")))
    texts = {value for _, value in found if isinstance(value, str)}
    numbers = {(type(value), value) for _, value in found if isinstance(value, int | float)}
    lost = []
    for path, value in leaves(body):
        if value is None or value == "" or path in ignored:
            continue
        if isinstance(value, str):
            held = value in texts or (len(value) > 40 and any(value in text for text in texts))
        else:
            held = (type(value), value) in numbers
        if not held:
            lost.append((path, value))
    return lost


def usage_figures(usage: Any) -> dict[str, int]:
    """Every figure of a usage object by its path."""
    return {path: value for path, value in leaves(usage) if isinstance(value, int) and not isinstance(value, bool)}
