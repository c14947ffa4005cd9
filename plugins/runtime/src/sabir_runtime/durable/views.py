"""Runs and their calls, as `Runs` returns them and `sabir runs` prints them."""

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from sabir import Message
from sabir.authoring import Frozen, one_line

RunState: TypeAlias = Literal["queued", "running", "waiting", "paused", "cancelled", "done", "failed"]
"""The state of a run. A "queued" run waits for a worker, a "waiting" run for a person's decision. A "done" run has a
result, and a "failed" run ended with an error, usually of its policy. "paused" and "cancelled" runs can be resumed."""
CallState: TypeAlias = Literal["started", "waiting", "done", "failed"]
"""The state of one call in a run. A "started" call has no result yet, and a "waiting" call waits for a person's
decision. A "done" call has a result, and a "failed" call an error."""


class RunSummary(Frozen):
    """One run, without its calls. Returned by `Runs.list` and `Runs.summary`. Times are seconds since 1970.

    `run` is the run's name. `application` and `version` are those of the workers that may perform the run. `context` is
    the stored name of the context, and `name` the name of the bound policy that the run calls. `created_at` is when the
    run was stored, and `updated_at` when DBOS last changed its state, or else `created_at`. The beginning and the end
    of the state "waiting" do not count.
    """

    run: str
    state: RunState
    application: str
    version: str
    context: str
    name: str
    worker: str | None = None
    """The id of the worker that took the run last, or that stored it to perform it; None if there is none yet."""
    fault: str | None = None
    """The reason why the run is paused; None if the run is not paused, or was paused without a reason."""
    waits_for: str | None = None
    """What the run waits for before a worker can perform it, as text: "a worker of version '2' (none is running)", or
    "worker W, which has not released the run yet". None if it waits for neither."""
    forked_from: str | None = None
    """The name of the run that this run was forked from, with " at " and the path if one was given; else None."""
    created_at: float
    updated_at: float


class CallRecord(Frozen):
    """One call of a bound policy in a run (`kind` "call"), or the answer to an option call (`kind` "answer").

    `path` identifies the call in its run, for example "0:main/1:llm". `number` grows in the order in which the
    calls began or their answers were stored. `name` names the bound policy or option, and `worker` is the id of the
    worker that stored the record last. Times are seconds since 1970; `ended_at` is None while the call has no result or
    error.
    """

    path: str
    number: int
    kind: Literal["call", "answer"]
    name: str
    state: CallState
    request: str
    """As readable JSON: for a "call", the number of its observations, the last observation, the options and arguments;
    for an "answer", the option call."""
    messages: tuple[Message, ...] = ()
    """For a "call", the policy's batch, followed by the results of its option calls. Before the call is done, the batch
    alone, or () without a batch. For an "answer", the result of the option call."""
    failure: str | None = None
    """The error of a failed call as JSON text, with `type`, `message` and further fields; else None."""
    worker: str | None = None
    started_at: float
    ended_at: float | None = None


class RunDetails(Frozen):
    """One run with all its calls so far. Returned by `Runs.show`."""

    summary: RunSummary
    request: str
    """The run's observations, options and arguments, as readable JSON."""
    calls: tuple[CallRecord, ...]

    def tree(self, width: int = 80) -> str:
        """Return the calls as an indented tree: each call below its caller, one line for each call.

        A line has at most `width` characters, unless its indentation, path, state and duration are longer.
        """
        return "\n".join(
            _format_call(call, self.calls, width)
            for call in sorted(self.calls, key=lambda each: _path_sort_key(each.path))
        )


def _format_message(message: Message) -> str:
    if message.call is not None:
        return f"→ {message.call.option_name}({one_line(message.call.arguments_json, 60)})"
    if message.result is not None:
        text = message.result.error_message if message.result.is_error else message.text or message.result.result_json
        return f"← {one_line(text or '', 60)}"
    return message.text or message.kind


def _format_call(call: CallRecord, calls: Sequence[CallRecord], width: int) -> str:
    above = sorted((other.path for other in calls if call.path.startswith(f"{other.path}/")), key=len)
    path = call.path.removeprefix(f"{above[-1]}/") if above else call.path
    duration = "" if call.ended_at is None else f" {call.ended_at - call.started_at:.2f} s"
    text = json.loads(call.failure)["message"] if call.failure else " · ".join(map(_format_message, call.messages))
    return one_line_kept(f"{'  ' * len(above)}{path} {call.state}{duration}", text, width)


def one_line_kept(head: str, tail: str, width: int) -> str:
    """Return a line with all of `head`. If 9 or more of `width` characters are left, add what fits of `tail`."""
    room = width - len(head) - 2
    return f"{head}  {one_line(tail, room)}" if tail and room > 8 else head


def _path_sort_key(path: str) -> list[tuple[int, str]]:
    """Return a sort key: calls in the order of their indexes, each call before the calls that it makes."""
    parts = (part.partition(":") for part in path.split("/"))
    return [(int(index) if index.isdigit() else -1, f"{index}:{name}") for index, _, name in parts]
