"""A tiny provider for core's own tests, on the Protocols of `sabir.authoring` alone, and a real server to call.

    Tiny(answers)  ──InProcess──▶ scripted answers, in this process
    Tiny(url=…)    ──httpx2─────▶ Loopback: a real HTTP server on a loopback port, in a thread with its own loop

The wire: `{"model", "options", "settings", "turns": [{"side", "text"}]}` → `{"text", "calls", "finish"}`; a stream has
events `{"open": id}`, `{"text": …}`, `{"call": …}`, `{"part": …}`, `{"error": status}` and last `{"finish": …}`.
"""

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import httpx2
import pytest
from sabir.authoring import ClientConnection, ErrorTable
from sabir.base.values import FrozenDict, JSONValue
from sabir.calling.drive import SyncWire, Wire, drive, run_blocking
from sabir.calling.exchange import Emit, Script
from sabir.contract.dialect import DecodedHistory, Dialect, ServerEvent
from sabir.contract.provider import Access, Credential, WireRequest
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.turns import Entry, LossLog, Tables, Turn, TurnScope
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    CredentialsMissing,
    InvalidRequest,
    RateLimited,
    SabirError,
    ServerFailed,
)
from sabir.reading.fold import ReplyBuilder
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message, OptionCallPayload, PartsPayload
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import MediaPart, ReasoningPart, TextPart
from sabir.vocabulary.reply import BlockDelta, BlockEnd, BlockStart, Reply, ReplyEnd, ReplyStart, StreamEvent, Usage
from sabir.vocabulary.settings import WIRE_SETTINGS, Settings, Target

ERRORS: Mapping[int, type[CallError]] = {400: InvalidRequest, 401: AuthenticationFailed, 429: RateLimited}
MOST_AT_ONCE = 1_000_000
"""A longer answer is streamed, whoever asks."""
REQUEST = WireRequest("/talk", b"{}")
SCOPE = DecodeScope(Target(provider="tiny", dialect="tiny.talk", model="m", endpoint="http://tiny"))


