"""Every request that other projects sent to the vendors' own services is read as a history, and goes back as it was.

What may differ is spelled out in tests/vendor/history_support.py; all else is named in the losses.
"""

import json
from typing import Any

import pytest
import sabir
from sabir.base.losses import Loss
from sabir.contract.dialect import DecodedHistory
from sabir.errors import RenderingRefused

from tests.vendor.history_support import lost_items, normal, stated_strict, without_losses
from tests.vendor.support import Exchange, exchanges

CHAT = [each for each in (*exchanges("openai.chat"), *exchanges("openai.chat_at_azure")) if each.request]
RESPONSES = [each for each in exchanges("openai.responses") if each.request]
CASES = [
    *(pytest.param("openai.chat", "messages", each, id=f"chat-{each.id}") for each in CHAT),
    *(pytest.param("openai.responses", "input", each, id=f"responses-{each.id}") for each in RESPONSES),
]
SETTINGS = {"settings.stop": "stop", "settings.temperature": "temperature", "settings.top_p": "top_p"}
"""Path of a rendering's loss → the field of a request that it names."""


def rendered(dialect: str, history: DecodedHistory) -> tuple[dict[str, Any] | None, tuple[Loss, ...]]:
    """The request that a history renders to, None where nothing of it may be sent, and the losses."""
    try:
        rendering = sabir.dialect(dialect).render(
            history.messages, model=history.model, options=history.options, settings=history.settings
        )
    except RenderingRefused as refused:
        return None, refused.losses
    return json.loads(rendering.body_bytes), rendering.losses


def test_every_request_is_looked_at() -> None:
    """Those of both wires, and many of each."""
    assert len(CHAT) > 400
    assert len(RESPONSES) > 400


@pytest.mark.parametrize(("dialect", "field", "exchange"), CASES)
def test_a_stored_request_goes_back_as_it_was(dialect: str, field: str, exchange: Exchange) -> None:
    """Laws 2 and 3 for what was stored elsewhere: what is not in the rendering is in the losses."""
    request = exchange.request or {}
    history = sabir.dialect(dialect).decode_history(request)
    body, losses = rendered(dialect, history)
    sent = without_losses(request, history.losses)
    for loss in losses:
        if loss.path in SETTINGS:
            sent.pop(SETTINGS[loss.path])
    lost = lost_items(history, losses)

    expected = normal(sent, field, lost)
    if body is None:
        assert expected[field] == []
        return
    assert normal(body, field, []) == expected
    assert stated_strict(sent).items() <= stated_strict(body).items()
