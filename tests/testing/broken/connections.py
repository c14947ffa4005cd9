"""Connections that are broken in one way each: acme's, with something else sent, answered or raised, or left open.

    Line(connection, way, sent=…, told=…, raised=…)     what is sent, what is answered, what is raised
    Answer(answer, at_end=…, raised=…)                  what comes of the end of a body, and what reading it raises

A fault in `open_sync` is no fault in `open`: most take the way in which they are broken, "waiting" or "async".
"""

import asyncio
import atexit
import json
import select
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock
from urllib.request import urlopen

import httpx2
from sabir.contract.provider import WireRequest
from sabir.errors import ConnectionFailed, CredentialsMissing
from sabir_testing.families.transport_fixtures import STALL

from tests.testing.harness import Delegate

BLOCKED = 3
"""Seconds, more than the kit's server waits for the event loop."""


def _same(value: Any, connection: Any) -> Any:
    return value


class Line(Delegate):
    """A connection of which a way, or both, is broken; each hook is given the connection, too."""

    def __init__(
        self,
        base: Any,
        way: str,
        sent: Callable[[WireRequest, Any], WireRequest] = _same,
        told: Callable[[Any, Any], Any] = _same,
        raised: Callable[[Exception, Any], Exception] = _same,
    ) -> None:
        super().__init__(base)
        self.way, self.sent, self.told, self.raised = way, sent, told, raised

    def open_sync(self, request: WireRequest) -> Any:
        if "waiting" not in self.way:
            return self.base.open_sync(request)
        try:
            return self.told(self.base.open_sync(self.sent(request, self.base)), self.base)
        except Exception as error:
            raise self.raised(error, self.base) from error

    async def open(self, request: WireRequest) -> Any:
        if "async" not in self.way:
            return await self.base.open(request)
        try:
            return self.told(await self.base.open(self.sent(request, self.base)), self.base)
        except Exception as error:
            raise self.raised(error, self.base) from error


# --- what is sent -----------------------------------------------------------------------------------------------------


def rewritten(request: WireRequest, connection: Any) -> WireRequest:
    return replace(request, body=json.dumps(json.loads(request.body)).encode())


def said_to_be_text(request: WireRequest, connection: Any) -> WireRequest:
    return replace(request, headers={**request.headers, "Content-Type": "text/plain"})


def without_the_given_key(request: WireRequest, connection: Any) -> WireRequest:
    is_given = bool(connection._key and connection._key._passed)
    return replace(request, headers={**request.headers, "Authorization": "none"}) if is_given else request


def first_of_a_list(request: WireRequest, connection: Any) -> WireRequest:
    """Takes a header's value for a list."""
    return replace(request, headers={name: value.partition(",")[0] for name, value in request.headers.items()})


def of_one(where: Callable[[], object], way: str) -> Callable[[Any], Line]:
    """A connection that can only be used where it was used first."""

    def broken(base: Any) -> Line:
        used: list[object] = []

        def sent(request: WireRequest, connection: Any) -> WireRequest:
            used.append(where())
            if used[0] != used[-1]:
                raise RuntimeError("a connection can only be used where it was made")
            return request

        return Line(base, way, sent=sent)

    return broken


def impatient(request: WireRequest, connection: Any) -> WireRequest:
    """A request without a timeout gets one that is too short for any service."""
    return replace(request, timeout=STALL / 4) if request.timeout is None else request


class RepeatsAtOnce(Delegate):
    """Repeats a request itself, where the refusal says that it need not wait."""

    def __init__(self, base: Any, way: str, status: int) -> None:
        super().__init__(base)
        self.way, self.status = way, status

    def is_repeated(self, answer: Any, way: str) -> bool:
        return (way, answer.status, answer.headers.get("retry-after")) == (self.way, self.status, "0")

    def open_sync(self, request: WireRequest) -> Any:
        answer = self.base.open_sync(request)
        if self.is_repeated(answer, "waiting"):
            answer.close()
            answer = self.base.open_sync(request)
        return answer

    async def open(self, request: WireRequest) -> Any:
        answer = await self.base.open(request)
        if self.is_repeated(answer, "async"):
            await answer.aclose()
            answer = await self.base.open(request)
        return answer


class Shielded(Delegate):
    """Goes on sending when it is cancelled."""

    async def open(self, request: WireRequest) -> Any:
        return await asyncio.shield(asyncio.ensure_future(self.base.open(request)))


