"""Law 12: a call whose arguments may not be finished never runs, in whatever order blocks arrive."""

from typing import Any, NamedTuple

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.reading.fold import Fold, ReplyBuilder
from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.parts import KnownPart, TextPart
from sabir.vocabulary.reply import Alternative, BlockEnd, BlockStart, FinishedCalls, FinishReason, ReplyEnd, ReplyStart

from tests.core.support import SCOPE

BY_ITSELF: tuple[FinishReason, ...] = ("stop", "option_calls", "native_calls")
EARLY: tuple[FinishReason, ...] = ("length", "content_filter", "paused", "error", "other")
CLOSED = ('{"folder": "/tmp"}', ' {"a": {}} ')
"""Argument texts that cannot go on."""
OPEN = ("", " ", "{}", None, {}, {"folder": "/tmp"}, "{", '{"folder": "tm', '{"a": 1}}', "[1]")
"""Arguments that may have been cut off, or that are not an object."""


class Arrived(NamedTuple):
    """A block as it arrives: a text or the arguments of a call, and the wire's mark."""

    arguments: Any = "text"
    mark: bool | None = None
    is_call: bool = False

    def block(self, place: int) -> KnownPart | OptionCallPayload:
        """The block at a place; equal calls with different ids are different calls."""
        return SCOPE.read_call(f"c{place}", "wipe", self.arguments) if self.is_call else TextPart(text="so")


calls = st.builds(Arrived, st.sampled_from([*CLOSED, *OPEN]), st.sampled_from([None, None, True, False]), st.just(True))
replies = st.lists(calls | st.just(Arrived()), min_size=1, max_size=5)
reasons = st.sampled_from([*BY_ITSELF, *EARLY])
wires = st.sampled_from(["unknown", "followed", "all"])


@sabir.option
def wipe(folder: str = "everything", a: Any = None) -> str:
    """Delete a folder."""
    return folder


def may_run(arrived: Arrived, reason: FinishReason, wire: FinishedCalls, is_last: bool) -> bool:
    """The law, said the other way round: what proves that a call was finished."""
    if arrived.mark is not None:
        return arrived.mark
    is_shown = wire == "all" or (wire == "followed" and not is_last)
    return reason in BY_ITSELF or is_shown or arrived.arguments in CLOSED


@given(replies, reasons, wires, st.randoms(use_true_random=False))
def test_no_unfinished_call_is_runnable(
    arrived: list[Arrived], reason: FinishReason, wire: FinishedCalls, random: Any
) -> None:
    """Whole and streamed, with blocks that end in any order, and the text of the error says that it was cut off."""
    builder, fold = ReplyBuilder(SCOPE), Fold(SCOPE)
    for index, each in enumerate(arrived):
        builder.add(each.block(index), is_finished=each.mark)
    whole = builder.finish(finish_reason=reason, origin=SCOPE.origin(), finished_calls=wire)
    fold.feed(ReplyStart(origin=SCOPE.origin()))
    for index, each in enumerate(arrived):
        fold.feed(BlockStart.unchecked(index, each.block(index)))
    for index, each in random.sample([*enumerate(arrived)], len(arrived)):
        fold.feed(BlockEnd(index=index, block=each.block(index), is_finished=each.mark))
    fold.feed(ReplyEnd(finish_reason=reason, finished_calls=wire))

    is_last = [at == len(arrived) - 1 for at in range(len(arrived))]
    chosen = [(each, last) for each, last in zip(arrived, is_last, strict=True) if each.is_call]
    for reply in (whole, fold.reply()):
        results = [wipe.answer_sync(call).result for call in reply.option_calls]
        for (each, last), call, result in zip(chosen, reply.option_calls, results, strict=True):
            runs = may_run(each, reason, wire, last)
            assert runs is not call.call.cut_off
            assert runs or (result and "was cut off before its arguments were complete" in (result.error_message or ""))
            assert call.call.invalid_arguments or runs


@given(replies)
def test_a_broken_stream_has_only_calls_whose_text_is_closed(arrived: list[Arrived]) -> None:
    """A block's end is no proof: vendors send one for a call that was cut off, and the reason would have come later."""
    fold = Fold(SCOPE)
    fold.feed(ReplyStart(origin=SCOPE.origin()))
    for index, each in enumerate(arrived):
        fold.feed(BlockStart.unchecked(index, each.block(index)))
        fold.feed(BlockEnd(index=index, block=each.block(index), is_finished=each.mark))
    with pytest.raises(sabir.StreamBroken) as met:
        fold.reply()

    chosen = [each for each in arrived if each.is_call]
    for each, call in zip(chosen, met.value.partial.option_calls, strict=True):
        assert may_run(each, "other", "unknown", False) is not call.call.cut_off


@pytest.mark.parametrize("wire", ["unknown", "followed", "all"])
def test_an_alternative_has_its_own_finish_reason(wire: FinishedCalls) -> None:
    texts = ("{}", '{"a": 1}', "")
    messages = ReplyBuilder(SCOPE, [SCOPE.read_call("c", "wipe", text) for text in texts]).messages(SCOPE.origin())
    others = [Alternative(messages=messages, finish_reason=reason) for reason in ("length", "option_calls")]
    builder = ReplyBuilder(SCOPE, [SCOPE.read_call("c", "wipe", "{}")])
    ending: FinishReason = "option_calls"
    reply = builder.finish(finish_reason=ending, origin=SCOPE.origin(), alternatives=others, finished_calls=wire)

    cut = [[message.call.cut_off for message in each.messages if message.call] for each in reply.alternatives]
    assert cut == [[wire == "unknown", False, True], [False] * 3]
    assert [call.call.cut_off for call in reply.option_calls] == [False]


@pytest.mark.parametrize(
    ("arguments", "unreadable"),
    [("", ""), (" ", ""), ("{}", ""), ('{"a": 1}', ""), ({"a": 1}, ""), ('{"a": ', '{"a": '), ("[1]", "[1]")],
)
def test_a_cut_call_is_stored_with_what_arrived(arguments: Any, unreadable: str) -> None:
    builder = ReplyBuilder(SCOPE)
    builder.add(SCOPE.read_call("c", "wipe", arguments), is_finished=False)
    (message,) = builder.finish(finish_reason="length", origin=SCOPE.origin()).messages
    (again,) = sabir.loads(sabir.dumps([message]))

    assert again == message and again.call is not None and again.call.cut_off
    assert again.call.unreadable_arguments == unreadable
    assert "cut_off=True" in repr(again.call)
    assert "cut_off" not in sabir.dumps([message.model_copy(update={"payload": SCOPE.read_call("c", "w", "{}")})])
