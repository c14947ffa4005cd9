"""A stored model string means the dialect of its records, whatever it means in this version."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import sabir
from sabir import Origin
from sabir.authoring import Dialect
from sabir_echo.plugin import Echo
from sabir_session import continued_model

CHAT, RESPONSES, GONE, NAMESAKE = "other.chat", "maker.responses", "maker.edits", "maker.chat"


class Maker(Echo):
    """A provider whose first dialect was `chat`, of another maker, in an earlier version."""

    name, dialects = "maker", ("responses", "chat")

    def dialect(self, short_name: str) -> Dialect:
        return replace(super().dialect("plain"), name={"chat": CHAT, "responses": RESPONSES}[short_name])


class Added(Maker):
    """A package that adds the dialect to a name which nobody provides now."""

    name, dialects, adds_dialects = "added", ("chat",), True


@pytest.fixture(autouse=True)
def makers() -> Iterator[None]:
    for provider in (Maker(), Added()):
        sabir.register(provider.name, provider)
    yield
    for name in ("maker", "added"):
        sabir.unregister(name)


@pytest.mark.parametrize(
    ("model", "dialects", "continued"),
    [
        ("maker:m", [CHAT], "maker.chat:m"),
        ("maker:m", [RESPONSES, CHAT], "maker.chat:m"),
        ("maker:m", [CHAT, RESPONSES], "maker:m"),
        ("maker:m", [], "maker:m"),
        ("maker:m", [GONE], "maker:m"),
        ("maker:m", [NAMESAKE], "maker:m"),
        ("maker:other", [CHAT], "maker:other"),
        ("maker.responses:m", [CHAT], "maker.responses:m"),
        ("maker.chat:m", [RESPONSES], "maker.chat:m"),
        ("added:m", [CHAT], "added.chat:m"),
        ("nobody:m", [CHAT], "nobody:m"),
    ],
)
def test_a_stored_string_has_the_dialect_of_the_last_reply_that_it_brought(
    model: str, dialects: list[str], continued: str
) -> None:
    """If it names none, and the provider still has that dialect; another model's replies say nothing."""
    provider = model.partition(":")[0].partition(".")[0]
    origins = [Origin(provider=provider, dialect=dialect, model="m") for dialect in dialects]
    others = [
        Origin(provider=provider, dialect=RESPONSES, model="n"),
        Origin(provider="x", dialect=RESPONSES, model="m"),
    ]

    assert continued_model(model, [*origins, *others]) == continued
