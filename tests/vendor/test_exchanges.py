"""All that vendors' own services returned decodes with nothing lost, streams too, and goes back whole; so do requests.

What is expected is read by walkers that share no code with the plugins, a module a wire.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import ServerEvent
from sabir.discovery import default_registry
from sabir.errors import CallError, QuotaExceeded
from sabir.reading.fold import Fold
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.models import find_model
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import Reply
from sabir_openai.responses_dialect import RESPONSES

from tests.core.samples import check_constructed
from tests.laws.oracle import check_request
from tests.laws.replies import MODELS, target_of
from tests.laws.rules import check_pairing
from tests.rules import check_each
from tests.vendor import anthropic_support, chat_support, google_support, responses_support
from tests.vendor.responses_support import TERMINAL, final_response
from tests.vendor.support import (
    Exchange,
    Wire,
    contents,
    exchanges,
    exchanges_of,
    fold,
    missing,
    rendered,
    said,
    scope_for,
    tagged,
    unequal,
)

WIRES = [module.WIRE for module in (chat_support, responses_support, anthropic_support, google_support)]
each_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
REMEDY = "mend what decodes or renders it"


@each_wire
def test_every_exchange_is_looked_at(wire: Wire) -> None:
    streamed = [each for each in wire.answered if each.events is not None]
    whole = [each for each in wire.answered if each.events is None]

    assert (len(whole), len(streamed), len(wire.refused), len(wire.asked)) == wire.counts
    assert len(whole) + len(streamed) + len(wire.refused) == len(wire.all)


def lost(wire: Wire, exchange: Exchange) -> Iterator[str]:
    body, reply = wire.read(exchange)
    told = {name: value for name, value in body.items() if name not in wire.echoes}
    yield from (f"{path}: {value!r:.80} is nowhere" for path, value in missing(told, reply, wire.beside))
    if exchange.events is not None and wire.is_decoded_when_added_up:
        whole = wire.dialect.decode(json.dumps(body).encode(), scope_for(exchange, wire.dialect.name))
        bare = [found.model_copy(update={"messages": ()}) for found in (whole, reply)]
        yield from unequal(("messages", contents(whole.messages), contents(reply.messages)), ("reply", *bare))
    yield from unequal(("losses", (), reply.losses))
    yield from unequal(("JSON", reply, Reply.model_validate_json(reply.model_dump_json())))
    check_constructed(reply)


@each_wire
def test_an_answer_decodes_with_nothing_lost(wire: Wire) -> None:
    check_each(wire.answered, tagged(partial(lost, wire)), REMEDY)


def figures_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every usage in an answer's body, or in its events, in their order."""
    for item in value if isinstance(value, list) else (value or {}).values():
        if isinstance(item, dict) and ("totalTokenCount" in item or "total_tokens" in item or "iterations" in item):
            yield item
        elif isinstance(item, dict | list):
            yield from figures_of(item)


def uncounted(name: str, exchange: Exchange) -> Iterator[str]:
    """What its vendor counts, in the total or apart from it, that the reply's usage does not."""
    dialect, scope = sabir.dialect(name).dialect, scope_for(exchange, name)
    read = dialect.decode(exchange.body, scope) if exchange.events is None else fold(dialect, exchange.stream, scope)
    for figures in list(figures_of(exchange.response if exchange.events is None else exchange.events))[-1:]:
        total = figures.get("total_tokens") or figures.get("totalTokenCount") or 0
        for each in figures.get("iterations") or ():
            total += sum(value for name, value in each.items() if name.endswith("put_tokens"))
        if (read.usage.total_tokens or 0) < total:
            yield f"counts {read.usage}, its vendor {total}"


def has_error(exchange: Exchange) -> bool:
    return any(isinstance(each, dict) and each.get("error") for each in exchange.events or [exchange.response])


MORE = {
    "more/openai.chat_at_gateways": ("openai.chat", 783), "more/mistral.chat": ("openai.chat", 176),
    "more/openai.responses_at_gateways": ("openai.responses", 90),
}  # fmt: skip
"""Files of further services → the dialect that they speak, and how many answers there are."""


@pytest.mark.parametrize("name", [*map(str, WIRES), *MORE])
def test_a_usage_counts_no_less_than_its_vendor(name: str) -> None:
    dialect, number = MORE.get(name, (name, 0))
    wire = next(wire for wire in WIRES if str(wire) == dialect)
    recorded = exchanges(name) if number else wire.answered
    answers = [each for each in recorded if each.status in (200, None) and not has_error(each)]

    assert len(answers) >= number
    check_each(answers, tagged(partial(uncounted, dialect)), REMEDY)


