"""Handover: continuing a conversation with another provider, from other providers to this one and back."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
import sabir
from sabir import Message, OpaquePart, OptionCallPayload, ReasoningPart, Target, TextPart
from sabir.authoring import Access, DecodeScope, Dialect
from sabir.rendering.renderer import Renderer

from sabir_testing.families.laws import check_body, check_heard
from sabir_testing.histories.invented_dialects import TOYS, toy_target
from sabir_testing.histories.samples import answered, recorded_histories, said, source_dialects
from sabir_testing.kit import HANDED_OVER
from sabir_testing.kit.decoded_recordings import own_replies
from sabir_testing.kit.reports import ConformanceFailure, expect
from sabir_testing.kit.request_contents import (
    Marked,
    bound_in,
    bound_texts,
    check_pairs,
    mark,
    messages,
    untold,
    without_bound,
)
from sabir_testing.kit.suite import AdapterUnderTest, Made, Note, Suite
from sabir_testing.reading import strings

GO_ON = "Go on."


class Wire(NamedTuple):
    """Another provider's API."""

    dialect: Dialect
    target: Target


TOY_WIRES = {wire.name: Wire(wire, toy_target(wire)) for wire in TOYS}


class HandoverCases(Suite):
    """The test cases of the family `handover`."""

    family = "handover"

    @pytest.mark.parametrize("source", source_dialects())
    def test_a_history_is_taken_over(self, subject: AdapterUnderTest, source: str) -> None:
        """A recorded conversation of another API renders here: calls have their results, and every text is sent or
        reported. Nothing that is valid only at the other provider is sent, even if it used the same dialect elsewhere
        (law 9).
        """
        for case, history in recorded_histories()[source].items():
            marked = mark([*history, said("user", GO_ON)])
            _check_home(subject, marked, bound_texts(history), f"the recorded history {case!r} of {source}")

    @pytest.mark.parametrize("name", TOY_WIRES)
    def test_an_answer_goes_to_another_wire_and_back(self, subject: AdapterUnderTest, name: str) -> None:
        """The recorded answers are sent to an invented API, answered there, and sent back with that answer. Every text
        is sent or reported, and signed data of one side is not sent to the other (law 9).
        """
        _check_there_and_back(subject, TOY_WIRES[name])

    def test_an_answer_goes_to_every_installed_provider_and_back(
        self, subject: AdapterUnderTest, record_property: Note
    ) -> None:
        """The recorded answers are sent to the first dialect of every other installed provider, answered, and sent
        back. Every text is sent or reported, and signed data of one side is not sent to the other (law 9).
        """
        wires = list(_installed(subject))
        record_property(HANDED_OVER, [wire.dialect.name for wire in wires])
        remedy = "install one, such as sabir-echo, or add the case to xfail with a reason"
        expect(wires, f"no other provider is installed, to which the recorded answers could be handed over; {remedy}")
        for wire in wires:
            _check_there_and_back(subject, wire)

    def test_state_that_stays_behind_is_told(self, subject: AdapterUnderTest) -> None:
        """Signed state of a text or a call is in the request, or a loss of the kind "withheld" names its place (law 2).
        State of other providers is withheld; state of the recorded answers is sent back where the API accepts it.
        """
        others = [_answer_of(wire, subject.adapter.speaks_as) for wire in TOY_WIRES.values()]
        for answer in (*_conversations(subject), *others):
            history = [said("user", "Umbrella?"), *answer, said("user", GO_ON)]
            made = subject.made(history)
            silent = untold(history, made.body, made.losses)
            made.expect(not silent, f"{silent[0]} is neither in the body nor in a loss" if silent else "")

    def test_what_is_bound_goes_home(self, subject: AdapterUnderTest) -> None:
        """Signatures and ids of an answer are unchanged in later requests to the same target, also after other models
        answered, in the same turn or in another (law 3).
        """
        others = [message for wire in TOY_WIRES.values() for message in _answer_of(wire, subject.adapter.speaks_as)]
        for reply in _conversations(subject):
            bound = bound_texts(reply)
            alone = subject.rendered([*reply, said("user", GO_ON)]).body_bytes
            for between in ([], [said("user", "And you?")]):
                history = [*reply, *between, *others, said("user", GO_ON)]
                after = subject.made(history)
                before, later = _bound_sequence(alone, bound), _bound_sequence(after.body, bound)
                missing = next((text for text in before if text not in later), "")
                fault = f"{missing!r} is missing" if missing else "their order is different"
                what = "the signatures and ids of an answer of this provider change in a request after answers of other"
                shown = {"signatures and ids before the other answers": before}
                after.expect(before == later, f"{what} models: {fault}; send them back unchanged", shown=shown)


