"""The tokens that vendors read from their caches, against `Rendering.shared_prefix` of the recorded requests.

`python -m tests.vendor.test_prompt_cache` lists all pairs: a request, and the longest earlier one of the same recording
that it goes on from.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.errors import SabirError
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target

from tests.vendor.support import Exchange, exchanges, fold, scope_for

WIRES = {
    "openai.chat": "openai.chat",
    "openai.chat_at_azure": "openai.chat",
    "openai.responses": "openai.responses",
    "anthropic.messages": "anthropic.messages",
    "gemini.generateContent": "google.generate_content",
    "more/openai.chat_at_gateways": "openai.chat",
    "more/openai.responses_at_gateways": "openai.responses",
    "more/mistral.chat": "openai.chat",
}
"""File → its dialect. Bedrock, Cohere, Ollama's own API and Interactions have no dialect here."""
LEAST = dict(zip(WIRES, (130, 5, 140, 140, 1, 120, 35, 35), strict=True))
"""File → the least number of pairs, so that the test cannot pass without any."""
TOLERANCE = 1.1
EXCESSES: Mapping[str, str] = {
    "6d96071cea42-2": "976 tokens read, although the reply before counted 70 for a prompt of the same beginning",
}
"""A request that read more from a cache than its beginning has by the vendor's own count → what was reported."""


class Pair(NamedTuple):
    """A request, the longest earlier one that it goes on from, and what a cache gave."""

    wire: str
    earlier: Exchange
    later: Exchange
    predicted: int
    """By the usage of the earlier reply."""
    estimated: int
    """By the bytes alone."""
    read: int

    @property
    def is_explained(self) -> bool:
        return self.read <= self.predicted * TOLERANCE


def as_rendering(exchange: Exchange, dialect: str) -> Rendering:
    own = sabir.dialect(dialect).dialect
    fields = (*own.prompt_fields, own.messages_field)
    return Rendering(
        target=Target(provider=exchange.host, dialect=dialect, model=exchange.model or "", endpoint=exchange.path),
        path=exchange.path, body_bytes=json.dumps(exchange.request).encode(),
        prompt_fields=fields, cache_markers=own.cache_markers,
    )  # fmt: skip


def reply_of(exchange: Exchange, dialect: str) -> Reply | None:
    own, scope = sabir.dialect(dialect).dialect, scope_for(exchange, dialect)
    try:
        return own.decode(exchange.body, scope) if exchange.response else fold(own, exchange.stream, scope)
    except SabirError:
        return None


@cache
def pairs(wire: str) -> tuple[Pair, ...]:
    return tuple(_pairs_of(wire))


def _pairs_of(wire: str) -> Iterator[Pair]:
    dialect = WIRES[wire]
    recordings: defaultdict[str, list[tuple[Exchange, Rendering]]] = defaultdict(list)
    for exchange in exchanges(wire):
        if exchange.request is None or exchange.status >= 400:
            continue
        rendering, before = as_rendering(exchange, dialect), recordings[exchange.id.rpartition("-")[0]]
        prefixes = [each for each in before if not rendering.shared_prefix(each[1]).changed]
        before.append((exchange, rendering))
        reply = reply_of(exchange, dialect)
        if not prefixes or reply is None or reply.usage.cache_read_tokens is None:
            continue
        earlier, request = max(prefixes, key=lambda each: len(each[1].body_bytes))
        answer = reply_of(earlier, dialect)
        predicted = rendering.shared_prefix(request, answer.usage if answer else None).tokens
        estimated = rendering.shared_prefix(request).tokens
        yield Pair(wire, earlier, exchange, predicted, estimated, reply.usage.cache_read_tokens)


@pytest.mark.parametrize("wire", WIRES)
def test_a_cache_reads_no_more_than_the_requests_share(wire: str) -> None:
    excesses = [pair.later.id for pair in pairs(wire) if not pair.is_explained]

    assert set(excesses) == EXCESSES.keys() & {pair.later.id for pair in pairs(wire)}
    assert len(pairs(wire)) >= LEAST[wire]


if __name__ == "__main__":
    for name in WIRES:
        own = pairs(name)
        above = sum(pair.read > pair.estimated * TOLERANCE for pair in own)
        hits = sum(pair.read > 0 for pair in own)
        print(f"{name}: {len(own)} pairs, {hits} read from a cache, {above} more than the estimate by bytes")
        for pair in own:
            if not pair.is_explained:
                print(f"  {pair.later.id} at {pair.later.host}: read {pair.read}, predicted {pair.predicted}")
