"""Answers that are broken in one way each: what a connection gives back, sync or async, in the way of the class's name.

Answer   the end of the body, and what reading it raises, for a subclass to change in both ways at once
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from tests.testing.harness import Delegate

EVENTS = "text/event-stream"


class Answer(Delegate):
    """An answer, sync or async, whose chunks or whose closing are other ones."""

    def at_end(self, body: bytes) -> None:
        pass

    def raised(self, error: Exception) -> Exception:
        return error

    def chunks(self) -> Any:
        return self.waiting() if hasattr(self.base, "close") else self.awaited()

    def waiting(self) -> Iterator[bytes]:
        body = b""
        try:
            for chunk in self.base.chunks():
                body += chunk
                yield chunk
        except Exception as error:
            raise self.raised(error) from error
        self.at_end(body)

    async def awaited(self) -> AsyncIterator[bytes]:
        body = b""
        try:
            async for chunk in self.base.chunks():
                body += chunk
                yield chunk
        except Exception as error:
            raise self.raised(error) from error
        self.at_end(body)


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


class Unclosed(Answer):
    def __init__(self, base: Any) -> None:
        super().__init__(base)
        if hasattr(base, "close"):
            self.close = lambda: None
        else:
            self.aclose = self.nothing

    async def nothing(self) -> None:
        pass


class ClosedOnce(Answer):
    def __init__(self, base: Any) -> None:
        super().__init__(base)
        self.is_closed = False
        if hasattr(base, "close"):
            self.close = self.close_once
        else:
            self.aclose = self.aclose_once

    def check(self) -> None:
        if self.is_closed:
            raise RuntimeError("this answer is closed")
        self.is_closed = True

    def close_once(self) -> None:
        self.check()
        self.base.close()

    async def aclose_once(self) -> None:
        self.check()
        await self.base.aclose()


class Raw(Answer):
    """Gives a body as it was packed."""

    def chunks(self) -> Any:
        if self.base.headers.get("content-encoding") != "gzip":
            return self.base.chunks()
        response = self.base._response
        return response.iter_raw() if hasattr(self.base, "close") else response.aiter_raw()


class Uncancelled(Answer):
    """Takes a cancellation for the end of the body."""

    async def awaited(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.base.chunks():
                yield chunk
        except asyncio.CancelledError:
            return


class WantsWholeJSON(Answer):
    def at_end(self, body: bytes) -> None:
        if self.base.headers.get("content-type") == "application/json" and body:
            try:
                json.loads(body)
            except ValueError as error:
                raise RuntimeError(f"no JSON: {error}") from error


class WantsABody(Answer):
    def at_end(self, body: bytes) -> None:
        if not body:
            raise RuntimeError("there is no body")


class WantsJSON(Answer):
    def at_end(self, body: bytes) -> None:
        if self.base.headers.get("content-type") == "text/html":
            raise RuntimeError("no JSON")


class LeaksTheEnd(Answer):
    """Lets through what the client raises where a body that is no stream breaks off."""

    def raised(self, error: Exception) -> Exception:
        is_stream = self.base.headers.get("content-type") == EVENTS
        return RuntimeError("the end") if isinstance(error, httpx2.RemoteProtocolError) and not is_stream else error


class LeaksTheStreamsEnd(Answer):
    def raised(self, error: Exception) -> Exception:
        is_stream = self.base.headers.get("content-type") == EVENTS
        return RuntimeError("the end") if isinstance(error, httpx2.RemoteProtocolError) and is_stream else error


class LeaksDecoding(Answer):
    def raised(self, error: Exception) -> Exception:
        return RuntimeError("no gzip") if isinstance(error, httpx2.DecodingError) else error
