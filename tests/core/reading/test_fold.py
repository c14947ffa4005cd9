"""Law 8, fold = whole: a stream's blocks make the reply that a whole answer would have made."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.base.failures import Loss
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid, StreamBroken
from sabir.reading.fold import Fold, ReplyBuilder
from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.parts import Citation, KnownPart, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.reply import (
    Alternative,
    BlockDelta,
    BlockEnd,
    BlockKind,
    BlockStart,
    Reply,
    ReplyEnd,
    ReplyStart,
    StreamEvent,
    Usage,
)

from tests.core.support import SCOPE

START = ReplyStart(origin=SCOPE.origin())
STOP = ReplyEnd(finish_reason="stop")

texts = st.text(st.characters(codec="utf-8"), max_size=8)
states = st.none() | st.dictionaries(st.sampled_from(["signature", "id"]), texts, max_size=2)
blocks = st.one_of(
    st.builds(TextPart, text=texts, state=states, citations=st.just(()) | st.just((Citation(kind="url"),))),
    st.builds(ReasoningPart, text=texts, state=states),
    st.builds(RefusalPart, text=texts),
    st.just(MediaPart(modality="image", url="https://example.org/sky.png")),
    st.builds(OpaquePart, dialect=st.just("tiny.talk"), block=states),
    st.builds(
        lambda name, text: SCOPE.read_call("id", name, text),
        st.sampled_from(["a", "b"]),
        texts | st.sampled_from(["", "{}", '{"a": 1}', '{"a": ']),
    ),
)


def pieces(text: str, cuts: list[int]) -> list[str]:
    ends = sorted(min(cut, len(text)) for cut in cuts)
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def events_of(index: int, block: KnownPart | OptionCallPayload, cuts: list[int]) -> list[StreamEvent]:
    kind: BlockKind = block.kind
    if isinstance(block, OptionCallPayload):
        start = BlockStart(index=index, kind=kind, invocation_id=block.invocation_id, option_name=block.option_name)
        text = block.raw_arguments or ""
    else:
        start, text = BlockStart(index=index, kind=kind), getattr(block, "text", "")
    deltas = [BlockDelta(index=index, kind=kind, text=piece) for piece in pieces(text, cuts)]
    return [start, *deltas, BlockEnd(index=index, block=block)]


def fold(events: Iterable[StreamEvent]) -> Fold:
    folded = Fold(SCOPE)
    for event in events:
        folded.feed(event)
    return folded


def contents(reply: Reply) -> list[object]:
    """A reply without the ids of its messages, which are new each time."""
    return [[message._compared_fields() for message in reply.messages], reply.model_copy(update={"messages": ()})]


@given(st.lists(blocks, max_size=6), st.data())
def test_a_stream_folds_to_the_whole_reply(
    given_blocks: list[KnownPart | OptionCallPayload], data: st.DataObject
) -> None:
    """However the blocks of a stream interleave, the fold is what a whole answer of these blocks gives (law 8)."""
    queues = [
        events_of(i, block, data.draw(st.lists(st.integers(0, 8), max_size=3))) for i, block in enumerate(given_blocks)
    ]
    events: list[StreamEvent] = [START]
    while waiting := [queue for queue in queues if queue]:
        events.append(data.draw(st.sampled_from(waiting)).pop(0))
    usage, loss = Usage(input_tokens=1, output_tokens=2), Loss(kind="dropped", reason="r")
    end = ReplyEnd(finish_reason="length", raw_finish_reason="max", usage=usage, losses=(loss,), details={"tier": "x"})

    expected = ReplyBuilder(SCOPE, given_blocks).finish(
        finish_reason="length", raw_finish_reason="max", usage=usage, origin=SCOPE.origin(), losses=[loss],
        details={"tier": "x"},
    )  # fmt: skip

    assert contents(expected) == contents(fold([*events, end]).reply())


def call_key(block: KnownPart | OptionCallPayload) -> object:
    """The value in which a repeated call equals the first; a new object for parts, which never count as repeated."""
    is_call = isinstance(block, OptionCallPayload)
    return (block.invocation_id, block.option_name, block.arguments_json) if is_call else object()


@given(st.lists(blocks, max_size=4, unique_by=call_key), st.integers(0, 30))
def test_a_partial_reply_exists_at_any_time(given_blocks: list[KnownPart | OptionCallPayload], cut: int) -> None:
    """A stream that stops anywhere has a partial reply with every ended block, and with no unfinished call to run."""
    events = [START, *(event for i, block in enumerate(given_blocks) for event in events_of(i, block, [2, 4])), STOP]
    seen = events[:cut]

    partial = fold(seen).partial()

    ended = [event.block for event in seen if isinstance(event, BlockEnd)]
    is_over = STOP in seen
    assert [
        block if is_over or block.arguments else block.model_copy(update={"invalid_arguments": True, "cut_off": True})
        for block in ended
        if isinstance(block, OptionCallPayload)
    ] == [message.payload for message in partial.option_calls]
    for kind in ("text", "reasoning", "refusal"):
        grown = "".join(event.text for event in seen if isinstance(event, BlockDelta) and event.kind == kind)
        assert grown == (getattr(partial, kind) or "")
    assert partial.finish_reason == ("stop" if is_over else "other")


def test_neighbouring_parts_are_one_message_and_each_call_its_own() -> None:
    builder = ReplyBuilder(DecodeScope(SCOPE.target, policy="planner"))
    call = SCOPE.read_call("c", "weather", "{}")
    builder.add(ReasoningPart(text="hm"))
    builder.add(TextPart(text="a"))
    builder.add(call)
    builder.add(SCOPE.read_call("d", "weather", "{}"))
    builder.add(TextPart(text="b"))

    reply = builder.finish(finish_reason="stop", origin=SCOPE.origin("m2", "r1"))

    assert [message.kind for message in reply.messages] == ["parts", "option_call", "option_call", "parts"]
    assert {("planner", None, None, "r1", "m2")} == {
        (each.policy, each.role_hint_for_llm, each.step_num, each.origin.response_id, each.origin.reported_model)
        for each in reply.messages
        if each.origin
    }
    assert len({message.id for message in reply.messages}) == 4


@pytest.mark.parametrize(
    ("part", "stays"),
    [
        (TextPart(text=""), False),
        (ReasoningPart(text=""), False),
        (RefusalPart(text=""), False),
        (TextPart(text="", state={"id": "m1"}), True),
        (TextPart(text="", citations=(Citation(kind="url"),)), True),
        (ReasoningPart(text="", state={"encrypted": "x"}), True),
        (TextPart(text=" "), True),
    ],
)
def test_a_part_that_carries_nothing_is_left_out(part: KnownPart, stays: bool) -> None:
    """So that none is ever sent back (UP-17); state, citations and white space are something (law 2)."""
    builder = ReplyBuilder(SCOPE)
    builder.add(part)
    found = builder.finish(finish_reason="stop", origin=SCOPE.origin()).messages

    assert [each.parts for each in found] == ([(part,)] if stays else [])


@pytest.mark.parametrize(
    ("arguments", "raw", "canonical", "invalid"),
    [
        ('{"b": 1, "a": [2]}', '{"b": 1, "a": [2]}', '{"a":[2],"b":1}', False),
        ("", "", "{}", False),
        (" \n", " \n", "{}", False),
        ("{}", "{}", "{}", False),
        ('{"a": ', '{"a": ', "{}", True),
        ("[1]", "[1]", "{}", True),
        ('"x"', '"x"', "{}", True),
        ('{"a": NaN}', '{"a": NaN}', "{}", True),
        ('{"a": 1e999}', '{"a": 1e999}', "{}", True),
        (r'{"a": "\ud800"}', r'{"a": "\ud800"}', "{}", True),
        ("[" * 100_000, "[" * 100_000, "{}", True),
        ({"b": 1, "a": 2}, None, '{"a":2,"b":1}', False),
        ({}, None, "{}", False),
        (None, None, "{}", False),
        ({"a": float("nan")}, '{"a":NaN}', "{}", True),
        (["a"], '["a"]', "{}", True),
    ],
)  # fmt: skip
def test_arguments_are_read_and_kept(arguments: str, raw: str | None, canonical: str, invalid: bool) -> None:
    """Raw text survives; what is no JSON object marks the call instead of raising (law 10, D-01)."""
    call = SCOPE.read_call("id", "weather", arguments)

    assert (raw, canonical, invalid) == (call.raw_arguments, call.arguments_json, call.invalid_arguments)


@pytest.mark.parametrize("wire_id", ["", None])
def test_a_decoded_call_has_an_id_and_the_options_own_name(wire_id: str | None) -> None:
    scope = DecodeScope(SCOPE.target, option_names={"weather_in": "weather in"})
    first, second = (scope.read_call(wire_id, "weather_in", "{}", state={"signature": "x"}) for _ in range(2))

    assert first.invocation_id and first.invocation_id != second.invocation_id
    assert (first.option_name, first.state) == ("weather in", {"signature": "x"})
    assert scope.read_call("1", "other", "{}").option_name == "other"
    with pytest.raises(ResponseInvalid, match=r"tiny:m called an option without its name \(call 'c7'\)"):
        SCOPE.read_call("c7", "", "{}")


def test_an_unfinished_call_is_no_message() -> None:
    start = BlockStart(index=0, kind="option_call", invocation_id="c1", option_name="weather")
    events = [START, start, BlockDelta(index=0, kind="option_call", text='{"city": "Pa')]

    partial = fold(events).partial()

    assert partial.messages == ()
    kept = {"invocation_id": "c1", "option_name": "weather", "arguments": '{"city": "Pa'}
    assert {"unfinished_calls": [kept]} == partial.details
    assert [str(loss) for loss in partial.losses] == [
        "dropped: blocks[0]: only the first 12 characters of the option_call of 'weather' arrived"
    ]


def test_the_reply_is_built_once_and_only_after_its_terminal_marker() -> None:
    half = events_of(0, TextPart(text="half"), [])
    folded = fold([START, *half, STOP])

    assert folded.reply() is folded.reply() is folded.partial()
    with pytest.raises(StreamBroken, match="without an end marker") as caught:
        fold([START, *half]).reply()
    assert caught.value.partial.text == "half"


def test_the_end_may_know_the_origin_better_and_bring_alternatives() -> None:
    origin, alternative = SCOPE.origin("m-2026", "r9"), Alternative(messages=(), finish_reason="length")
    end = ReplyEnd(finish_reason="stop", origin=origin, alternatives=(alternative,), details={"seed": 1})

    reply = fold([START, *events_of(0, TextPart(text="x"), []), end]).reply()

    assert (origin, origin) == (reply.origin, reply.messages[0].origin)
    assert ((alternative,), {"seed": 1}) == (reply.alternatives, reply.details)


TEXT = BlockStart(index=0, kind="text")
END = BlockEnd(index=0, block=TextPart(text=""))


@pytest.mark.parametrize(
    "events",
    [
        [TEXT],
        [START, START],
        [START, TEXT, TEXT],
        [START, TEXT, END, TEXT],
        [START, TEXT, END, END],
        [START, END],
        [START, BlockDelta(index=0, kind="text", text="x")],
        [START, TEXT, BlockDelta(index=0, kind="reasoning", text="x")],
        [START, TEXT, BlockEnd(index=0, block=RefusalPart(text="no"))],
        [START, TEXT, STOP],
        [START, STOP, TEXT],
        [START, STOP, STOP],
        [STOP],
    ],
)
def test_events_out_of_order_are_refused(events: list[StreamEvent]) -> None:
    folded = fold(events[:-1])

    with pytest.raises(ResponseInvalid, match=f"tiny:m streamed {events[-1].type}.* out of order"):
        folded.feed(events[-1])
