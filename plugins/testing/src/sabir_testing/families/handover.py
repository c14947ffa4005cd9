"""Handover: continuing a conversation with another provider, from other providers to this one and back."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
import sabir
from sabir import Message, OpaquePart, OptionCallPayload, ReasoningPart, Target, TextPart
from sabir.authoring import Access, DecodeScope, Dialect
from sabir.rendering.renderer import Renderer

from sabir_testing.families.laws import check_body, check_texts
from sabir_testing.histories.invented_dialects import TOYS, toy_target
from sabir_testing.histories.samples import message_by, recorded_histories, result_message, source_dialects
from sabir_testing.kit import HANDED_OVER
from sabir_testing.kit.decoded_recordings import own_replies
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.request_contents import (
    MarkedMessage,
    bound_in,
    bound_texts,
    check_pairs,
    mark,
    messages_in,
    missing_states,
    without_bound,
)
from sabir_testing.kit.suite import AdapterUnderTest, Note, RenderedHistory, Suite
from sabir_testing.reading import strings

GO_ON = "Go on."


class OtherAPI(NamedTuple):
    """Another provider's API."""

    dialect: Dialect
    target: Target


TOY_APIS = {api.name: OtherAPI(api, toy_target(api)) for api in TOYS}


class HandoverCases(Suite):
    """The test cases of the family `handover`."""

    family = "handover"

    @pytest.mark.parametrize("source", source_dialects())
    def test_a_history_is_taken_over(self, subject: AdapterUnderTest, source: str) -> None:
        """The kit's recorded conversations of an API render here: calls have their results, and every text is sent or
        reported. Nothing that is valid only at their provider is sent, even if it used the same dialect at another
        endpoint (law 9).
        """
        for case, history in recorded_histories()[source].items():
            marked = mark([*history, message_by("user", GO_ON)])
            _check_received(subject, marked, bound_texts(history), f"the recorded history {case!r} of {source}")

    @pytest.mark.parametrize("name", TOY_APIS)
    def test_an_answer_goes_to_another_wire_and_back(self, subject: AdapterUnderTest, name: str) -> None:
        """The recorded answers are rendered for an invented API, and then here, followed by a sample answer of that
        API. Nothing is sent over a network. Every text is in the request or reported, and signed data of one side is
        not sent to the other (law 9).
        """
        _check_round_trip(subject, TOY_APIS[name])

    def test_an_answer_goes_to_every_installed_provider_and_back(
        self, subject: AdapterUnderTest, record_property: Note
    ) -> None:
        """The recorded answers are rendered for the first dialect of every installed provider, unless it is this
        dialect, and then here, followed by a sample answer. Nothing is sent over a network. Every text is in the
        request or reported, and signed data of one side is not sent to the other (law 9).
        """
        apis = list(_installed_apis(subject))
        record_property(HANDED_OVER, [api.dialect.name for api in apis])
        remedy = "install one, such as sabir-echo, or add the case to xfail with a reason"
        expect(apis, f"no other provider is installed, to which the recorded answers could be handed over; {remedy}")
        for api in apis:
            _check_round_trip(subject, api)

    def test_state_that_stays_behind_is_told(self, subject: AdapterUnderTest) -> None:
        """Signed state of a text, medium, refusal or call is in the request, or a loss names its place (law 2). State
        of other providers is withheld; state of the recorded answers is sent back where the API accepts it.
        """
        foreign_answers = [_sample_answer(api, subject.adapter.speaks_as) for api in TOY_APIS.values()]
        for answer in (*_answered_conversations(subject), *foreign_answers):
            history = [message_by("user", "Umbrella?"), *answer, message_by("user", GO_ON)]
            request = subject.request_for(history)
            missing = missing_states(history, request.body, request.losses)
            request.expect(not missing, f"{''.join(missing[:1])} is neither in the body nor in a loss")

    def test_what_is_bound_goes_home(self, subject: AdapterUnderTest) -> None:
        """Signatures and ids of an answer are unchanged in later requests to the same target, also after other models
        answered, in the same turn or in another (law 3).
        """
        policy = subject.adapter.speaks_as
        foreign_answers = [message for api in TOY_APIS.values() for message in _sample_answer(api, policy)]
        for reply in _answered_conversations(subject):
            bound = bound_texts(reply)
            first_body = subject.must_render([*reply, message_by("user", GO_ON)]).body_bytes
            for between in ([], [message_by("user", "And you?")]):
                history = [*reply, *between, *foreign_answers, message_by("user", GO_ON)]
                later_request = subject.request_for(history)
                expected, actual = _bound_sequence(first_body, bound), _bound_sequence(later_request.body, bound)
                missing = next((text for text in expected if text not in actual), "")
                fault = f"{missing!r} is missing" if missing else "their order is different"
                what = "the signatures and ids of an answer of this provider change in a request after answers of other"
                what = f"{what} models: {fault}; send them back unchanged"
                later_request.expect(expected == actual, what, details={"before the other answers": expected})


