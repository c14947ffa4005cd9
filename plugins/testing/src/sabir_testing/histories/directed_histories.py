"""Histories that are tried before the random ones, so that no fault depends on the seed.

directed_histories(speakers)          one for each structure that adapters get wrong: order and number of calls and
                                      results, repeated ids, hints, white space, media, state of other providers
valid_directed(target, speaks_as)     conversations that every API accepts unchanged, with results of every JSON type

A history is short, or consists of independent turns, so that the smallest failed example is short too.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import sabir
from sabir import Message, Origin, Target
from sabir.authoring import DecodeScope, Part

from sabir_testing.histories.random_histories import IDS, NAMES, VENDOR_HINTS, Speakers
from sabir_testing.histories.samples import JSON_KINDS, MEDIA_FILES, medium, message_by, result_message

TEXTS = ("Plain.", "", " ", "\n", " \n\t", "\nso ", 'so "\\ é✓')
"""Texts without content, and with white space at their ends."""
ROLES = ("user", "assistant", "system", "tool")
ERROR: Mapping[str, Any] = {"is_error": True, "error_type": "Boom", "error_message": "no"}
MANY_TURNS = 7
"""More turns than a recorded question has."""


def _call(by: str, name: str = "weather", call_id: str = "a", origin: Origin | None = None, **fields: Any) -> Message:
    payload = sabir.OptionCallPayload(invocation_id=call_id, option_name=name, **fields)
    return Message(policy=by, origin=origin, payload=payload)


def _result(call_id: str = "a", result: Any = "18", name: str = "weather", **outcome: Any) -> Message:
    return result_message(call_id, result, name, **outcome)


def _from(origin: Origin | None, by: str, *parts: Any) -> Message:
    return message_by(by, *parts).model_copy(update={"origin": origin})


def directed_histories(speakers: Speakers) -> list[list[Message]]:
    """Return the histories, the simplest first."""
    groups = (_orders_of_pairs, _ids, _hints, _texts, _media, _states)
    return [history for group in groups for history in group(speakers)]


def _orders_of_pairs(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories with calls and results in every order: complete, orphaned, late, twice."""
    by = speakers.speaks_as
    question, answer, more = message_by("user", "Umbrella?"), message_by(by, "Wait."), message_by("user", "And?")
    call, other = _call(by), _call(by, "add", "b", arguments={"x": 1})
    reply, other_reply = _result(), _result("b", 3, "add")
    yield [question, answer, more]
    yield [question, call, reply, answer, more]
    yield [question, call, other, reply, other_reply, more]
    yield [question, call, other, other_reply, reply, more]
    yield [question, call, reply, other, other_reply, more]
    yield [question, call, more]
    yield [question, reply, more]
    yield [question, reply, call, more]
    yield [question, call, other, other_reply, more]
    yield [question, call, more, reply]
    yield [question, call, answer, reply, more]
    yield [question, call, more, answer, reply]
    yield [question, call, reply, reply, more]
    yield [call, reply]
    yield [message_by("system", "Rules.")]
    yield [message_by("system", "Rules."), message_by("system", "More rules.")]
    yield [answer, question, question, answer, answer]
    planner = message_by("planner", "Plan.")
    yield [message_by("system", "Rules."), question, answer, message_by("system", "More rules."), more]
    yield [planner, question, planner, answer, planner, planner, more]
    long = ([question, _call(by, "add", f"c{n}"), _result(f"c{n}", n, "add"), answer] for n in range(MANY_TURNS))
    yield [message for turn in long for message in turn]


