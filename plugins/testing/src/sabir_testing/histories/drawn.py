"""Random histories: any order, role hints, foreign origins, reused ids, orphans, halves of pairs.

histories_for(target) ─▶ messages of users, of the target itself (with state that it made), of others, of nobody

Bound state is invented only for invented providers: the target's own state is never made up, but given as `own`, taken
from its answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st
from sabir import (
    Citation,
    MediaPart,
    Message,
    OpaquePart,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    PartsPayload,
    ReasoningPart,
    RefusalPart,
    Target,
    TextPart,
)
from sabir.authoring import Part, RoleHint

from sabir_testing.histories.samples import JSON_KINDS, WIRE_KEYS

Strategy: TypeAlias = st.SearchStrategy

IDS = ("a", "b", "call_c|call_c", "ü")
"""Ids of calls: some are invalid on some wires, and later calls reuse all of them."""
NAMES = ("weather", "add", "my.tool/with a name beyond sixteen")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
VENDOR_HINTS = (None, None, {"nobody": {"detail": "low"}}, {"*": {"detail": "low", "colour": ["red"]}})
"""Of media, for others and for anybody; what is for the target itself only its own tests know."""
ELSEWHERE = "https://elsewhere.invalid"
"""An endpoint that is nobody's: who answers there is another maker, whatever wire it speaks."""
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
"""JSON of every kind: the odd ones by name, and others at random, some of them under keys that wires know."""


@dataclass(frozen=True)
class Speakers:
    """The speakers of a history, and the state that binds a message to its provider.

    `bound` gives, for an origin, the parts that only its provider can read; None if there are none.
    """

    origins: Sequence[Origin | None]
    bound: Callable[[Origin | None], Strategy[Part] | None]
    urls: Sequence[str] = ("https://example.org/a.png", PIXEL, "data:audio/wav;base64,UklGRg==")
    speaks_as: str = "llm"
    ids: Sequence[str] = IDS

    @property
    def policies(self) -> Strategy[str]:
        """The policies that speak."""
        return st.sampled_from(["user", self.speaks_as, self.speaks_as, "system", "planner"])

    def plain_parts(self) -> Strategy[Part]:
        """Parts that any speaker may have."""
        modalities = st.sampled_from(["image", "audio", "video", "document"])
        media = st.builds(
            MediaPart,
            modality=modalities,
            url=st.sampled_from(self.urls),
            prompt_hint=st.sampled_from([None, "a hat"]),
            vendor=st.sampled_from(VENDOR_HINTS),
        )
        return st.one_of(st.builds(TextPart, text=texts), media, st.builds(RefusalPart, text=texts))

    def parts(self, origin: Origin | None) -> Strategy[Part]:
        """Parts that a message of that origin may have."""
        bound = self.bound(origin)
        return self.plain_parts() if bound is None else st.one_of(self.plain_parts(), bound)


def invented_parts(dialect: str) -> Strategy[Part]:
    """Parts that only that dialect's providers read: thoughts with or without state, citations, blocks, pair halves."""
    return st.one_of(
        st.builds(TextPart, text=texts, citations=st.just((Citation(kind="page", url="https://example.org"),))),
        st.builds(ReasoningPart, text=texts, state=st.sampled_from([None, {"sealed": "c2VhbGVkIHRob3VnaHQ="}])),
        st.just(ReasoningPart(state={"sealed": "aGlkZGVuIHRob3VnaHQ="})),
        st.sampled_from(_invented_blocks(dialect)),
    )


def _invented_blocks(dialect: str) -> list[OpaquePart]:
    halves = [
        OpaquePart(dialect=dialect, block={pair: f"{pair_id} of theirs"}, pair=pair, pair_id=pair_id)
        for pair in ("opens", "closes")
        for pair_id in ("p1", "p2")
    ]
    return [OpaquePart(dialect=dialect, block={"stands": "for itself"}), *halves]


def parts_messages(speakers: Speakers) -> Strategy[Message]:
    """Messages with parts."""

    def of(origin: Origin | None) -> Strategy[Message]:
        held = st.lists(speakers.parts(origin), min_size=1, max_size=3)
        return st.builds(
            lambda policy, hint, parts: Message(
                policy=policy, role_hint_for_llm=hint, origin=origin, payload=PartsPayload(parts=tuple(parts))
            ),
            speakers.policies,
            hints,
            held,
        )

    return st.one_of([of(origin) for origin in speakers.origins])


def call_messages(speakers: Speakers) -> Strategy[Message]:
    """Option calls, of few ids."""
    payload = st.builds(
        OptionCallPayload,
        invocation_id=st.sampled_from(speakers.ids),
        option_name=st.sampled_from(NAMES),
        arguments=st.dictionaries(texts, json_values, max_size=2),
        raw_arguments=st.sampled_from([None, '{"x": 1}']),
    )
    origins = st.sampled_from(speakers.origins)
    return st.builds(Message, policy=st.just(speakers.speaks_as), origin=origins, payload=payload)


def result_messages(speakers: Speakers) -> Strategy[Message]:
    """Results of the same ids: values, failures, texts and media."""
    held = st.lists(speakers.parts(None), min_size=1, max_size=2)
    outcomes: list[Strategy[dict[str, Any]]] = [
        json_values.map(lambda value: {"result": value}),
        st.just({"is_error": True, "error_type": "Boom", "error_message": "no"}),
        held.map(lambda parts: {"parts": tuple(parts)}),
    ]
    return st.builds(_result, st.sampled_from(NAMES), st.sampled_from(speakers.ids), st.one_of(outcomes))


