"""The hooks that a plugin may implement.

    from sabir import hookimpl

    @hookimpl
    def sabir_message_built(message): ...

Builder hooks are called only for builders that list them: `MessageBuilder(hooks=[plugin])`, or `hooks="installed"` for
the plugins of the entry-point group `sabir.hooks`. The telemetry hooks of installed plugins are called for all calls of
adapters (`sabir_call_…`), except token counts, and for the work of agents and options (`sabir_work_…`). The cost hook
of installed plugins is called when a program or another package asks for the cost of a reply. A telemetry hook changes
nothing, and an exception in such a hook is only logged. All hooks are plain functions, not coroutines, and may accept
fewer arguments than are listed here. pluggy calls the hooks in the order of their registration;
`hookimpl(tryfirst=True)` and `trylast=True` adjust the order. Wrappers (`hookimpl(wrapper=True)`) are refused.

    sabir_call_started ──┬──────────────────────▶ sabir_call_ended       the reply is complete
         ▲               ├─▶ sabir_call_failed ─▶ sabir_call_given_up    no attempt follows
         └── another ────┼───────────┘                  ▲
             attempt     └── the caller left ───────────┘

All hooks of one call receive the same number as `call`. The number is unique in the process, because one rendering may
be sent many times, also at the same time. Each call that started ends exactly once, with `sabir_call_ended` or
`sabir_call_given_up`. All hooks of a call run in the thread or task of the call; the hooks of a stream run where the
next event is read, or where the stream is closed.

    sabir_work_started ─▶ calls and works that belong to it ─▶ sabir_work_ended      an agent, an option or a workflow

Both hooks of a work receive the same AgentWork object, in the same thread or task and with the same context variables.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

import pluggy

from sabir.vocabulary.messages import Kind, Message, RoleHint
from sabir.vocabulary.parts import MediaPart

if TYPE_CHECKING:
    from sabir.base.failures import CallError
    from sabir.contract.dialect import Rendering
    from sabir.hooks.work import AgentWork
    from sabir.vocabulary.reply import Reply

PROJECT = "sabir"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook of the same name.

`hookimpl(tryfirst=True)` and `trylast=True` set the order; see https://pluggy.readthedocs.io.
"""


@hookspec(firstresult=True)
def sabir_default_role_hint(policy: str, kind: Kind) -> RoleHint | None:
    """Return the role hint of a message whose builder received none, or None for no opinion.

    The first result that is not None is used. `policy` is the message's policy. `kind` is "parts", "option_call" or
    "option_result". Called only for builders that have hooks.
    """


@hookspec(firstresult=True)
def sabir_media_id(part: MediaPart, index: int) -> str | None:
    """Return the id of a media part that a builder received without an id, or None for no opinion.

    The first result that is not None is used; otherwise the id is "media-1", "media-2" and so on. `index` counts the
    builder's media from 1. The same calls in the same order should return the same ids.
    """


@hookspec
def sabir_message_built(message: Message) -> Message | None:
    """Return a changed message, or None to leave the message unchanged; raise an exception to reject the message.

    Called before a builder returns a message. Each plugin receives the message as the plugins before changed it. An
    exception reaches the caller of the builder. A changed message must keep its kind, and a call or result its
    invocation id.
    """


@hookspec(firstresult=True)
def sabir_reply_cost(reply: "Reply") -> Decimal | None:
    """Return the price of a reply in US dollars, 0 or more, or None if unknown. The first result that is not None is
    used.

    If the hook fails or returns another value, the cost is unknown, which is logged.
    """


@hookspec
def sabir_call_started(rendering: "Rendering", attempt: int, call: int) -> None:
    """Called before a request is sent. `attempt` counts the requests of a call from 1; a retry has the next number.

    `call` is a number that all hooks of one call receive, and no other call of the process.
    """


@hookspec
def sabir_call_answered(
    rendering: "Rendering", status: int, headers: Mapping[str, str], attempt: int, call: int
) -> None:
    """Called when the headers of a response have arrived, for every status, before the body is read.

    `headers` are the response's headers with names in lower case. `attempt` and `call` are the numbers from
    sabir_call_started.
    """


@hookspec
def sabir_call_ended(rendering: "Rendering", reply: "Reply", call: int) -> None:
    """Called when a call ended with a complete reply. `call` is the number from sabir_call_started."""


@hookspec
def sabir_call_failed(rendering: "Rendering", error: "CallError", attempt: int, call: int) -> None:
    """Called when an attempt of a call failed with `error`. Another attempt follows if the error is retryable, and
    `Settings.retries` and the time limits of the call allow it.

    `attempt` and `call` are the numbers from sabir_call_started.
    """


@hookspec
def sabir_call_given_up(rendering: "Rendering", error: BaseException | None, call: int) -> None:
    """Called when a call ended without a complete reply. Each call ends with this hook or with sabir_call_ended.

    `error` is the exception that the caller gets. None means that the caller left: a stream was closed before its end,
    or the call was cancelled or interrupted. `call` is the number from sabir_call_started.
    """


@hookspec
def sabir_work_started(work: "AgentWork") -> None:
    """Called before an agent, an option or a workflow begins to work.

    If `work.headers` is not None, another process requested the work with these headers. Otherwise the work belongs to
    the work in which it begins, if there is one. A change of context variables holds for the calls and works inside.
    """


@hookspec
def sabir_work_ended(work: "AgentWork", error: BaseException | None) -> None:
    """Called when a work ended, with the same object as `sabir_work_started`.

    `error` is the exception that ended the work, also a cancellation or GeneratorExit, or None. For an option, the
    result is in `work.option_result`; the result of an option that failed is an error result, and `error` is None.
    """


@hookspec
def sabir_work_requested(headers: dict[str, str]) -> None:
    """Called before a work is requested from another process. Add to `headers` what that process needs to continue the
    present work; its `sabir_work_started` finds them in `work.headers`. A runner may store them with the request.
    """