def _ids(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories with ids that are used again or invalid, and with an option's name that is invalid."""
    by, question = speakers.speaks_as, message_by("user", "Umbrella?")
    for call_id in (*IDS, "x" * 70):
        yield [question, _call(by, "add", call_id), _result(call_id, 3, "add"), question]
    pair = [_call(by), _result()]
    yield [question, *pair, question, *pair, question]
    yield [question, *pair, *pair]
    yield [question, pair[0], pair[0], pair[1], pair[1], question]
    for name in NAMES:
        yield [question, _call(by, name), _result(name=name), question]
    yield [question, _call(by, NAMES[0], "a"), _call(by, NAMES[2], "a"), _result(name=NAMES[2]), _result(), question]


def _hints(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories in which messages of every policy have a role hint."""
    by, question = speakers.speaks_as, message_by("user", "Umbrella?")
    for role in ROLES:
        hinted = {"role_hint_for_llm": role}
        for policy in ("user", by, "system", "planner"):
            yield [question, message_by(policy, "Hinted.").model_copy(update=hinted), question]
        yield [question, _call(by).model_copy(update=hinted), _result(), question]
        yield [question, _call(by), _result().model_copy(update=hinted), question]


def _texts(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories with blank texts, texts with white space, and results and arguments of every JSON type."""
    by, question = speakers.speaks_as, message_by("user", "Umbrella?")
    for text in TEXTS:
        yield [message_by("system", text), message_by("user", text), message_by(by, text), message_by("user", text)]
        yield [question, message_by(by, "One.", text), message_by("planner", text), message_by("user", text, "Two.")]
        yield [question, _call(by), _result(parts=(sabir.TextPart(text=text),)), question]
        yield [question, message_by(by, sabir.RefusalPart(text=text)), question]
    kinds = enumerate(JSON_KINDS.values())
    pairs = [(_call(by, call_id=f"c{n}", arguments={"x": content}), _result(f"c{n}", content)) for n, content in kinds]
    yield [question, *(call for call, _ in pairs), *(reply for _, reply in pairs), question]
    yield [question, *(message for pair in pairs for message in pair), question]
    yield [question, _call(by, raw_arguments='{"x" : 1}', arguments={"x": 1}), _result(**ERROR), question]


def _media(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories with a medium of each modality and form, in messages of the user, of the model and in results."""
    by, question = speakers.speaks_as, message_by("user", "Umbrella?")
    for modality, form in product(MEDIA_FILES, ("url", "bytes", "file")):
        part = medium(modality, form, "other")[0]
        yield [message_by("user", "See:", part, "That."), message_by(by, part), question]
        yield [question, _call(by), _result(parts=(sabir.TextPart(text="See:"), part)), question]
    for vendor in VENDOR_HINTS[2:]:
        part = medium("image", "url", "other")[0].model_copy(update={"vendor": vendor, "prompt_hint": "a hat"})
        yield [message_by("user", part), message_by("system", part), question]


def _states(speakers: Speakers) -> Iterator[list[Message]]:
    """Yield histories with answers of each origin, and with the parts that only their origin can read."""
    by, question = speakers.speaks_as, message_by("user", "Umbrella?")
    for origin in speakers.origins:
        pair = [_call(by, origin=origin), _result()]
        yield [question, _from(origin, by, "Wait."), *pair, _from(origin, by, "Dry."), question]
        foreign = _state_of(origin.dialect if origin else "sol.talk")
        for part in speakers.own_parts if origin in speakers.own_origins else foreign:
            yield [question, _from(origin, by, part), question]
            yield [question, _from(origin, by, part, "Wait."), *pair, _from(origin, by, part), question]


def _state_of(dialect: str) -> Iterator[Part]:
    """Yield a part of each kind that only an invented provider can read."""
    cited = (sabir.Citation(kind="page", url="https://example.org"),)
    yield sabir.TextPart(text="Cited.", citations=cited)
    yield sabir.ReasoningPart(text="Rain.")
    yield sabir.ReasoningPart(text="Rain.", state={"sealed": "c2VhbGVk"})
    yield sabir.ReasoningPart(state={"sealed": "c2VhbGVk"})
    yield sabir.OpaquePart(dialect=dialect, block={"stands": "for itself"})
    yield sabir.OpaquePart(dialect=dialect, block={"opens": "p1"}, pair="opens", pair_id="p1")


def valid_directed(target: Target, speaks_as: str = "llm") -> list[list[Message]]:
    """Return conversations that every API accepts unchanged."""
    origin, question = DecodeScope(target).origin(), message_by("user", "Umbrella?")
    answer, system = _from(origin, speaks_as, "Wait."), message_by("system", "Rules.")
    outcomes = [{"result": content} for content in JSON_KINDS.values()]
    outcomes += [dict(ERROR), {"parts": (sabir.TextPart(text="18 °C"),)}]

    def pair(number: int, name: str = "weather", **outcome: Any) -> tuple[Message, Message]:
        call_id = f"call-{number}"
        arguments = {"x": outcome.get("result", 1)}
        return _call(speaks_as, name, call_id, origin, arguments=arguments), _result(call_id, name=name, **outcome)

    turns = [[question, *pair(number, **outcome), answer] for number, outcome in enumerate(outcomes)]
    parallel = [pair(1, result=18), pair(2, "add", result={"b": [1, None]})]
    return [
        [question],
        [system, question],
        [question, answer, question],
        [system, question, answer, question],
        *([*turn, question] for turn in turns),
        [question, *(call for call, _ in parallel), *(reply for _, reply in parallel), answer, question],
        [question, *parallel[0], *parallel[1], answer, question],
        *([message_by("user", text), _from(origin, speaks_as, text), question] for text in TEXTS if text),
        [message for turn in turns[:MANY_TURNS] for message in turn],
    ]
