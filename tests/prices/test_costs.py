"""A cost is rates times counts, worked out by hand here; what is not known has none."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any, NoReturn

import pytest
import sabir
from genai_prices import data_snapshot
from genai_prices.data_snapshot import DataSnapshot, get_snapshot, set_custom_snapshot
from genai_prices.types import (
    ClauseStartsWith,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    UsageExtractor,
    UsageExtractorMapping,
)
from sabir import Reply, Usage
from sabir.errors import SettingsInvalid
from sabir_prices import Cost, cheapest, cost, cost_of
from sabir_prices.costs import SELLERS, own_seller, searches_of, seller_at

LATER = datetime(2031, 1, 1, tzinfo=UTC)
EARLIER = datetime(2029, 1, 1, tzinfo=UTC)


def rates(**per_million: Any) -> ModelPrice:
    """Dollars for a million tokens, or a TieredPrices."""
    return ModelPrice(
        **{name: rate if isinstance(rate, TieredPrices) else Decimal(rate) for name, rate in per_million.items()}
    )


def model(name: str, prices: ModelPrice, *variants: PriceVariant) -> ModelInfo:
    return ModelInfo(id=name, match=ClauseStartsWith(name), prices=prices, price_variants=list(variants))


ONE_HOUR = UsageExtractorMapping(path=["cached", "hour"], dest="cache_write_1h_tokens", required=False)
SOUND = UsageExtractorMapping(path="sound", dest="input_audio_tokens", required=False)
SEARCHES = UsageExtractorMapping(path="searches", dest="web_searches", required=False)
READING = UsageExtractor(
    root=["outer", "usage"],
    mappings=[
        UsageExtractorMapping(path="in", dest="input_tokens"),
        UsageExtractorMapping(path="out", dest="output_tokens"),
        UsageExtractorMapping(path="read", dest="cache_read_tokens", required=False),
        UsageExtractorMapping(path="written", dest="cache_write_tokens", required=False),
        ONE_HOUR, SOUND, SEARCHES,
    ],
)  # fmt: skip
FLEX = PriceVariant(when={"service_tier": "flex"}, prices=rates(input_mtok="1", output_mtok="5"))
LATE = PriceVariant(
    when={"service_tier": "late"},
    prices=rates(input_mtok="1"),
    constraint=StartDateConstraint(start_date=datetime(2030, 1, 1, tzinfo=UTC).date()),
)
TABLE = [
    Provider(
        id="openai",
        name="",
        api_pattern="",
        extractors=[READING],
        models=[
            model("plain", rates(input_mtok="2", output_mtok="10"), FLEX, LATE),
            model("cached", rates(input_mtok="2", cache_read_mtok="0.5", cache_write_mtok="2.5", output_mtok="10")),
            model(
                "hourly",
                rates(input_mtok="2", cache_write_mtok="2.5", cache_write_1h_mtok="4", output_mtok="10",
                      web_searches_kcount="10"),
            ),
            model("spoken", rates(input_mtok="2", input_audio_mtok="32", output_mtok="10")),
            model("tiered", rates(input_mtok=TieredPrices(Decimal(2), [Tier(1000, Decimal(4))]), output_mtok="10")),
            model("priceless", rates()),
            model("inputs", rates(input_mtok="2")),
            model("free", rates(input_mtok="0", output_mtok="0")),
        ],
    ),
    Provider(id="azure", name="", api_pattern="", models=[model("plain", rates(input_mtok="3", output_mtok="10"))]),
    Provider(id="aws", name="", api_pattern="", models=[model("eu.plain", rates(input_mtok="4", output_mtok="10"))]),
]  # fmt: skip


@pytest.fixture
def table() -> Iterator[None]:
    """A table of the package's own kind, with round rates."""
    before = data_snapshot._custom_snapshot
    set_custom_snapshot(DataSnapshot(providers=TABLE, from_auto_update=False))
    yield
    set_custom_snapshot(before)


