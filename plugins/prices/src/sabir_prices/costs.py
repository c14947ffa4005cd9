"""The cost of a reply, from the table of prices of the package genai-prices. An unknown cost is None, never 0.

    origin ──▶ seller: a provider at a host ──▶ a provider of the table
    usage ──▶ calls: the reply's own, and further calls that the provider made for it
              each ──▶ the table's own counts ──▶ rates × counts ──▶ Cost ──▶ the sum

Calls of a provider that sells nothing, such as a local model, and calls to an endpoint whose seller is not known, such
as a proxy, have no known price.

sabir and the table count alike: cached tokens are part of the input, reasoning is part of the output. If a provider's
own figures have more detail (audio tokens, lifetime of cache entries, searches), the counts that genai-prices reads
from these figures are used, as long as the totals agree. An advisor's answer, and the summary of a long context, are
separate calls: each is priced at the rates of its own model and length.

The table is imported at the first use, and is never updated from the network: update the package genai-prices for newer
prices.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from sabir import NativeCallPart, Rendering, Reply, Usage
from sabir.authoring import Frozen, JSONValue, first_whole_number
from sabir.errors import SettingsInvalid

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, PriceCalculation, Provider
    from genai_prices.types import Usage as Counts

DISTRIBUTION = "genai-prices"
ORDINARY: Mapping[str, frozenset[str]] = {
    "service_tier": frozenset({"auto", "default", "on_demand", "standard"}),
    "speed": frozenset({"standard"}),
    "processing": frozenset(),
}
"""Field in which a provider reports the rate of a call → the values that mean the usual rate."""
BATCH: Mapping[str, str] = {"processing": "batch"}
"""The table's name of the rate for replies of batches."""
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
"""The fields of a Usage that have the same names in genai-prices."""
BILLED_SEPARATELY = frozenset({"advisor_message", "compaction"})
"""Types of `iterations` in a provider's figures whose tokens are not in the other figures. `Usage` includes them."""
SEARCHES = (
    ("server_tool_use", "web_search_requests"),
    ("server_tool_use_details", "web_search_requests"),
    ("server_side_tool_usage_details", "web_search_calls"),
)
"""Objects in providers' figures, each with its field for the number of web searches (Anthropic, OpenRouter, xAI)."""
SEARCH_RATE = "web_searches_kcount"
"""The rate in the table without which searches have no known price."""
REQUIRED: Mapping[str, str] = {"input_tokens": "input_mtok", "output_tokens": "output_mtok"}
"""Field of a Usage → the rate in the table without which these tokens have no known price."""


class Cost(Frozen):
    """The cost of one reply in US dollars, returned by `cost` and `cost_of`.

    `total` is the sum of `input` (without cached tokens), `output`, `cache_read`, `cache_write` and `other`.
    `cache_read` and `cache_write` are None if the table has no separate rate; then `input` includes these tokens.
    `other` is the cost of what is not priced by the token, for example searches. `model` and `provider` are the names
    in the table, and `table` is the table's name and version. Tokens of an advisor model are included at its own rates.
    """

    total: Decimal
    input: Decimal
    output: Decimal
    cache_read: Decimal | None
    cache_write: Decimal | None
    other: Decimal
    model: str
    provider: str
    table: str

    def __str__(self) -> str:
        """Return the total in dollars, the provider and the model in one line."""
        return f"${self.total.normalize():f} for {self.provider}:{self.model}"


def cost(reply: Reply, *, at: datetime | None = None) -> Cost | None:
    """Return the cost of a reply, from its usage and origin, or None if the cost is not known.

    Web searches that the provider ran count too. Code that it ran does not, because providers bill containers by time.
    A reply of a batch has the table's rate for batches, usually half of the usual rate.

    The cost is not known if the provider did not report both input and output tokens, if the table lacks the model or a
    rate, also of searches, for a local model, and for a call to an endpoint whose seller is not known, such as a proxy.
    `at` is the time of the call, for rates that change; None means now. Raises SettingsInvalid if `at` has no time zone
    and the provider and endpoint are known.
    """
    origin = reply.origin
    seller = seller_at(origin.provider, origin.endpoint)
    if seller is None:
        return None
    reported = origin.reported_model or origin.model
    model = reported if seller.names == "reported" else origin.model
    served = {**_provider_fields(reply.usage, reply.details), **(BATCH if reply.is_batch else {})}
    return price(reply.usage, seller.table_id, model, served=served, at=at, searches=searches_of(reply))


