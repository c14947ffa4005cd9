"""Send a question to a service, and keep the replies, the error and the exchanges.

    question ──▶ a copy of the adapter, with the question's fault ──▶ RecordingProvider ──▶ service
                                                                            └──▶ QuestionResult

This module does not import pytest, because `sabir check` uses it too.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import files, packages_distributions
from typing import Any, Literal, TypeAlias

import sabir
from sabir import Message, Reply
from sabir.authoring import (
    Access,
    Connection,
    Credential,
    Dialect,
    KeySource,
    Provider,
    ServerEvent,
    WireRequest,
    WireResponse,
)
from sabir.errors import SabirError

from sabir_testing.cassettes import RecordedExchange
from sabir_testing.kit.service_questions import MOST_ROUNDS, ServiceQuestion
from sabir_testing.reading import as_json, leaves
from sabir_testing.scrubbing.spellings import SHORTEST_SECRET

WRONG_KEY, MISSING_MODEL = "wrong", "missing"
"""A key that services refuse, and the name of a model that they do not have."""
Suffix: TypeAlias = Literal["", "_streamed"]
"""The suffix of a cassette's name: "" for complete responses, "_streamed" for streams."""
WHOLE: Suffix = ""
STREAMED: Suffix = "_streamed"
RESPONSE_KINDS: Mapping[Suffix, str] = {WHOLE: "complete", STREAMED: "streamed"}


@dataclass(frozen=True)
class QuestionResult:
    """The result of a question: the exchanges, and the decoded replies or the error that ended the question."""

    name: str
    suffix: Suffix
    question: ServiceQuestion
    dialect: Dialect
    history: tuple[Message, ...]
    """The messages of the last request."""
    replies: tuple[Reply, ...] = ()
    error: SabirError | None = None
    exchanges: tuple[RecordedExchange, ...] = ()
    """The requests and responses of the provider's connection, in order."""

    def __str__(self) -> str:
        """Describe the response in error messages."""
        return f"the {RESPONSE_KINDS[self.suffix]} response to the question {self.name!r}"

    @property
    def reply(self) -> Reply:
        """The last reply. Raises IndexError if there is none."""
        return self.replies[-1]

    @property
    def leaves(self) -> list[str]:
        """The texts of the last response. Raises IndexError if there is none."""
        return self.leaves_of(self.exchanges[-1])

    @property
    def details(self) -> dict[str, object]:
        """The last response, for `details` of a ConformanceFailure; {} if there is none."""
        return {"the response": self.format_response(self.exchanges[-1])} if self.exchanges else {}

    def leaves_of(self, exchange: RecordedExchange) -> list[str]:
        """Return the texts, numbers and field names of a response's body, or of each event of its stream."""
        body = as_json(exchange.response_body)
        if not isinstance(body, str):
            return leaves(body)
        return [leaf for event in self._events(exchange) for leaf in (event.data, *leaves(as_json(event.data)))]

    def format_response(self, exchange: RecordedExchange) -> str | bytes:
        """Return a response for people: the body, or the events of a stream, one on a line."""
        is_json = not isinstance(as_json(exchange.response_body), str)
        events = [] if is_json else self._events(exchange)
        return "\n".join(f"{event.event} {event.data}".strip() for event in events) or exchange.response_body

    def _events(self, exchange: RecordedExchange) -> list[ServerEvent]:
        framing = self.dialect.framing(exchange.headers.get("content-type", ""))
        return [*framing.feed(exchange.response_body), *framing.close()]


def ask_model(
    adapter: sabir.ModelAdapter, outcome: QuestionResult, received: list[Reply] | None = None
) -> QuestionResult:
    """Send a question and return the result. If the question has `answers_calls`, run the options and send the results,
    with at most MOST_ROUNDS requests. A SabirError is stored in the result. Each reply is appended to `received` at
    once, so that the caller has it even if Ctrl-C ends the call.
    """
    question, history = outcome.question, list(outcome.history)
    replies = [] if received is None else received
    try:
        while True:
            replies.append(_send_once(adapter, outcome, history))
            if not (question.answers_calls and replies[-1].option_calls) or len(replies) == MOST_ROUNDS:
                return replace(outcome, history=tuple(history), replies=tuple(replies))
            history += [*replies[-1].messages, *sabir.answer_sync(replies[-1], question.options)]
    except SabirError as error:
        return replace(outcome, history=tuple(history), replies=tuple(replies), error=error)


