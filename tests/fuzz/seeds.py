"""What is changed: bodies that services said and were sent, as recorded here, and where it is given, by vendors."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from sabir_testing.cassettes import exchanges

Kind = Literal["whole", "streamed", "request"]
CASSETTES = Path(__file__).parents[2] / "cassettes"
VENDORS = {
    "openai.chat": ("openai.chat", "openai.chat_at_azure"),
    "openai.responses": ("openai.responses",),
    "anthropic.messages": ("anthropic.messages",),
    "google.generate_content": ("gemini.generateContent",),
}
LONGEST = 100_000
"""Bytes of a body that is changed: a picture says nothing more."""


@dataclass(frozen=True)
class Seed:
    """One body as it came."""

    dialect: str
    kind: Kind
    body: bytes


@cache
def own() -> tuple[Seed, ...]:
    """The bodies of this project's recordings."""
    return tuple(seed for dialect in VENDORS for seed in _recorded(dialect) if 0 < len(seed.body) <= LONGEST)


@cache
def vendors() -> tuple[Seed, ...]:
    """The bodies in $SABIR_VENDOR_CASSETTES; none where that is not set."""
    folder = os.environ.get("SABIR_VENDOR_CASSETTES")
    if not folder:
        return ()
    return tuple(seed for dialect in VENDORS for seed in _told(Path(folder), dialect) if 0 < len(seed.body) <= LONGEST)


def _recorded(dialect: str) -> Iterator[Seed]:
    for path in sorted((CASSETTES / dialect).glob("*.yaml")):
        for each in exchanges(path):
            yield Seed(dialect, "request", each.request_body)
            yield Seed(dialect, "streamed" if each.is_stream else "whole", each.response_body)


def _told(folder: Path, dialect: str) -> Iterator[Seed]:
    for name in VENDORS[dialect]:
        path = folder / f"{name}.jsonl.gz"
        lines = gzip.decompress(path.read_bytes()).decode().splitlines() if path.exists() else []
        for line in lines:
            held = json.loads(line)
            if isinstance(held.get("request"), dict):
                yield Seed(dialect, "request", json.dumps(held["request"]).encode())
            if isinstance(held.get("sse"), str):
                yield Seed(dialect, "streamed", held["sse"].encode())
            elif held.get("response") is not None:
                yield Seed(dialect, "whole", json.dumps(held["response"]).encode())
