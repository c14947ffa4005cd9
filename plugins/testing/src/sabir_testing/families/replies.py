"""Replies: recorded answers of the service, decoded by the dialect, as complete responses and as streams."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import pytest
import sabir
from sabir import Message, ReasoningPart, RenderingRefused, Reply, Settings

from sabir_testing.cassettes import CassetteFailed, check_cassette
from sabir_testing.histories.samples import message_by
from sabir_testing.kit.asking import STREAMED, WHOLE, QuestionResult, Suffix, ask_model
from sabir_testing.kit.capabilities import CAPABILITIES, FULL, REFUSED
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.service import OWN_ID, AnswerCases, Service
from sabir_testing.kit.service_questions import ANSWERED, FAILING, QUESTIONS, ServiceQuestion, kinds
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.network import NetworkForbidden, network_forbidden
from sabir_testing.reading import as_json, leaves, objects, texts

SIGNED = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
"""Strings that probably only the vendor can use: signatures, encrypted reasoning, long ids."""
View: TypeAlias = Callable[[Reply], dict[str, object]]
each_question = pytest.mark.parametrize("question", ANSWERED)
each_failure = pytest.mark.parametrize("question", FAILING)


class ReplyCases(AnswerCases):
    """The test cases of the family `replies`."""

    family: ClassVar[str] = "replies"

    @each_question
    def test_a_recorded_answer_says_what_was_asked(self, service: Service, question: str) -> None:
        """A recorded answer decodes to a reply that contains what its question asks for: text, a call of the offered
        option, separate reasoning, JSON of the schema, the finish reason. If the suite declares the needed capability
        REFUSED, the request reports the loss, and `strict` refuses it.
        """
        if _is_refused(service, question, WHOLE):
            return
        answer = service.answer(question, WHOLE)
        try:
            answer.question.check(answer.replies)
        except ConformanceFailure as failure:
            history = [*answer.history, *answer.reply.messages]
            details = {**failure.details, **_labelled_responses(answer)}
            raise ConformanceFailure(f"{answer.name!r}: {failure.what}", history=history, details=details) from None
        if question == "reasoning":
            service.subject.grade("reasoning", FULL)

    @each_question
    def test_a_streamed_answer_is_the_whole_answer(self, service: Service, question: str) -> None:
        """The same question, answered as a stream, gives a reply of the same shape: kinds of parts, called options,
        names of arguments, finish reason (law 8). With `answers_repeat`, the texts are equal too.
        """
        if _is_refused(service, question, STREAMED):
            return
        complete, streamed = service.answer(question, WHOLE), service.answer(question, STREAMED)
        for view in (_reply_shape, _reply_texts) if service.suite.answers_repeat else (_reply_shape,):
            _check_same_view(complete, streamed, view)
        service.subject.grade("streaming", FULL)

    @each_failure
    def test_a_recorded_failure_is_its_error(self, service: Service, question: str) -> None:
        """A recorded failure raises the error class for its cause, because callers decide by the class what to do.
        Unavailable passes for an overloaded service if neither the message nor the code contains "overload". If the
        provider has no key variable, a wrong key must not fail.
        """
        _check_failure(service, question, WHOLE)

    @each_failure
    def test_a_streamed_failure_is_its_error(self, service: Service, question: str) -> None:
        """A failure of a streamed request raises the error class for its cause, whether the service answers with a
        status or reports the failure in the stream.
        """
        if not _is_refused(service, question, STREAMED):
            _check_failure(service, question, STREAMED)

    def test_the_usage_of_an_answer_is_counted(self, service: Service) -> None:
        """`reply.usage` has numbers of input and output tokens, neither None nor 0."""
        for answer in service.answers(WHOLE):
            _check_usage(answer)

    def test_the_usage_of_a_stream_is_counted(self, service: Service) -> None:
        """The usage of a stream's reply has numbers of input and output tokens, neither None nor 0. Some services
        report them only on request; use `Dialect.streaming_fields`.
        """
        for answer in _streamed_answers(service):
            _check_usage(answer)

    def test_an_answer_says_who_gave_it(self, service: Service) -> None:
        """The origin of a reply and of its messages names the provider, dialect, endpoint and model, as `scope.origin`
        returns them. Whether state may be sent back is decided by the origin.
        """
        for answer in _all_answers(service):
            expected = service.subject.scope().origin()
            for who, origin in _named_origins(answer.reply):
                for name in ("provider", "dialect", "endpoint", "model"):
                    actual, right = getattr(origin, name, None), getattr(expected, name)
                    what = f"origin.{name} of {who} ({answer}) is {actual!r}; expected {right!r}"
                    expect(actual == right, f"{what}, as scope.origin() returns it")

    def test_an_answer_keeps_the_vendors_id(self, service: Service) -> None:
        """`reply.origin.response_id` is an id in the response. A service whose complete responses have no id needs none
        in its streams.
        """
        with_id = {answer.name for answer in service.answers(WHOLE) if _has_own_id(answer)}
        for answer in _all_answers(service):
            response_id = answer.reply.origin.response_id
            what = f"reply.origin.response_id of {answer} is {response_id!r}; expected the id in the response"
            is_right = response_id in answer.leaves if response_id or answer.name in with_id else response_id is None
            expect(is_right, what, details=answer.details)

    def test_the_vendors_finish_reason_is_kept(self, service: Service) -> None:
        """`reply.raw_finish_reason` is the vendor's own finish reason, unchanged."""
        for answer in _all_answers(service):
            reason = answer.reply.raw_finish_reason
            what = f"reply.raw_finish_reason of {answer} is {reason!r}; expected the finish reason in the response"
            expect(reason and reason in answer.leaves, what, details=answer.details)

    def test_a_call_keeps_its_arguments_as_they_came(self, service: Service) -> None:
        """If the API gives the arguments of a call as text, `raw_arguments` is exactly this text, because the service
        may compare it later. This is tested for complete responses.
        """
        for answer in service.answers(WHOLE):
            written = [leaf for each in answer.exchanges for leaf in answer.leaves_of(each)]
            for message in [call for reply in answer.replies for call in reply.option_calls]:
                _check_arguments(answer, message, written)

    def test_what_was_signed_is_kept(self, service: Service) -> None:
        """Signatures, encrypted reasoning and long ids of an answer are in the reply, unchanged (law 3). Services
        refuse later requests, or give worse answers, without them.
        """
        for answer in _all_answers(service):
            for reply, exchange in zip(answer.replies, answer.exchanges, strict=False):
                content = "\n".join(leaves(reply.model_dump(mode="json", by_alias=True)))
                signed = {leaf for leaf in answer.leaves_of(exchange) if SIGNED.fullmatch(leaf)}
                lost = next((leaf for leaf in sorted(signed) if leaf not in content), None)
                what = f"the signature or encrypted text {lost!r} of {answer} is not in the decoded reply; store it"
                what = f"{what} in the `state` of a part or call"
                expect(lost is None, what, history=reply.messages, details=answer.details)

    def test_an_answer_goes_back_as_it_came(self, service: Service) -> None:
        """A request that sends a reply back to its own service contains every text, all arguments and every string of
        the reply's state (law 3). Reasoning without state may be missing if the API accepts it only with state.
        """
        for answer in _all_answers(service):
            _check_sent_back(service.subject, answer)

    def test_an_answer_loses_nothing(self, service: Service) -> None:
        """Decoding the recorded answers reports no losses."""
        for answer in _all_answers(service):
            question = answer.question
            rendering = service.subject.must_render(answer.history, question.options, question.settings)
            lost = answer.reply.losses[len(rendering.losses) :]
            expect(not lost, f"decoding {answer} reports losses; expected none", losses=lost, details=answer.details)

    def test_every_recording_is_asked_for(self, service: Service) -> None:
        """Every cassette belongs to one of the kit's questions, and to one whose capabilities are not declared REFUSED.
        Delete other ones, or move them to a folder of the tests that use them.
        """
        for name, suffix in _cassette_names(service):
            what = f"the cassette {name}{suffix}.yaml belongs to none of the kit's questions ({', '.join(QUESTIONS)})"
            expect(name in QUESTIONS, f"{what}; delete the cassette, or move it to another folder")
            need = service.refused_need(name, suffix)
            what = f"the cassette {name}{suffix}.yaml is not used, because the suite declares {need!r} REFUSED"
            expect(not need, f"{what}; delete the cassette or the declaration")

    def test_a_recording_is_whole_and_holds_no_secret(self, service: Service) -> None:
        """Every cassette names the server, its version, the model, the date and the client, its answers are complete,
        and the search for keys, cookies, ids of organizations, e-mail addresses and private addresses finds nothing
        that `allowed` does not list.
        """
        for name, suffix in _cassette_names(service):
            recorded = service.path("text", WHOLE)
            try:
                check_cassette(recorded.with_name(f"{name}{suffix}.yaml"), allowed=service.suite.allowed)
            except CassetteFailed as error:
                raise ConformanceFailure(str(error)) from None


