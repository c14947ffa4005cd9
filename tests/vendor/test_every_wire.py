"""What holds for the exchanges of every vendor: streams in pieces, their deltas, stored requests read and handed on."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory, ServerEvent
from sabir.discovery import default_registry
from sabir.errors import CallError, RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Settings, find_model

from tests.laws.oracle import check_request
from tests.laws.replies import MODELS, said, target_of
from tests.laws.rules import check_pairing
from tests.vendor.google_support import bare, camelled
from tests.vendor.support import WIRES, Exchange, checked, exchanges_of, fold, scope_for

STREAMED = {
    name: [e for e in exchanges_of(name) if e.events and (e.status or 200) < 400 and "stream_error" not in e.features]
    for name in WIRES
}
ASKED = {name: [each for each in exchanges_of(name) if each.request] for name in WIRES}
each_wire = pytest.mark.parametrize("name", WIRES)


def test_every_wire_takes_part() -> None:
    """An empty list would fail the tests below; a short one would not."""
    assert sum(map(len, STREAMED.values())) > 500
    assert sum(map(len, ASKED.values())) > 1800


def told(reply: Reply) -> list[Any]:
    """What messages hold, without the ids that were made up for calls."""
    return [
        (each.call.option_name, each.call.arguments, each.call.raw_arguments, each.call.state)
        if each.call
        else each.parts
        for each in reply.messages
    ]


def folds_alike(name: str, exchange: Exchange) -> None:
    dialect, scope = sabir.dialect(name).dialect, scope_for(exchange, name)
    whole, cut = (fold(dialect, exchange.stream, scope, chunk=size) for size in (0, 61))

    assert told(cut) == told(whole)
    bare = {"messages": (), "alternatives": ()}
    assert cut.model_copy(update=bare) == whole.model_copy(update=bare)


@each_wire
def test_a_stream_folds_alike_however_it_is_cut(name: str) -> None:
    """Law 8: bytes come as the network likes."""
    checked(name, folds_alike, STREAMED[name])


def deltas_join(name: str, exchange: Exchange) -> None:
    decoder = sabir.dialect(name).dialect.decoder(scope_for(exchange, name))
    grown, ended = dict[int, str](), dict[int, Any]()
    data = (wire if isinstance(wire, str) else json.dumps(wire) for wire in exchange.events or [])
    for event in [*(event for each in data for event in decoder.feed(ServerEvent(each))), *decoder.close()]:
        match event.type.rpartition("-")[2]:
            case "delta":
                grown[event.index] = grown.get(event.index, "") + event.text
            case "end" if event.type != "reply-end" and event.block.kind != "media":
                ended[event.index] = event.block

    for index, block in ended.items():
        if block.kind == "option_call" and block.raw_arguments is None:
            assert index not in grown or json.loads(grown[index]) == block.arguments
        else:
            said = block.raw_arguments if block.kind == "option_call" else getattr(block, "text", "")
            assert grown.get(index, "") == said


@each_wire
def test_the_deltas_of_a_stream_join_to_its_blocks(name: str) -> None:
    """What is shown meanwhile is what the reply says in the end."""
    checked(name, deltas_join, STREAMED[name])


def is_read_twice(name: str, exchange: Exchange) -> None:
    pure = sabir.dialect(name)
    once = pure.decode_history(exchange.request or {})
    quirks = frozenset({"vertex"} if "aiplatform" in exchange.host else ())
    target = pure.target.model_copy(update={"model": once.model})
    try:
        rendering = Renderer(pure.dialect, target, quirks=quirks).render(once.messages, once.options, once.settings)
    except RenderingRefused:
        return
    if any(loss.message_id or loss.kind == "synthesized" for loss in rendering.losses):
        return
    twice = pure.decode_history(
        {name: value for name, value in json.loads(rendering.body_bytes).items() if name != "stream"}
    )
    made_up = {"invocation_id": "1"} if name == "google.generate_content" else {}

    for read in (lambda each: each.text, lambda each: each.call, lambda each: each.result):
        held = [[read(each) for each in history.messages if read(each)] for history in (once, twice)]
        if held[0] and isinstance(held[0][0], str):
            assert "".join(held[0]) == "".join(held[1])
        else:
            assert [each.model_copy(update=made_up) for each in held[0]] == [
                each.model_copy(update=made_up) for each in held[1]
            ]
    assert [option.name for option in twice.options] == [option.name for option in once.options]
    if name == "anthropic.messages":
        assert twice.options == once.options
    if made_up:
        settings = [bare(camelled(history.settings.model_dump(mode="json"))) for history in (once, twice)]
        assert settings[0] == settings[1]
    media = [
        [part for each in history.messages for part in each.parts if part.kind == "media"] for history in (once, twice)
    ]
    assert media[0] == media[1]


@each_wire
def test_a_stored_request_is_read_the_same_twice(name: str) -> None:
    """Reading what was rendered gives the messages that were rendered: nothing drifts."""
    checked(name, is_read_twice, ASKED[name])


def answer(dialect: str, exchange: Exchange) -> tuple[Message, ...]:
    """The messages of the vendor's answer; none where it refused."""
    made = sabir.dialect(dialect).dialect
    scope = scope_for(exchange, dialect)
    if exchange.status >= 400:
        return ()
    try:
        if exchange.response is not None:
            return made.decode(exchange.body, scope).messages
        return fold(made, exchange.stream, scope).messages
    except CallError:
        return ()


def portable(history: DecodedHistory) -> Settings:
    """The settings that are no vendor's own, as a user takes them along.

    Left behind are the vendor's section, what was sent verbatim, and a choice of one of the vendor's own tools.
    """
    settings = history.settings.model_copy(update={"extra_body": {}, "extra_headers": {}, "vendor": {}})
    words = {None, "auto", "none", "required", *(option.name for option in history.options)}
    return settings if settings.option_choice in words else settings.model_copy(update={"option_choice": None})


def goes_on(dialect: str, exchange: Exchange) -> None:
    history = sabir.dialect(dialect).decode_history(json.dumps(exchange.request))
    messages = [*history.messages, *answer(dialect, exchange), said("user", "Go on.")]
    for name in WIRES.keys() - {dialect}:
        target = target_of(name)
        info = find_model(default_registry.models(target.provider), MODELS[name])
        renderer = Renderer(sabir.dialect(name).dialect, target, model_info=info)
        rendering = renderer.render(messages, history.options, portable(history))
        check_pairing(name, rendering.body_bytes)
        check_request(name, rendering.body_bytes)


@each_wire
def test_a_recorded_conversation_goes_on_with_every_other_dialect(name: str) -> None:
    """Law 9 on what was really said, with the vendor's answer: valid for each of them, options and settings too."""
    checked(name, goes_on, ASKED[name])