def of(model: str, *figures: int | None, **more: Any) -> Cost | None:
    """The cost of input, output, and tokens read from and written to a cache."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    usage = Usage(**dict(zip(names, figures, strict=False)), **more)
    return cost_of(usage, provider="openai", model=model, at=LATER)


def known(found: Cost | None) -> Cost:
    assert found is not None
    return found


PAID: dict[str, tuple[str, tuple[int | None, ...], dict[str, str]]] = {
    "two rates": ("plain", (1000, 100), {"input": "0.002", "output": "0.001"}),
    "cached": (
        "cached", (1000, 100, 400, 100),  # of 1,000 in, 400 were read and 100 written
        {"input": "0.001", "cache_read": "0.0002", "cache_write": "0.00025", "output": "0.001"},
    ),
    "cached without a rate of its own": ("plain", (1000, 0, 400), {"input": "0.002", "output": "0"}),
    "below a threshold": ("tiered", (1000, 0), {"input": "0.002", "output": "0"}),
    "beyond it": ("tiered", (2000, 0), {"input": "0.008", "output": "0"}),
    "free": ("free", (1000, 100), {"input": "0", "output": "0"}),
    "no output and no rate for it": ("inputs", (1000, 0), {"input": "0.002", "output": "0"}),
}  # fmt: skip
"""What is paid → model, figures, and the parts of the cost."""


@pytest.mark.parametrize(("name", "figures", "parts"), PAID.values(), ids=list(PAID))
def test_a_cost_is_the_rates_times_the_counts(
    table: None, name: str, figures: tuple[int | None, ...], parts: dict[str, str]
) -> None:
    """No part is claimed for cached tokens without a rate of their own, which are paid as input."""
    found = known(of(name, *figures))

    expected = {part: Decimal(amount) for part, amount in parts.items()}
    shown = {part: getattr(found, part) for part in ("input", "output", "cache_read", "cache_write")}
    assert {part: amount for part, amount in shown.items() if amount is not None} == expected
    assert (found.total, found.other) == (sum(expected.values()), 0)


def test_a_cost_names_seller_model_and_table(table: None) -> None:
    found = known(of("plain", 1000, 100))

    assert (found.provider, found.model) == ("openai", "plain")
    assert found.table == f"genai-prices {version('genai-prices')}"
    assert str(found) == "$0.003 for openai:plain"


def test_the_providers_own_figures_say_more_where_they_agree(table: None) -> None:
    """Of 300 written 200 for an hour (4 $, else 2.5), and 3 searches (10 $ a thousand); 50 of sound (32 $)."""
    details = {"in": 1000, "out": 100, "written": 300, "cached": {"hour": 200}, "searches": 3}
    hourly = known(of("hourly", 1000, 100, None, 300, details=details))
    spoken = known(of("spoken", 1000, 100, details={"in": 1000, "out": 100, "sound": 50}))

    assert hourly.cache_write == Decimal("0.00105")  # 200 × 4 + 100 × 2.5
    assert (hourly.input, hourly.output, hourly.other) == (Decimal("0.0014"), Decimal("0.001"), Decimal("0.03"))
    assert (spoken.input, spoken.output) == (Decimal("0.0035"), Decimal("0.001"))  # 950 × 2 + 50 × 32


@pytest.mark.parametrize(
    "details",
    [{"in": 999, "out": 100, "sound": 50}, {"in": 1000, "out": 100, "read": 1, "sound": 50}, {"sound": 50}, 5],
)
def test_figures_that_disagree_or_are_none_of_its_kind_are_not_used(table: None, details: Any) -> None:
    assert known(of("spoken", 1000, 100, details=details)).total == Decimal("0.003")


UNKNOWN: dict[str, tuple[str, tuple[int | None, ...]]] = {
    "model": ("unheard-of", (1000, 100)),
    "no rates": ("priceless", (1000, 100)),
    "no rates and no tokens": ("priceless", (0, 0)),
    "no rate for output": ("inputs", (1000, 100)),
    "no input": ("plain", (None, 100)),
    "no output": ("plain", (1000, None)),
    "no usage": ("plain", (None, None)),
    "more cached than there was": ("cached", (10, 1, 20)),
}


@pytest.mark.parametrize(("name", "figures"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_what_is_not_known_has_no_cost(table: None, name: str, figures: tuple[int | None, ...]) -> None:
    assert of(name, *figures) is None


def reply(endpoint: str, provider: str = "openai", **more: Any) -> Reply:
    """1,000 tokens in, 100 out, at an endpoint; fields of the origin and the reply."""
    names = {"model": "plain", "reported_model": more.pop("reported_model", None), **more.pop("origin", {})}
    origin = sabir.Origin(provider=provider, dialect="any.talk", endpoint=endpoint, **names)
    usage = more.pop("usage", Usage(input_tokens=1000, output_tokens=100))
    return Reply(messages=(), finish_reason="stop", origin=origin, usage=usage, **more)


OWN = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("endpoint", "total"),
    [
        (OWN, "0.003"),
        ("https://name.openai.azure.com/openai/v1", "0.004"),
        ("https://openai.azure.com.evil.example/v1", None),
        ("https://proxy.example.org/v1", None),
        ("https://api.openai.com.example.org/v1", None),
        ("https://eu.api.openai.com/v1", None),
        ("http://localhost:8000/v1", None),
        ("", None),
    ],
)
def test_who_is_paid_depends_on_where_the_call_went(table: None, endpoint: str, total: str | None) -> None:
    """Another endpoint is not priced as the vendor's."""
    found = cost(reply(endpoint), at=LATER)

    assert (found and found.total) == (total and Decimal(total))


