"""The laws, tried on random histories and settings: what holds for the examples of other families holds always."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import sabir
from hypothesis import strategies as st
from sabir import Loss, Message, Rendering, Settings
from sabir.authoring import WIRE_SETTINGS
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer

from sabir_testing.families.decoding_laws import DecodingLaws
from sabir_testing.histories.drawn import (
    Strategy,
    hints,
    histories_of,
    messages_of,
    speakers_for,
    texts,
    tidy_histories,
    words,
)
from sabir_testing.histories.marks import mark, messages, strings, unheard
from sabir_testing.histories.samples import said
from sabir_testing.kit.broken import Broken, expect
from sabir_testing.kit.own import own_parts
from sabir_testing.kit.pairs import check_ids, check_pairs
from sabir_testing.kit.properties import for_all, impurities
from sabir_testing.kit.suite import Subject, Suite

WEATHER = sabir.Option.from_schema("weather", "Weather.", {"type": "object", "properties": {}})
SCHEMAS = [
    {"title": title, "type": "object", "properties": {"a": {"type": "string"}}} for title in ("Forecast", "Weather")
]
VALUES: dict[str, list[Any]] = {
    "max_output_tokens": [10, 11],
    "temperature": [0.0, 1.0, 0.5],
    "top_p": [0.5, 0.6],
    "stop": ["x", ("a", "b", "c", "d", "e"), "y"],
    "seed": [7, 8],
    "reasoning_effort": ["none", "low", "max", "high", "minimal", "medium"],
    "option_choice": ["auto", "none", "required", "weather"],
    "parallel_options": [True, False],
    "response_format": SCHEMAS,
}
"""Wire setting → values for it."""
ODD_WORDS = st.one_of(words, texts.filter(bool), st.text(min_size=1, max_size=9))
"""What may stand in a text, an argument or a result: quotes, white space at an end, any character."""


class Rendered(NamedTuple):
    """What became of a history; `rendering` is None where nothing was left to send, which the losses tell."""

    rendering: Rendering | None
    losses: Sequence[Loss]

    @property
    def body(self) -> bytes:
        """The request, or nothing."""
        return self.rendering.body_bytes if self.rendering else b""


def rendered(subject: Subject, history: Sequence[Message], renderer: Renderer | None = None) -> Rendered:
    """What becomes of a history."""
    try:
        rendering = (renderer or subject.renderer()).render(history)
    except RenderingRefused as refused:
        return Rendered(None, refused.losses)
    return Rendered(rendering, rendering.losses)


class _Drawn(NamedTuple):
    """What examples are drawn from: making it costs as much as drawing a dozen."""

    histories: Strategy[list[Message]]
    messages: Strategy[Message]


_DRAWN: WeakKeyDictionary[type[Suite], _Drawn] = WeakKeyDictionary()


def histories(subject: Subject) -> Strategy[list[Message]]:
    """Histories in which the author's own model spoke, too."""
    return _drawn(subject).histories


def _drawn(subject: Subject) -> _Drawn:
    """Made once for each suite."""
    suite = type(subject.suite)
    if suite not in _DRAWN:
        speakers = speakers_for(subject.target, own=own_parts(subject), speaks_as=subject.adapter.speaks_as)
        _DRAWN[suite] = _Drawn(histories_of(speakers), messages_of(speakers))
    return _DRAWN[suite]


Edit = tuple[str, list[Message], int]


def _edits(subject: Subject) -> Strategy[list[Edit]]:
    some = st.lists(_drawn(subject).messages, min_size=1, max_size=3)
    how = st.sampled_from(["append", "append", "truncate", "edit", "fork"])
    return st.lists(st.tuples(how, some, st.integers(0, 9)), min_size=1, max_size=5)


