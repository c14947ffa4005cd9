"""Which efforts OpenAI's models accept on each wire, with the source of each line; data of test_efforts.

A source is the vendor's own page (or a mirror of it), a recorded answer of the service, or a table whose authors tried
each value on the service; the date is that of the answer or page. "unverified" says that no such source is known.
"""

from typing import NamedTuple

PEER = "pydantic-ai 2.68, profiles/openai.py, tried by its authors on the Responses API"
NO_MAX = "pydantic-ai 2.68, profiles/openai.py: Chat Completions refuses max for every model"
HERMES = "https://github.com/NousResearch/hermes-agent/pull/90441"
EXPERIENTIAL = "https://github.com/experientiallabs/experiential/issues/764"
MIRASCOPE = "https://github.com/Mirascope/mirascope at 41d43357 (encodes-thoughts-as-text…har)"
MIRROR = "https://www.w3cschool.cn/openai_api/"
UNVERIFIED = "unverified"


class Line(NamedTuple):
    """The efforts that a model accepts on Responses; on Chat Completions the same without `max`."""

    model: str
    accepted: str
    source: str
    date: str
    chat_source: str = NO_MAX
    """Source of the efforts on Chat Completions; models that only Responses serves are unverified there."""


LINES = (
    Line("o3", "low medium high", PEER, "2026-10"),
    Line("o3-mini", "low medium high", "https://github.com/enricoros/big-AGI/issues/1159", "2026-07-10"),
    Line("o4-mini", "low medium high", f"400 recorded by {MIRASCOPE}", "2026"),
    Line("gpt-5", "minimal low medium high", PEER, "2026-07"),
    Line("gpt-5-pro", "high", PEER, "2026-10", UNVERIFIED),
    Line(
        "gpt-5.1", "none low medium high", "400 in https://github.com/openai/openai-agents-python/issues/2089",
        "2025-11", "400 in https://github.com/livekit/agents/pull/3966",
    ),
    Line(
        "gpt-5.2", "none low medium high xhigh",
        "https://github.com/anomalyco/models.dev/pull/2296, after the vendor's page of the model", "2026-06-13",
    ),
    Line("gpt-5.2-pro", "medium high xhigh", PEER, "2026-10", UNVERIFIED),
    Line(
        "gpt-5.4", "none low medium high xhigh",
        "https://github.com/anomalyco/models.dev/pull/2296, after the vendor's page of the model", "2026-06-13",
    ),
    Line("gpt-5.5", "none low medium high xhigh", HERMES, "2026-08-20"),
    Line("gpt-5.6-luna", "none low medium high xhigh max", EXPERIENTIAL, "2026-09-03"),
    Line("gpt-6-astra", "low medium high xhigh max", PEER, "2026-09"),
    Line("gpt-6-sol", "none low medium high xhigh max", PEER, "2026-09"),
    Line("gpt-6-luna", "none low medium high xhigh max", PEER, "2026-09"),
    Line("gpt-6.1-sol", "low medium high xhigh max", PEER, "2026-09"),
    Line("gpt-6.1-terra", "none low medium high xhigh max", PEER, "2026-09"),
    Line(
        "gpt-6.2-astra", "low medium high xhigh max",
        f"https://dev.to/hassann/how-to-use-gpt-62-astra-api-3j9l: none is refused; the others are {UNVERIFIED}",
        "2026-11-18",
    ),
    Line(
        "gpt-6.2-sol", "low medium high xhigh max",
        f"{MIRROR}openai_api-models-gpt-6-2-sol.html: none is refused; the others are {UNVERIFIED}",
        "2026-11-19",
    ),
)  # fmt: skip
