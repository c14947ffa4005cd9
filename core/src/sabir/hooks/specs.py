"""The hooks that a plugin may implement: this page is their specification.

    from sabir import hookimpl

    @hookimpl
    def sabir_message_built(message): ...

Builder hooks act only on builders that were given them: `MessageBuilder(hooks=[plugin])`, or `hooks="installed"`
for the plugins of the entry-point group `sabir.hooks`. Installed plugins are also asked what a reply cost, and their
telemetry hooks see every call; these change nothing, and a telemetry hook that fails is logged and disturbs neither
the call nor the other hooks. All hooks are plain functions, not coroutines, and may take fewer arguments than are
listed here. pluggy calls them in the order of their registration; `hookimpl(tryfirst=True)` and `trylast=True` adjust
it, and `hookimpl(wrapper=True)` marks a generator that wraps all others: its `yield` gives their answers, and its
return value counts.

    sabir_call_started ──┬──────────────────────▶ sabir_call_ended       the reply is whole
         ▲               ├─▶ sabir_call_failed ─▶ sabir_call_given_up    no attempt follows
         └── another ────┼───────────┘                  ▲
             attempt     └── the caller left ───────────┘

All hooks of one call get the same number as `call`, and no other call of the process has it: one rendering may be sent
many times, also at the same time. Each call that started has exactly one end, `sabir_call_ended` or
`sabir_call_given_up`. All hooks of a call run in the thread or task of the call; those of a stream run where its next
event is asked for, or where it is closed.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

import pluggy

from sabir.vocabulary.messages import Kind, Message, RoleHint
from sabir.vocabulary.parts import MediaPart

if TYPE_CHECKING:
    from sabir.base.failures import CallError
    from sabir.contract.dialect import Rendering
    from sabir.vocabulary.reply import Reply

PROJECT = "sabir"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook of the same name."""


@hookspec(firstresult=True)
def sabir_default_role_hint(policy: str, kind: Kind) -> RoleHint | None:
    """The role hint of a message whose builder was given none; the first answer that is not None counts.

    `policy` is the message's policy, `kind` its kind: "parts", "option_call" or "option_result".
    """


@hookspec(firstresult=True)
def sabir_media_id(part: MediaPart, index: int) -> str | None:
    """The id of a media part that was given none; the first answer that is not None counts.

    `index` counts the builder's media from 1. Equal inputs in equal order should give equal ids.
    """


@hookspec
def sabir_message_built(message: Message) -> Message | None:
    """See a message before its builder returns it: return a changed message, None to leave it, or raise to veto it.

    Each plugin sees the message as the plugin before it changed it. A plugin's exception reaches the builder's caller.
    A changed message keeps its kind, and a call or result its invocation id. A wrapper's `yield` gives the list of
    changed messages, of which the last counts.
    """


@hookspec(firstresult=True)
def sabir_reply_cost(reply: "Reply") -> Decimal | None:
    """What a reply cost, in US dollars, None if it is not known; the first answer that is not None counts."""


@hookspec
def sabir_call_started(rendering: "Rendering", attempt: int, call: int) -> None:
    """A request is about to be sent; `attempt` counts from 1, and is greater when the call is retried."""


@hookspec
def sabir_call_ended(rendering: "Rendering", reply: "Reply", call: int) -> None:
    """A call ended with a whole reply."""


@hookspec
def sabir_call_failed(rendering: "Rendering", error: "CallError", attempt: int, call: int) -> None:
    """An attempt failed; another may follow."""


@hookspec
def sabir_call_given_up(rendering: "Rendering", error: BaseException | None, call: int) -> None:
    """A call ended without a reply.

    `error` is the error that the caller gets: the last attempt's, or any other exception. It is None where the caller
    left: a stream was closed before its end, or the call was cancelled.
    """