def _edited(versions: list[list[Message]], edit: Edit) -> list[Message]:
    """The conversation after one more change; a fork goes on from an earlier version."""
    how, given, place = edit
    conversation = versions[place % len(versions)] if how == "fork" else versions[-1]
    at = place % len(conversation)
    match how:
        case "truncate":
            return conversation[: at + 1]
        case "edit":
            return [*conversation[:at], given[0], *conversation[at + 1 :]]
        case _:
            return [*conversation, *given]


class LawCases(DecodingLaws):
    """The laws."""

    family = "laws"

    def test_every_pair_stays_whole(self, subject: Subject) -> None:
        """A call is in the request with its result or not at all: first all calls of a turn, then all their results.

        No words of anybody else stand between (law 1).
        """

        def check(history: list[Message]) -> None:
            marked = mark(history)
            rendering = subject.render(messages(marked))
            if rendering is not None:
                check_pairs(subject, marked, rendering)

        for_all(subject, histories(subject), check)

    def test_every_pair_has_an_id_of_its_own(self, subject: Subject) -> None:
        """Where the wire shows ids, a call and its result show the one that core gave them (`Entry.wire_id`).

        What the history calls them may be another call's id, or one that the wire does not take (law 1).
        """

        def check(history: list[Message]) -> None:
            marked = mark(history)
            rendering = subject.render(messages(marked))
            if rendering is not None:
                check_ids(subject, marked, rendering)

        for_all(subject, histories(subject), check)

    def test_every_text_is_sent_or_reported(self, subject: Subject) -> None:
        """Every text of every message is in the body, or a loss names its message: nothing is lost silently (law 2)."""

        def check(history: list[Message]) -> None:
            marked = mark(history)
            made = rendered(subject, messages(marked))
            silent = unheard(marked, made.body, made.losses)
            expect(
                not silent,
                f"{silent[0] if silent else ''} is neither in the body nor in the losses",
                history=messages(marked),
                rendering=made.rendering,
                losses=made.losses,
            )

        for_all(subject, histories(subject), check)

    def test_every_history_is_a_valid_request(self, subject: Subject) -> None:
        """Whatever was said, in any order, renders to a request that the suite's own `check_request` takes (law 1)."""

        def check(history: list[Message]) -> None:
            rendering = subject.render(history)
            if rendering is not None:
                check_body(subject, history, rendering)

        for_all(subject, histories(subject), check)

    def test_what_the_user_closed_is_final(self, subject: Subject) -> None:
        """What stands before a user's message that follows the model's never changes again, whatever comes (law 4)."""

        def check(example: tuple[list[Message], list[Message]]) -> None:
            history, more = example
            before = [*history, said(subject.adapter.speaks_as, "So."), said("user", "And?")]
            _check_final(subject, before, more)

        for_all(subject, st.tuples(histories(subject), histories(subject)), check)

    def test_what_the_model_closed_is_final(self, subject: Subject) -> None:
        """What stands before the model's answer to a user never changes again: no late result, nothing (law 4)."""

        def check(example: tuple[list[Message], list[Message]]) -> None:
            history, more = example
            before = [*history, said("user", "And?"), said(subject.adapter.speaks_as, "So.")]
            _check_final(subject, before, more)

        for_all(subject, st.tuples(histories(subject), histories(subject)), check)

    def test_a_kept_prefix_is_a_fresh_one(self, subject: Subject) -> None:
        """`encode_turn` is a function of its arguments: what was kept from before is what rendering anew gives (law 5).

        The history is appended to, cut short, changed in one place, or taken up again from an earlier state.
        """

        def check(example: tuple[list[Message], list[Edit]]) -> None:
            start, edits = example
            kept, versions = subject.renderer(), [start]
            for edit in edits:
                versions.append(_edited(versions, edit))
                incremental, fresh = rendered(subject, versions[-1], kept), rendered(subject, versions[-1])
                expect(
                    incremental.body == fresh.body and incremental.losses == fresh.losses,
                    "rendered on top of what was kept, a history gives another request than rendered anew",
                    history=versions[-1],
                    rendering=fresh.rendering,
                    losses=fresh.losses,
                    shown={"rendered before, one after the other": [len(each) for each in versions[:-1]],
                           "on top of what was kept": incremental.body},
                )  # fmt: skip

        for_all(subject, st.tuples(histories(subject), _edits(subject)), check)

    def test_a_turn_renders_alike_as_the_tail_and_closed(self, subject: Subject) -> None:
        """A whole turn has the same items and losses as the end of a request and once others came after it (law 4).

        Results are JSON of every kind, and `check_request` takes both requests: what it takes of a turn at the end
        only may be another thing in the middle.
        """

        def check(history: list[Message]) -> None:
            later = subject.rendered(history)
            check_body(subject, history, later)
            for end in _ends_of_turns(history, subject.adapter.speaks_as):
                _check_alike(subject, history, end, later)

        for_all(subject, tidy_histories(subject.target, subject.adapter.speaks_as, ODD_WORDS), check)

    def test_rendering_asks_for_nothing(self, subject: Subject) -> None:
        """Rendering asks for no time, no chance, no network and no disk (law 6)."""

        def check(history: list[Message]) -> None:
            renderer = subject.renderer()
            with impurities() as seen:
                rendered(subject, history, renderer)
            expect(not seen, f"rendering is not pure: {'; '.join(seen[:3])}", history=history)

        for_all(subject, histories(subject), check)

    def test_rendering_repeats(self, subject: Subject) -> None:
        """Another instance of the dialect gives the same bytes, and the messages stay as they were (law 6)."""
        provider, speaks_as = subject.provider, subject.adapter.speaks_as
        dialect = provider.dialect(subject.short_name)
        other_adapter = sabir.ModelAdapter(
            provider, dialect, subject.target.model, subject.adapter.access, speaks_as=speaks_as
        )

        def check(history: list[Message]) -> None:
            before = [message.model_dump_json() for message in history]
            one, other = rendered(subject, history), rendered(subject, history, other_adapter.new_renderer())
            expect(
                one.body == other.body,
                "a second instance of the dialect renders the same history to other bytes",
                history=history,
                rendering=one.rendering,
                shown={"the second time": other.body},
            )
            expect(
                [message.model_dump_json() for message in history] == before,
                "rendering changed a message of the history, which is not the dialect's",
                history=history,
            )

        for_all(subject, histories(subject), check)

    def test_role_hints_change_no_pair(self, subject: Subject) -> None:
        """The same calls and results are in the request whatever role hints say: hints are for words alone (law 7)."""

        def check(example: tuple[list[Message], list[Any]]) -> None:
            history, given = example
            marked = mark(history)
            bare = messages(marked)
            hinted = [
                each.model_copy(update={"role_hint_for_llm": hint}) for each, hint in zip(bare, given, strict=False)
            ]
            paired = {text for each in marked if each.message.kind != "parts" for text in each.marks}
            one, other = rendered(subject, bare), rendered(subject, hinted)
            differing = sorted(text for text in paired if (text in one.body.decode()) != (text in other.body.decode()))
            at = next((n for n, each in enumerate(marked, start=1) if set(differing) & set(each.marks)), 0)
            expect(
                not differing,
                f"message {at}, a call or a result, is in the request with these role hints or without them, not both",
                history=hinted,
                rendering=other.rendering,
                losses=other.losses,
                shown={"without hints": one.body},
            )

        ten = st.lists(hints, min_size=10, max_size=10)
        for_all(subject, st.tuples(histories(subject), ten), check)

    def test_every_setting_is_sent_or_reported(self, subject: Subject) -> None:
        """Each setting is in the body or in the losses, whatever others are set beside it (law 2)."""
        chosen = st.fixed_dictionaries({}, optional={name: st.sampled_from(VALUES[name]) for name in WIRE_SETTINGS})

        def check(fields: dict[str, Any]) -> None:
            _check_settings(subject, fields)

        for_all(subject, chosen, check)


