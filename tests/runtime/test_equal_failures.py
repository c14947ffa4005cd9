"""What a policy raises reaches its caller alike under every runner (RN-21, RN-31)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from sabir import OptionFailed
from sabir.errors import RateLimited
from sabir_runtime import BaseContext, BaseRunner, Batch, PolicyFailed, PolicyInvalid

from tests.runtime.every_runner import RUNNERS
from tests.runtime.support import Names
from tests.servers.postgres import postgres
from tests.servers.shared_nats import nats

__all__ = ["nats", "postgres"]


class Overheated(Exception):
    retryable = True


class Missing(KeyError):
    """One that says something by its base."""


def raises(error: BaseException, cause: BaseException | None = None) -> Callable[[], None]:
    """What raises that."""

    def run() -> None:
        raise error from cause

    return run


async def wait_for_what_is_cancelled() -> None:
    """Wait for a task that somebody cancelled, while nobody cancels the policy."""
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


RAISED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "builtin": (raises(LookupError("no disk")), LookupError, "no disk"),
    "file": (raises(FileNotFoundError(2, "No such file")), OSError, "[Errno 2] No such file"),
    "decoding": (lambda: b"\xff".decode(), UnicodeDecodeError, "'utf-8' codec can't decode byte 0xff in position 0: "
        "invalid start byte"),
    "own": (raises(Overheated("too hot")), PolicyFailed, "Overheated: too hot"),
    "derived": (raises(Missing("x")), KeyError, "Missing: 'x'"),
    "sabir's": (raises(RateLimited("slow down", provider="acme")), PolicyFailed, "RateLimited: slow down"),
    "own words": (raises(OptionFailed("quota", "try tomorrow")), PolicyFailed, "quota: try tomorrow"),
    "no batch": (lambda: 3, PolicyInvalid, "policy 'fail' returned a int, not a list of messages; return a list of "
        "messages, for example list(reply.messages)"),
    "cancelled": (wait_for_what_is_cancelled, PolicyFailed, "CancelledError: the policy awaited a task that was "
        "cancelled"),
    "exit": (raises(SystemExit(3)), PolicyFailed, "SystemExit: the policy raised SystemExit(3)"),
    "half a character": (raises(Overheated("\ud800")), PolicyFailed, "Overheated: \\ud800"),
}  # fmt: skip


async def fail(ctx: BaseContext, observations: Batch, options: Names = None, *, how: str) -> Batch:
    made: Any = RAISED[how][0]()
    return await made if asyncio.iscoroutine(made) else made  # type: ignore[no-any-return]


async def chain(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    try:
        raises(OSError("disk gone"), Overheated("too hot"))()
    except OSError as error:
        raise LookupError("no page") from error
    return []


async def group(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    cause = ValueError("bad")
    try:
        raises(Overheated("too hot"), cause)()
    except Overheated as error:
        raise ExceptionGroup("both", [error, LookupError("no page")]) from None
    return []


async def ask(ctx: Any, observations: Batch, options: Names = None) -> Batch:
    try:
        return await ctx.fail([], how="builtin")  # type: ignore[no-any-return]
    except LookupError as error:
        assert isinstance(error, PolicyFailed)
        return [sabir.assistant(f"caught {error}")]


async def press(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    raise KeyboardInterrupt


class Desk(BaseContext):
    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.fail, self.chain, self.group, self.ask = map(self._bind, (fail, chain, group, ask))
        self.press = self._bind(press)


@pytest.mark.parametrize("runner", RUNNERS)
async def test_an_error_is_of_the_same_class_and_words(runner: str, request: pytest.FixtureRequest) -> None:
    """A class of Python's own is itself, and PolicyFailed; any other is PolicyFailed, and named in its text.

    RN-31: causes and members of groups are kept: `except*` and `__cause__` work as they do where the policy runs.
    """
    async with RUNNERS[runner](request, Desk) as made:
        ctx = Desk(made)
        for how, (_, kind, text) in RAISED.items():
            with pytest.raises(kind) as raised:
                await ctx.fail([], how=how)
            assert isinstance(raised.value, PolicyFailed)
            assert (how, str(raised.value)) == (how, text)
            assert raised.value.retryable == (how in ("own", "sabir's", "half a character"))
        assert (await ctx.ask([]))[0].text == "caught no disk"
        with pytest.raises(LookupError, match=r"^no page$") as chained:
            await ctx.chain([])
        with pytest.raises(PolicyFailed) as grouped:
            await ctx.group([])
        if runner == "memory":  # Ctrl-C while a policy runs here ends the program, and is no failure of the policy's
            with pytest.raises(KeyboardInterrupt):
                await ctx.press([])

    cause, both = chained.value.__cause__, grouped.value
    assert isinstance(cause, OSError)
    assert (str(cause), str(cause.__cause__)) == ("disk gone", "Overheated: too hot")
    assert isinstance(both, ExceptionGroup)
    own, page = both.exceptions
    assert (both.message, str(own), str(page), str(own.__cause__)) == ("both", "Overheated: too hot", "no page", "bad")
    assert isinstance(page, LookupError)
