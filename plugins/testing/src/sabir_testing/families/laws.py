"""Laws: rules that must hold for all histories and settings, tested with random ones."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeVar

from hypothesis import strategies as st
from sabir import Message, Settings
from sabir.authoring import WIRE_SETTINGS

from sabir_testing.families.decoding_laws import DecodingLaws
from sabir_testing.histories.directed_histories import ROLES, directed_histories, valid_directed
from sabir_testing.histories.random_histories import (
    Speakers,
    Strategy,
    hints,
    histories_of,
    messages_of,
    speakers_for,
    texts,
    valid_histories,
    words,
)
from sabir_testing.histories.samples import LOOKUP, SETTINGS, message_by
from sabir_testing.kit.decoded_recordings import own_parts
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.law_testing import impurities, law
from sabir_testing.kit.request_contents import MarkedMessage, check_ids, check_pairs, mark, messages_in, missing_texts
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory
from sabir_testing.reading import strings

Drawn = TypeVar("Drawn")
SOME_SETTINGS = st.fixed_dictionaries({}, optional={name: st.sampled_from(SETTINGS[name]) for name in WIRE_SETTINGS})
ODD_WORDS = st.one_of(words, texts.filter(bool), st.text(min_size=1, max_size=9))
"""Strings, never empty, for texts, arguments and results: quotes, white space at an end, any character."""
MOST_EDITS = 30
"""The maximum number of messages of a directed history that are added one by one."""


def _author_strategy(subject: AdapterUnderTest, strategy_for: Callable[[Speakers], Drawn]) -> Drawn:
    """Return what `strategy_for` creates for speakers with the adapter's own model; created once for a suite."""

    def speakers() -> Speakers:
        return speakers_for(subject.target, own=own_parts(subject), speaks_as=subject.adapter.speaks_as)

    return subject.once(strategy_for, lambda: strategy_for(speakers()))


def histories(subject: AdapterUnderTest) -> Strategy[list[Message]]:
    """Return a strategy for histories that may contain messages of the author's own model."""
    return _author_strategy(subject, histories_of)


def directed(subject: AdapterUnderTest) -> list[list[Message]]:
    """Return the histories that are tried before the random ones."""
    return _author_strategy(subject, directed_histories)


def _splits(subject: AdapterUnderTest) -> Iterator[tuple[list[Message], list[Message]]]:
    """Yield the directed histories, divided before each of their last messages, and as a whole before a late result."""
    for history in directed(subject):
        for at in range(max(1, len(history) - 3), len(history)):
            yield history[:at], history[at:]


Edit = tuple[str, list[Message], int]


def _edits(subject: AdapterUnderTest) -> Strategy[list[Edit]]:
    new_messages = st.lists(_author_strategy(subject, messages_of), min_size=1, max_size=3)
    kinds = st.sampled_from(["append", "append", "truncate", "edit", "fork"])
    return st.lists(st.tuples(kinds, new_messages, st.integers(0, 9)), min_size=1, max_size=5)