def _check_home(subject: AdapterUnderTest, marked: Sequence[Marked], bound: set[str], source: str) -> None:
    """Raise ConformanceFailure unless this adapter renders a history completely, and without the texts in `bound`.

    Those texts are valid only at other providers. `source` says where the history comes from.
    """
    history = messages(marked)
    made = subject.tried(history)
    if made.rendering is None:
        what = f"the adapter renders nothing of {source}, although it ends with a user message"
        raise ConformanceFailure(what, history=history)
    check_pairs(subject, marked, made.rendering)
    check_body(subject, made)
    check_heard(marked, made, source=source)
    leaked = bound_in(made.body, bound)
    if leaked:  # texts that this API's requests always contain are not leaked
        bare = subject.rendered([without_bound(message) for message in history])
        leaked = sorted(set(leaked) - set(bound_in(bare.body_bytes, leaked)))
    _check_unbound(made, leaked, f"of {source} is valid only at its own provider, but is in the request to this one")


def _check_unbound(made: Made, leaked: Sequence[str], fault: str) -> None:
    """Raise ConformanceFailure for the first leaked text, followed by the fault."""
    made.expect(not leaked, f"the signature, id or block text {leaked[0]!r} {fault}" if leaked else "")


def _check_there_and_back(subject: AdapterUnderTest, wire: Wire) -> None:
    """Raise ConformanceFailure unless the author's answers can be sent to another API, and back with its answer."""
    theirs, name = _answer_of(wire, subject.adapter.speaks_as), wire.dialect.name
    for conversation in _conversations(subject) or [[said("user", "Hello.")]]:
        marked = mark([*conversation, said("user", GO_ON)])
        try:
            rendering = Renderer(wire.dialect, wire.target).render(messages(marked))
        except Exception as error:
            what = f"the dialect {name} raises {type(error).__name__} for this provider's recorded answer: {error}"
            raise ConformanceFailure(what, history=messages(marked)) from error
        there = Made(messages(marked), rendering, rendering.losses)
        check_heard(marked, there, f"the body of the dialect {name}")
        leaked = bound_in(there.body, bound_texts(conversation))
        _check_unbound(there, leaked, f"is valid only at this provider, but is in the request to the dialect {name}")
        behind = mark([said("user", GO_ON), *theirs, said("user", "And?")])
        home = [*(Marked(message, ()) for message in conversation), *behind]
        source = f"this provider's answer, followed by an answer of {wire.target.provider!r} ({name})"
        _check_home(subject, home, bound_texts(theirs), source)


def _conversations(subject: AdapterUnderTest) -> list[list[Message]]:
    """Return one conversation for each recorded answer: a question, the answer, and results of its calls."""
    conversations = []
    for reply in own_replies(subject):
        calls = [message.call for message in reply.option_calls]
        results = [answered(call.invocation_id, "18 °C", call.option_name) for call in calls]
        conversations.append([said("user", "Umbrella?"), *reply.messages, *results])
    return conversations


def _answer_of(wire: Wire, speaks_as: str) -> list[Message]:
    """Return a possible answer of a model with this API: reasoning, text, an opaque block, and an answered call."""
    name, seal = wire.dialect.name, f"sealed by {wire.dialect.name}: 7c41"
    parts = (
        ReasoningPart(text="Rain, perhaps.", state={"signature": f"thought {seal}"}),
        TextPart(text="Let me see.", state={"item": f"text {seal}"}),
        OpaquePart(dialect=name, block={"kind": "search", "result": f"block {seal}"}),
    )
    call = OptionCallPayload(invocation_id="c-7", option_name="weather", state={"signature": f"call {seal}"})
    origin = DecodeScope(wire.target).origin()
    own = {"origin": origin}
    return [
        said(speaks_as, *parts).model_copy(update=own),
        Message(policy=speaks_as, origin=origin, payload=call),
        answered("c-7", "rain", "weather"),
        said(speaks_as, "Take one.").model_copy(update=own),
    ]


def _installed(subject: AdapterUnderTest) -> Iterator[Wire]:
    """Yield the first dialect of every other provider that is installed and works, each dialect once."""
    seen = {subject.dialect.name}
    for status in sabir.providers():
        short_names = [each for each in status.dialects if each not in status.shadowed]
        try:
            provider = sabir.provider(status.name, short_names[0])
            dialect, endpoint = provider.dialect(short_names[0]), provider.endpoint(Access())
        except Exception:  # another, broken or misconfigured plugin is not the author's fault
            continue
        if dialect.name not in seen:
            seen.add(dialect.name)
            yield Wire(dialect, Target(provider=status.name, dialect=dialect.name, model="model", endpoint=endpoint))


def _bound_sequence(body: bytes, bound: set[str]) -> list[str]:
    """Return the signed texts in their order in a body."""
    return [text for string in strings(json.loads(body)) for text in sorted(bound) if text in string]
