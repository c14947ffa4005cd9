"""Answers to a suite's questions: from its recordings, the service while it is recorded, or a local service.

    replay   cassette ──▶ the provider's real SDK client ──▶ reply      no network; the suite's adapter as it is
    record   `pytest --sabir-record`: suite.live(question) ──▶ cassette ──▶ replayed at once, and checked like any other
    live     a suite that says `asks_live`: its adapter is asked, and nothing is kept

Each question is asked once for each run and way, however many cases use its result. `Tapped` keeps what goes over the
provider's connection, as a cassette does.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import files, packages_distributions, version
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
import sabir
from sabir import Message, PartsPayload, Reply, Settings, TextPart
from sabir.authoring import Access, Connection, Credential, Dialect, Provider, ServerEvent, WireRequest, WireResponse
from sabir.errors import SabirError

from sabir_testing.cassettes import CassetteFailed, NotPlayed, RecordedExchange, recording, replaying
from sabir_testing.kit.broken import ConformanceFailure, expect
from sabir_testing.kit.questions import ANSWERED, FAILING, MOST_ROUNDS, QUESTIONS, REFUSED, Question
from sabir_testing.kit.suite import AdapterUnderTest, Suite
from sabir_testing.network import NetworkForbidden, network_forbidden
from sabir_testing.reading import leaves, read
from sabir_testing.scrubbing import Scrubbing
from sabir_testing.scrubbing.spellings import SHORTEST_SECRET

Way: TypeAlias = Literal["", "_streamed"]
"""How a question is asked: what its cassette's name has behind the question's."""
WHOLE: Way = ""
STREAMED: Way = "_streamed"
OWN_ID = re.compile(r"(^|_)id$|Id$|ID$")
"""Names of a response's field for its own id."""
WAYS: Mapping[Way, str] = {WHOLE: "whole", STREAMED: "streamed"}


@dataclass(frozen=True)
class Asked:
    """The result of a question, as it came and as it was read: the replies in order, or the error that ended it."""

    name: str
    way: Way
    question: Question
    dialect: Dialect
    history: tuple[Message, ...]
    """What the last request was made of."""
    replies: tuple[Reply, ...] = ()
    error: SabirError | None = None
    exchanges: tuple[RecordedExchange, ...] = ()
    """What went over the provider's connection, in order, as bytes."""

    def __str__(self) -> str:
        return f"the {WAYS[self.way]} answer to {self.name!r}"

    @property
    def reply(self) -> Reply:
        """The last reply."""
        return self.replies[-1]

    @property
    def leaves(self) -> list[str]:
        """The texts of the last response."""
        return self.leaves_of(self.exchanges[-1])

    @property
    def shown(self) -> dict[str, object]:
        """What was answered last, to be shown beside a fault; nothing where nothing was."""
        return {"what the service answered": self.laid_out(self.exchanges[-1])} if self.exchanges else {}

    def leaves_of(self, exchange: RecordedExchange) -> list[str]:
        """The texts of a response: of its body, or of each event of its stream."""
        whole = read(exchange.response_body)
        if not isinstance(whole, str):
            return leaves(whole)
        return [leaf for event in self._events(exchange) for leaf in (event.data, *leaves(read(event.data)))]

    def laid_out(self, exchange: RecordedExchange) -> str | bytes:
        """A response to be shown: of a stream, its events, one a line."""
        is_whole = not isinstance(read(exchange.response_body), str)
        events = [] if is_whole else self._events(exchange)
        return "\n".join(f"{event.event} {event.data}".strip() for event in events) or exchange.response_body

    def _events(self, exchange: RecordedExchange) -> list[ServerEvent]:
        framing = self.dialect.framing(exchange.headers.get("content-type", ""))
        return [*framing.feed(exchange.response_body), *framing.close()]


def ask(adapter: sabir.ModelAdapter, asked: Asked) -> Asked:
    """Ask; if the question says so, answer the calls and ask again."""
    question, history, replies = asked.question, list(asked.history), list[Reply]()
    try:
        while True:
            replies.append(_ask_once(adapter, question, history, asked.way))
            if not (question.answers_calls and replies[-1].option_calls) or len(replies) == MOST_ROUNDS:
                return replace(asked, history=tuple(history), replies=tuple(replies))
            history += [*replies[-1].messages, *sabir.answer_sync(replies[-1], question.options)]
    except SabirError as error:
        return replace(asked, history=tuple(history), replies=tuple(replies), error=error)


def _ask_once(adapter: sabir.ModelAdapter, question: Question, history: list[Message], way: Way) -> Reply:
    if way == WHOLE:
        return adapter.complete_sync(history, options=question.options, settings=question.settings)
    with adapter.stream_sync(history, options=question.options, settings=question.settings) as stream:
        return stream.reply()


