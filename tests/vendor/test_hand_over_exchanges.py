"""Law 9 on what was really said: every recorded conversation, with the vendor's answer, goes on with every other.

request ──decode_history──▶ messages ┐
answer  ──decode───────────▶ messages ┴ + "Go on." ──render──▶ each other dialect: its oracle and its order rules
"""

import json
from collections.abc import Iterator

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory
from sabir.discovery.registry import default_registry
from sabir.errors import CallError
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Settings
from sabir.vocabulary.target import find_model

from tests.laws.oracle import check_request
from tests.laws.replies import MODELS, said, target_of
from tests.laws.rules import check_pairing
from tests.vendor.support import WIRES, Exchange, exchanges_of, fold, scope_for

CASES = [
    pytest.param(dialect, each, id=f"{dialect}-{each.id}")
    for dialect in WIRES
    for each in exchanges_of(dialect)
    if each.request
]


def answer(dialect: str, exchange: Exchange) -> tuple[Message, ...]:
    """The messages of the vendor's answer; none where it refused."""
    made = sabir.dialect(dialect).dialect
    scope = scope_for(exchange, dialect, dialect.partition(".")[0])
    if exchange.status >= 400:
        return ()
    try:
        if exchange.response is not None:
            return made.decode(exchange.body, scope).messages
        return fold(made, exchange.stream, scope).messages
    except CallError:
        return ()


def others(dialect: str) -> Iterator[str]:
    """Every dialect but that one."""
    return (name for name in WIRES if name != dialect)


def test_every_recording_takes_part() -> None:
    """An empty list would pass the test below."""
    assert len(CASES) > 1500


def portable(history: DecodedHistory) -> Settings:
    """The settings that are no vendor's own, as a user takes them along.

    Left behind are the vendor's section, what was sent verbatim, and a choice of one of the vendor's own tools.
    """
    settings = history.settings.model_copy(update={"extra_body": {}, "extra_headers": {}, "vendor": {}})
    words = {None, "auto", "none", "required", *(option.name for option in history.options)}
    return settings if settings.option_choice in words else settings.model_copy(update={"option_choice": None})


@pytest.mark.parametrize(("dialect", "exchange"), CASES)
def test_a_recorded_conversation_goes_on_with_every_other_dialect(dialect: str, exchange: Exchange) -> None:
    """Valid for each of them, options and settings too."""
    history = sabir.dialect(dialect).decode_history(json.dumps(exchange.request))
    messages = [*history.messages, *answer(dialect, exchange), said("user", "Go on.")]
    for name in others(dialect):
        target = target_of(name)
        info = find_model(default_registry.models(target.provider), MODELS[name])
        renderer = Renderer(sabir.dialect(name).dialect, target, model_info=info)
        rendering = renderer.render(messages, history.options, portable(history))
        check_pairing(name, rendering.body_bytes)
        check_request(name, rendering.body_bytes)
