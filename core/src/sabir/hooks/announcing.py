"""Announce the work of agents, options and workflows to the telemetry hooks of installed plugins.

    with announce_work(AgentWork("agent", "assistant")):      sabir_work_started ─▶ the block ─▶ sabir_work_ended
        …                                                calls of models and further works in the block belong to it

    here     work_headers() ──with the request──▶ with continue_work(headers): announce_work(…)     in another process

All packages that run agents announce their work here, so that a telemetry plugin sees one tree, whoever runs what. A
hook may change context variables when a work begins, and restores them when the work ends, so a work begins and ends in
the same thread or task.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from sabir.hooks.plugins import installed_hooks
from sabir.hooks.work import AgentWork
from sabir.options.execution import set_during

_received: ContextVar[Mapping[str, str] | None] = ContextVar("sabir.work_headers", default=None)
"""The headers of the process that requested the next work; None if that work was requested in this process."""


@contextmanager
def announce_work(work: AgentWork) -> Iterator[AgentWork]:
    """Return a context manager that calls the telemetry hooks when its block begins and ends, and yields the work.

    Exceptions of the block are passed to the hooks, and raised unchanged.

    >>> from sabir.authoring import AgentWork, announce_work
    >>> with announce_work(AgentWork("agent", "assistant")) as work:
    ...     work.name
    'assistant'
    """
    hooks, work.headers = installed_hooks(), _received.get()
    with nullcontext() if work.headers is None else set_during(_received, None):
        hooks.work_started(work)
        try:
            yield work
        except BaseException as error:
            hooks.work_ended(work, error)
            raise
        hooks.work_ended(work, None)


def work_headers() -> dict[str, str]:
    """Return the headers with which another process can continue the present work. {} without a telemetry plugin."""
    headers: dict[str, str] = {}
    installed_hooks().work_requested(headers)
    return headers


def continue_work(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a context manager in whose block the works continue the work of another process.

    `headers` are the headers that `work_headers` returned there; with {}, the works do not belong to any other work.
    """
    return set_during(_received, headers)