def _labelled_responses(answer: QuestionResult) -> dict[str, object]:
    """Return all responses of the service to a question, each with a label."""
    if len(answer.exchanges) == 1:
        return answer.details
    numbered = enumerate(answer.exchanges, start=1)
    return {f"response {at} of the service": answer.format_response(exchange) for at, exchange in numbered}


def _has_own_id(answer: QuestionResult) -> bool:
    """Return whether a complete response has a field for its own id."""
    body = as_json(answer.exchanges[-1].response_body)
    return isinstance(body, Mapping) and any(OWN_ID.search(name) and value for name, value in body.items())


def _all_answers(service: Service) -> list[QuestionResult]:
    """Return all answers, complete and streamed."""
    return [*service.answers(WHOLE), *_streamed_answers(service)]


def _streamed_answers(service: Service) -> list[QuestionResult]:
    return [] if service.refused_need("text", STREAMED) else service.answers(STREAMED)


def _reply_shape(reply: Reply) -> dict[str, object]:
    return {
        "kinds": list(kinds(reply)),
        "calls": [[message.call.option_name, *sorted(message.call.arguments)] for message in reply.option_calls],
        "finish reason": reply.finish_reason,
    }


def _reply_texts(reply: Reply) -> dict[str, object]:
    arguments = [message.call.arguments_json for message in reply.option_calls]
    return {"text": reply.text, "reasoning": reply.reasoning, "arguments": arguments}


