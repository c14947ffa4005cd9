"""Random histories: messages in any order, role hints, other origins, reused ids, calls or results without the other.

speakers_for(target) ─▶ histories_of(…): messages of users, of the target itself, of other models, without an origin

State is invented only for invented providers. State of the target itself comes from its recorded answers (`own`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sabir
from hypothesis import strategies as st
from sabir import Message, Origin, Target
from sabir.authoring import DecodeScope, Part, RoleHint

from sabir_testing.histories.samples import JSON_KINDS, MEDIA_FILES, WIRE_KEYS, call_message, message_by, result_message

Strategy: TypeAlias = st.SearchStrategy

IDS = ("a", "b", "call_c|call_c", "ü")
"""Ids of calls. Some are invalid in some APIs, and several calls of a history may have the same id."""
NAMES = ("weather", "add", "my.tool/with a name beyond sixteen")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
VENDOR_HINTS = (None, None, {"nobody": {"detail": "low"}}, {"*": {"detail": "low", "colour": ["red"]}})
"""Vendor hints of media, for other providers and for any provider. Hints for the target need its own tests."""
ELSEWHERE = "https://elsewhere.invalid"
"""An invented endpoint. Messages from it are from another provider, even with the same dialect."""
FOREIGN = (
    Origin(provider="sol", dialect="sol.talk", endpoint="https://sol.invalid", model="sol-1", response_id="r1"),
    Origin(provider="sol", dialect="sol.turns", model="sol-2"),
    Origin(provider="other", dialect="other.wire", model="x"),
)
"""Invented origins of messages."""

texts = st.text(alphabet='abcé✓ \n"\\', max_size=6)
hints: Strategy[RoleHint | None] = st.sampled_from([None, None, "user", "assistant", "system", "tool"])
_keys = texts | st.sampled_from(WIRE_KEYS)
json_values: Strategy[Any] = st.sampled_from(list(JSON_KINDS.values())) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_keys, inner, max_size=2),
    max_leaves=4,
)
"""JSON values of every kind: the unusual ones of JSON_KINDS, and random ones, some with field names of known APIs."""


@dataclass(frozen=True)
class Speakers:
    """The speakers of a history, and the state that binds a message to its provider.

    `bound` gives, for an origin, the parts that only its provider can read; None if there are none. `own_origins` are
    origins of the target itself, and `own_parts` its parts.
    """

    origins: Sequence[Origin | None]
    bound: Callable[[Origin | None], Strategy[Part] | None]
    urls: Sequence[str] = ("https://example.org/a.png", PIXEL, "data:audio/wav;base64,UklGRg==")
    speaks_as: str = "llm"
    ids: Sequence[str] = IDS
    own_origins: Sequence[Origin | None] = ()
    own_parts: Sequence[Part] = ()

    def plain_parts(self) -> Strategy[Part]:
        """Return a strategy for parts that a message of any origin may have."""
        media = st.builds(
            sabir.MediaPart,
            modality=st.sampled_from(list(MEDIA_FILES)),
            url=st.sampled_from(self.urls),
            prompt_hint=st.sampled_from([None, "a hat"]),
            vendor=st.sampled_from(VENDOR_HINTS),
        )
        return st.one_of(st.builds(sabir.TextPart, text=texts), media, st.builds(sabir.RefusalPart, text=texts))

    def parts(self, origin: Origin | None) -> Strategy[Part]:
        """Return a strategy for parts of a message with this origin, including those with its provider's state."""
        bound = self.bound(origin)
        return self.plain_parts() if bound is None else st.one_of(self.plain_parts(), bound)


def invented_parts(dialect: str) -> Strategy[Part]:
    """Return a strategy for parts that only providers of this dialect can read: reasoning with or without state,
    citations, and opaque parts. Some opaque parts are one half of a pair.
    """
    halves = [
        sabir.OpaquePart(dialect=dialect, block={pair: f"{pair_id} of theirs"}, pair=pair, pair_id=pair_id)
        for pair in ("opens", "closes")
        for pair_id in ("p1", "p2")
    ]
    return st.one_of(
        st.builds(
            sabir.TextPart, text=texts, citations=st.just((sabir.Citation(kind="page", url="https://example.org"),))
        ),
        st.builds(sabir.ReasoningPart, text=texts, state=st.sampled_from([None, {"sealed": "c2VhbGVkIHRob3VnaHQ="}])),
        st.just(sabir.ReasoningPart(state={"sealed": "aGlkZGVuIHRob3VnaHQ="})),
        st.sampled_from([sabir.OpaquePart(dialect=dialect, block={"stands": "for itself"}), *halves]),
    )


def parts_messages(speakers: Speakers) -> Strategy[Message]:
    """Return a strategy for messages with parts."""
    policies = st.sampled_from(["user", speakers.speaks_as, speakers.speaks_as, "system", "planner"])

    def with_origin(origin: Origin | None) -> Strategy[Message]:
        parts = st.lists(speakers.parts(origin), min_size=1, max_size=3).map(tuple)
        payload = st.builds(sabir.PartsPayload, parts=parts)
        return st.builds(Message, policy=policies, role_hint_for_llm=hints, origin=st.just(origin), payload=payload)

    return st.one_of([with_origin(origin) for origin in speakers.origins])


def call_messages(speakers: Speakers) -> Strategy[Message]:
    """Return a strategy for option calls with few different ids."""
    payload = st.builds(
        sabir.OptionCallPayload,
        invocation_id=st.sampled_from(speakers.ids),
        option_name=st.sampled_from(NAMES),
        arguments=st.dictionaries(texts, json_values, max_size=2),
        raw_arguments=st.sampled_from([None, '{"x": 1}']),
    )
    origins = st.sampled_from(speakers.origins)
    return st.builds(Message, policy=st.just(speakers.speaks_as), origin=origins, payload=payload)


