"""A provider, a row and a user may name only the quirks that the dialect declares."""

from dataclasses import replace
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Provider
from sabir.errors import ProviderBroken, SettingsInvalid
from sabir_echo.dialect import PLAIN
from sabir_echo.plugin import echo

QUIRKY = replace(PLAIN, quirks={"max_tokens": "the limit is named max_tokens", "plain_text": "only one string"})


class Shout:
    """The provider `echo` with quirks of its own."""

    dialects, credentials, request_ids = ("plain",), (), ()
    dialect, endpoint, connect = (lambda self, name: QUIRKY), staticmethod(echo.endpoint), staticmethod(echo.connect)

    def __init__(self, quirks: set[str], rows: tuple[sabir.ModelInfo, ...] = (), api_version: int = 2) -> None:
        self.name, self.api_version, self._quirks, self._rows = "shout", api_version, quirks, rows

    def quirks(self, access: Access) -> frozenset[str]:
        return frozenset(self._quirks)

    def models(self) -> tuple[sabir.ModelInfo, ...]:
        return self._rows


def adapter(provider: Any, **how: Any) -> sabir.ModelAdapter:
    shout: Provider = provider
    sabir.register("shout", shout)
    try:
        return sabir.adapter("shout:m", **how)
    finally:
        sabir.unregister("shout")


ROW = sabir.ModelInfo(prefix="", quirks=("plaintext",))
MISSPELT: list[tuple[Shout, dict[str, Any], type[Exception], str]] = [
    (
        Shout({"max_token"}), {}, ProviderBroken,
        "provider 'shout' has the quirk 'max_token', which echo.plain does not declare; did you mean 'max_tokens'?",
    ),
    (
        Shout({"upside_down"}), {}, ProviderBroken,
        "provider 'shout' has the quirk 'upside_down', which echo.plain does not declare; its quirks are max_tokens, "
        "plain_text",
    ),
    (
        Shout({"max_tokens"}, (ROW,)), {}, ProviderBroken,
        "provider 'shout' has the quirk 'plaintext', which echo.plain does not declare; did you mean 'plain_text'?",
    ),
    (
        Shout(set()), {"model_info": ROW}, SettingsInvalid,
        "model_info= or model_facts= has the quirk 'plaintext', which echo.plain does not declare; did you mean "
        "'plain_text'?",
    ),
    (
        Shout(set()), {"model_facts": {"quirks": ["max_token"]}}, SettingsInvalid,
        "model_info= or model_facts= has the quirk 'max_token', which echo.plain does not declare; did you mean "
        "'max_tokens'?",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "how", "kind", "text"), MISSPELT)
def test_an_undeclared_quirk_is_refused(provider: Shout, how: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        adapter(provider, **how)

    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("provider", "how"),
    [
        (Shout({"max_tokens"}), {}),
        (Shout({"max_token"}, (ROW,), api_version=1), {}),
        (Shout(set(), (ROW,)), {"model_info": sabir.ModelInfo(prefix="")}),
    ],
    ids=["declared", "version 1", "a row that does not apply"],
)
def test_an_adapter_is_created(provider: Shout, how: dict[str, Any]) -> None:
    """A provider of version 1 is used as before."""
    assert adapter(provider, **how).complete_sync("Hi").text == "Hi"