class Blocking(Delegate):
    """Blocks the event loop at a moment of the request until bytes arrive, if one other task waits there."""

    def __init__(self, base: Any, moment: str) -> None:
        super().__init__(base)
        build, sockets = base._build_request, list[Any]()

        async def trace(event: str, info: Any) -> None:
            if event == "connection.connect_tcp.complete":
                sockets.append(info["return_value"].get_extra_info("socket"))
            if event == moment and len(asyncio.all_tasks()) == 2:
                select.select(sockets[-1:], [], [], BLOCKED)

        def build_request(client: Any, request: WireRequest) -> Any:
            built = build(client, request)
            if isinstance(client, httpx2.AsyncClient):
                built.extensions = {**built.extensions, "trace": trace}
            return built

        base._build_request = build_request


class Disguised(Delegate):
    """Async in name: the sync client sends, and reads the body."""

    async def open(self, request: WireRequest) -> Any:
        return Awaitable(self.base.open_sync(request))


class Awaitable(Delegate):
    """A sync answer with the methods of an async one."""

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self.base.chunks():
            yield chunk

    async def aclose(self) -> None:
        self.base.close()


# --- what is answered -------------------------------------------------------------------------------------------------


def following(status: int) -> Callable[[Any, Any], Any]:
    """Goes where a redirect of one status leads."""

    def told(answer: Any, connection: Any) -> Any:
        if answer.status == status and "location" in answer.headers:
            urlopen(answer.headers["location"], b"{}").close()
        return answer

    return told


def titled(answer: Any, connection: Any) -> Any:
    """Leaves the names of a vendor's own headers as they came."""
    named = {name.title() if name.startswith("x-") else name: value for name, value in answer.headers.items()}
    answer.headers = named
    return answer


class Peeking(Delegate):
    """Waits for the first chunk before it returns."""

    def __init__(self, base: Any, way: str) -> None:
        super().__init__(base)
        self.way = way

    def open_sync(self, request: WireRequest) -> Any:
        answer = self.base.open_sync(request)
        if self.way == "waiting":
            chunks = answer.chunks()
            first = next(chunks, b"")
            answer.chunks = lambda: _after(first, chunks)
        return answer

    async def open(self, request: WireRequest) -> Any:
        answer = await self.base.open(request)
        if self.way == "async":
            chunks = answer.chunks()
            first = await anext(chunks, b"")
            answer.chunks = lambda: _after_awaited(first, chunks)
        return answer


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