def check_body(subject: Subject, history: Sequence[Message], rendering: Rendering) -> None:
    """Broken where the suite's own check refuses a request."""
    try:
        subject.suite.check_request(rendering.body_bytes)
    except (AssertionError, ValueError) as error:
        reason = str(error) or type(error).__name__
        what = f"the suite's check_request refuses what this history renders to: {reason}"
        raise Broken(what, history=history, rendering=rendering) from error
    except Exception as error:
        what = f"the suite's check_request itself raised {type(error).__name__}: {error}; mend it"
        raise Broken(what, history=history, rendering=rendering) from error


def _check_final(subject: Subject, before: list[Message], more: list[Message]) -> None:
    """Broken unless the items before that of a history's last words stand in the request of any longer one."""
    short, long = subject.render(before), subject.render([*before, *more])
    items, later = subject.items(short), subject.items(long)
    last = max((at for at, item in enumerate(items) if before[-1].text in "\n".join(strings(item))), default=0)
    closed = items[:last]
    at = next((at for at, item in enumerate(closed) if later[at : at + 1] != [item]), None)
    if at is None:
        return
    raise Broken(
        f"item {at + 1} of {subject.dialect.messages_field!r} was sent in a request that ended with message "
        f"{len(before)}, and is another one now that {len(more)} more came",
        history=[*before, *more],
        rendering=long,
        shown={"the item, when it was sent": closed[at], "now": later[at] if at < len(later) else "not there"},
    )


