"""What holds for the exchanges of every vendor: streams in pieces, their deltas, stored requests read twice."""

import dataclasses
import json
from typing import Any

import pytest
import sabir
from sabir.contract.framing import ServerEvent
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.reply import Reply

from tests.vendor.google_support import bare, camelled
from tests.vendor.support import WIRES, Exchange, exchanges_of, fold, scope_for

EVERY = [(name, each) for name in WIRES for each in exchanges_of(name)]
STREAMED = [
    (name, each)
    for name, each in EVERY
    if each.events and (each.status or 200) < 400 and "stream_error" not in each.features
]
ASKED = [(name, each) for name, each in EVERY if each.request]


def table(cases: list[tuple[str, Exchange]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "exchange"), cases, ids=[f"{name}-{each.id}" for name, each in cases])


def test_every_wire_takes_part() -> None:
    """An empty list would pass the tests below."""
    assert {name for name, _ in STREAMED} == {name for name, _ in ASKED} == set(WIRES)
    assert (len(STREAMED) > 500, len(ASKED) > 1800) == (True, True)


def stream(exchange: Exchange) -> bytes:
    """A stream's bytes; of one that was asked for as an array of chunks, those of the same chunks as events."""
    is_array = (exchange.sse or "").startswith("[")
    return dataclasses.replace(exchange, sse=None).stream if is_array else exchange.stream


def told(reply: Reply) -> list[Any]:
    """What messages hold, without the ids that were made up for calls."""
    return [
        (each.call.option_name, each.call.arguments, each.call.raw_arguments, each.call.state)
        if each.call
        else each.parts
        for each in reply.messages
    ]


@table(STREAMED)
def test_a_stream_folds_alike_however_it_is_cut(name: str, exchange: Exchange) -> None:
    """Law 8: bytes come as the network likes."""
    dialect, scope = sabir.dialect(name).dialect, scope_for(exchange, name, name.partition(".")[0])
    whole, cut = (fold(dialect, stream(exchange), scope, chunk=size) for size in (0, 61))

    assert told(cut) == told(whole)
    bare = {"messages": (), "alternatives": ()}
    assert cut.model_copy(update=bare) == whole.model_copy(update=bare)


@table(STREAMED)
def test_the_deltas_of_a_stream_join_to_its_blocks(name: str, exchange: Exchange) -> None:
    """What is shown meanwhile is what the reply says in the end."""
    decoder = sabir.dialect(name).dialect.decoder(scope_for(exchange, name, name.partition(".")[0]))
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


@table(ASKED)
def test_a_stored_request_is_read_the_same_twice(name: str, exchange: Exchange) -> None:
    """Reading what was rendered gives the messages that were rendered: nothing drifts."""
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