def cost_of(usage: Usage, *, provider: str, model: str, at: datetime | None = None) -> Cost | None:
    """Return the cost of a usage at the provider's own service, or None if the cost is not known.

    The cost is not known if `input_tokens` or `output_tokens` is None, if the table lacks the model or a rate, and for
    a provider that is unknown or sells nothing. `provider` and `model` are the names used in
    `sabir.adapter("provider:model")`. `at` is the time of the call; None means now. Raises SettingsInvalid if `at` has
    no time zone and the provider is known.
    """
    seller = own_seller(provider)
    if seller is None:
        return None
    searches = _reported_searches(usage) or 0
    return price(usage, seller.table_id, model, served=_provider_fields(usage, None), at=at, searches=searches)


def searches_of(reply: Reply) -> int:
    """Return the number of web searches that the provider ran for a reply, and bills apart from tokens.

    The number is the provider's own if its usage has one. Otherwise, it is the number of searches among the reply's
    native calls; Google bills each query of a call that is a part of the answer.
    """
    reported = _reported_searches(reply.usage)
    if reported is not None:
        return reported
    parts = (part for message in reply.messages for part in message.parts)
    calls = [part for part in parts if isinstance(part, NativeCallPart) and part.tool == "web_search" and part.queries]
    by_query = reply.origin.provider == "google"
    return sum(len(call.queries) if by_query and call.raw is not None else 1 for call in calls)


def _reported_searches(usage: Usage) -> int | None:
    figures = usage.details if isinstance(usage.details, Mapping) else {}
    objects = ((figures.get(outer), inner) for outer, inner in SEARCHES)
    counts = (first_whole_number(fields.get(inner)) for fields, inner in objects if isinstance(fields, Mapping))
    return next((count for count in counts if count is not None), None)


