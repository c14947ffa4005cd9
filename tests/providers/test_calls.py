"""Calls on every wire, whole and streamed: law 12, which of them may run if the reply was cut off; ids and repetitions.

wire × (whole, streamed) × reason × arguments ──decode──▶ a call ──answer──▶ it ran, or an error result says "cut off"
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import sabir
from sabir.contract.dialect import Dialect, ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid
from sabir.reading.fold import Fold
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import BlockEnd, BlockStart, Reply
from sabir.vocabulary.settings import Settings, Target
from sabir_acme.dialect import CHAT as ACME

from tests.providers.wires import DIALECTS, events, scope_of

Body = dict[str, Any]
Call = tuple[str, str, str]
"""The id, name and arguments of a call."""
EMPTY_TEXT, EMPTY, CUT, COMPLETE = "", "{}", '{"folder": "tm', '{"folder": "/tmp"}'
DELETED = {EMPTY_TEXT: "everything", EMPTY: "everything", COMPLETE: "/tmp"}
"""Arguments → the folder that the call deletes."""
ENDED, LENGTH, FILTER = "ended", "length", "content filter"
NEITHER: frozenset[str] = frozenset()
TEXT = frozenset({COMPLETE})
"""A call of such arguments runs though its reply was cut off: text that closes an object is finished."""


class Wire(NamedTuple):
    """One vendor's replies with calls: from reason and calls to the whole body, and to a stream's events."""

    dialect: str
    reasons: Mapping[str, str]
    whole: Callable[[str, list[Call]], Any]
    streamed: Callable[[str, list[Call]], list[Body]]
    runs_when_cut: frozenset[str]
    earlier_runs: frozenset[str]
    """The arguments with which a call runs if another call follows it in a reply that was cut off."""


def wipes(*arguments: str) -> list[Call]:
    return [(f"c{index}", "wipe", each) for index, each in enumerate(arguments)]


def parsed(arguments: str) -> Any:
    """What a wire of objects sends: nothing of arguments that did not begin, and the complete members."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def chat_call(index: int, call: Call) -> Body:
    function = {"name": call[1], "arguments": call[2]}
    return {"index": index, "id": call[0], "type": "function", "function": function}


def chat(reason: str, calls: list[Call]) -> Body:
    made = [chat_call(*each) for each in enumerate(calls)]
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "tool_calls": made}}
    return {"id": "r", "model": "m", "choices": [choice]}


def chat_stream(reason: str, calls: list[Call]) -> list[Body]:
    deltas = [{"tool_calls": [chat_call(*each)]} for each in enumerate(calls)]
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    return [{"id": "r", "model": "m", "choices": [each]} for each in (*choices, last)]


def item(index: int, call: Call, status: str | None) -> Body:
    fields = {"type": "function_call", "id": f"fc_{index}", "call_id": call[0], "name": call[1]}
    return {**fields, "arguments": call[2], **({"status": status} if status else {})}


def response(reason: str, items: list[Body]) -> Body:
    cut = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return {"id": "r", "model": "m", "output": items, **({"status": reason} if reason == "completed" else cut)}


def responses(reason: str, calls: list[Call], status: str | None = None) -> Body:
    return response(reason, [item(index, each, status) for index, each in enumerate(calls)])


def responses_stream(reason: str, calls: list[Call], status: str | None = None) -> list[Body]:
    body = responses(reason, calls, status)
    events: list[Body] = [{"type": "response.created", "response": {**body, "output": []}}]
    for index, each in enumerate(calls):
        added = item(index, (*each[:2], ""), "in_progress")
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": added},
            {"type": "response.function_call_arguments.delta", "output_index": index, "delta": each[2]},
            {"type": "response.output_item.done", "output_index": index, "item": item(index, each, status)},
        ]
    end = "completed" if reason == "completed" else "incomplete"
    return [*events, {"type": f"response.{end}", "response": body}]


def claude(reason: str, calls: list[Call]) -> Body:
    blocks = [{"type": "tool_use", "id": each[0], "name": each[1], "input": parsed(each[2])} for each in calls]
    return {"id": "r", "type": "message", "model": "m", "stop_reason": reason, "content": blocks}