def outcomes(speakers: Speakers) -> Strategy[dict[str, Any]]:
    """Return a strategy for the fields of an option result: a JSON value, an error, or parts."""
    parts = st.lists(speakers.parts(None), min_size=1, max_size=2)
    return st.one_of(
        json_values.map(lambda value: {"result": value}),
        st.just({"is_error": True, "error_type": "Boom", "error_message": "no"}),
        parts.map(lambda parts: {"parts": tuple(parts)}),
    )


def result_messages(speakers: Speakers) -> Strategy[Message]:
    """Return a strategy for option results with the same few ids."""
    fields = st.tuples(st.sampled_from(speakers.ids), st.sampled_from(NAMES), outcomes(speakers))
    return fields.map(lambda drawn: result_message(drawn[0], name=drawn[1], **drawn[2]))


def messages_of(speakers: Speakers) -> Strategy[Message]:
    """Return a strategy for one message. About a third are option calls and results."""
    with_parts = parts_messages(speakers)
    branches = [_single_branch(with_parts) for _ in range(4)]
    return st.one_of(*branches, _single_branch(call_messages(speakers)), _single_branch(result_messages(speakers)))


@st.composite
def _single_branch(draw: Any, strategy: Strategy[Message]) -> Message:
    """Return the strategy as a single branch, so that `st.one_of` does not merge its branches with the others."""
    message: Message = draw(strategy)
    return message


@st.composite
def _draw_answered_calls(draw: Any, speakers: Speakers) -> list[Message]:
    """Draw one or two calls of one turn, and their results in any order."""
    calls = draw(st.lists(call_messages(speakers), min_size=1, max_size=2))
    answers = []
    for call in [message.call for message in calls]:
        answers.append(result_message(call.invocation_id, name=call.option_name, **draw(outcomes(speakers))))
    return [*calls, *draw(st.permutations(answers))]


def histories_of(speakers: Speakers) -> Strategy[list[Message]]:
    """Return a strategy for up to ten messages in any order. Some are calls, directly followed by their results, which
    the limit of ten may cut off.
    """
    single = [_single_branch(messages_of(speakers)).map(lambda message: [message]) for _ in range(3)]
    answered_calls = _draw_answered_calls(speakers)
    groups = st.lists(st.one_of(*single, answered_calls), min_size=1, max_size=10)
    return groups.map(lambda groups: [message for group in groups for message in group][:10])


def speakers_for(
    target: Target, *, foreign: Sequence[Origin] = FOREIGN, own: Sequence[Part] = (), speaks_as: str = "llm"
) -> Speakers:
    """Return Speakers with these origins: None, the target, the target's dialect at another endpoint, and `foreign`.

    `own` are parts of the target's answers, with their state. Parts of the other origins are invented.
    """
    own_origin = DecodeScope(target).origin()
    own_origins = [own_origin, own_origin.model_copy(update={"response_id": "r1"})]
    elsewhere = own_origin.model_copy(update={"endpoint": ELSEWHERE})

    def bound(origin: Origin | None) -> Strategy[Part] | None:
        if origin in own_origins:
            return st.sampled_from(list(own)) if own else None
        return invented_parts(FOREIGN[0].dialect if origin is None else origin.dialect)

    files = (f"provider-file:{target.provider}/file-1", "provider-file:other/file-1")
    urls = (*Speakers.urls, *files)
    origins = [None, *own_origins, elsewhere, *foreign]
    return Speakers(origins, bound, urls, speaks_as, own_origins=own_origins, own_parts=own)


words = st.text(alphabet="abcé✓", min_size=1, max_size=6)


@st.composite
def _draw_answer(draw: Any, origin: Origin, speaks_as: str, number: int, words: Strategy[str]) -> list[Message]:
    """Draw a model's answer to one question: a text, or calls with their results and then a text."""
    text, calls, results = message_by(speaks_as, draw(words)), [], []
    for at in range(draw(st.integers(0, 2))):
        names = f"call-{number}-{at}", draw(st.sampled_from(NAMES[:2]))
        calls.append(call_message(names[0], draw(st.dictionaries(words, json_values, max_size=2)), names[1]))
        error = {"is_error": True, "error_type": "Boom", "error_message": draw(words)}
        with_parts = {"parts": (sabir.TextPart(text=draw(words)),)}
        outcome = draw(st.sampled_from([{"result": draw(words)}, {"result": draw(json_values)}, with_parts, error]))
        results.append(result_message(names[0], name=names[1], **outcome))
    of_model = {"policy": speaks_as, "origin": origin}
    return [*(call.model_copy(update=of_model) for call in calls), *results, text.model_copy(update=of_model)]


@st.composite
def valid_histories(draw: Any, target: Target, speaks_as: str = "llm", words: Strategy[str] = words) -> list[Message]:
    """Draw conversations that every API accepts unchanged: perhaps instructions, then questions, each except the last
    with a complete answer.

    `words` is the strategy for their texts.
    """
    origin = DecodeScope(target).origin()
    questions = [message_by("user", text) for text in draw(st.lists(words, min_size=1, max_size=3))]
    history = [message_by("system", draw(words))] if draw(st.booleans()) else []
    for number, question in enumerate(questions, start=1):
        answer = draw(_draw_answer(origin, speaks_as, number, words)) if number < len(questions) else []
        history += [question, *answer]
    return history