class Service:
    """Who answers the questions of a suite; `is_recording` asks the real one anew."""

    def __init__(self, subject: AdapterUnderTest, *, is_recording: bool = False) -> None:
        self.subject = subject
        self.suite = subject.suite
        self._is_recording = is_recording and not self.suite.asks_live

    def question(self, name: str) -> Question:
        """The question as this service is asked it; where no key is needed, a wrong one is expected to do no harm."""
        asked_as, suite = self._recorded_as(name), self.suite
        question = QUESTIONS[asked_as]
        settings, messages = question.settings, question.messages
        if asked_as in suite.settings:
            settings = suite.settings[asked_as].laid_over(settings)
        if asked_as in suite.prompts:
            messages = _asking(messages, suite.prompts[asked_as])
        if question.fault == "refused_body":
            remedy = "give it fields that the service answers with 400, such as {'temperature': 'many'}"
            expect(suite.refused_body, f"the suite says nothing under `refused_body`; {remedy}")
            settings = Settings(extra_body=dict(suite.refused_body)).laid_over(settings)
        return replace(question, fault=QUESTIONS[name].fault, messages=messages, settings=settings)

    def _recorded_as(self, name: str) -> str:
        return "text" if QUESTIONS[name].fault == "wrong_key" and not self.subject.key_variables else name

    def needs(self, name: str, way: Way) -> tuple[str, ...]:
        """The capabilities without which a question is not asked."""
        return (*QUESTIONS[name].needs, *(["streaming"] if way == STREAMED else []))

    def refused_need(self, name: str, way: Way) -> str | None:
        """The capability that a question needs and the author declared REFUSED: then it is not asked."""
        return next((need for need in self.needs(name, way) if self.subject.declared(need) is REFUSED), None)

    def unasked(self, name: str, way: Way) -> Asked:
        """A question before it is asked."""
        question = self.question(name)
        return Asked(name, way, question, self.subject.dialect, tuple(question.messages))

    def path(self, name: str, way: Way) -> Path:
        """Where the answer is recorded; ConformanceFailure where the suite names no folder."""
        if self.suite.cassettes is None:
            who = type(self.suite).__name__
            raise ConformanceFailure(
                f"{who} names no recordings; give it cassettes = Path(__file__).parent / 'cassettes'"
            )
        return self.suite.cassettes / f"{self._recorded_as(name)}{way}.yaml"

    def ask(self, name: str, way: Way) -> Asked:
        """The result of a question; ConformanceFailure if no recording is there, or the request does not match."""

        def asked() -> Asked | ConformanceFailure:
            try:
                return self._asked(name, way)
            except ConformanceFailure as broken:
                return broken

        found = self.subject.once(name + way, asked)
        if isinstance(found, ConformanceFailure):
            raise found
        return found

    def answer(self, name: str, way: Way) -> Asked:
        """The answer to a question; ConformanceFailure where it failed."""
        asked = self.ask(name, way)
        what = f"{asked} ends in {type(asked.error).__name__}: {asked.error}"
        expect(asked.error is None, what, history=asked.history)
        return asked

    def answers(self, way: Way) -> list[Asked]:
        """All existing answers.

        The case of each question reports a missing or failed one. Raises ConformanceFailure if there are none.
        """
        found = [asked for asked in self._existing(ANSWERED, way) if asked.error is None]
        return found or [self.answer("text", way)]  # says what is missing

    def failures(self) -> list[tuple[str, RecordedExchange]]:
        """The responses to the questions that fail, as they came; a missing one is told by its own case."""
        found = [(asked.name, each) for asked in self._existing(FAILING, WHOLE) for each in asked.exchanges[-1:]]
        return [(name, exchange) for name, exchange in found if exchange.status >= 400]

    def _existing(self, names: Collection[str], way: Way) -> Iterator[Asked]:
        for name in names:
            if not self.refused_need(name, way) and (self.suite.asks_live or self.path(name, way).exists()):
                with suppress(ConformanceFailure):
                    yield self.ask(name, way)

    def _asked(self, name: str, way: Way) -> Asked:
        if self.suite.asks_live:
            return self._ask(self.subject.adapter, name, way)
        path, asked = self.path(name, way), None
        try:
            if self._is_recording:
                self._record(name, way, path)
            expect(path.exists(), self._missing(name, way))
            with network_forbidden(), replaying(path):
                asked = self._ask(self.subject.adapter, name, way)
            return asked
        except CassetteFailed as error:
            if isinstance(error, NotPlayed) and asked is not None and asked.error is not None:
                return asked  # the error that ended it early is more useful than the missing requests
            raise ConformanceFailure(str(error)) from None
        except NetworkForbidden as error:
            raise ConformanceFailure(
                f"{name!r} is recorded, but the provider's client does not take recordings: {error}"
            ) from None

    def _record(self, name: str, way: Way, path: Path) -> None:
        """Ask the service itself; an answer of the wrong kind is not kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.suite.live(name) as adapter:
            # the key in use, whatever header carries it: of the adapter, and of the provider's variables
            keys = [adapter.access.api_key, *(os.environ.get(name) for name in self.subject.key_variables)]
            scrub = Scrubbing(
                secrets=tuple(key for key in keys if isinstance(key, str) and len(key) >= SHORTEST_SECRET)
            )
            with recording(path, self._provenance(name, adapter), scrub=scrub, allowed=self.suite.allowed):
                asked = self._ask(adapter, name, way)
                if asked.question.expects is None and asked.error is not None:
                    raise ConformanceFailure(
                        f"{name!r} could not be recorded: {type(asked.error).__name__}: {asked.error}"
                    )
                if asked.question.expects is not None and asked.error is None:
                    shown = {"its answer": asked.reply.text}
                    raise ConformanceFailure(f"{name!r} was to fail, but the service answered", shown=shown)

    def _provenance(self, name: str, adapter: sabir.ModelAdapter) -> dict[str, str]:
        distribution = distribution_of(self.suite.sdk)
        return {
            "model": adapter.model,
            "date": datetime.now(UTC).date().isoformat(),
            "client": f"{distribution} {version(distribution)}" if distribution else "no client of a vendor's",
            **self.suite.provenance(name),
        }

    def _ask(self, adapter: sabir.ModelAdapter, name: str, way: Way) -> Asked:
        """Ask with an adapter that differs from that one by what is wrong on purpose, and keep what it carries."""
        access, model, asked = adapter.access, adapter.model, self.unasked(name, way)
        if asked.question.fault == "missing_model":
            model = self.suite.missing_model
        elif asked.question.fault == "wrong_key" and access.client is None:
            access = replace(access, api_key=self.suite.wrong_key)
        wire = Tapped(adapter.provider)
        how = (wire, asked.dialect, model, access)
        with sabir.ModelAdapter(*how, speaks_as=adapter.speaks_as, settings=adapter.settings) as tapped:
            return replace(ask(tapped, asked), exchanges=tuple(each.carried() for each in wire.answers))

    def _missing(self, name: str, way: Way) -> str:
        variable = next(iter(self.subject.key_variables), "")
        key = f" and the key in {variable}" if variable else ""
        needs = self.needs(name, way)
        cannot = f"declare {' or '.join(map(repr, needs))} REFUSED if the service cannot, " if needs else ""
        return (
            f"no recording of {name!r}, {WAYS[way]} ({name}{way}.yaml); record it with `pytest --sabir-record`{key}, "
            f"{cannot}or list the case under xfail with the reason"
        )


def distribution_of(module: str) -> str:
    """The distribution that installs a module, "" where none does; several may share the first of its names."""
    candidates = packages_distributions().get(module.partition(".")[0], ())
    if len(candidates) == 1:
        return candidates[0]
    place = module.replace(".", "/")
    beginnings = (f"{place}/", f"{place}.py")
    installed = ((name, each.as_posix()) for name in candidates for each in files(name) or ())
    return next((name for name, path in installed if path.startswith(beginnings)), "")


def _asking(messages: Sequence[Message], prompt: str) -> list[Message]:
    """The messages with that text as what the user said last, media kept."""
    last = max(at for at, message in enumerate(messages) if message.policy == "user")
    media = [part for part in messages[last].parts if part.kind != "text"]
    payload = PartsPayload(parts=(TextPart(text=prompt), *media))
    return [*messages[:last], messages[last].model_copy(update={"payload": payload}), *messages[last + 1 :]]


class Answered(Suite):
    """What families need that look at answers."""

    @pytest.fixture
    def service(self, subject: AdapterUnderTest, request: pytest.FixtureRequest) -> Iterator[Service]:
        """Who answers this suite's questions."""
        yield Service(subject, is_recording=bool(request.config.getoption("sabir_record", False)))


