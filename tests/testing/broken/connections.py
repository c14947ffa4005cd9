"""Connections that are broken in one way each: acme's, in the way that the name of the class says.

    Line                          what is sent, what is answered, what is raised, for a subclass to change
    Told(connection, way, kind)   acme's connection whose answers are of that kind (see `answers`)

A fault in `open_sync` is no fault in `open`: most take the way in which they are broken, "waiting" or "async".
"""

import asyncio
import atexit
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock
from urllib.request import urlopen

import httpx2
from sabir.contract.provider import WireRequest
from sabir.errors import ConnectionFailed, CredentialsMissing

from tests.testing.broken.answers import Answer
from tests.testing.harness import Delegate


class Line(Delegate):
    """A connection of which a way, or both, is broken: what is sent, what is answered, or what is raised."""

    def __init__(self, base: Any, way: str) -> None:
        super().__init__(base)
        self.way = way

    def sent(self, request: WireRequest) -> WireRequest:
        return request

    def told(self, answer: Any) -> Any:
        return answer

    def raised(self, error: Exception) -> Exception:
        return error

    def open_sync(self, request: WireRequest) -> Any:
        if "waiting" not in self.way:
            return self.base.open_sync(request)
        try:
            return self.told(self.base.open_sync(self.sent(request)))
        except Exception as error:
            raise self.raised(error) from error

    async def open(self, request: WireRequest) -> Any:
        if "async" not in self.way:
            return await self.base.open(request)
        try:
            return self.told(await self.base.open(self.sent(request)))
        except Exception as error:
            raise self.raised(error) from error


# What is sent


class Rewritten(Line):
    def sent(self, request: WireRequest) -> WireRequest:
        return replace(request, body=json.dumps(json.loads(request.body)).encode())


class SaidToBeText(Line):
    def sent(self, request: WireRequest) -> WireRequest:
        return replace(request, headers={**request.headers, "Content-Type": "text/plain"})


class WithoutTheGivenKey(Line):
    def sent(self, request: WireRequest) -> WireRequest:
        is_given = bool(self.base._key and self.base._key._given)
        return replace(request, headers={**request.headers, "Authorization": "none"}) if is_given else request


class FirstOfAList(Line):
    """Takes a header's value for a list."""

    def sent(self, request: WireRequest) -> WireRequest:
        return replace(request, headers={name: value.partition(",")[0] for name, value in request.headers.items()})


class RepeatsAtOnce(Line):
    """Repeats a request itself, where the refusal says that it need not wait."""

    def __init__(self, base: Any, way: str, status: int) -> None:
        super().__init__(base, way)
        self.status = status

    def is_repeated(self, answer: Any) -> bool:
        return bool(answer.status == self.status and answer.headers.get("retry-after") == "0")

    def open_sync(self, request: WireRequest) -> Any:
        answer = self.base.open_sync(request)
        if self.way == "waiting" and self.is_repeated(answer):
            answer.close()
            answer = self.base.open_sync(request)
        return answer

    async def open(self, request: WireRequest) -> Any:
        answer = await self.base.open(request)
        if self.way == "async" and self.is_repeated(answer):
            await answer.aclose()
            answer = await self.base.open(request)
        return answer


class Follows(Line):
    """Goes where a redirect of one status leads."""

    def __init__(self, base: Any, way: str, status: int) -> None:
        super().__init__(base, way)
        self.status = status

    def told(self, answer: Any) -> Any:
        if answer.status == self.status and "location" in answer.headers:
            urlopen(answer.headers["location"], b"{}").close()
        return answer


class OfOneThread(Line):
    def __init__(self, base: Any) -> None:
        super().__init__(base, "waiting")
        self.thread = threading.get_ident()

    def sent(self, request: WireRequest) -> WireRequest:
        if threading.get_ident() != self.thread:
            raise RuntimeError("a connection can only be used in the thread that made it")
        return request


class OfOneLoop(Line):
    def __init__(self, base: Any) -> None:
        super().__init__(base, "async")
        self.loop: asyncio.AbstractEventLoop | None = None

    def sent(self, request: WireRequest) -> WireRequest:
        here = asyncio.get_running_loop()
        self.loop = self.loop or here
        if self.loop is not here:
            raise RuntimeError("a connection is attached to a different event loop")
        return request


class Shielded(Delegate):
    """Goes on sending when it is cancelled."""

    async def open(self, request: WireRequest) -> Any:
        return await asyncio.shield(asyncio.ensure_future(self.base.open(request)))


# What is answered


class Titled(Line):
    """Leaves the names of a vendor's own headers as they came."""

    def told(self, answer: Any) -> Any:
        answer.headers = {
            name.title() if name.startswith("x-") else name: value for name, value in answer.headers.items()
        }
        return answer


class Peeking(Line):
    """Waits for the first chunk before it returns."""

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


class Told(Line):
    """Answers are of another class."""

    def __init__(self, base: Any, way: str, kind: type[Answer]) -> None:
        super().__init__(base, way)
        self.kind = kind

    def told(self, answer: Any) -> Any:
        return self.kind(answer)


class Leaks(Line):
    """Lets through what the client raises of one kind, as something that `translate` does not know."""

    def __init__(self, base: Any, way: str, kind: type[Exception]) -> None:
        super().__init__(base, way)
        self.kind = kind

    def raised(self, error: Exception) -> Exception:
        return RuntimeError(f"the client says {type(error).__name__}") if isinstance(error, self.kind) else error


class ShowsTheKey(Line):
    def raised(self, error: Exception) -> Exception:
        if not isinstance(error, httpx2.ConnectError):
            return error
        return ConnectionFailed(f"acme cannot be reached with the key {self.base._key.text()}")


class MisnamesTheKey(Line):
    def raised(self, error: Exception) -> Exception:
        if not isinstance(error, CredentialsMissing) or "no key" not in str(error):
            return error
        return CredentialsMissing("acme has no key")


# How it is closed


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


class ClosesOnce(Line):
    """Objects to being closed a second time, by the same way and in the same loop."""

    def __init__(self, base: Any, way: str) -> None:
        super().__init__(base, way)
        self.closed: list[object] = []

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