def _directed_edits(subject: AdapterUnderTest) -> Iterator[tuple[list[Message], list[Edit]]]:
    """Yield the directed histories, extended message by message, then shortened, changed and continued from an earlier
    version.
    """
    for history in directed(subject):
        first, *others = history[:MOST_EDITS]
        edits: list[Edit] = [("append", [message], 0) for message in others]
        last = len(history[:MOST_EDITS]) - 1
        yield [first], [*edits, ("truncate", [first], last // 2), ("fork", [first], last), ("edit", [first], last)]


def _directed_hints(subject: AdapterUnderTest) -> Iterator[tuple[list[Message], list[Any]]]:
    for role in ROLES:
        yield from ((history, [role] * len(history)) for history in directed(subject))


def _directed_settings(subject: AdapterUnderTest) -> Iterator[dict[str, Any]]:
    """Yield all settings together, and each pair of settings."""
    values = {name: SETTINGS[name][0] for name in WIRE_SETTINGS}
    yield values
    yield from ({name: values[name] for name in names} for names in combinations(values, 2))


def _apply_edit(versions: list[list[Message]], edit: Edit) -> list[Message]:
    """Return the conversation after one more change. A fork continues an earlier version."""
    kind, messages, position = edit
    conversation = versions[position % len(versions)] if kind == "fork" else versions[-1]
    index = position % len(conversation)
    match kind:
        case "truncate":
            return conversation[: index + 1]
        case "edit":
            return [*conversation[:index], messages[0], *conversation[index + 1 :]]
        case _:
            return [*conversation, *messages]


class LawCases(DecodingLaws):
    """The test cases of the family `laws`."""

    family = "laws"

    @law(histories, first=directed)
    def test_every_pair_stays_whole(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """A call that has a result is in the request together with the result, or neither is. All calls of a turn come
        first, then all their results, and no other message is between them (law 1).
        """
        marked = mark(history)
        check_pairs(subject, marked, subject.render(messages_in(marked)))

    @law(histories, first=directed)
    def test_every_pair_has_an_id_of_its_own(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """If requests contain call ids, a call and its result have the id from `Entry.wire_id`. The id in the history
        may be used twice or not be accepted by the API (law 1).
        """
        marked = mark(history)
        check_ids(subject, marked, subject.render(messages_in(marked)))

    @law(histories, first=directed)
    def test_every_text_is_sent_or_reported(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """Every text of every message is in the request, or a loss names its message (law 2)."""
        marked = mark(history)
        check_texts(marked, subject.try_render(messages_in(marked)))

    @law(histories, first=directed)
    def test_every_history_is_a_valid_request(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """Every history, in any order of messages, renders to a request that the suite's `check_request` accepts,
        unless nothing is left to send (law 1).
        """
        check_body(subject, subject.try_render(history))

    @law(histories, histories, first=_splits)
    def test_what_the_user_closed_is_final(
        self, subject: AdapterUnderTest, history: list[Message], more: list[Message]
    ) -> None:
        """The encoded messages before a user message that follows the model's answer never change in later requests
        (law 4).
        """
        before = [*history, message_by(subject.adapter.speaks_as, "So."), message_by("user", "And?")]
        _check_closed_turns(subject, before, more)

    @law(histories, histories, first=_splits)
    def test_what_the_model_closed_is_final(
        self, subject: AdapterUnderTest, history: list[Message], more: list[Message]
    ) -> None:
        """The encoded messages before the model's answer to a user never change in later requests, not even for a late
        result (law 4).
        """
        before = [*history, message_by("user", "And?"), message_by(subject.adapter.speaks_as, "So.")]
        _check_closed_turns(subject, before, more)

    @law(histories, _edits, first=_directed_edits)
    def test_a_kept_prefix_is_a_fresh_one(
        self, subject: AdapterUnderTest, start: list[Message], edits: list[Edit]
    ) -> None:
        """Rendering with cached turns gives the same request as rendering from the beginning, because `encode_turn`
        depends on its arguments only (law 5). Histories are extended, shortened, changed in one place and reset to an
        earlier state.
        """
        cached, versions = subject.renderer(), [start]
        for edit in edits:
            versions.append(_apply_edit(versions, edit))
            incremental, fresh = subject.try_render(versions[-1], by=cached), subject.try_render(versions[-1])
            lengths = [len(each) for each in versions[:-1]]
            details = {
                "lengths of the histories that the same renderer rendered before": lengths,
                "the request of that renderer": incremental.body,
            }
            is_alike = incremental.body == fresh.body and incremental.losses == fresh.losses
            what = "a renderer with cached turns and a new renderer return different requests or losses for the same"
            fresh.expect(is_alike, f"{what} history; let encode_turn depend on its arguments only", details=details)

    @law(
        lambda subject: valid_histories(subject.target, subject.adapter.speaks_as, ODD_WORDS),
        first=lambda subject: valid_directed(subject.target, subject.adapter.speaks_as),
    )
    def test_a_turn_renders_alike_as_the_tail_and_closed(
        self, subject: AdapterUnderTest, history: list[Message]
    ) -> None:
        """A complete turn has the same items and losses at the end of a request and before later turns (law 4). Results
        are JSON values of every type, and `check_request` accepts both requests.
        """
        later = subject.request_for(history)
        check_body(subject, later)
        for end in _ends_of_turns(history, subject.adapter.speaks_as):
            _check_losses_and_items(subject, end, later)

    @law(histories, first=directed)
    def test_rendering_asks_for_nothing(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """Rendering uses no clock, no random numbers, no network and no disk (law 6)."""
        renderer = subject.renderer()
        with impurities() as seen:
            subject.try_render(history, by=renderer)
        what = f"rendering calls functions with changing results: {'; '.join(seen[:3])}"
        expect(not seen, f"{what}; remove these calls", history=history)

    @law(histories, first=directed)
    def test_rendering_repeats(self, subject: AdapterUnderTest, history: list[Message]) -> None:
        """Another instance of the dialect gives the same bytes, and rendering does not change the messages (law 6)."""
        before = [message.model_dump_json() for message in history]
        one, other = subject.try_render(history), subject.try_render(history, by=subject.second_renderer.new())
        what = "a second instance of the dialect renders the same history to a different body; do not use state of the"
        one.expect(one.body == other.body, f"{what} instance", details={"the body of the second instance": other.body})
        is_same = [message.model_dump_json() for message in history] == before
        expect(is_same, "rendering changes a message of the history; change a copy instead", history=history)

    @law(histories, lambda subject: st.lists(hints, min_size=10, max_size=10), first=_directed_hints)
    def test_role_hints_change_no_pair(
        self, subject: AdapterUnderTest, history: list[Message], role_hints: list[Any]
    ) -> None:
        """The request contains the same calls and results for all role hints, because hints apply to texts only (law
        7).
        """
        marked = mark(history)
        bare = messages_in(marked)
        pairs = zip(bare, role_hints, strict=False)
        hinted = [each.model_copy(update={"role_hint_for_llm": hint}) for each, hint in pairs]
        paired = {text for each in marked if each.message.kind != "parts" for text in each.marks}
        one, other = subject.try_render(bare), subject.try_render(hinted)
        differing = {text for text in paired if (text.encode() in one.body) != (text.encode() in other.body)}
        number = next((n for n, each in enumerate(marked, start=1) if differing & set(each.marks)), 0)
        what = f"message {number}, a call or a result, is in the body with role hints but not without them, or the"
        details = {"the body without hints": one.body}
        other.expect(not differing, f"{what} reverse; apply hints to texts only", details=details)

    @law(lambda subject: SOME_SETTINGS, first=_directed_settings)
    def test_every_setting_is_sent_or_reported(self, subject: AdapterUnderTest, chosen: dict[str, Any]) -> None:
        """Every setting is in the request or in the losses, in every combination of settings (law 2)."""
        request = _render_settings(subject, chosen)
        check_body(subject, request)
        lost = {loss.path for loss in request.losses}
        for name in chosen:
            others = [{key: value for key, value in chosen.items() if key != name}]
            others += [{**chosen, name: value} for value in SETTINGS[name]]
            sent = (_render_settings(subject, other) for other in others)
            # Another value may be in the losses, while this value is what the API does anyway.
            is_reported = f"settings.{name}" in lost or any(
                other.body != request.body or any(loss.path == f"settings.{name}" for loss in other.losses)
                for other in sent
            )
            what = f"the setting {name} is neither in the body nor in the losses, if these settings are set together"
            request.expect(is_reported, f"{what}: {', '.join(chosen)}", details={"the settings": chosen})


def _render_settings(subject: AdapterUnderTest, fields: dict[str, Any]) -> RenderedHistory:
    """Return the request with these settings."""
    return subject.request_for([message_by("user", "Hi.")], [LOOKUP], Settings(**fields))


def check_texts(
    marked: Sequence[MarkedMessage], request: RenderedHistory, where: str = "the body", source: str = ""
) -> None:
    """Raise ConformanceFailure if a text is neither in the body nor in the losses (law 2).

    `where` names the body, and `source` says where the history comes from.
    """
    missing = missing_texts(marked, request.body, request.losses)
    origin = f" (the history is {source})" if source else ""
    request.expect(not missing, f"{''.join(missing[:1])} is neither in {where} nor in the losses{origin}")


def check_body(subject: AdapterUnderTest, request: RenderedHistory) -> None:
    """Raise ConformanceFailure if the suite's own check raises an exception for a request."""
    try:
        if request.rendering is not None:
            subject.suite.check_request(request.body)
    except Exception as error:
        reason = str(error) or type(error).__name__
        what = f"the suite's check_request refuses the request of this history: {reason}"
        if not isinstance(error, AssertionError | ValueError):
            name = type(error).__name__
            what = f"the suite's check_request raises {name}: {error}; raise AssertionError or ValueError to refuse"
        raise ConformanceFailure(what, history=request.history, rendering=request.rendering) from error


def _check_closed_turns(subject: AdapterUnderTest, before: list[Message], more: list[Message]) -> None:
    """Raise ConformanceFailure unless the items before a history's last message are the same in the request of a longer
    history.
    """
    items, longer = subject.items(subject.render(before)), subject.try_render([*before, *more])
    later = subject.items(longer.rendering)
    last = max((at for at, item in enumerate(items) if before[-1].text in "\n".join(strings(item))), default=0)
    at = next((at for at, item in enumerate(items[:last]) if later[at : at + 1] != [item]), None)
    _check_item(subject, longer, at, items, len(before))


def _ends_of_turns(history: Sequence[Message], speaks_as: str) -> list[int]:
    """Return the positions at which a request is sent: after the user's messages, and after all results of a turn."""
    others = {speaks_as, "system"}
    return [at for at, each in enumerate(history) if each.policy == speaks_as and history[at - 1].policy not in others]


def _check_losses_and_items(subject: AdapterUnderTest, end: int, later: RenderedHistory) -> None:
    """Raise ConformanceFailure unless the first `end` messages of a history give the same items and losses alone as in
    the request of the complete history.
    """
    sent = subject.request_for(later.history[:end])
    check_body(subject, sent)
    items, now = subject.items(sent.rendering), subject.items(later.rendering)
    at = next((at for at, item in enumerate(items) if json.dumps(item) != json.dumps(now[at : at + 1])[1:-1]), None)
    _check_item(subject, later, at, items, end)
    ids = {each.id for each in sent.history}
    now, before = ([loss for loss in request.losses if loss.message_id in ids] for request in (later, sent))
    what = f"the losses of the first {end} messages change when more messages follow"
    later.expect(before == now, what, details={f"the losses with only {end} messages": list(map(str, sent.losses))})


def _check_item(subject: AdapterUnderTest, later: RenderedHistory, at: int | None, items: list[Any], end: int) -> None:
    """Raise ConformanceFailure for the item at position `at`, which differs between the request of the first `end`
    messages and a later request. Do nothing if `at` is None.
    """
    if at is None:
        return
    now = subject.items(later.rendering)[at : at + 1] or ["(no such item)"]
    field = subject.dialect.messages_field
    what = f"item {at + 1} of {field!r} changes after it was sent: it is different in the request of the first {end}"
    what = f"{what} messages and in a request with more messages"
    details = {f"the item in the request of {end} messages": items[at], "the item in the longer request": now[0]}
    later.expect(False, f"{what}; let encode_turn return the same item for the same turn", details=details)