class TinyDialect(Dialect):
    """Text, calls and images by their bytes; everything that a test of core needs, and no more."""

    name = "tiny.talk"
    tables = Tables(media={("user", "image"): MediaRule(data="")})
    messages_field = "turns"
    streaming_fields: Mapping[str, JSONValue] = {"stream": True}
    framings: Mapping[str, Any] = FrozenDict()

    def __init__(self, counts: bool = False) -> None:
        if not counts:
            vars(self)["encode_count"] = None

    def path(self, target: Target) -> str:
        return "/talk"

    def stream_path(self, target: Target) -> str:
        return "/stream"

    def family(self, model: str) -> str:
        return "tiny"

    def place(self, endpoint: str, model: str) -> str:
        return endpoint

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
        return [{"side": turn.side, **_entry(entry)} for entry in turn.entries]

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        scope.only_as_stream = (scope.settings.take("max_output_tokens") or 0) > MOST_AT_ONCE
        settings = {name: value for name in WIRE_SETTINGS if (value := scope.settings.take(name)) is not None}
        return {"model": scope.target.model, "options": list(scope.option_names.values()), "settings": settings}

    def encode_count(self, body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
        return "/count", {"turns": body["turns"]}

    def decode_count(self, body: bytes) -> int:
        return int(json.loads(body)["tokens"])

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        answer = json.loads(body)
        builder = ReplyBuilder(scope)
        builder.add(TextPart(text=answer["text"]))
        for call in answer.get("calls", ()):
            builder.add(scope.read_call(call["id"], call["name"], call["arguments"]))
        usage = Usage(input_tokens=answer.get("tokens"))
        return builder.finish(finish_reason=answer["finish"], usage=usage, origin=scope.origin())

    def decoder(self, scope: DecodeScope) -> "TinyDecoder":
        return TinyDecoder(scope)

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        found = json.loads(body)
        policies = {"system": "system", "user": "user", "assistant": scope.policy}
        messages = tuple(
            Message(policy=policies[item["side"]], payload=PartsPayload(parts=(TextPart(text=item["text"]),)))
            for item in found["turns"]
        )
        return DecodedHistory(messages=messages, settings=Settings(**found["settings"]), model=found["model"])

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        delay = headers.get("retry-after")
        kind = ERRORS.get(status, ServerFailed if status >= 500 else InvalidRequest)
        reason = json.loads(body)["error"]
        return kind(reason, provider=provider, status=status, retry_after=float(delay) if delay else None)


class TinyDecoder:
    """One event of the wire is one whole delta; a `finish` ends the block that is open."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._index = -1
        self._kind: Literal["text", "reasoning"] = "text"
        self._texts: list[str] = []

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        said = json.loads(event.data)
        if "open" in said:
            yield ReplyStart(origin=self._scope.origin(response_id=said["open"]))
        elif "error" in said:
            raise ERRORS.get(said["error"], ServerFailed)("the stream says so", status=said["error"])
        elif "text" in said or "thought" in said:
            yield from self._text("text" if "text" in said else "reasoning", said.get("text", said.get("thought")))
        else:
            yield from self._end()
            if "call" in said:
                yield from self._call(said["call"])
            else:
                yield ReplyEnd(finish_reason=said["finish"], usage=Usage(output_tokens=said.get("tokens")))

    def close(self) -> Sequence[StreamEvent]:
        return ()

    def _text(self, kind: Literal["text", "reasoning"], text: str) -> Iterator[StreamEvent]:
        if self._texts and kind != self._kind:
            yield from self._end()
        if not self._texts:
            self._index, self._kind = self._index + 1, kind
            yield BlockStart(index=self._index, kind=kind)
        self._texts.append(text)
        yield BlockDelta(index=self._index, kind=kind, text=text)

    def _end(self) -> Iterator[StreamEvent]:
        if self._texts:
            part = TextPart if self._kind == "text" else ReasoningPart
            yield BlockEnd(index=self._index, block=part(text="".join(self._texts)))
            self._texts = []

    def _call(self, call: dict[str, str]) -> Iterator[StreamEvent]:
        self._index += 1
        payload = self._scope.read_call(call["id"], call["name"], call["arguments"])
        names = {"invocation_id": payload.invocation_id, "option_name": payload.option_name}
        yield BlockStart(index=self._index, kind="option_call", **names)
        yield BlockDelta(index=self._index, kind="option_call", text=call["arguments"])
        yield BlockEnd(index=self._index, block=payload)


def _entry(entry: Entry) -> dict[str, JSONValue]:
    message = entry.message
    if message.call:
        return {"call": {"id": entry.wire_id, "name": entry.wire_name, "arguments": message.call.arguments_json}}
    if message.result:
        return {"answers": entry.wire_id, "text": message.result.error_message or message.result.result_json}
    images = [piece.url for piece in entry.pieces if isinstance(piece, MediaPart)]
    text = "".join(piece.text for piece in entry.pieces if isinstance(piece, TextPart))
    return {"text": text, "images": images} if images else {"text": text}


@dataclass
class Answer:
    """What a server answers: after its chunks it ends, drops the connection, or keeps silent until it is left."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Literal["end", "drop", "wait"] = "end"


def whole(text: str, **more: Any) -> Answer:
    """An answer that comes at once."""
    return Answer([json.dumps({"text": text, "finish": "stop", **more}).encode()])


def failing(status: int, reason: str = "no", **headers: str) -> Answer:
    """An answer that reports an error."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps({"error": reason}).encode()], status, named)


def streamed(*events: Mapping[str, JSONValue], then: Literal["end", "drop", "wait"] = "end") -> Answer:
    """An answer that comes as a stream, one event a chunk."""
    return Answer([f"data: {json.dumps(event)}\n\n".encode() for event in events], then=then)


WORDS = ({"open": "r1"}, {"text": "Take "}, {"text": "one."}, {"finish": "stop", "tokens": 2})
Behaviour = Callable[[str, JSONValue], Answer]


@dataclass
class Received:
    """One request as a server saw it."""

    path: str
    body: bytes
    headers: Mapping[str, str]


class Loopback:
    """A real HTTP server. `behave` is given path and JSON body; `left` counts connections that the client closed."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self.received: list[Received] = []
        self.left = threading.Semaphore(0)
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Loopback":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def was_left(self) -> bool:
        """Wait until the client closed a connection whose answer was not over."""
        return self.left.acquire(timeout=10)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=2048)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = head[0].split(" ")[1]
        self.received.append(Received(path, body, headers))
        answer = self._behave(path, json.loads(body))
        lines = [f"HTTP/1.1 {answer.status} x", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for chunk in answer.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        if answer.then == "wait":
            await writer.drain()
            with contextlib.suppress(ConnectionResetError):  # bytes that the client had not read make its close a reset
                assert await reader.read(1) == b""
            self.left.release()
        if answer.then == "end":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return answer.then == "end"


class TinyConnection(ClientConnection):
    """What a plugin writes around its SDK's clients; here they are plain HTTP clients."""

    def __init__(self, provider: "Tiny", url: str) -> None:
        super().__init__("tiny", ErrorTable())
        self._provider, self._url = provider, url
        self.made: list[Any] = []

    def make_sync(self) -> httpx2.Client:
        self._provider.made["client"] += 1
        self.made.append(httpx2.Client(base_url=self._url, limits=httpx2.Limits(max_connections=None)))
        return self.made[-1]

    def make(self) -> httpx2.AsyncClient:
        self._provider.made["async client"] += 1
        limits = httpx2.Limits(max_connections=200)
        self.made.append(httpx2.AsyncClient(base_url=self._url, limits=limits, timeout=60))
        return self.made[-1]

    def send_sync(self, client: httpx2.Client, request: WireRequest) -> httpx2.Response:
        return client.send(self._built(client, request), stream=True)

    async def send(self, client: httpx2.AsyncClient, request: WireRequest) -> httpx2.Response:
        return await client.send(self._built(client, request), stream=True)

    def _built(self, client: Any, request: WireRequest) -> httpx2.Request:
        headers = {**request.headers, "authorization": f"Bearer {self._provider.read_key()}"}
        timeout = {"timeout": request.timeout} if request.timeout else {}
        return client.build_request("POST", request.path, content=request.body, headers=headers, **timeout)


class Tiny:
    """The provider. `made` counts the connections and clients that were made."""

    name = "tiny"
    api_version = 1
    dialects: tuple[str, ...] = ("talk",)
    credentials = (Credential(variables=("TINY_KEY",)),)
    request_ids = ("x-request-id", "request-id")

    def __init__(self, *, key: str | None = "tiny-secret", counts: bool = False) -> None:
        self._key = key
        self._counts = counts
        self.made: Counter[str] = Counter()

    def dialect(self, short_name: str) -> TinyDialect:
        return TinyDialect(self._counts)

    def endpoint(self, access: Access) -> str:
        return access.base_url or "http://tiny"

    def connect(self, access: Access) -> TinyConnection:
        self.made["connection"] += 1
        return TinyConnection(self, self.endpoint(access))

    def quirks(self, access: Access) -> frozenset[str]:
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        return ()

    def read_key(self) -> str:
        if self._key is None:
            raise CredentialsMissing("no key; set TINY_KEY or pass api_key=", provider=self.name)
        return self._key


class Scripted:
    """A connection that answers from a list, an exception among the answers or the chunks being raised there."""

    def __init__(self, *answers: "Answer | Exception") -> None:
        self._answers = list(answers)
        self.requests: list[WireRequest] = []
        self.responses: list[ScriptedResponse] = []

    def open_sync(self, request: WireRequest) -> "ScriptedResponse":
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.responses.append(ScriptedResponse(answer))
        return self.responses[-1]

    async def open(self, request: WireRequest) -> "AsyncScriptedResponse":
        return AsyncScriptedResponse(self.open_sync(request))

    def translate(self, error: Exception) -> SabirError | None:
        if isinstance(error, TimeoutError):
            return CallTimedOut(str(error))
        return ConnectionFailed(str(error)) if isinstance(error, OSError) else None

    def close(self) -> None:
        """Nothing is held."""

    async def aclose(self) -> None:
        """Nothing is held."""

    @property
    def open_responses(self) -> int:
        """How many responses nobody closed."""
        return sum(response.closed == 0 for response in self.responses)


class Silent(Scripted):
    """Begins each answer and says no more in a loop; `waiting` is set when that is waited for."""

    def __init__(self, *begun: bytes) -> None:
        super().__init__(whole("never"), whole("never"))
        self._begun = begun
        self.waiting = asyncio.Event()

    async def open(self, request: WireRequest) -> Any:
        response = await super().open(request)

        async def chunks() -> AsyncIterator[bytes]:
            for chunk in self._begun:
                yield chunk
            self.waiting.set()
            await asyncio.Event().wait()

        response.chunks = chunks  # type: ignore[method-assign]
        return response


class ScriptedResponse:
    def __init__(self, answer: Answer) -> None:
        self.status, self.headers, self._chunks = answer.status, answer.headers, answer.chunks
        self.read = 0
        self.closed = 0

    def chunks(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            self.read += 1
            yield chunk

    def close(self) -> None:
        self.closed += 1


class AsyncScriptedResponse:
    def __init__(self, response: ScriptedResponse) -> None:
        self.status, self.headers, self._response = response.status, response.headers, response

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._response.chunks():
            yield chunk

    async def aclose(self) -> None:
        self._response.close()


def option_call(name: str, arguments: Any = None, invocation_id: str = "call-1", **fields: Any) -> Message:
    """A model's call in the third step."""
    payload = OptionCallPayload(invocation_id=invocation_id, option_name=name, arguments=arguments or {}, **fields)
    return Message(policy="llm", step_num=3, payload=payload)


def broken(answer: Answer, error: Exception) -> Answer:
    """The answer whose body breaks off with an error."""
    return Answer([*answer.chunks, error], answer.status, answer.headers)  # type: ignore[list-item]


@contextlib.contextmanager
def raises_line(kind: type[BaseException], match: str | None = None) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Expect an error whose message has these words, in one line."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert len(str(caught.value).splitlines()) == 1


class Run(Protocol):
    """Runs a script to its end; `seen` is told of each attempt."""

    def __call__(self, script: Script[Any], connection: Any, seen: list[Any] | None = None) -> Any: ...


async def run_through(script: Script[Any], wire: SyncWire | Wire) -> Any:
    """Pass over a stream's events, and give the result."""
    while isinstance(step := await drive(script, wire), Emit):
        pass
    return step.result


def run_sync(script: Script[Any], connection: Any, seen: list[Any] | None = None) -> Any:
    return run_blocking(run_through(script, SyncWire(connection, None if seen is None else seen.append)))


def run_async(script: Script[Any], connection: Any, seen: list[Any] | None = None) -> Any:
    async def run() -> Any:
        return await run_through(script, Wire(connection, None if seen is None else seen.append))

    return asyncio.run(run())


class Loop:
    """Runs what is awaited, where a test holds for both kinds of methods."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async
        self._runner = asyncio.Runner()

    def run(self, job: Callable[[], Awaitable[Any]]) -> Any:
        """Wait for a coroutine, or for anything else that can be awaited."""

        async def wait() -> Any:
            return await job()

        return self._runner.run(wait())

    def close(self) -> None:
        self._runner.close()


class Reader:
    """Reads either kind of stream by the same words."""

    def __init__(self, loop: Loop, stream: Any) -> None:
        self._loop, self.stream = loop, stream

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        event = self._loop.run(lambda: anext(self.stream, None)) if self._loop.is_async else next(self.stream, None)
        if event is None:
            raise StopIteration
        return event

    def texts(self) -> list[str]:
        async def read() -> list[str]:
            return [text async for text in self.stream.text]

        return self._loop.run(read) if self._loop.is_async else list(self.stream.text)

    def reply(self) -> Reply:
        return self._loop.run(self.stream.reply) if self._loop.is_async else self.stream.reply()

    @property
    def partial(self) -> Reply:
        return self.stream.partial

    def close(self) -> None:
        if self._loop.is_async:
            self._loop.run(self.stream.aclose)
        else:
            self.stream.close()
