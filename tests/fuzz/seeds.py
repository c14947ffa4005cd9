"""What is changed: bodies that services said and were sent, as recorded here, and where it is given, by vendors."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from sabir_testing.cassettes import exchanges

from tests.vendor.support import FOLDER, WIRES, Exchange, exchanges_of

Kind = Literal["whole", "streamed", "request"]
CASSETTES = Path(__file__).parents[2] / "cassettes"
LONGEST = 100_000
"""Bytes of a body that is changed: a picture says nothing more."""


@dataclass(frozen=True)
class Seed:
    dialect: str
    kind: Kind
    body: bytes


@cache
def own() -> tuple[Seed, ...]:
    return tuple(seed for dialect in WIRES for seed in _recorded(dialect) if 0 < len(seed.body) <= LONGEST)


@cache
def vendors() -> tuple[Seed, ...]:
    """The bodies in $SABIR_VENDOR_CASSETTES; none where that is not set."""
    told = (each for dialect in WIRES for exchange in exchanges_of(dialect) for each in _told(dialect, exchange))
    return tuple(seed for seed in told if 0 < len(seed.body) <= LONGEST) if FOLDER else ()


def _recorded(dialect: str) -> Iterator[Seed]:
    for path in sorted((CASSETTES / dialect).glob("*.yaml")):
        for each in exchanges(path):
            yield Seed(dialect, "request", each.request_body)
            yield Seed(dialect, "streamed" if each.is_stream else "whole", each.response_body)


def _told(dialect: str, exchange: Exchange) -> Iterator[Seed]:
    if exchange.request is not None:
        yield Seed(dialect, "request", json.dumps(exchange.request).encode())
    if exchange.sse is not None:
        yield Seed(dialect, "streamed", exchange.sse.encode())
    elif exchange.response is not None:
        yield Seed(dialect, "whole", exchange.body)
