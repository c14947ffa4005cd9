"""A scripted adapter: an adapter with answers that a test defines in advance.

    llm = ScriptedAdapter(calls(weather={"city": "Paris"}), "It rains in Paris.")
    run(llm)                                        the program under test
    llm.sent[1].results, llm.sent[0].user_text      what the program sent
    llm.assert_finished()                           all answers were requested

Each request gets one answer: request `sent[i]` gets answer `i`, counted from 0. A request that the RetryPolicy repeats
gets the next answer. Nothing is sent over a network, and retries do not wait.

answers, gate ─▶ api ─▶ this module: an adapter, its script, and the provider that it imitates
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Any, TypedDict, Unpack, cast

import sabir
from sabir import ModelAdapter, Option, Rendering, Settings
from sabir.authoring import (
    Access,
    CallArguments,
    DecodeScope,
    Dialect,
    Messages,
    Provider,
    Strict,
    WireRequest,
    as_messages,
    split_model,
)
from sabir.errors import CallError, RenderingRefused, SettingsInvalid

from sabir_testing.scripted.answers import (
    Always,
    Answer,
    Function,
    Scriptable,
    ScriptedRequest,
    always,
    as_answer,
    call,
    calls,
    count_of,
    cut_off,
    delayed,
    describe_answer,
    list_requests,
    pieces,
    reply,
)
from sabir_testing.scripted.api import NAME, PLAIN, Chunk, ScriptedConnection, chunks_of, with_scripted_answers
from sabir_testing.scripted.gate import Gate, ScriptMismatch, Sleep

__all__ = [
    "Answer", "Gate", "ScriptMismatch", "Scriptable", "ScriptedAdapter", "ScriptedArguments", "ScriptedRequest",
    "always", "call", "calls", "cut_off", "delayed", "pieces", "reply",
]  # fmt: skip

_CALL_ARGUMENTS = ("options", "settings", "strict")
_NO_SETTINGS = Settings()


class ScriptedArguments(TypedDict, total=False):
    """The keyword arguments of ScriptedAdapter. All are optional.

    model: the `provider:model` to imitate. Requests are rendered by
        this provider's plugin, with its losses. Without `model`, nothing
        is lost.
    speaks_as, settings, strict: as for `sabir.adapter`.
    sleep: a function that is called with the seconds of a delay.
        Without `sleep`, delays in seconds are skipped.
    """

    model: str
    speaks_as: str
    settings: Settings | None
    strict: Strict
    sleep: Sleep | None


class _RetryWithoutDelay(sabir.RetryPolicy):
    """A retry policy that decides like another one and never waits."""

    def delay(self, attempt: int, error: CallError, jitter: float = 1.0) -> float | None:
        return None if super().delay(attempt, error, jitter) is None else 0.0


class ScriptedAdapter(ModelAdapter):
    """An adapter for tests that answers requests from a script: the answers, one after another. See `reply`, `calls`
    and the other functions for what an answer can be.

    Methods raise the errors of a real adapter, ScriptMismatch if a request has no answer left, and the exceptions of
    functions in the script. Arguments: `model` is the `provider:model` to imitate, with its losses; `speaks_as`,
    `settings` and `strict` are those of `sabir.adapter`; `sleep` is called with the seconds of delays.

    >>> from sabir_testing import ScriptedAdapter, calls
    >>> llm = ScriptedAdapter(calls(weather={"city": "Paris"}), "It rains.")
    >>> llm.complete_sync("An umbrella?").option_calls[0].call.arguments["city"]
    'Paris'
    >>> llm.complete_sync("And now?").text
    'It rains.'
    >>> llm.assert_finished()
    """

    def __init__(self, *answers: Scriptable, **how: Unpack[ScriptedArguments]) -> None:
        """Create the adapter. Raises SettingsInvalid for a value that cannot be an answer, and the errors of
        `sabir.adapter` for `model`.
        """
        Settings.refuse_misnamed("ScriptedAdapter", how, tuple(ScriptedArguments.__annotations__))
        speaks_as, settings, strict = how.get("speaks_as", "llm"), how.get("settings"), how.get("strict", False)
        self._script = Script(answers, speaks_as)
        connection = ScriptedConnection(self._script.serve, how.get("sleep"))
        provider, dialect, model = imitated_provider(how.get("model", "scripted:model"), connection)
        self._request_dialect: Dialect = dialect
        super().__init__(provider, dialect, model, Access(), speaks_as=speaks_as, settings=settings, strict=strict)
        RenderingRefused.check((), strict, self.target)

    def __repr__(self) -> str:
        """Return the model, and the numbers of answers and requests."""
        return f"<ScriptedAdapter {self.target}: {self._script}>"

    @property
    def sent(self) -> tuple[ScriptedRequest, ...]:
        """The requests so far, in order."""
        return tuple(self._script.sent)

    @property
    def last(self) -> ScriptedRequest:
        """The last request. Raises ScriptMismatch if there was none."""
        if not self.sent:
            raise ScriptMismatch("this adapter received no request; check that the program uses this adapter")
        return self.sent[-1]

    def assert_finished(self) -> None:
        """Raise ScriptMismatch unless every answer was requested and no request was without an answer. The answer of
        `always` need not be requested.
        """
        __tracebackhide__ = True
        self._script.assert_finished()

    def assert_asked(self, *user_texts: str) -> None:
        """Raise ScriptMismatch unless the requests have exactly these user texts, in this order. Compares
        `ScriptedRequest.user_text`.
        """
        __tracebackhide__ = True
        texts = tuple(sent.user_text for sent in self.sent)
        if texts == user_texts:
            return
        for number, (actual, expected) in enumerate(zip(texts, user_texts, strict=False), 1):
            if actual != expected:
                what = f"request {number} has the user text {actual!r}; expected {expected!r}"
                raise ScriptMismatch(f"{what}. All requests: {list_requests(self.sent)}")
        what = f"the program sent {count_of(len(texts), 'request')}; expected {len(user_texts)}"
        raise ScriptMismatch(f"{what}. All requests: {list_requests(self.sent)}")

    def assert_offered(self, *option_names: str) -> None:
        """Raise ScriptMismatch unless there is a request, and every request offered exactly these options in this
        order.
        """
        __tracebackhide__ = True
        expected = f"the options {', '.join(option_names)}" if option_names else "no options"
        for sent in self.sent or (self.last,):
            if sent.option_names != option_names:
                raise ScriptMismatch(f"every request must offer {expected}, unlike {sent}")

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the request for a conversation and its losses, as the imitated provider renders it."""
        return self._render_and_note("render", messages, how)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> sabir.Reply:
        """Render a conversation and return the next answer. If the answer is an error, the RetryPolicy may request
        another answer; otherwise the error is raised.
        """
        return await self.send(self._render_and_note("complete", messages, how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> sabir.Reply:
        """Sync version of `complete`."""
        return self.send_sync(self._render_and_note("complete_sync", messages, how))

    async def send(self, rendering: Rendering) -> sabir.Reply:
        """Return the next answer, like `complete`. Raises SettingsInvalid for a rendering of another target."""
        return await super().send(self._without_delays(rendering))

    def send_sync(self, rendering: Rendering) -> sabir.Reply:
        """Sync version of `send`."""
        return super().send_sync(self._without_delays(rendering))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> sabir.ReplyStream:
        """Return the next answer as a stream. Texts arrive word by word, or in the pieces that `pieces` defines."""
        if isinstance(messages, Rendering):
            return super().stream(self._without_delays(messages), **how)
        return super().stream(self._without_delays(self._render_and_note("stream", messages, how)))

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> sabir.SyncReplyStream:
        """Sync version of `stream`."""
        if isinstance(messages, Rendering):
            return super().stream_sync(self._without_delays(messages), **how)
        return super().stream_sync(self._without_delays(self._render_and_note("stream_sync", messages, how)))

    def _render_and_note(self, function: str, messages: Messages, how: CallArguments) -> Rendering:
        Settings.refuse_misnamed(function, how, _CALL_ARGUMENTS)
        conversation, options = as_messages(messages), Option.all_of(how.get("options") or ())
        how["options"] = options
        rendering = super().render(conversation, **how)
        settings = (how.get("settings") or _NO_SETTINGS).laid_over(self.settings)
        self._script.note(rendering, conversation, options, settings)
        return rendering

    def _without_delays(self, rendering: Rendering) -> Rendering:
        """Return a rendering whose retries do not wait. The contents of a rendering that this adapter did not render
        are decoded first.
        """
        if rendering.target == self.target and not self._script.knows(rendering):
            scope = DecodeScope(self.target, self.speaks_as, rendering.option_names)
            decoded = self._request_dialect.decode_history(rendering.body_bytes, scope)
            self._script.note(rendering, decoded.messages, decoded.options, decoded.settings)
        return rendering.model_copy(update={"retries": _RetryWithoutDelay(**dict(rendering.retries))})


class Script:
    """The answers of a script, in order, and the requests that arrived. Threads and tasks may share it."""

    def __init__(self, entries: Sequence[Scriptable], speaks_as: str) -> None:
        answers = list(entries)
        ending = answers.pop() if answers and isinstance(answers[-1], Always) else None
        self._answers = [_check_entry(each, number) for number, each in enumerate(answers, 1)]
        self._ending = ending.answer if isinstance(ending, Always) else None
        self._speaks_as = speaks_as
        self._requests_by_body: dict[bytes, ScriptedRequest] = {}
        self.sent: list[ScriptedRequest] = []
        self._numbers = count(1)
        self._lock = Lock()

    def __str__(self) -> str:
        """Return the numbers of answers and requests."""
        ending = "" if self._ending is None else ", then always the same answer"
        return f"{count_of(len(self._answers), 'answer')}{ending}, {count_of(len(self.sent), 'request')}"

    def note(
        self, rendering: Rendering, messages: Sequence[sabir.Message], options: tuple[Option, ...], settings: Settings
    ) -> None:
        """Remember the contents of a rendering, by the bytes that will be sent."""
        for sent in (rendering, rendering.for_stream()):
            self._requests_by_body[sent.body_bytes] = ScriptedRequest(
                0, tuple(messages), options, settings, rendering, rendering.streaming, self._speaks_as
            )

    def knows(self, rendering: Rendering) -> bool:
        """Return whether the contents of a rendering are known."""
        return rendering.body_bytes in self._requests_by_body

    def serve(self, wire_request: WireRequest) -> list[Chunk]:
        """Record the request and return the next answer. Raises ScriptMismatch if there is none, and the exceptions of
        a function in the script.
        """
        with self._lock:
            noted = self._requests_by_body[wire_request.body]
            request = replace(noted, number=len(self.sent) + 1, streaming=wire_request.streaming)
            self.sent.append(request)
        entry = self._answers[request.number - 1] if request.number <= len(self._answers) else self._ending
        if entry is None:
            raise ScriptMismatch(self._describe_excess(request))
        words = sum(len(message.text.split()) for message in request.messages)
        return list(chunks_of(_answer_to(entry, request), lambda: f"call-{next(self._numbers)}", words))

    def assert_finished(self) -> None:
        """Raise ScriptMismatch if an answer, other than that of `always`, is unused or a request was without an
        answer.
        """
        if unused := self._answers[len(self.sent) :]:
            what = f"the program did not request {len(unused)} of {count_of(len(self._answers), 'scripted answer')}"
            answers = ", ".join(map(describe_answer, unused))
            raise ScriptMismatch(f"{what}: {answers}. All requests: {list_requests(self.sent)}")
        if self._ending is None and len(self.sent) > len(self._answers):
            raise ScriptMismatch(self._describe_excess(self.sent[len(self._answers)]))

    def _describe_excess(self, sent: ScriptedRequest) -> str:
        what = f"the script has {count_of(len(self._answers), 'answer')}, but the program sent {sent}"
        return f"{what}; add an answer, or end the script with always(…)"


def _check_entry(entry: Scriptable, number: int) -> Answer | Function:
    position = f"answer {number} of the script"
    if isinstance(entry, Always):
        raise SettingsInvalid(f"{position} is always(…), which must be the last answer; move it to the end")
    return as_answer(entry, position)


def _answer_to(entry: Answer | Function, request: ScriptedRequest) -> Answer:
    """Return the answer itself, or the answer that a function returns for a request. Raises SettingsInvalid if the
    function returns something else.
    """
    if isinstance(entry, Answer):
        return entry
    answer = as_answer(entry(request), f"the value that the function of answer {request.number} returned")
    if not isinstance(answer, Answer):
        raise SettingsInvalid(f"the function of answer {request.number} returned a function; return an answer")
    return answer


class PlainProvider:
    """The provider of a scripted adapter that imitates no other provider."""

    name = NAME
    dialects = ("plain",)
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """Return the plain dialect."""
        return PLAIN

    def endpoint(self, access: Access) -> str:
        """Return the name of the provider, because there is no URL."""
        return f"{NAME}:"

    def quirks(self, access: Access) -> frozenset[str]:
        """Return no quirks."""
        return frozenset()

    def models(self) -> tuple[sabir.ModelInfo, ...]:
        """Return no models."""
        return ()


class ScriptedProvider:
    """A provider that imitates another one. Its connection is a script, and it needs no key."""

    api_version = 2
    credentials = ()

    def __init__(self, provider: Provider | PlainProvider, connection: ScriptedConnection) -> None:
        self._provider = provider
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the imitated provider."""
        return getattr(self._provider, name)

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect of the imitated provider, with scripted answers."""
        return with_scripted_answers(self._provider.dialect(short_name))

    def connect(self, access: Access) -> ScriptedConnection:
        """Return the connection to the script."""
        return self._connection


def imitated_provider(model: str, connection: ScriptedConnection) -> tuple[Provider, Dialect, str]:
    """Return the provider, dialect and model name for a model string. Raises the errors of `sabir.adapter`."""
    name, _, model_name = model.partition(":")
    if name == NAME:
        scripted = ScriptedProvider(PlainProvider(), connection)
        return cast("Provider", scripted), scripted.dialect("plain"), model_name
    parsed = split_model(model)
    provider = ScriptedProvider(sabir.adapter(model).provider, connection)
    return cast("Provider", provider), provider.dialect(parsed.dialect or provider.dialects[0]), parsed.model