def _check_received(subject: AdapterUnderTest, marked: list[MarkedMessage], bound: set[str], source: str) -> None:
    """Raise ConformanceFailure unless this adapter renders a history completely, and without the texts in `bound`.

    Those texts are valid only at other providers. `source` says where the history comes from.
    """
    history = messages_in(marked)
    request = subject.try_render(history)
    if request.rendering is None:
        what = f"the adapter renders nothing of {source}, although it ends with a user message"
        raise ConformanceFailure(what, history=history)
    check_pairs(subject, marked, request.rendering)
    check_body(subject, request)
    check_texts(marked, request, source=source)
    leaked = bound_in(request.body, bound)
    if leaked:  # texts that this API's requests always contain are not leaked
        unbound = subject.must_render([without_bound(message) for message in history])
        leaked = sorted(set(leaked) - set(bound_in(unbound.body_bytes, leaked)))
    _check_no_leak(request, leaked, f"of {source} is valid only at its own provider, but is in the request to this one")


def _check_no_leak(request: RenderedHistory, leaked: Sequence[str], fault: str) -> None:
    """Raise ConformanceFailure if a text leaked. `fault` is the end of the message."""
    request.expect(not leaked, f"the signature, id or block text {leaked[0]!r} {fault}" if leaked else "")


def _check_round_trip(subject: AdapterUnderTest, api: OtherAPI) -> None:
    """Raise ConformanceFailure unless the author's answers can be sent to another API, and back with its answer."""
    foreign_answer, name = _sample_answer(api, subject.adapter.speaks_as), api.dialect.name
    for conversation in _answered_conversations(subject) or [[message_by("user", "Hello.")]]:
        marked = mark([*conversation, message_by("user", GO_ON)])
        try:
            rendering = Renderer(api.dialect, api.target).render(messages_in(marked))
        except Exception as error:
            what = f"the dialect {name} raises {type(error).__name__} for this provider's recorded answer: {error}"
            raise ConformanceFailure(what, history=messages_in(marked)) from error
        foreign_request = RenderedHistory(messages_in(marked), rendering, rendering.losses)
        check_texts(marked, foreign_request, f"the body of the dialect {name}")
        leaked = bound_in(foreign_request.body, bound_texts(conversation))
        fault = f"is valid only at this provider, but is in the request to the dialect {name}"
        _check_no_leak(foreign_request, leaked, fault)
        continuation = mark([message_by("user", GO_ON), *foreign_answer, message_by("user", "And?")])
        returned = [*(MarkedMessage(message, ()) for message in conversation), *continuation]
        source = f"this provider's answer, followed by an answer of {api.target.provider!r} in the dialect {name}"
        _check_received(subject, returned, bound_texts(foreign_answer), source)


def _answered_conversations(subject: AdapterUnderTest) -> list[list[Message]]:
    """Return one conversation for each reply of `own_replies`: a question, the reply, and results of its calls."""
    conversations = []
    for reply in own_replies(subject):
        calls = [message.call for message in reply.option_calls]
        results = [result_message(call.invocation_id, "18 °C", call.option_name) for call in calls]
        conversations.append([message_by("user", "Umbrella?"), *reply.messages, *results])
    return conversations


def _sample_answer(api: OtherAPI, speaks_as: str) -> list[Message]:
    """Return a possible answer of a model with this API: reasoning, text, an opaque block, and an answered call."""
    name, seal = api.dialect.name, f"sealed by {api.dialect.name}: 7c41"
    parts = (
        ReasoningPart(text="Rain, perhaps.", state={"signature": f"thought {seal}"}),
        TextPart(text="Let me see.", state={"item": f"text {seal}"}),
        OpaquePart(dialect=name, block={"kind": "search", "result": f"block {seal}"}),
    )
    call = OptionCallPayload(invocation_id="c-7", option_name="weather", state={"signature": f"call {seal}"})
    origin = DecodeScope(api.target).origin()
    of_api = {"origin": origin}
    return [
        message_by(speaks_as, *parts).model_copy(update=of_api),
        Message(policy=speaks_as, origin=origin, payload=call),
        result_message("c-7", "rain", "weather"),
        message_by(speaks_as, "Take one.").model_copy(update=of_api),
    ]


def _installed_apis(subject: AdapterUnderTest) -> Iterator[OtherAPI]:
    """Yield the first dialect of every provider that is installed and works, each dialect once and without the
    subject's.
    """
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
            target = Target(provider=status.name, dialect=dialect.name, model="model", endpoint=endpoint)
            yield OtherAPI(dialect, target)


def _bound_sequence(body: bytes, bound: set[str]) -> list[str]:
    """Return the signed texts in their order in a body."""
    return [text for string in strings(json.loads(body)) for text in sorted(bound) if text in string]