@pytest.mark.parametrize(
    ("provider", "endpoint", "table_id"),
    [
        ("azure", "https://name.openai.azure.com/openai/v1", "azure"),
        ("azure", "https://gateway.example/openai/v1", None),
        ("vertex", "https://aiplatform.googleapis.com/v1", "google"),
        ("vertex", "https://europe-west1-aiplatform.googleapis.com/v1", None),
    ],
)
def test_a_cloud_is_paid_at_its_own_endpoint(provider: str, endpoint: str, table_id: str | None) -> None:
    """Regional endpoints of Vertex AI cost more for newer models, which the table does not say."""
    row = seller_at(provider, endpoint)

    assert (row and row.table_id) == table_id


def test_the_model_that_answered_is_the_one_that_is_paid(table: None) -> None:
    """An alias or a deployment answers under another name; one that is unknown has no price."""
    renamed = {"model": "my-deployment"}

    assert known(cost(reply(OWN, origin=renamed, reported_model="plain-2030"), at=LATER)).model == "plain"
    assert cost(reply(OWN, reported_model="unheard-of"), at=LATER) is None


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
def test_a_platform_that_sells_by_the_name_asked_for_is_asked_by_it(table: None, provider: str) -> None:
    """The region is in that name, and the rate depends on it."""
    endpoint = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    found = known(cost(reply(endpoint, provider, origin={"model": "eu.plain"}, reported_model="plain"), at=LATER))

    assert (found.provider, found.total) == ("aws", Decimal("0.005"))


@pytest.mark.parametrize(
    ("said", "at", "total"),
    [
        ({"service_tier": "default"}, LATER, "0.003"),
        ({"service_tier": "flex"}, LATER, "0.0015"),
        ({"service_tier": "late"}, LATER, "0.002"),
        ({"service_tier": "late"}, EARLIER, None),
        ({"service_tier": "unheard-of"}, LATER, None),
        ({"speed": "fast"}, LATER, None),
        ({"service_tier": None}, LATER, "0.003"),
    ],
)
def test_how_a_call_was_served_decides_its_rate(
    table: None, said: dict[str, Any], at: datetime, total: str | None
) -> None:
    """Said beside the answer or among the figures; a service without rates has no price."""
    beside = cost(reply(OWN, details=said), at=at)
    within = cost(reply(OWN, usage=Usage(input_tokens=1000, output_tokens=100, details=said)), at=at)

    assert (beside and beside.total) == (within and within.total) == (total and Decimal(total))


