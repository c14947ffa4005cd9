"""Answers to a suite's questions: from its recordings, the service while it is recorded, or a local service.

    replay   cassette ──▶ the provider's real SDK client ──▶ reply      no network; the suite's unchanged adapter
    record   `pytest --sabir-record`: suite.live(question) ──▶ cassette ──▶ replayed and checked at once
    live     a suite with `asks_live`: its adapter sends the questions, and nothing is recorded

Each question is sent at most once as a complete and once as a streamed request in each run, however many cases use the
result.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
import sabir
from sabir import Message, PartsPayload, Settings, TextPart

from sabir_testing.cassettes import CassetteFailed, NotPlayed, RecordedExchange, recording, replaying
from sabir_testing.cassettes.files import ProvenanceRefused
from sabir_testing.kit.asking import (
    RESPONSE_KINDS,
    STREAMED,
    WHOLE,
    QuestionResult,
    Suffix,
    distribution_of,
    secret_keys,
    send_recorded,
)
from sabir_testing.kit.capabilities import REFUSED
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.service_questions import ANSWERED, FAILING, QUESTIONS, ServiceQuestion
from sabir_testing.kit.suite import AdapterUnderTest, Suite
from sabir_testing.network import NetworkForbidden, network_forbidden

OWN_ID = re.compile(r"(^|_)id$|Id$|ID$")
"""Names of fields that contain an id."""


class _NothingRecorded(ConformanceFailure):
    """Raised for a provenance that is refused. Then no question of the suite is recorded."""


class Service:
    """Answers a suite's questions from its recordings, or with its adapter if `asks_live` is True. With `is_recording`,
    it records the real service before it replays.
    """

    def __init__(self, subject: AdapterUnderTest, *, is_recording: bool = False) -> None:
        self.subject = subject
        self.suite = subject.suite
        self._is_recording = is_recording and not self.suite.asks_live

    def question(self, name: str) -> ServiceQuestion:
        """Return a question with the suite's prompts, settings and `refused_body`. Raises ConformanceFailure if the
        question needs a `refused_body` and the suite has none.

        If the provider needs no key, "bad_key" is the question "text" with a wrong key, which must succeed.
        """
        cassette_name, suite = self._cassette_name(name), self.suite
        question = QUESTIONS[cassette_name]
        settings, messages = question.settings, question.messages
        if cassette_name in suite.settings:
            settings = suite.settings[cassette_name].laid_over(settings)
        if cassette_name in suite.prompts:
            messages = _with_prompt(messages, suite.prompts[cassette_name])
        if question.fault == "refused_body":
            remedy = "set it to fields that the service refuses with status 400, such as {'temperature': 'many'}"
            expect(suite.refused_body, f"the suite does not set `refused_body`, which {name!r} needs; {remedy}")
            settings = Settings(extra_body=dict(suite.refused_body)).laid_over(settings)
        return replace(question, fault=QUESTIONS[name].fault, messages=messages, settings=settings)

    def _cassette_name(self, name: str) -> str:
        return "text" if QUESTIONS[name].fault == "wrong_key" and not self.subject.key_variables else name

    def needs(self, name: str, suffix: Suffix) -> tuple[str, ...]:
        """Return the capabilities that a question needs."""
        return (*QUESTIONS[name].needs, *(["streaming"] if suffix == STREAMED else []))

    def refused_need(self, name: str, suffix: Suffix) -> str | None:
        """Return the first capability that a question needs and the suite declares REFUSED, or None. The kit checks the
        refusal of a question with such a need instead of asking the question.
        """
        return next((need for need in self.needs(name, suffix) if self.subject.declared(need) is REFUSED), None)

    def new_outcome(self, name: str, suffix: Suffix) -> QuestionResult:
        """Return a result without replies, for a question that was not sent yet."""
        question = self.question(name)
        return QuestionResult(name, suffix, question, self.subject.dialect, tuple(question.messages))

    def path(self, name: str, suffix: Suffix) -> Path:
        """Return the path of a question's cassette, which need not exist. Raises ConformanceFailure if the suite has no
        `cassettes`.
        """
        if self.suite.cassettes is None:
            who = type(self.suite).__name__
            raise ConformanceFailure(
                f"{who} does not set `cassettes`; write cassettes = Path(__file__).parent / 'cassettes'"
            )
        return self.suite.cassettes / f"{self._cassette_name(name)}{suffix}.yaml"

    def ask(self, name: str, suffix: Suffix) -> QuestionResult:
        """Return the result of a question, with the error if the call failed. Raises ConformanceFailure if there is no
        result, for example if the recording is missing or has another request.

        After a refused provenance, which fails one case, skips the case: all questions have the same mistake.
        """

        def result_or_failure() -> QuestionResult | ConformanceFailure:
            try:
                return self._load_or_send(name, suffix)
            except ConformanceFailure as failure:
                return failure

        if self.subject.has_result(_NothingRecorded):
            pytest.skip("nothing is recorded, because the provenance is refused, as the failed case says")
        result = self.subject.once(name + suffix, result_or_failure)
        if isinstance(result, _NothingRecorded):
            self.subject.once(_NothingRecorded, lambda: result)
        if isinstance(result, ConformanceFailure):
            raise result
        return result

    def answer(self, name: str, suffix: Suffix) -> QuestionResult:
        """Return the result of a question that must succeed. Raises ConformanceFailure if it has an error, and like
        `ask`.
        """
        outcome = self.ask(name, suffix)
        what = f"{outcome} raises {type(outcome.error).__name__}: {outcome.error}"
        expect(outcome.error is None, what, history=outcome.history)
        return outcome

    def answers(self, suffix: Suffix) -> list[QuestionResult]:
        """Return the successful results of ANSWERED questions. Raises ConformanceFailure if there are none.

        Missing recordings and errors are left out, because the test case of each question reports them.
        """
        results = [outcome for outcome in self._available_outcomes(ANSWERED, suffix) if outcome.error is None]
        return results or [self.answer("text", suffix)]  # raises: names the missing recording, or the call's error

    def failures(self) -> list[tuple[str, RecordedExchange]]:
        """Return the complete responses with an error status to the questions that must fail, each after the question's
        name.

        Missing recordings are left out, because the test case of each question reports them.
        """
        outcomes = self._available_outcomes(FAILING, WHOLE)
        last = [(outcome.name, each) for outcome in outcomes for each in outcome.exchanges[-1:]]
        return [(name, exchange) for name, exchange in last if exchange.status >= 400]

    def _available_outcomes(self, names: Collection[str], suffix: Suffix) -> Iterator[QuestionResult]:
        for name in names:
            if not self.refused_need(name, suffix) and (self.suite.asks_live or self.path(name, suffix).exists()):
                try:
                    yield self.ask(name, suffix)
                except _NothingRecorded:
                    raise
                except ConformanceFailure:
                    continue

    def _load_or_send(self, name: str, suffix: Suffix) -> QuestionResult:
        if self.suite.asks_live:
            return self._send(self.subject.adapter, name, suffix)
        path, outcome = self.path(name, suffix), None
        try:
            if self._is_recording:
                self._record_question(name, suffix, path)
            expect(path.exists(), self._describe_missing(name, suffix))
            with network_forbidden(), replaying(path):
                outcome = self._send(self.subject.adapter, name, suffix)
            return outcome
        except ProvenanceRefused as error:
            raise _NothingRecorded(str(error)) from None
        except CassetteFailed as error:
            if isinstance(error, NotPlayed) and outcome is not None and outcome.error is not None:
                return outcome  # the error that ended it early is more useful than the missing requests
            raise ConformanceFailure(str(error)) from None
        except NetworkForbidden as error:
            what = f"the provider sends the recorded question {name!r} through an HTTP client that vcrpy does not patch"
            raise ConformanceFailure(f"{what}: {error}") from None

    def _record_question(self, name: str, suffix: Suffix, path: Path) -> None:
        """Send a question to the real service and record the exchanges.

        Raises ConformanceFailure, and records nothing, if a question fails that must succeed, or the reverse.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.suite.live(name) as adapter:
            scrub = replace(self.suite.scrub, secrets=(*self.suite.scrub.secrets, *secret_keys(adapter)))
            with recording(path, self._provenance(name, adapter), scrub=scrub, allowed=self.suite.allowed):
                outcome = self._send(adapter, name, suffix)
                expects, error = outcome.question.expects, outcome.error
                if expects is None and error is not None:
                    what = f"the question {name!r} is not recorded, because it raises {type(error).__name__}: {error}"
                    raise ConformanceFailure(what)
                if expects is not None and error is None:
                    what = f"the question {name!r} is not recorded, because the service answers instead of failing with"
                    details = {"the reply's text": outcome.reply.text}
                    raise ConformanceFailure(f"{what} {expects.__name__}", details=details)

    def _provenance(self, name: str, adapter: sabir.ModelAdapter) -> dict[str, str]:
        distribution = distribution_of(self.suite.sdk)
        return {
            "model": adapter.model,
            "date": datetime.now(UTC).date().isoformat(),
            "client": f"{distribution} {version(distribution)}" if distribution else "no vendor's client",
            **self.suite.provenance(name),
        }

    def _send(self, adapter: sabir.ModelAdapter, name: str, suffix: Suffix) -> QuestionResult:
        suite, outcome = self.suite, self.new_outcome(name, suffix)
        return send_recorded(adapter, outcome, wrong_key=suite.wrong_key, missing_model=suite.missing_model)

    def _describe_missing(self, name: str, suffix: Suffix) -> str:
        variable = next(iter(self.subject.key_variables), "")
        key = f" and the key in {variable}" if variable else ""
        needs = self.needs(name, suffix)
        declare = f"declare {' or '.join(map(repr, needs))} REFUSED if the service lacks it, " if needs else ""
        return (
            f"the cassette {name}{suffix}.yaml ({RESPONSE_KINDS[suffix]} response to {name!r}) is missing; record it "
            f"with `pytest --sabir-record`{key}, {declare}or add the case to xfail with a reason"
        )


def _with_prompt(messages: Sequence[Message], prompt: str) -> list[Message]:
    """Return the messages with another text in the last user message, whose media remain."""
    last = max(at for at, message in enumerate(messages) if message.policy == "user")
    media = [part for part in messages[last].parts if part.kind != "text"]
    payload = PartsPayload(parts=(TextPart(text=prompt), *media))
    return [*messages[:last], messages[last].model_copy(update={"payload": payload}), *messages[last + 1 :]]


class AnswerCases(Suite):
    """Base class of the families that test answers."""

    @pytest.fixture
    def service(self, subject: AdapterUnderTest, request: pytest.FixtureRequest) -> Iterator[Service]:
        """Provide the Service of this suite to a test case (pytest fixture)."""
        yield Service(subject, is_recording=bool(request.config.getoption("sabir_record", False)))