def _ends_of_turns(history: Sequence[Message], speaks_as: str) -> list[int]:
    """Where a request is sent: after what the user said, and after all results of a turn; others speak next."""
    others = {speaks_as, "system"}
    return [at for at, each in enumerate(history) if each.policy == speaks_as and history[at - 1].policy not in others]


def _check_alike(subject: Subject, history: Sequence[Message], end: int, later: Rendering) -> None:
    """Broken unless what a history's beginning renders to by itself stands so in the request of the whole."""
    sent = subject.rendered(history[:end])
    check_body(subject, history[:end], sent)
    items, now = subject.items(sent), subject.items(later)
    at = next((at for at, item in enumerate(items) if json.dumps(item) != json.dumps(now[at : at + 1])[1:-1]), None)
    if at is not None:
        raise Broken(
            f"item {at + 1} of {subject.dialect.messages_field!r} was sent in a request that ended with message {end}, "
            "all of it said, and is another one now that others came after it",
            history=history,
            rendering=later,
            shown={"the item, when it was sent": items[at], "now": now[at] if at < len(now) else "not there"},
        )
    named = {each.id for each in history[:end]}
    told = [loss for loss in later.losses if loss.message_id in named]
    expect(
        [loss for loss in sent.losses if loss.message_id in named] == told,
        f"the losses of the first {end} messages are others now that more came after them",
        history=history,
        rendering=later,
        losses=told,
        shown={"the losses, when they were sent": list(map(str, sent.losses))},
    )


def _check_settings(subject: Subject, chosen: dict[str, Any]) -> None:
    """Broken where a setting changes nothing: left out, or replaced by another value."""

    def made(fields: dict[str, Any]) -> Rendering:
        return subject.rendered([said("user", "Hi.")], [WEATHER], Settings(**fields))

    rendering = made(chosen)
    lost = {loss.path for loss in rendering.losses}
    for name in chosen:
        if f"settings.{name}" in lost:
            continue
        others = [{key: value for key, value in chosen.items() if key != name}]
        others += [{**chosen, name: value} for value in VALUES[name]]
        expect(
            any(made(other).body_bytes != rendering.body_bytes for other in others),
            f"the setting {name} is neither in the body nor in the losses, where these are set: {', '.join(chosen)}",
            rendering=rendering,
            shown={"the settings": chosen},
        )