@each_wire
def test_a_reply_sent_back_keeps_everything(wire: Wire) -> None:
    check_each(wire.answered, tagged(lambda exchange: wire.returned(*wire.read(exchange))), REMEDY)


def misread(wire: Wire, exchange: Exchange) -> Iterator[str]:
    told = exchange.response["error"]
    status = told.get("status") if exchange.status == 200 else exchange.status or told["code"]
    try:
        if exchange.status == 200:  # some services fail so
            wire.dialect.decode(exchange.body, scope_for(exchange, wire.dialect.name))
        error = wire.dialect.decode_error(status, {}, exchange.body, wire.dialect.name.partition(".")[0])
    except CallError as raised:
        error = raised
    code = told.get("code") or told["type"]
    code = told["status"] if isinstance(code, int) else code
    yield from unequal(("class", wire.refusal(exchange), type(error)), ("status", status, error.status))
    yield from unequal(("code", code, error.code))
    if told["message"].rstrip(".")[:120] not in str(error):
        yield f"the message became {error}"
    if wire.dialect.name.startswith("google"):
        yield from unequal(("retry after", 34.4 if status == 429 else None, error.retry_after))


@each_wire
def test_an_error_body_is_the_error_that_it_says(wire: Wire) -> None:
    check_each(wire.refused, tagged(partial(misread, wire)), REMEDY)


def changed(wire: Wire, exchange: Exchange) -> Iterator[str]:
    request = exchange.request or {}
    history = sabir.dialect(wire.dialect.name).decode_history(request)
    body, losses = rendered(wire.dialect.name, history, exchange.host)
    yield from unequal(("request", *wire.restored(request, body, history, losses)))


@each_wire
def test_a_stored_request_goes_back_as_it_was(wire: Wire) -> None:
    """Laws 2 and 3 for what was stored elsewhere: what is not in the rendering is in the losses."""
    check_each(wire.asked, tagged(partial(changed, wire)), REMEDY)


def grown_apart(wire: Wire, exchange: Exchange) -> Iterator[str]:
    """Blocks of a stream whose deltas do not join to what they are in the end."""
    decoder = wire.dialect.decoder(scope_for(exchange, wire.dialect.name))
    grown, ended = dict[int, str](), dict[int, Any]()
    data = (each if isinstance(each, str) else json.dumps(each) for each in exchange.events or [])
    for event in [*(event for each in data for event in decoder.feed(ServerEvent(each))), *decoder.close()]:
        match event.type.rpartition("-")[2]:
            case "delta":
                grown[event.index] = grown.get(event.index, "") + event.text
            case "end" if event.type != "reply-end" and event.block.kind != "media":
                ended[event.index] = event.block
    for index, block in ended.items():
        if block.kind == "option_call" and block.raw_arguments is None:
            yield from unequal(("arguments", block.arguments, json.loads(grown.get(index) or block.arguments_json)))
        else:
            text = block.raw_arguments if block.kind == "option_call" else getattr(block, "text", "")
            yield from unequal(("text", text, grown.get(index, "")))


@each_wire
def test_the_deltas_of_a_stream_join_to_its_blocks(wire: Wire) -> None:
    streamed = [each for each in wire.answered if each.events is not None]
    check_each(streamed, tagged(partial(grown_apart, wire)), REMEDY)


def answer(wire: Wire, exchange: Exchange) -> tuple[Message, ...]:
    try:
        return () if exchange.status >= 400 else wire.read(exchange)[1].messages
    except CallError:
        return ()


UNKNOWN = "of_2030"
"""A field that no dialect knows, put into each request, so that each has an extra field."""


def goes_on(wire: Wire, exchange: Exchange) -> Iterator[str]:
    """What another dialect gets that is not its own, and what it does not get without a loss; raises if it refuses."""
    request = {**(exchange.request or {}), UNKNOWN: "sealed"}
    history = sabir.dialect(wire.dialect.name).decode_history(json.dumps(request))
    messages = [*history.messages, *answer(wire, exchange), sabir.user("Go on.")]
    ((owner, extra),) = history.settings.extra_body_for.items()
    yield from unequal(("owner", wire.dialect.name, owner))
    tools = history.settings.vendor.get(owner.partition(".")[0], {}).get("tools", ())
    for name in {each.dialect.name for each in WIRES} - {wire.dialect.name}:
        target = target_of(name)
        info = find_model(default_registry.models(target.provider), MODELS[name])
        renderer = Renderer(sabir.dialect(name).dialect, target, model_info=info)
        rendering = renderer.render(messages, history.options, history.settings)
        check_pairing(name, rendering.body_bytes)
        check_request(name, rendering.body_bytes)
        lost = {loss.path for loss in rendering.losses if loss.kind == "dropped"}
        yield from (f"{field} is no loss at {name}" for field in extra if f"extra_body.{field}" not in lost)
        sent = rendering.body.get("tools", ())
        for index, tool in enumerate(tools):
            if tool not in sent and f"settings.vendor.{owner.partition('.')[0]}.tools[{index}]" not in lost:
                yield f"{tool} is no loss at {name}"


