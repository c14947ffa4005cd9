"""Runs and their calls, as `Runs` returns them and `sabir runs` prints them."""

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from sabir import Message
from sabir.authoring import Frozen, one_line

RunState: TypeAlias = Literal["queued", "running", "waiting", "paused", "cancelled", "done", "failed"]
"""The state of a run. A "waiting" run waits for a person's decision; a "failed" run's policy raised an error."""
CallState: TypeAlias = Literal["started", "waiting", "done", "failed"]
"""The state of one call. A "waiting" call waits for a person's decision."""


class RunSummary(Frozen):
    """One run, without its calls. Returned by `Runs.list` and `Runs.summary`. Times are seconds since 1970.

    `context` and `name` are the stored name of the context and the name of the bound policy that the run calls.
    """

    run: str
    state: RunState
    application: str
    version: str
    context: str
    name: str
    worker: str | None = None
    """The id of the worker that performs the run or performed it last; None before the first."""
    fault: str | None = None
    """The reason why the run is paused; None if there is none."""
    waits_for: str | None = None
    """Why no worker begins the queued run yet, for example that no worker has its version; None if any worker may."""
    forked_from: str | None = None
    """The name of the run that this run was forked from, and the path; None for other runs."""
    created_at: float
    updated_at: float


class CallRecord(Frozen):
    """One call of a bound policy in a run (`kind` "call"), or the answer to an option call (`kind` "answer").

    `path` identifies the call in its run, and `number` counts the calls from 0 in the order in which they began.
    Times are seconds since 1970; `ended_at` is None while the call is not done.
    """

    path: str
    number: int
    kind: Literal["call", "answer"]
    name: str
    state: CallState
    request: str
    """The observations, options and arguments, as readable JSON."""
    messages: tuple[Message, ...] = ()
    """The call's result. While the call is not done, the batch that the policy returned, if any."""
    failure: str | None = None
    """The error of a failed call, as JSON; else None."""
    worker: str | None = None
    started_at: float
    ended_at: float | None = None


class RunDetails(Frozen):
    """One run with all its calls. Returned by `Runs.show`."""

    summary: RunSummary
    request: str
    """The run's observations, options and arguments, as readable JSON."""
    calls: tuple[CallRecord, ...]

    def tree(self, width: int = 80) -> str:
        """Return the calls as an indented tree: each call below its caller, with at most `width` characters a line."""
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
    """Return a line with all of `head`, and with as much of `tail` as fits."""
    room = width - len(head) - 2
    return f"{head}  {one_line(tail, room)}" if tail and room > 8 else head


def _order(path: str) -> list[tuple[int, str]]:
    """Return a sort key: calls in the order of their indexes, each call before the calls that it makes."""
    parts = (part.partition(":") for part in path.split("/"))
    return [(int(index) if index.isdigit() else -1, f"{index}:{name}") for index, _, name in parts]