def _check_same_view(complete: QuestionResult, streamed: QuestionResult, view: View) -> None:
    """Raise ConformanceFailure unless `view` is the same for the complete and the streamed replies to a question."""
    question, whole, streams = complete.name, list(map(view, complete.replies)), list(map(view, streamed.replies))
    what = f"the question {question!r} has {len(streams)} streamed replies and {len(whole)} complete replies"
    details = {"the complete replies": whole, "the streamed replies": streams}
    expect(len(whole) == len(streams), f"{what}; expected equal numbers", details=details)
    for one, other in zip(whole, streams, strict=True):
        for name, value in one.items():
            what = f"the {name} of the streamed reply to {question!r} is {other[name]!r}, but {value!r} in the complete"
            expect(other[name] == value, f"{what} reply; expected the same")


def _check_failure(service: Service, name: str, suffix: Suffix) -> None:
    outcome = service.ask(name, suffix)
    expects = service.question(name).expects
    if expects is None:  # the provider needs no key, so a wrong key must be ignored
        what = f"the provider names no key variable, but a request with a wrong key fails: {outcome.error}"
        expect(outcome.error is None, f"{what}; name the variable in Provider.credentials")
        return
    what = f"the recorded failure {name!r} is decoded as a reply; raise {expects.__name__}"
    expect(outcome.error is not None, what, details=outcome.details)
    error = outcome.error.__cause__ if isinstance(outcome.error, sabir.StreamBroken) else outcome.error
    # an overloaded service may report only that it is not available
    is_vague = outcome.question.expects is sabir.errors.Overloaded and isinstance(error, sabir.errors.Unavailable)
    words = f"{error} {getattr(error, 'code', '')}".lower()
    is_right = isinstance(error, expects) or (is_vague and "overload" not in words)
    what = f"the recorded failure {name!r} raises {type(error).__name__} ({error}); expected {expects.__name__}"
    expect(is_right, what, details=outcome.details)


def _check_usage(answer: QuestionResult) -> None:
    for name in ("input_tokens", "output_tokens"):
        tokens = getattr(answer.reply.usage, name)
        what = f"reply.usage.{name} of {answer} is {tokens}; read the number from the response"
        expect(tokens, f"{what}, or add the case to xfail if the service does not report it", details=answer.details)


def _named_origins(reply: Reply) -> Iterator[tuple[str, object]]:
    yield "the reply", reply.origin
    yield from ((f"message {at} of the reply", message.origin) for at, message in enumerate(reply.messages, start=1))


def _check_arguments(answer: QuestionResult, message: Message, written: Sequence[str]) -> None:
    call = message.call
    assert call is not None
    json_texts = [text for text in written if text.lstrip().startswith("{")]
    texts = [text for text in json_texts if as_json(text) == as_json(call.arguments_json)]
    is_kept = call.raw_arguments in texts if texts else call.raw_arguments is None or call.invalid_arguments
    what = f"raw_arguments of the call of {call.option_name!r} in {answer} is {call.raw_arguments!r}; expected"
    text = f"{texts[0]!r}, exactly as in the response" if texts else "None, because the response has no such text"
    expect(is_kept, f"{what} {text}", history=[message], details=answer.details)


def _check_sent_back(subject: AdapterUnderTest, answer: QuestionResult) -> None:
    """Raise ConformanceFailure unless a request with the answer contains its texts, state and arguments unchanged."""
    question, reply = answer.question, answer.reply
    results = sabir.answer_sync(reply, question.options)
    history = [*answer.history, *reply.messages, *results, sabir.user("Go on.")]
    rendering = subject.must_render(history, question.options, question.settings)
    items, before = subject.items(rendering), subject.items(subject.render(answer.history, question.options))
    sent = "\n".join((Counter(leaves(items)) - Counter(leaves(before))).elements())  # the question may contain the text
    for label, text in _strings_to_return(reply, needs_state=subject.tables.roles.reasoning == "with_state"):
        what = f"the {label} {text!r} of {answer} is not in the next request unchanged"
        expect(text in sent, what, history=history, rendering=rendering)
    for call in [message.call for message in reply.option_calls]:
        arguments = call.raw_arguments or call.arguments_json
        what = f"the arguments {arguments} of the call of {call.option_name!r} in {answer} are not in the next request"
        expect(call.arguments in objects(items) or arguments in sent, what, history=history, rendering=rendering)