def _send_once(adapter: sabir.ModelAdapter, outcome: QuestionResult, history: list[Message]) -> Reply:
    options, settings = outcome.question.options, outcome.question.settings
    if outcome.suffix == WHOLE:
        return adapter.complete_sync(history, options=options, settings=settings)
    with adapter.stream_sync(history, options=options, settings=settings) as stream:
        return stream.reply()


def send_recorded(
    adapter: sabir.ModelAdapter,
    outcome: QuestionResult,
    *,
    wrong_key: str | Mapping[str, str] = WRONG_KEY,
    missing_model: str = MISSING_MODEL,
    received: list[Reply] | None = None,
) -> QuestionResult:
    """Send a question with a copy of an adapter, and return the result with the exchanges.

    The copy has the question's intended fault: `missing_model` or, unless the adapter has `client=`, `wrong_key`.
    `received` is an empty list, to which the replies are appended as in `ask_model`.
    """
    access, model = adapter.access, adapter.model
    if outcome.question.fault == "missing_model":
        model = missing_model
    elif outcome.question.fault == "wrong_key" and access.client is None:
        access = replace(access, api_key=wrong_key)
    provider = RecordingProvider(adapter.provider)
    arguments = (provider, outcome.dialect, model, access)
    with sabir.ModelAdapter(*arguments, speaks_as=adapter.speaks_as, settings=adapter.settings) as recorder:
        outcome = ask_model(recorder, outcome, received)
        return replace(outcome, exchanges=tuple(response.exchange() for response in provider.answers))


def secret_keys(adapter: sabir.ModelAdapter) -> list[str]:
    """Return the secret values that requests of an adapter may contain, in whatever header: those of `api_key=`, and
    those that its provider's credentials have in variables and files. Recordings must not contain them.

    Short values, which could be a part of harmless texts, are left out, and so is what a function returns that is
    passed as `api_key=`.
    """
    secret = [each for each in adapter.provider.credentials if each.secret]
    passed = adapter.access.api_key
    by_name = passed if isinstance(passed, Mapping) else {"": passed}
    harmless = {"profile", *(each.name for each in adapter.provider.credentials)} - {each.name for each in secret}
    values: list[object] = [key for name, key in by_name.items() if name not in harmless]
    values += [os.environ.get(name) for each in secret for name in each.variables]
    values += [each.value.get_secret_value() for each in KeySource.find(secret) if each.value]
    keys = dict.fromkeys(each for each in values if isinstance(each, str))
    return [key for key in keys if len(key) >= SHORTEST_SECRET]


def distribution_of(module: str) -> str:
    """Return the name of the distribution that installs a module; "" if there is none.

    Several distributions may install modules of the same top-level package, so their files are searched.
    """
    candidates = packages_distributions().get(module.partition(".")[0], ())
    if len(candidates) == 1:
        return candidates[0]
    module_path = module.replace(".", "/")
    beginnings = (f"{module_path}/", f"{module_path}.py")
    installed = ((name, each.as_posix()) for name in candidates for each in files(name) or ())
    return next((name for name, path in installed if path.startswith(beginnings)), "")


class _Proxy:
    """Delegates all attributes to another object, except those that a subclass defines."""

    def __init__(self, base: Any) -> None:
        self._base = base

    def __getattr__(self, name: str) -> Any:  # any attribute of the other object
        return getattr(self._base, name)


class RecordingProvider(_Proxy):
    """A provider that records the requests and responses of its sync connections."""

    name: str
    api_version: int
    dialects: tuple[str, ...]
    credentials: tuple[Credential, ...]
    request_ids: tuple[str, ...]

    def __init__(self, base: Provider) -> None:
        super().__init__(base)
        self.answers: list[_RecordingResponse] = []

    def connect(self, access: Access) -> Connection:
        """Return a connection of the provider that records its exchanges."""
        return _RecordingConnection(self._base.connect(access), self.answers)


class _RecordingConnection(_Proxy):
    def __init__(self, base: Connection, answers: "list[_RecordingResponse]") -> None:
        super().__init__(base)
        self._answers = answers

    def open_sync(self, request: WireRequest) -> WireResponse:
        self._answers.append(_RecordingResponse(request, self._base.open_sync(request)))
        return self._answers[-1]


class _RecordingResponse(_Proxy):
    """A response that records its body while the body is read."""

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

    def exchange(self) -> RecordedExchange:
        request = self._request
        return RecordedExchange("POST", request.path, request.body, self.status, dict(self.headers), bytes(self._body))
