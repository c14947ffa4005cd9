"""The table that is installed: every seller is in it, and its own rates give the costs worked out from them."""

import socket
from datetime import UTC, datetime
from decimal import Decimal
from typing import NoReturn

import pytest
import sabir
from genai_prices.data_snapshot import get_snapshot
from sabir.vocabulary.reply import Usage
from sabir_prices import cost_of
from sabir_prices.sellers import SELLERS, own_seller, seller_at

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
MILLION = Decimal(1_000_000)
SOLD = {
    "anthropic": "claude-sonnet-4-5",
    "deepseek": "deepseek-chat",
    "google": "gemini-2.5-flash",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-large-latest",
    "openai": "gpt-4o-mini",
    "openrouter": "openai/gpt-4o",
    "together": "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "xai": "grok-4",
}
"""Provider → one of its models that the table knows."""


def rate(provider: str, model: str, name: str) -> Decimal | None:
    """A rate as the table has it; the first of several that depend on the length."""
    row = own_seller(provider)
    assert row is not None
    _, found = get_snapshot().find_provider_model(model, None, row.table_id, None)
    price = getattr(found.get_prices(AT), name)
    return price if price is None else Decimal(getattr(price, "base", price))


@pytest.mark.parametrize("table_id", sorted({row.table_id for row in SELLERS}))
def test_every_seller_is_in_the_table(table_id: str) -> None:
    """By its very id: the table would otherwise guess."""
    assert table_id in {provider.id for provider in get_snapshot().providers}


@pytest.mark.parametrize(("provider", "model"), SOLD.items(), ids=list(SOLD))
def test_the_tables_own_rates_give_the_cost(provider: str, model: str) -> None:
    """1,000 tokens in, of which 400 from a cache, 100 out."""
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=400)
    found = cost_of(usage, provider=provider, model=model, at=AT)

    into, read, out = (rate(provider, model, f"{name}_mtok") for name in ("input", "cache_read", "output"))
    assert found is not None
    assert into is not None
    assert out is not None
    expected = 600 * into + 400 * (into if read is None else read) + 100 * out
    assert found.total == expected / MILLION > 0
    assert (found.cache_read is None) == (read is None)


def test_a_written_cache_costs_what_the_table_says() -> None:
    """Anthropic's rates: a cache written for five minutes costs more than input."""
    usage = Usage(input_tokens=1000, output_tokens=0, cache_write_tokens=400)
    found = cost_of(usage, provider="anthropic", model="claude-sonnet-4-5", at=AT)
    into, written = (rate("anthropic", "claude-sonnet-4-5", f"{name}_mtok") for name in ("input", "cache_write"))

    assert found is not None
    assert into is not None
    assert written is not None
    assert written > into
    assert (found.cache_write, found.input) == (400 * written / MILLION, 600 * into / MILLION)


@pytest.mark.parametrize("model", ["openrouter/auto", "meta-llama/llama-3.3-70b-instruct:free"])
def test_a_model_without_rates_has_no_cost(model: str) -> None:
    """It may be known by name."""
    assert cost_of(Usage(input_tokens=1000, output_tokens=100), provider="openrouter", model=model, at=AT) is None


def test_every_provider_that_is_installed_is_sold_or_has_no_price() -> None:
    """A row's host is where sabir's own provider goes; others are machines of one's own."""
    endpoints = {row.name: sabir.adapter(f"{row.name}:m").target.endpoint for row in sabir.providers() if not row.error}
    sold = {name for name, endpoint in endpoints.items() if seller_at(name, endpoint)}

    assert {"openai", "groq", "together", "openrouter", "mistral"} <= sold
    assert sold.isdisjoint({"echo", "local", "lmstudio", "ollama", "vllm"})
    assert {row.provider for row in SELLERS} & endpoints.keys() <= sold


def test_a_price_is_found_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table comes with its package, and is not updated behind anyone's back."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert cost_of(Usage(input_tokens=1, output_tokens=1), provider="openai", model="gpt-4o", at=AT) is not None
