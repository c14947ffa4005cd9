"""Connections that are functions: of this process, and over an SDK that only waits, to a real server."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from socket import SHUT_RDWR

import pytest
from sabir.authoring.providers import InProcessConnection, InProcessResponse, SyncOnlyConnection
from sabir.contract.provider import Connection, WireRequest
from sabir.errors import CallError, ConnectionFailed, SabirError
from sabir_testing.loopback import PATIENCE, Server, Step, head, whole

REQUEST = WireRequest("/echo", b"hello")


def serve(request: WireRequest) -> InProcessResponse:
    if not request.body:
        raise ValueError("nothing to say")
    return InProcessResponse(200, [request.body, b"!"], {"x-request-id": "7"})


def test_the_functions_answer_is_the_response() -> None:
    connection: Connection = InProcessConnection(serve)
    connection.close()
    asyncio.run(connection.aclose())
    response = connection.open_sync(REQUEST)

    async def read() -> tuple[int, list[bytes]]:
        answer = await connection.open(REQUEST)
        chunks = [chunk async for chunk in answer.chunks()]
        await answer.aclose()
        return answer.status, chunks

    assert (response.status, dict(response.headers)) == (200, {"x-request-id": "7"})
    assert list(response.chunks()) == [b"hello", b"!"]
    response.close()
    assert asyncio.run(read()) == (200, [b"hello", b"!"])
    with pytest.raises(ValueError, match="nothing to say") as caught:
        connection.open_sync(WireRequest("/echo", b""))
    assert connection.translate(caught.value) is None


class Call:
    """One request by the standard library's client, which only waits; it says when a thread came out of it."""

    def __init__(self, url: str, request: WireRequest) -> None:
        self.http = HTTPConnection(url.removeprefix("http://"))
        self.http.auto_open = False
        self.request = request
        self.came_out = threading.Event()
        self.closed = threading.Event()
        self.status, self.headers = 0, {"x-sdk": "http.client"}

    def open(self) -> "Call":
        try:
            self.http.connect()
            self.socket = self.http.sock
            self.http.request("POST", self.request.path, self.request.body)
            self.answer = self.http.getresponse()
            self.status = self.answer.status
        except BaseException:
            self.http.close()
            raise
        finally:
            self.came_out.set()
        return self

    def chunks(self) -> Iterator[bytes]:
        self.came_out.clear()
        try:
            while chunk := self.answer.read1():
                yield chunk
        finally:
            self.came_out.set()

    def hang_up(self) -> None:
        with suppress(AttributeError, OSError):
            self.socket.shutdown(SHUT_RDWR)

    def close(self) -> None:
        self.answer.close()
        self.http.close()
        self.closed.set()


class Deaf(Call):
    def hang_up(self) -> None:
        """It cannot."""


class Acme:
    def __init__(self, url: str, kind: type[Call] = Call) -> None:
        self.url, self.kind = url, kind
        self.calls: list[Call] = []
        self.connection: Connection = SyncOnlyConnection(self.begin, self.translate)

    def begin(self, request: WireRequest) -> Call:
        self.calls.append(self.kind(self.url, request))
        return self.calls[-1]

    def translate(self, error: Exception) -> SabirError | None:
        return ConnectionFailed(f"acme broke off ({error})") if isinstance(error, OSError | HTTPException) else None


async def test_an_sdk_that_only_waits_serves_both_kinds_of_callers() -> None:
    rest = threading.Event()
    with Server([head(), b"one", rest, b"two"]) as server:
        connection = Acme(server.url).connection
        response = await connection.open(REQUEST)
        chunks = response.chunks()
        first = await anext(chunks)
        rest.set()
        awaited = [first, *[chunk async for chunk in chunks]]
        await response.aclose()
        waiting = connection.open_sync(REQUEST)
        waited = list(waiting.chunks())
        waiting.close()
        await connection.aclose()
        connection.close()

    assert (response.status, dict(response.headers)) == (200, {"x-sdk": "http.client"})
    assert (awaited, b"".join(waited)) == ([b"one", b"two"], b"onetwo")
    assert [asked.body for asked in server.requests] == [b"hello", b"hello"]


@pytest.mark.parametrize("said", [[], [head(), b"one"]], ids=["while it opens", "while it reads"])
async def test_who_cancels_hangs_up_and_the_thread_comes_out(said: list[Step]) -> None:
    with Server([*said, threading.Event()]) as server:
        acme = Acme(server.url)

        async def ask() -> None:
            response = await acme.connection.open(REQUEST)
            try:
                async for _ in response.chunks():
                    reading.set()
            finally:
                await response.aclose()

        reading = asyncio.Event()
        task = asyncio.create_task(ask())
        await (reading.wait() if said else asyncio.to_thread(server.arrived.wait, PATIENCE))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.closed.wait, PATIENCE)
        assert await asyncio.to_thread(acme.calls[0].came_out.wait, PATIENCE)


async def test_an_answer_that_nobody_waits_for_any_more_is_closed() -> None:
    late = threading.Event()
    with Server([late, whole(b"{}")]) as server:
        acme = Acme(server.url, Deaf)
        task = asyncio.create_task(acme.connection.open(REQUEST))
        await asyncio.to_thread(server.arrived.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not acme.calls[0].closed.is_set()
        late.set()
        assert await asyncio.to_thread(acme.calls[0].closed.wait, PATIENCE)


async def test_what_the_sdk_raises_in_a_thread_is_translated() -> None:
    with Server([]) as server:
        connection = Acme(server.url).connection
        with pytest.raises(HTTPException) as caught:
            await connection.open(REQUEST)

    assert isinstance(connection.translate(caught.value), CallError)
    assert connection.translate(KeyError("mine")) is None