class _Around:
    """All that another object has, except what a subclass overrides."""

    def __init__(self, base: Any) -> None:
        self._base = base

    def __getattr__(self, name: str) -> Any:  # whatever the other has
        return getattr(self._base, name)


class Tapped(_Around):
    """A provider that keeps what goes over its waiting connections."""

    name: str
    api_version: int
    dialects: tuple[str, ...]
    credentials: tuple[Credential, ...]
    request_ids: tuple[str, ...]

    def __init__(self, base: Provider) -> None:
        super().__init__(base)
        self.answers: list[_Answer] = []

    def connect(self, access: Access) -> Connection:
        """A connection of the provider's, listened to."""
        return _Connection(self._base.connect(access), self.answers)


class _Connection(_Around):
    def __init__(self, base: Connection, answers: "list[_Answer]") -> None:
        super().__init__(base)
        self._answers = answers

    def open_sync(self, request: WireRequest) -> WireResponse:
        self._answers.append(_Answer(request, self._base.open_sync(request)))
        return self._answers[-1]


class _Answer(_Around):
    """An answer, and what was read of it."""

    status: int
    headers: Mapping[str, str]

    def __init__(self, request: WireRequest, base: WireResponse) -> None:
        super().__init__(base)
        self._request, self._body = request, bytearray()

    def chunks(self) -> Iterator[bytes]:
        for chunk in self._base.chunks():
            self._body += chunk
            yield chunk

    def close(self) -> None:
        self._base.close()

    def carried(self) -> RecordedExchange:
        asked = self._request
        return RecordedExchange("POST", asked.path, asked.body, self.status, dict(self.headers), bytes(self._body))