def cheapest(rendering: Rendering, *, output_tokens: int = 1_000) -> tuple[bool, Decimal]:
    """Return a sort key for `sabir.fallback(order=cheapest)`: the estimated price of a request, unknown prices last.

    The price is for a quarter of the request's bytes as input tokens, and for `output_tokens`. The first item of the
    key is True if the price is not known; then the second is 0.
    """
    target = rendering.target
    seller = seller_at(target.provider, target.endpoint)
    usage = Usage(input_tokens=-(-len(rendering.body_bytes) // 4), output_tokens=output_tokens)
    estimate = None if seller is None else price(usage, seller.table_id, target.model, served={}, at=None)
    return (True, Decimal(0)) if estimate is None else (False, estimate.total)


def _provider_fields(usage: Usage, details: object) -> dict[str, Any]:
    """Return the provider's own fields about a call, from the reply's details and the usage's details."""
    sources = (each for each in (details, usage.details) if isinstance(each, Mapping))
    return {name: value for each in sources for name, value in each.items()}


class Seller(NamedTuple):
    """A provider at a host, and its id in the table.

    `names` is the model name that the table has: the name that the response reports, or the requested name.
    """

    provider: str
    host: str
    """A regular expression for the complete host name of the endpoint."""
    table_id: str
    names: Literal["reported", "requested"] = "reported"


SELLERS = (
    Seller("anthropic", r"api\.anthropic\.com", "anthropic"),
    Seller("anthropic", r"bedrock-runtime\..+\.amazonaws\.com", "aws", "requested"),
    Seller("azure", r"(.+\.)?(openai|cognitiveservices)\.azure\.com", "azure"),
    Seller("bedrock", r"bedrock-runtime\.(.+\.)?amazonaws\.com", "aws", "requested"),
    Seller("cerebras", r"api\.cerebras\.ai", "cerebras"),
    Seller("deepseek", r"api\.deepseek\.com", "deepseek"),
    Seller("fireworks", r"api\.fireworks\.ai", "fireworks"),
    Seller("google", r"generativelanguage\.googleapis\.com|(.+-)?aiplatform\.googleapis\.com", "google"),
    Seller("groq", r"api\.groq\.com", "groq"),
    Seller("mistral", r"api\.mistral\.ai", "mistral"),
    Seller("openai", r"api\.openai\.com", "openai"),
    Seller("openai", r".+\.(openai|cognitiveservices)\.azure\.com", "azure"),
    Seller("openrouter", r"openrouter\.ai", "openrouter"),
    Seller("together", r"api\.together\.(ai|xyz)", "together"),
    Seller("vertex", r"aiplatform\.googleapis\.com", "google"),  # regional endpoints cost more than the table says
    Seller("xai", r"api\.x\.ai", "x-ai"),
)
"""The known sellers. The first row of each provider is the provider's own service."""


@lru_cache(maxsize=256)
def seller_at(provider: str, endpoint: str) -> Seller | None:
    """Return the seller of a provider's calls to an endpoint (a URL), or None if the seller is not known."""
    host = urlsplit(endpoint).hostname or ""
    return next((row for row in SELLERS if row.provider == provider and re.fullmatch(row.host, host)), None)


def own_seller(provider: str) -> Seller | None:
    """Return the seller of calls to a provider's own service, or None for an unknown provider."""
    return next((row for row in SELLERS if row.provider == provider), None)


def price(
    usage: Usage,
    table_id: str,
    model: str,
    *,
    served: Mapping[str, JSONValue],
    at: datetime | None,
    searches: int = 0,
) -> Cost | None:
    """Return the cost of a usage, or None if the table lacks a model or a rate, or the usage a number.

    `served` are the provider's own fields about the call, for example its service tier. `searches` is the number of web
    searches in the first call. `at` is the time of the call; None means now. Raises SettingsInvalid if `at` has no time
    zone.
    """
    if at is not None and at.tzinfo is None:
        raise SettingsInvalid(f"at={at} has no time zone, and rates depend on the hour; add a time zone, such as UTC")
    at = at or datetime.now(UTC)
    costs = [
        _price_call(call.usage, table_id, call.model or model, served, at, searches if number == 0 else 0)
        for number, call in enumerate(calls_of(usage))
    ]
    known = [each for each in costs if each is not None]
    return _sum_costs(known) if len(known) == len(costs) else None


class PricedCall(NamedTuple):
    """A call of a model that is priced separately. `model` is "" for the model of the reply."""

    usage: Usage
    model: str = ""


def calls_of(usage: Usage) -> list[PricedCall]:
    """Return the calls whose tokens a usage sums up.

    The reply's own call is first. Further calls, such as an advisor's answer, are calls that the provider made for it.
    """
    figures = usage.details if isinstance(usage.details, Mapping) else {}
    iterations = figures.get("iterations")
    entries = [entry for entry in iterations if isinstance(entry, Mapping)] if isinstance(iterations, list) else []
    separate = [entry for entry in entries if entry.get("type") in BILLED_SEPARATELY]
    if not separate:
        return [PricedCall(usage)]
    further = (PricedCall(_read_figures(entry), str(entry.get("model") or "")) for entry in separate)
    return [PricedCall(_read_figures(figures)), *further]


def _read_figures(figures: Mapping[str, JSONValue]) -> Usage:
    """Return the usage for a provider's figures in which `input_tokens` does not include cached tokens."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    fresh, read, written, output = (first_whole_number(figures.get(name)) or 0 for name in names)
    counts = {"cache_read_tokens": read, "cache_write_tokens": written, "output_tokens": output}
    return Usage(input_tokens=fresh + read + written, **counts, details=figures)


def _price_call(
    usage: Usage, table_id: str, model: str, served: Mapping[str, JSONValue], at: datetime, searches: int
) -> Cost | None:
    """Return the cost of one call, or None if the table lacks the model or a rate, or the usage a number."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    try:
        provider, model_info = snapshot.find_provider_model(model, None, table_id, None)
        context = _price_context(served, model_info, at)
        if context is None:
            return None
        counts = _with_searches(_convert_usage(usage, provider), searches)
        priced = model_info.calc_price(counts, provider, genai_request_timestamp=at, price_context=context)
    except (LookupError, ValueError):
        return None
    known = _known_rates(priced.model_price)
    if searches and SEARCH_RATE not in known:
        return None
    if not known or any(getattr(usage, field) and rate not in known for field, rate in REQUIRED.items()):
        return None
    return _build_cost(priced, counts)


def _price_context(served: Mapping[str, JSONValue], model: "ModelInfo", at: datetime) -> dict[str, str] | None:
    """Return the fields of `served` that mean an unusual rate; None if the table does not have this rate."""
    fields = {name: value for name in ORDINARY if isinstance(value := served.get(name), str)}
    if fields.get("service_tier") == "batch":  # Anthropic's name for the rate
        fields |= {"service_tier": "standard", **BATCH}
    unusual = {name: value for name, value in fields.items() if value not in ORDINARY[name]}
    variants = [row.when for row in model.price_variants or () if row.constraint is None or row.constraint.active(at)]
    return unusual if all({name: value} in variants for name, value in unusual.items()) else None


def _convert_usage(usage: Usage, provider: "Provider") -> "Counts":
    """Return a usage as counts of genai-prices.

    The counts are read from the provider's own figures by genai-prices if the totals agree, else taken from the usage.
    """
    from genai_prices.types import Usage as Counts

    neutral = {field: getattr(usage, field) or 0 for field in COUNTED}
    for extractor in provider.extractors or ():
        roots = [extractor.root] if isinstance(extractor.root, str) else list(extractor.root)
        figures = usage.details
        for root in reversed(roots):
            figures = {root: figures}
        try:
            _, read = extractor.extract(figures)
            if all(getattr(read, field) == count for field, count in neutral.items()):
                return read
        except ValueError:
            continue
    return Counts(**neutral)


def _with_searches(counts: "Counts", searches: int) -> "Counts":
    """Return the counts with the number of web searches, unless they have it already or there are none."""
    if not searches or counts.web_searches:
        return counts
    return type(counts)(**{**vars(counts), "web_searches": searches})


def _sum_costs(costs: Sequence[Cost]) -> Cost:
    """Return the sum of costs, with the names of the first cost. A part is None if it is None in all costs."""
    parts = ("total", "input", "output", "cache_read", "cache_write", "other")
    columns = {part: [value for each in costs if (value := getattr(each, part)) is not None] for part in parts}
    return costs[0].model_copy(update={part: sum(column) for part, column in columns.items() if column})


def _build_cost(priced: "PriceCalculation", counts: "Counts") -> Cost:
    read, write = (_cache_cost(priced, counts, kind) for kind in ("_read", "_write"))
    return Cost(
        total=priced.total_price,
        input=priced.input_price - (read or 0) - (write or 0),
        output=priced.output_price,
        cache_read=read,
        cache_write=write,
        other=priced.total_price - priced.input_price - priced.output_price,
        model=priced.model.id,
        provider=priced.provider.id,
        table=f"{DISTRIBUTION} {version(DISTRIBUTION)}",
    )


def _cache_cost(priced: "PriceCalculation", counts: "Counts", kind: str) -> Decimal | None:
    """Return the cost of reading ("_read") or writing ("_write") a cache, or None without a rate for this.

    The cost is the total minus the total that results if this rate is 0.
    """
    from genai_prices.types import ModelPrice

    rates = _known_rates(priced.model_price)
    free = {name: Decimal(0) for name in rates if name.startswith("cache_") and kind in name}
    return priced.total_price - ModelPrice(**{**rates, **free}).calc_price(counts)["total_price"] if free else None


def _known_rates(rates: "ModelPrice") -> dict[str, Any]:
    """Return the rates that are not None, by their names in the table."""
    return {name: rate for name, rate in vars(rates).items() if rate is not None}