def figures(fresh: int, read: int, written: int, output: int, **more: Any) -> dict[str, Any]:
    """Figures that count cached input apart."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return {**dict(zip(names, (fresh, read, written, output), strict=True)), **more}


OWN_FIGURES = figures(1000, 0, 0, 100)
ADVISOR = {"type": "advisor_message", "model": "tiered"}
COMPACTION = {"type": "compaction"}
CACHED_ONE = {"type": "advisor_message", "model": "cached"}


@pytest.mark.parametrize(
    ("iterations", "total"),
    [
        ([{**OWN_FIGURES, "type": "message"}], "0.003"),
        ([{**figures(1000, 0, 0, 10), **COMPACTION}, {**OWN_FIGURES, "type": "message"}], "0.0051"),
        ([{**figures(2000, 0, 0, 10), **ADVISOR}], "0.0111"),
        ([{**figures(600, 0, 0, 10), **ADVISOR}, {**figures(600, 0, 0, 10), **ADVISOR}], "0.0056"),
        ([{**figures(500, 400, 100, 10), **CACHED_ONE}], "0.00455"),
        ([{**figures(1000, 0, 0, 10), "type": "advisor_message", "model": "unheard-of"}], None),
        ([{**figures(1000, 0, 0, 10), "type": "declined"}, None], "0.003"),
    ],
    ids=["none", "compaction", "advisor", "two short calls", "cached", "no rates", "not billed"],
)
def test_calls_that_a_provider_made_for_a_reply_are_paid_at_their_own_rates(
    table: None, iterations: list[Any], total: str | None
) -> None:
    """The reply's own call costs 0.003 $. A rate that depends on the length depends on that of each call."""
    details = {**OWN_FIGURES, "iterations": iterations}
    apart = [each for each in iterations if each and each.get("type") in ("advisor_message", "compaction")]
    counted = [OWN_FIGURES, *apart]
    whole = Usage(
        input_tokens=sum(sum(each[name] for name in list(OWN_FIGURES)[:3]) for each in counted),
        output_tokens=sum(each["output_tokens"] for each in counted),
        details=details,
    )

    paid = cost(reply(OWN, usage=whole), at=LATER)

    assert (paid and paid.total) == (total and Decimal(total))
    if paid:
        parts = (paid.input, paid.output, paid.cache_read, paid.cache_write, paid.other)
        assert (paid.model, paid.total) == ("plain", sum(part or 0 for part in parts))


def test_a_time_needs_its_zone(table: None) -> None:
    with pytest.raises(SettingsInvalid, match="has no time zone"):
        cost(reply(OWN), at=datetime(2030, 1, 1))


def test_a_reply_of_a_model_that_nobody_sells_has_no_cost() -> None:
    answered = sabir.adapter("echo:small").complete_sync("one two")

    assert answered.usage.input_tokens == 2
    assert cost(answered) is None
    assert cost_of(answered.usage, provider="local", model="smollm2") is None


def test_the_table_is_imported_at_the_first_question() -> None:
    """It is large: importing this package must not cost its time."""
    program = """
import sys, sabir_prices
from sabir import Usage
sabir_prices.cost_of(Usage(input_tokens=1, output_tokens=1), provider="echo", model="x")
assert "genai_prices" not in sys.modules
sabir_prices.cost_of(Usage(input_tokens=1, output_tokens=1), provider="openai", model="gpt-4o")
assert "genai_prices" in sys.modules
"""
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )

    assert finished.returncode == 0, finished.stderr


AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
MILLION = Decimal(1_000_000)
SOLD = {
    "anthropic": "claude-sonnet-4-5",
    "azure": "gpt-4o-mini",
    "bedrock": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "deepseek": "deepseek-chat",
    "google": "gemini-2.5-flash",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-large-latest",
    "openai": "gpt-4o-mini",
    "openrouter": "openai/gpt-4o",
    "together": "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "vertex": "claude-sonnet-4-5@20250929",
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


@pytest.mark.parametrize("model", ["openrouter/auto", "meta-llama/llama-3.3-70b-instruct:free"])
def test_a_model_without_rates_has_no_cost(model: str) -> None:
    assert cost_of(Usage(input_tokens=1000, output_tokens=100), provider="openrouter", model=model, at=AT) is None


def test_every_provider_that_is_installed_is_sold_or_has_no_price() -> None:
    """A row's host is where sabir's own provider goes; others are machines of one's own."""
    endpoints = {
        row.name: sabir.adapter(f"{name}:m").target.endpoint for row in sabir.providers() for name in row.names[:1]
    }
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


def searched(usage: dict[str, Any], *parts: Any, provider: str = "openai") -> sabir.Reply:
    origin = sabir.Origin(provider=provider, dialect="d", endpoint="https://api.openai.com/v1", model="hourly")
    payload = sabir.PartsPayload(parts=(*parts, sabir.TextPart(text="Found.")))
    message = sabir.Message(policy="llm", origin=origin, payload=payload)
    counts = sabir.Usage(input_tokens=1000, output_tokens=100, details=usage)
    return sabir.Reply(messages=(message,), finish_reason="stop", usage=counts, origin=origin)


SEARCHED = sabir.NativeCallPart(tool="web_search", queries=("a", "b"), dialect="d", raw={"id": 1})
OPENED = sabir.NativeCallPart(tool="web_search", name="open_page", url="https://a.org", dialect="d", raw={"id": 2})


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (searched({"server_tool_use": {"web_search_requests": 3}}, SEARCHED), 3),
        (searched({"server_side_tool_usage_details": {"web_search_calls": 2}}), 2),
        (searched({"server_tool_use_details": {"web_search_requests": 1}}), 1),
        (searched({}, SEARCHED, OPENED, SEARCHED), 2),
        (searched({}, SEARCHED, provider="google"), 2),
        (searched({}), 0),
    ],
)
def test_searches_are_counted_by_the_vendor_or_among_the_calls(reply: sabir.Reply, count: int) -> None:
    assert searches_of(reply) == count


def test_searches_are_part_of_the_cost_and_without_a_price_the_cost_is_unknown(table: None) -> None:
    """10 $ a thousand searches."""
    priced = searched({}, SEARCHED)
    unpriced = priced.model_copy(update={"origin": priced.origin.model_copy(update={"model": "spoken"})})

    assert known(cost(priced)).other == Decimal("0.01")
    assert cost(searched({})) is not None
    assert cost(unpriced) is None


@pytest.mark.parametrize(
    ("seller", "endpoint", "name"),
    [
        ("openai", "https://api.openai.com/v1", "gpt-5"),
        ("anthropic", "https://api.anthropic.com", "claude-haiku-4-5"),
        ("google", "https://generativelanguage.googleapis.com", "gemini-2.5-flash"),
    ],
)
def test_a_reply_of_a_batch_costs_half(seller: str, endpoint: str, name: str) -> None:
    """By the vendors' own pages, which the table follows."""
    origin = sabir.Origin(provider=seller, dialect="d", endpoint=endpoint, model=name)
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000)
    usual = Reply(messages=(), finish_reason="stop", usage=usage, origin=origin)
    of_batch = usual.model_copy(update={"is_batch": True})
    tier = Usage(input_tokens=1_000_000, output_tokens=100_000, details={"service_tier": "batch"})
    named = usual.model_copy(update={"usage": tier})

    costs = [cost(each) for each in (usual, of_batch, named)]
    assert all(costs) and costs[1] == costs[2]
    assert costs[0] and costs[1] and costs[0].total == 2 * costs[1].total


@pytest.mark.usefixtures("table")
def test_the_cheapest_member_is_tried_first_and_unknown_prices_last() -> None:
    """A quarter of the bytes at 2 dollars for a million tokens, and 1,000 tokens of output at 10."""
    models = ["openai:unknown", "openai:plain", "openai:free"]
    renderings = [sabir.adapter(model, api_key="any").render("Hello!") for model in models]
    unknown, plain, free = map(cheapest, renderings)

    tokens = -(-len(renderings[1].body_bytes) // 4)
    assert plain == (False, Decimal(tokens) * 2 / 10**6 + Decimal(1_000) * 10 / 10**6)
    assert free < plain < unknown
    assert cheapest(renderings[1], output_tokens=0) < plain
    assert (
        cheapest(sabir.adapter("openai:plain", base_url="http://proxy.test", api_key="any").render("Hello!")) == unknown
    )