@each_wire
def test_a_recorded_conversation_goes_on_with_every_other_dialect(wire: Wire) -> None:
    check_each(wire.asked, tagged(partial(goes_on, wire)), REMEDY)


def cited(exchange: Exchange) -> Iterator[str]:
    """Citations that do not enclose what names their site."""
    body, reply = chat_support.WIRE.read(exchange)
    text = next(part for part in said(reply) if isinstance(part, TextPart))
    annotations = body["choices"][0]["message"]["annotations"]
    yield from unequal(("sources", annotations, [citation.source for citation in text.citations]))
    for each in text.citations:
        if str(each.url) not in text.text[each.start : each.end]:
            yield f"{each.url} is not in {text.text[each.start : each.end]!r}"


def grounded(exchange: Exchange) -> Iterator[str]:
    """Grounding whose segment is not what is cited, or that is missing: bytes, one off at times, become characters."""
    response, reply = google_support.WIRE.read(exchange)
    citations = [(part.text, each) for part in said(reply) if isinstance(part, TextPart) for each in part.citations]
    found = [(each.source["support"], text[each.start : each.end]) for text, each in citations]
    yield from unequal(("cited", [support["segment"]["text"] for support, _ in found], [words for _, words in found]))
    for support in google_support.supports(response):
        if support not in [each for each, _ in found]:
            yield f"{support} is cited nowhere"


@pytest.mark.parametrize(
    ("wire", "feature", "faults"),
    [(chat_support.WIRE, "citations", cited), (google_support.WIRE, "grounding", grounded)],
    ids=["citations", "grounding"],
)
def test_citations_point_at_their_place_in_the_text(wire: Wire, feature: str, faults) -> None:
    check_each([each for each in wire.answered if feature in each.features], tagged(faults), REMEDY)


APART = [each for each in exchanges_of(RESPONSES.name) if responses_support.has_its_own_tests(each)]
UNMADE = [each for each in APART if each.events is None]
FAILED = [each for each in APART if each.events is not None]


def test_an_answer_that_is_not_made_yet_is_none() -> None:
    """The vendor holds it under its id, and makes it in the background."""
    assert len(UNMADE) == 4
    for exchange in UNMADE:
        with pytest.raises(CallError, match=exchange.response["id"]):
            RESPONSES.decode(exchange.body, scope_for(exchange, RESPONSES.name))


@pytest.mark.parametrize("skipped", ["", "error"])
def test_a_stream_that_fails_raises_what_it_reports(skipped: str) -> None:
    (exchange,) = FAILED
    decoder = RESPONSES.decoder(scope_for(exchange, RESPONSES.name))
    told = [wire for wire in exchange.events or [] if wire["type"] != skipped]

    with pytest.raises(QuotaExceeded, match="exceeded your current quota"):
        for wire in told:
            list(decoder.feed(ServerEvent(json.dumps(wire))))


def told_late(exchange: Exchange) -> Iterator[str]:
    """Where a stream of which some events are missing folds to another reply than its final response."""
    scope = scope_for(exchange, RESPONSES.name)
    whole = RESPONSES.decode(json.dumps(final_response(exchange.events or [])).encode(), scope)
    for is_told in (
        lambda event: event["type"] in TERMINAL,
        lambda event: event["type"] not in ("response.output_item.done", "response.output_item.added"),
    ):
        folded, decoder = Fold(scope), RESPONSES.decoder(scope)
        for wire in filter(is_told, exchange.events or []):
            for event in decoder.feed(ServerEvent(json.dumps(wire))):
                folded.feed(event)
        yield from unequal(("messages", contents(whole.messages), contents(folded.reply().messages)))


def test_a_stream_that_only_its_final_response_tells_of_folds_alike() -> None:
    """Law 8: an item that no event of its own ended is read from the final response."""
    streamed = [each for each in responses_support.WIRE.answered if each.events is not None]
    check_each(streamed, tagged(told_late), REMEDY)