def _strings_to_return(reply: Reply, *, needs_state: bool) -> Iterator[tuple[str, str]]:
    """Yield the strings that must be sent back, each with its kind: texts, and strings of state and opaque blocks."""
    for message in reply.messages:
        if message.call is not None:
            yield from (("state", value) for value in texts(message.call.state))
        for part in message.parts:
            state = getattr(part, "state", None)
            text = getattr(part, "text", "")
            if text and not (part.kind == "reasoning" and needs_state and state is None):
                yield part.kind, text
            yield from (("state", value) for value in texts(state))
            yield from (("block", value) for name in ("block", "raw") for value in texts(getattr(part, name, None)))


def _cassette_names(service: Service) -> list[tuple[str, Suffix]]:
    """Return the cassettes by question and suffix; none for a suite that asks a live service, which must not set
    `cassettes`.
    """
    if service.suite.asks_live:
        what = "the suite sets `cassettes`, but its recordings are not used, because `asks_live` is True"
        expect(service.suite.cassettes is None, f"{what}; delete the recordings and the attribute `cassettes`")
        return []
    names = sorted(path.stem for path in service.path("text", WHOLE).parent.glob("*.yaml"))
    return [(name.removesuffix(STREAMED), STREAMED) if name.endswith(STREAMED) else (name, WHOLE) for name in names]


def _is_refused(service: Service, question: str, suffix: Suffix) -> bool:
    """Return whether a question needs a capability that the suite declares REFUSED. If so, check the refusal."""
    if need := service.refused_need(question, suffix):
        check_refusal(service, question, need)
    return bool(need)


def check_refusal(service: Service, name: str, need: str) -> None:
    """Check that a capability declared REFUSED is reported as a loss, and that `strict` refuses it. For "streaming",
    check that a stream raises an error before anything is sent.
    """
    subject = service.subject
    if need == "streaming":
        _check_refused_stream(service, name)
        subject.grade(need, REFUSED)
        return
    question = _question_with_reasoning(service) if need == "reasoning" else service.question(name)
    rendering = subject.must_render(question.messages, question.options, question.settings)
    lost = [loss for loss in rendering.losses if loss.kind in ("dropped", "downgraded")]
    what = f"the suite declares {need!r} ({CAPABILITIES[need]}) REFUSED, but the request for the question {name!r}"
    remedy = "add the loss, or change the declaration"
    expect(lost, f"{what} has neither a 'dropped' nor a 'downgraded' loss; {remedy}", rendering=rendering)
    arguments: Any = {"options": question.options, "settings": question.settings, "strict": True}
    try:
        subject.adapter.render(question.messages, **arguments)
    except RenderingRefused:
        if need == "reasoning":  # other cases record the other capabilities
            subject.grade(need, REFUSED)
        return
    what = f"{what} is rendered with strict=True; add a loss of the kind 'dropped', or change the declaration"
    raise ConformanceFailure(what, rendering=rendering)


def _question_with_reasoning(service: Service) -> ServiceQuestion:
    """Return a question whose history contains reasoning of the target's own model."""
    subject = service.subject
    reasoning_message = message_by(subject.adapter.speaks_as, ReasoningPart(text="The question is easy."), "No.")
    reasoning_message = reasoning_message.model_copy(update={"origin": subject.scope().origin()})
    return ServiceQuestion((sabir.user("Is 91 a prime number?"), reasoning_message, sabir.user("Why?")), Settings())


def _check_refused_stream(service: Service, name: str) -> None:
    """Raise ConformanceFailure unless a request for a stream raises an error of sabir before anything is sent."""
    declared = f"the suite declares 'streaming' REFUSED, but a stream for the question {name!r}"
    expected = "expected an error of sabir before anything is sent, or another declaration"
    try:
        with network_forbidden(loopback=False):
            error = ask_model(service.subject.adapter, service.new_outcome(name, STREAMED)).error
    except NetworkForbidden:
        raise ConformanceFailure(f"{declared} is requested over the network; {expected}") from None
    what = f"{declared} raises {type(error).__name__} ({error})"
    if error is None:
        what = f"{declared} is returned"
    is_refused = error is not None and not isinstance(error, sabir.errors.ConnectionFailed | sabir.StreamBroken)
    expect(is_refused, f"{what}; {expected}")
