"""Runs and their calls as `Runs` and `sabir runs` show them."""

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from sabir import Message
from sabir.authoring import Frozen, one_line

RunState: TypeAlias = Literal["queued", "running", "waiting", "paused", "cancelled", "done", "failed"]
CallState: TypeAlias = Literal["started", "waiting", "done", "failed"]


class RunSummary(Frozen):
    """One run. Times are seconds since 1970."""

    run: str
    state: RunState
    application: str
    version: str
    context: str
    name: str
    worker: str | None = None
    """The worker that has it, or had it last."""
    fault: str | None = None
    """Why it is paused."""
    waits_for: str | None = None
    """The worker that it waits for, if it does not wait for any free worker."""
    forked_from: str | None = None
    created_at: float
    updated_at: float


class CallRecord(Frozen):
    """One bound call of a run, or the answer to an option call."""

    path: str
    number: int
    kind: Literal["call", "answer"]
    name: str
    state: CallState
    request: str
    """Readable JSON."""
    messages: tuple[Message, ...] = ()
    """Its result; while it is not done, its policy's batch."""
    failure: str | None = None
    worker: str | None = None
    started_at: float
    ended_at: float | None = None


class RunDetails(Frozen):
    """One run with all its calls."""

    summary: RunSummary
    request: str
    """Readable JSON: observations, options and arguments."""
    calls: tuple[CallRecord, ...]

    def tree(self, width: int = 80) -> str:
        """The calls, each under the one that made it, at most `width` characters a line."""
        return "\n".join(
            _line(call, self.calls, width) for call in sorted(self.calls, key=lambda each: _order(each.path))
        )


def _said(message: Message) -> str:
    if message.call is not None:
        return f"→ {message.call.option_name}({one_line(message.call.arguments_json, 60)})"
    if message.result is not None:
        shown = message.result.error_message if message.result.is_error else message.text or message.result.result_json
        return f"← {one_line(shown or '', 60)}"
    return message.text or message.kind


def _line(call: CallRecord, calls: Sequence[CallRecord], width: int) -> str:
    above = sorted((other.path for other in calls if call.path.startswith(f"{other.path}/")), key=len)
    shown = call.path.removeprefix(f"{above[-1]}/") if above else call.path
    took = "" if call.ended_at is None else f" {call.ended_at - call.started_at:.2f} s"
    told = json.loads(call.failure)["message"] if call.failure else " · ".join(map(_said, call.messages))
    return one_line_kept(f"{'  ' * len(above)}{shown} {call.state}{took}", told, width)


def one_line_kept(head: str, tail: str, width: int) -> str:
    """A line with all of `head`, and as much of the rest as fits."""
    room = width - len(head) - 2
    return f"{head}  {one_line(tail, room)}" if tail and room > 8 else head


def _order(path: str) -> list[tuple[int, str]]:
    """Calls in the order of their indexes, each before its own calls."""
    parts = (part.partition(":") for part in path.split("/"))
    return [(int(index) if index.isdigit() else -1, f"{index}:{name}") for index, _, name in parts]
