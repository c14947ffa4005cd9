"""Who is paid for a call, as a table: a provider of sabir's at a host → a provider of the table of prices.

A provider that is missing here, or whose client uses another endpoint, has no price: a local model costs no vendor's
price, and a proxy's price is not known.
"""

import re
from typing import Literal, NamedTuple
from urllib.parse import urlsplit


class Seller(NamedTuple):
    """One row. `names` says by which name the table knows a model: the one that answered, or the one asked for."""

    provider: str
    host: str
    """A regular expression that the whole name of the endpoint's host matches."""
    table_id: str
    names: Literal["reported", "asked"] = "reported"


SELLERS = (
    Seller("anthropic", r"api\.anthropic\.com", "anthropic"),
    Seller("anthropic", r"bedrock-runtime\..+\.amazonaws\.com", "aws", "asked"),
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
    Seller("xai", r"api\.x\.ai", "x-ai"),
)
"""The first row of a provider is its own service."""


def seller_at(provider: str, endpoint: str) -> Seller | None:
    """Who is paid for calls that a provider's client carries to an endpoint; None where that is not known."""
    host = urlsplit(endpoint).hostname or ""
    return next((row for row in SELLERS if row.provider == provider and re.fullmatch(row.host, host)), None)


def own_seller(provider: str) -> Seller | None:
    """Who is paid for calls to a provider's own service; None where it sells nothing."""
    return next((row for row in SELLERS if row.provider == provider), None)
