"""Announce the work of agents, options and workflows to the telemetry hooks of installed plugins.

    with announce_work(Work("agent", "assistant")):      sabir_work_started ─▶ the block ─▶ sabir_work_ended
        …                                                calls of models and further works in the block belong to it

    here     work_headers() ──with the request──▶ with continue_work(headers): announce_work(…)     in another process

All packages that run agents announce their work here, so that a telemetry plugin sees one tree, whoever runs what. A
hook may change context variables when a work begins, and restores them when the work ends, so a work begins and ends in
the same thread or task.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from sabir.hooks.plugins import installed_hooks
from sabir.vocabulary.messages import Message

_received: ContextVar[Mapping[str, str] | None] = ContextVar("sabir.work_headers", default=None)
"""The headers of the process that requested the next work; None if that work was requested in this process."""


@dataclass(eq=False, slots=True)
class Work:
    """A piece of work for `announce_work`, which telemetry hooks receive.

    `kind` is "agent" for an answered question or a policy, "option" for the run of an option, and "workflow" for a
    chain of agents. `name` is the name of the agent, option or workflow; "" if it has none. `conversation_id` is the
    same for all works of a conversation, thread or run, also in other processes; "" means unknown. `call` is the option
    call that an option answers. `is_remote` is True if another process does the work.

    The block of `announce_work` sets `result` to an option's result, and `is_waiting` to True if an exception ends the
    block because the work waits for a person. `headers` are the headers that `continue_work` received, and {} if it
    received none; None means that the work was requested in this process.
    """

    kind: Literal["agent", "option", "workflow"]
    name: str = ""
    conversation_id: str = ""
    call: Message | None = None
    is_remote: bool = False
    result: Message | None = field(default=None, init=False)
    is_waiting: bool = field(default=False, init=False)
    headers: Mapping[str, str] | None = field(default=None, init=False)


@contextmanager
def announce_work(work: Work) -> Iterator[Work]:
    """Return a context manager that calls the telemetry hooks when its block begins and ends, and yields the work.

    Exceptions of the block are passed to the hooks, and raised unchanged.

    >>> from sabir.authoring import Work, announce_work
    >>> with announce_work(Work("agent", "assistant")) as work:
    ...     work.name
    'assistant'
    """
    hooks = installed_hooks()
    work.headers = _received.get()
    token = _received.set(None)
    hooks.work_started(work)
    error: BaseException | None = None
    try:
        yield work
    except BaseException as raised:
        error = raised
        raise
    finally:
        with suppress(ValueError):  # the block ended in another context, as when a coroutine is garbage collected
            _received.reset(token)
        hooks.work_ended(work, error)


def work_headers() -> dict[str, str]:
    """Return the headers with which another process can continue the present work. {} without a telemetry plugin."""
    headers: dict[str, str] = {}
    installed_hooks().work_requested(headers)
    return headers


@contextmanager
def continue_work(headers: Mapping[str, str]) -> Iterator[None]:
    """Return a context manager in whose block the works continue the work of another process.

    `headers` are the headers that `work_headers` returned there; with {}, the works do not belong to any other work.
    """
    token = _received.set(headers)
    try:
        yield
    finally:
        _received.reset(token)