async def _after_awaited(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


class Answer(Delegate):
    """An answer, sync or async, of whose body the end is another one, or what reading it raises."""

    def __init__(
        self,
        base: Any,
        at_end: Callable[[bytes, str], None] = lambda body, kind: None,
        raised: Callable[[Exception, str], bool] = lambda error, kind: False,
    ) -> None:
        super().__init__(base)
        self.is_waiting, self.kind = hasattr(base, "close"), base.headers.get("content-type", "")
        self.at_end, self.leaks = at_end, raised

    def chunks(self) -> Any:
        return self.waiting() if self.is_waiting else self.awaited()

    def waiting(self) -> Iterator[bytes]:
        body = b""
        try:
            for chunk in self.base.chunks():
                body += chunk
                yield chunk
        except Exception as error:
            raise self.raised(error) from error
        self.at_end(body, self.kind)

    async def awaited(self) -> AsyncIterator[bytes]:
        body = b""
        try:
            async for chunk in self.base.chunks():
                body += chunk
                yield chunk
        except Exception as error:
            raise self.raised(error) from error
        self.at_end(body, self.kind)

    def raised(self, error: Exception) -> Exception:
        return RuntimeError("something that translate() does not know") if self.leaks(error, self.kind) else error


class OneBehind(Answer):
    """Hands a chunk on when the next one has come."""

    def waiting(self) -> Iterator[bytes]:
        held = b""
        try:
            for chunk in self.base.chunks():
                if held:
                    yield held
                held = chunk
        except Exception:
            yield held
            raise
        yield held

    async def awaited(self) -> AsyncIterator[bytes]:
        held = b""
        try:
            async for chunk in self.base.chunks():
                if held:
                    yield held
                held = chunk
        except Exception:
            yield held
            raise
        yield held


class Raw(Answer):
    """Gives a body as it was packed."""

    def chunks(self) -> Any:
        if self.base.headers.get("content-encoding") != "gzip":
            return self.base.chunks()
        response = self.base._response
        return response.iter_raw() if self.is_waiting else response.aiter_raw()


class Uncancelled(Answer):
    """Takes a cancellation for the end of the body."""

    async def awaited(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.base.chunks():
                yield chunk
        except asyncio.CancelledError:
            return


class Unclosed(Answer):
    """Stays open when it is closed; with `times`, it objects to being closed more often than that."""

    def __init__(self, base: Any, times: int = 0) -> None:
        super().__init__(base)
        self.left, self.is_counted = times, bool(times)
        if self.is_waiting:
            self.close = self.close_so
        else:
            self.aclose = self.aclose_so

    def check(self) -> bool:
        self.left -= 1
        if self.is_counted and self.left < 0:
            raise RuntimeError("this answer is closed")
        return self.is_counted

    def close_so(self) -> None:
        if self.check():
            self.base.close()

    async def aclose_so(self) -> None:
        if self.check():
            await self.base.aclose()


def wants_json(body: bytes, kind: str) -> None:
    if kind == "text/html":
        raise RuntimeError("no JSON")


def wants_whole_json(body: bytes, kind: str) -> None:
    if kind == "application/json" and body:
        try:
            json.loads(body)
        except ValueError as error:
            raise RuntimeError(f"no JSON: {error}") from error


def wants_a_body(body: bytes, kind: str) -> None:
    if not body:
        raise RuntimeError("there is no body")


def is_end(error: Exception, kind: str) -> bool:
    """What the client raises where a body that is no stream breaks off."""
    return isinstance(error, httpx2.RemoteProtocolError) and kind != "text/event-stream"


def is_end_of_stream(error: Exception, kind: str) -> bool:
    return isinstance(error, httpx2.RemoteProtocolError) and kind == "text/event-stream"


def is_decoding(error: Exception, kind: str) -> bool:
    return isinstance(error, httpx2.DecodingError)


# --- what is raised ---------------------------------------------------------------------------------------------------


def leaking(kind: type[Exception]) -> Callable[[Exception, Any], Exception]:
    """Lets through what the client raises of one kind, as something that `translate` does not know."""
    return lambda error, connection: RuntimeError(type(error).__name__) if isinstance(error, kind) else error


def shows_the_key(error: Exception, connection: Any) -> Exception:
    if not isinstance(error, httpx2.ConnectError):
        return error
    return ConnectionFailed(f"acme cannot be reached with the key {connection._key.text()}")


def misnames_the_key(error: Exception, connection: Any) -> Exception:
    is_meant = isinstance(error, CredentialsMissing) and "no key" in str(error)
    return CredentialsMissing("acme has no key") if is_meant else error


# --- how it is closed -------------------------------------------------------------------------------------------------


class LeavesTheWaitingClient(Delegate):
    def close(self) -> None:
        atexit.register(self.base.close)


class LeavesTheLoopsClient(Delegate):
    """Closes when the loop ends, not when it is told to."""

    async def aclose(self) -> None:
        self.base.close()
        self.late = self.until_the_end()
        await anext(self.late)

    async def until_the_end(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.base.aclose()


class LeavesTheOther(Delegate):
    """Closes the async client alone where both are to be closed."""

    async def aclose(self) -> None:
        with mock.patch.object(self.base._clients, "close"):
            await self.base.aclose()


class ClosesOnce(Delegate):
    """Objects to being closed a second time, by the same way and in the same loop."""

    def __init__(self, base: Any, way: str) -> None:
        super().__init__(base)
        self.way, self.closed = way, list[object]()

    def check(self, way: str, loop: object = None) -> None:
        self.closed.append(loop)
        if self.way == way and self.closed.count(loop) == 2:
            raise RuntimeError("the connection is closed")

    def close(self) -> None:
        self.check("waiting")
        self.base.close()

    async def aclose(self) -> None:
        self.check("async", asyncio.get_running_loop())
        await self.base.aclose()


class ClosesTheUsers(Delegate):
    def close(self) -> None:
        if self.base.client is not None:
            self.base.client.close()
        self.base.close()


ONE_THREAD = of_one(threading.get_ident, "waiting")
ONE_LOOP = of_one(asyncio.get_running_loop, "async")