def claude_stream(reason: str, calls: list[Call]) -> list[Body]:
    body = {"id": "r", "type": "message", "model": "m", "content": []}
    events: list[Body] = [{"type": "message_start", "message": body}]
    for index, each in enumerate(calls):
        block = {"type": "tool_use", "id": each[0], "name": each[1], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": each[2]}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},  # the vendor sends it for a block that was cut off, too
        ]
    return [*events, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


def gemini(reason: str, calls: list[Call]) -> Body:
    parts = [{"functionCall": {"id": each[0], "name": each[1], "args": parsed(each[2])}} for each in calls]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": reason}]}


def gemini_stream(reason: str, calls: list[Call]) -> list[Body]:
    chunks = [gemini("", [each]) for each in calls]
    return [*chunks, gemini(reason, [])]


def echo(reason: str, calls: list[Call]) -> list[Body]:
    made = [{"call": {"id": each[0], "name": each[1], "arguments": each[2]}} for each in calls]
    return [*made, {"finish": reason, "usage": {}}]


def acme(reason: str, calls: list[Call]) -> Body:
    parts = [{"type": "call", "id": each[0], "name": each[1], "arguments": each[2]} for each in calls]
    return {"id": "r", "model": "m", "parts": parts, "finish": reason, "usage": {}}


def acme_stream(reason: str, calls: list[Call]) -> list[Body]:
    events: list[Body] = [{"type": "start", "id": "r", "model": "m"}]
    for index, each in enumerate(calls):
        part = {"type": "call", "id": each[0], "name": each[1]}
        events += [
            {"type": "open", "index": index, "part": part},
            {"type": "more", "index": index, "text": each[2]},
            {"type": "close", "index": index},
        ]
    return [*events, {"type": "end", "finish": reason, "usage": {}}]


CHAT_REASONS = {ENDED: "tool_calls", LENGTH: "length", FILTER: "content_filter"}
OPENAI_REASONS = {ENDED: "completed", LENGTH: "max_output_tokens", FILTER: "content_filter"}
CLAUDE_REASONS = {ENDED: "tool_use", LENGTH: "max_tokens", FILTER: "refusal"}
GEMINI_REASONS = {ENDED: "STOP", LENGTH: "MAX_TOKENS", FILTER: "SAFETY", "malformed": "MALFORMED_FUNCTION_CALL"}
# A wire of objects shows nothing of where a call was cut, but its blocks arrive one after another.
OBJECTS = frozenset({EMPTY_TEXT, EMPTY, COMPLETE})
WIRES = (
    Wire("openai.chat", {**CHAT_REASONS, "unknown": "odd"}, chat, chat_stream, TEXT, TEXT),
    Wire("local.chat", CHAT_REASONS, chat, chat_stream, TEXT, TEXT),
    Wire("openai.responses", OPENAI_REASONS, responses, responses_stream, TEXT, TEXT),
    Wire("anthropic.messages", {**CLAUDE_REASONS, "paused": "pause_turn"}, claude, claude_stream, NEITHER, OBJECTS),
    Wire("google.generate_content", GEMINI_REASONS, gemini, gemini_stream, NEITHER, OBJECTS),
    Wire("echo.plain", {ENDED: "call", LENGTH: "limit"}, echo, echo, TEXT, TEXT),
    Wire("acme.chat", {ENDED: "calls", LENGTH: "limit", FILTER: "refused"}, acme, acme_stream, TEXT, TEXT),
)
WAYS = ("whole", "streamed")
ROWS = [
    (wire, way, reason, arguments)
    for wire in WIRES
    for way in WAYS
    for reason in wire.reasons
    for arguments in (EMPTY_TEXT, EMPTY, CUT, COMPLETE)
    if (reason, arguments) != (ENDED, CUT)
]


def dialect_of(name: str) -> Dialect:
    return ACME if name == "acme.chat" else sabir.dialect(name).dialect


def decode(name: str, way: str, body: Any) -> Reply:
    dialect = dialect_of(name)
    scope = DecodeScope(Target(provider=name.partition(".")[0], dialect=dialect.name, model="m"))
    if way == "whole":
        return dialect.decode(json.dumps(body).encode(), scope)
    decoder, fold = dialect.decoder(scope), Fold(scope)
    for each in body:
        for event in decoder.feed(ServerEvent(json.dumps(each), each.get("type", "") if name != "acme.chat" else "")):
            fold.feed(event)
    for event in decoder.close():
        fold.feed(event)
    return fold.reply()


def answered(reply: Reply) -> Iterator[tuple[list[str], Message]]:
    ran: list[str] = []

    def wipe(folder: str = "everything") -> None:
        """Delete a folder."""
        ran.append(folder)

    for call in reply.option_calls:
        [result] = sabir.answer_sync([call], [wipe])
        yield ran.copy(), result
        ran.clear()


def check(reply: Reply, at: int, arguments: str, runs: bool) -> None:
    """Raise AssertionError unless exactly that happened, and a call that did not run says why."""
    ran, result = [*answered(reply)][at]
    assert ran == ([DELETED[arguments]] if runs else [])
    assert result.result is not None
    if not runs:
        assert result.result.error_type == "invalid_arguments"
        assert reply.option_calls[at].call.invalid_arguments


@pytest.mark.parametrize(
    ("wire", "way", "reason", "arguments"), ROWS, ids=lambda value: getattr(value, "dialect", value)
)
def test_a_call_at_the_end_of_a_cut_reply_does_not_run(wire: Wire, way: str, reason: str, arguments: str) -> None:
    body = getattr(wire, way)(wire.reasons[reason], wipes(arguments))
    reply = decode(wire.dialect, way, body)
    runs = reason == ENDED or arguments in wire.runs_when_cut

    check(reply, 0, arguments, runs)
    [(_, result)] = answered(reply)
    if arguments == CUT and (way == "streamed" or wire.runs_when_cut) and wire.whole is not gemini:
        assert reply.option_calls[0].call.raw_arguments == CUT
    assert runs or "was cut off before its arguments were complete" in str(result.result and result.result.error_text)
    assert [call.call.cut_off for call in reply.option_calls] == [not runs]


@pytest.mark.parametrize("arguments", [EMPTY_TEXT, EMPTY, COMPLETE])
@pytest.mark.parametrize(
    ("wire", "way"), [(wire, way) for wire in WIRES for way in WAYS], ids=lambda value: getattr(value, "dialect", value)
)
def test_a_call_before_the_cut_one_runs_if_blocks_arrive_in_order(wire: Wire, way: str, arguments: str) -> None:
    """The calls of a chat stream may grow side by side, so that a later call proves nothing of an earlier one."""
    body = getattr(wire, way)(wire.reasons[LENGTH], wipes(arguments, CUT))
    reply = decode(wire.dialect, way, body)

    check(reply, 0, arguments, arguments in wire.earlier_runs)
    assert reply.option_calls[1].call.cut_off


@pytest.mark.parametrize("arguments", [EMPTY_TEXT, EMPTY, CUT, COMPLETE])
@pytest.mark.parametrize("status", ["completed", "incomplete", "in_progress"])
@pytest.mark.parametrize("reason", OPENAI_REASONS)
@pytest.mark.parametrize("way", WAYS)
def test_the_status_of_an_item_decides(way: str, reason: str, status: str, arguments: str) -> None:
    """`completed` and `incomplete` are marks, however the response ended; `in_progress` is none."""
    body = {"whole": responses, "streamed": responses_stream}[way](OPENAI_REASONS[reason], wipes(arguments), status)
    reply = decode("openai.responses", way, body)
    finished = {"completed": True, "incomplete": False}.get(status, reason == ENDED or arguments == COMPLETE)

    check(reply, 0, arguments, finished and arguments != CUT)
    assert reply.option_calls[0].call.cut_off is not finished


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_reason_that_cuts_nothing_off_leaves_calls_whole(reason: str) -> None:
    """Gemini refuses such calls for what they are; the library answers them as any other."""
    for way, body in (("whole", gemini(reason, wipes(EMPTY))), ("streamed", gemini_stream(reason, wipes(EMPTY)))):
        check(decode("google.generate_content", way, body), 0, EMPTY, runs=True)


def test_a_gemini_call_in_pieces_that_never_ended_says_so() -> None:
    piece = {"functionCall": {"name": "wipe", "willContinue": True}}
    more = {"functionCall": {"partialArgs": [{"jsonPath": "$.folder", "stringValue": "tm"}], "willContinue": True}}
    chunks = [{"candidates": [{"content": {"parts": [each]}}]} for each in (piece, more)]
    reply = decode("google.generate_content", "streamed", [*chunks, gemini("MAX_TOKENS", [])])

    [call] = reply.option_calls
    assert (call.call.cut_off, call.call.unreadable_arguments) == (True, '{"folder":"tm"')


@pytest.mark.parametrize("target", [wire.dialect for wire in WIRES])
@pytest.mark.parametrize("source", WIRES, ids=lambda wire: wire.dialect)
def test_a_cut_call_and_its_error_go_to_every_wire(source: Wire, target: str) -> None:
    reply = decode(source.dialect, "whole", source.whole(source.reasons[LENGTH], wipes(EMPTY_TEXT)))
    history = [sabir.user("Go on."), *reply.messages, *(result for _, result in answered(reply)), sabir.user("So?")]
    dialect = dialect_of(target)
    provider = target.partition(".")[0]
    renderer = Renderer(dialect, Target(provider=provider, dialect=dialect.name, model="m"))
    rendering = renderer.render(history, (), Settings(max_output_tokens=100))
    sent = rendering.body_bytes.decode()

    assert "was cut off before its arguments were complete" in sent
    assert '"{}"' in sent or '"input":{}' in sent or '"args":{}' in sent
    assert not [loss for loss in rendering.losses if "arguments" in loss.path]


VENDORS = [wire for wire in WIRES if wire.dialect in DIALECTS]
each_vendor = pytest.mark.parametrize("wire", VENDORS, ids=lambda wire: wire.dialect)


@pytest.mark.parametrize("way", WAYS)
@each_vendor
def test_a_call_that_names_no_option_is_an_invalid_response(wire: Wire, way: str) -> None:
    with pytest.raises(ResponseInvalid, match="called an option without its name"):
        decode(wire.dialect, way, getattr(wire, way)(wire.reasons[ENDED], [("c", "", EMPTY)]))


ONE, OTHER = '{"a": 1}', '{"a": 2}'
REPEATED: list[tuple[list[Call], int]] = [
    ([("1", "f", ONE), ("1", "f", ONE)], 1),
    ([("1", "f", ONE), ("1", "f", '{"a":1}')], 1),
    ([("1", "f", ONE), ("2", "f", ONE), ("1", "f", ONE)], 2),
    ([("1", "f", ONE), ("2", "f", ONE)], 2),
    ([("1", "f", ONE), ("1", "f", OTHER)], 2),
    ([("1", "f", ONE), ("1", "g", ONE)], 2),
]
"""Calls, and how many of them are different calls."""


@pytest.mark.parametrize("way", WAYS)
@each_vendor
def test_a_call_that_came_twice_is_one_call_and_a_loss(wire: Wire, way: str) -> None:
    """Gateways send it again at a further index; calls that differ in id, name or arguments are all kept."""
    for calls, number in REPEATED:
        reply = decode(wire.dialect, way, getattr(wire, way)(wire.reasons[ENDED], calls))
        ids = [each.call.invocation_id for each in reply.option_calls if each.call]
        assert ids == [each[0] for each in calls[:number]]
        assert [loss.kind for loss in reply.losses] == ["dropped"] * (len(calls) - number)


WITH_IDS = [*((wire, "c0") for wire in VENDORS), *((wire, "") for wire in VENDORS if wire.whole in (chat, gemini))]
"""Some calls of Chat Completions and of Gemini have no id: one is made up."""


@pytest.mark.parametrize(("wire", "wire_id"), WITH_IDS, ids=lambda value: getattr(value, "dialect", value))
def test_a_streamed_call_has_its_id_and_its_options_name_from_its_start(wire: Wire, wire_id: str) -> None:
    """Only Gemini's wire shows no text of arguments meanwhile: its calls are whole."""
    stream = wire.streamed(wire.reasons[ENDED], [(wire_id, "wipe", COMPLETE)])
    found: list[Any] = events(scope_of(wire.dialect, option_names={"wipe": "my wipe"}), *stream)
    start, *grown, end = [each for each in found if hasattr(each, "index")]

    assert isinstance(start, BlockStart) and isinstance(end, BlockEnd) and end.block.kind == "option_call"
    assert start.kind == "option_call" and start.option_name == end.block.option_name == "my wipe"
    assert start.invocation_id == end.block.invocation_id == (wire_id or start.invocation_id) != ""
    assert "".join(each.text for each in grown) == ("" if wire.dialect.startswith("google") else COMPLETE)