def _result(name: str, invocation_id: str, outcome: dict[str, Any]) -> Message:
    payload = OptionResultPayload(invocation_id=invocation_id, option_name=name, **outcome)
    return Message(policy=name, payload=payload)


def messages_of(speakers: Speakers) -> Strategy[Message]:
    """Any one message; a third of all are calls and results."""
    spoken = parts_messages(speakers)
    said = [_one(spoken) for _ in range(4)]
    return st.one_of(*said, _one(call_messages(speakers)), _one(result_messages(speakers)))


@st.composite
def _one(draw: Any, strategy: Strategy[Message]) -> Message:
    """That strategy as one branch among others, whose own branches do not outnumber them."""
    message: Message = draw(strategy)
    return message


@st.composite
def _group(draw: Any, strategy: Strategy[Message]) -> list[Message]:
    return [draw(strategy)]


@st.composite
def _answered(draw: Any, calls: Strategy[Message], results: Strategy[Message]) -> list[Message]:
    """One or two calls of one turn, and their results in any order."""
    chosen = draw(st.lists(calls, min_size=1, max_size=2))
    answers = [_answer_to(call, draw(results)) for call in chosen]
    return [*chosen, *draw(st.permutations(answers))]


def _answer_to(call: Message, result: Message) -> Message:
    chosen, answer = call.call, result.result
    assert chosen is not None
    assert answer is not None
    same = {"invocation_id": chosen.invocation_id, "option_name": chosen.option_name}
    return result.model_copy(update={"policy": chosen.option_name, "payload": answer.model_copy(update=same)})


def histories_of(speakers: Speakers) -> Strategy[list[Message]]:
    """Up to ten messages in any order, some of them calls with their results at once."""
    any_one = messages_of(speakers)
    single = [_group(any_one) for _ in range(3)]
    answered = _answered(call_messages(speakers), result_messages(speakers))
    some = st.lists(st.one_of(*single, answered), min_size=1, max_size=10)
    return some.map(lambda groups: [message for group in groups for message in group][:10])


def speakers_for(
    target: Target, *, foreign: Sequence[Origin] = FOREIGN, own: Sequence[Part] = (), speaks_as: str = "llm"
) -> Speakers:
    """Nobody, the target itself, the target's wire at another endpoint, and others.

    `own` are parts that the target itself made, with their state; others' are invented.
    """
    home = Origin(provider=target.provider, dialect=target.dialect, endpoint=target.endpoint, model=target.model)
    homes = [home, home.model_copy(update={"response_id": "r1"})]
    away = home.model_copy(update={"endpoint": ELSEWHERE})

    def bound(origin: Origin | None) -> Strategy[Part] | None:
        if origin in homes:
            return st.sampled_from(list(own)) if own else None
        return invented_parts(FOREIGN[0].dialect if origin is None else origin.dialect)

    files = (f"provider-file:{target.provider}/file-1", "provider-file:other/file-1")
    return Speakers([None, *homes, away, *foreign], bound, (*Speakers.urls, *files), speaks_as)


def histories_for(
    target: Target, *, foreign: Sequence[Origin] = FOREIGN, own: Sequence[Part] = (), speaks_as: str = "llm"
) -> Strategy[list[Message]]:
    """Histories in which the target itself spoke, others did, and messages came from nobody."""
    return histories_of(speakers_for(target, foreign=foreign, own=own, speaks_as=speaks_as))


words = st.text(alphabet="abcé✓", min_size=1, max_size=6)


@st.composite
def _answers(draw: Any, origin: Origin, speaks_as: str, number: int, words: Strategy[str]) -> list[Message]:
    """What a model says to one question: a text, or calls with their results and then a text."""
    said = Message(policy=speaks_as, origin=origin, payload=PartsPayload(parts=(TextPart(text=draw(words)),)))
    calls, results = [], []
    for at in range(draw(st.integers(0, 2))):
        names = {"invocation_id": f"call-{number}-{at}", "option_name": draw(st.sampled_from(NAMES[:2]))}
        arguments = draw(st.dictionaries(words, json_values, max_size=2))
        call = OptionCallPayload(arguments=arguments, **names)
        calls.append(Message(policy=speaks_as, origin=origin, payload=call))
        failed = {"is_error": True, "error_type": "Boom", "error_message": draw(words)}
        told = {"parts": (TextPart(text=draw(words)),)}
        outcome = draw(st.sampled_from([{"result": draw(words)}, {"result": draw(json_values)}, told, failed]))
        results.append(Message(policy=call.option_name, payload=OptionResultPayload(**names, **outcome)))
    return [*calls, *results, said]


@st.composite
def tidy_histories(draw: Any, target: Target, speaks_as: str = "llm", words: Strategy[str] = words) -> list[Message]:
    """Conversations as they go on any wire, in those words: instructions first, questions and whole answers in turn."""
    home = Origin(provider=target.provider, dialect=target.dialect, endpoint=target.endpoint, model=target.model)
    asked = [
        Message(policy="user", payload=PartsPayload(parts=(TextPart(text=text),)))
        for text in draw(st.lists(words, min_size=1, max_size=3))
    ]
    history: list[Message] = []
    if draw(st.booleans()):
        history.append(Message(policy="system", payload=PartsPayload(parts=(TextPart(text=draw(words)),))))
    for number, question in enumerate(asked):
        history += [question, *(draw(_answers(home, speaks_as, number, words)) if number + 1 < len(asked) else [])]
    return history
