"""The command `sabir runs`: lists and controls the durable runs of a store.

sabir runs                              the newest runs
sabir runs list --state waiting         runs that wait for a person
sabir runs show RUN                     the run's calls, as a tree
sabir runs cancel|pause|resume RUN
sabir runs fork RUN --at PATH           a new run that repeats the calls from PATH on
sabir runs delete RUN...                delete ended runs
sabir runs delete --older-than 30d      delete all runs that ended at least 30 days ago
sabir runs decide RUN PATH TEXT         store a person's answer; without TEXT, messages as JSON from standard input
sabir runs recover                      put the runs of dead workers back into the queue
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_core import to_json
from sabir import Message, loads
from sabir.authoring import printable
from sabir.errors import SettingsInvalid

from sabir_runtime.durable.views import RunDetails, RunState, RunSummary, one_line_kept
from sabir_runtime.extras import needs_extra

if TYPE_CHECKING:
    from sabir_runtime.durable.runs import Runs

Action: TypeAlias = Literal["list", "show", "cancel", "pause", "resume", "fork", "delete", "decide", "recover"]
CommandOutput: TypeAlias = Sequence[RunSummary] | RunDetails | Mapping[str, Any]
"""The output of a command: runs, one run, or a mapping such as {"deleted": names}."""
WIDTH = 80
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Unit of an age → its number of seconds, the largest unit first."""


# A command line is one flat function: its parameters are the command's arguments.
def runs(
    action: Action = "list",
    run: str = "",
    /,
    *more: str,
    store: str = "sqlite:///runs.db",
    state: RunState | None = None,
    limit: int = 20,
    at: str | None = None,
    name: str | None = None,
    for_version: str | None = None,
    older_than: str | None = None,
    json: bool = False,
) -> None:
    """List durable runs, show one run, or change its state.

    Parameters
    ----------
    action
        list, show, cancel, pause, resume, fork, delete, decide or recover.
    run
        The run's name. Not used for list and recover, and not accepted with delete --older-than.
    more
        For decide: the call's path, and a text; else standard input has messages as JSON. For delete: more names.
    store
        The database of the runs: sqlite:///file.db or postgresql://user@host/database.
    state
        For list: show only runs in this state.
    limit
        For list: the maximum number of runs.
    at
        For fork: the path of the first call that is performed again. By default all calls are performed again.
    name
        For fork: the new run's name. By default a random name.
    for_version
        For fork: the version of the workers that perform the new run. By default the original run's version.
    older_than
        For delete, instead of names: delete all runs that ended at least this long ago, such as 30d, 12h, 15m or 90s.
    json
        Print the result as JSON instead of text.
    """
    with needs_extra("durable"):
        from sabir_runtime.durable.runs import Runs, recover_store

    actions: dict[Action, Callable[[Runs], CommandOutput]] = {
        "list": lambda stored: stored.list(state=state, limit=limit),
        "show": lambda stored: stored.show(run),
        "cancel": lambda stored: _change_run(stored, stored.cancel, run),
        "pause": lambda stored: _change_run(stored, stored.pause, run),
        "resume": lambda stored: _change_run(stored, stored.resume, run),
        "fork": lambda stored: {"run": stored.fork(run, at=at, name=name, version=for_version)},
        "delete": lambda stored: {"deleted": _delete_runs(stored, [run, *more] if run else [], older_than)},
        "decide": lambda stored: _store_decision(stored, run, more),
        "recover": lambda stored: {"requeued": recover_store(store)},
    }
    _check_run_names(action, run, more)
    with Runs(store) as stored:
        output = actions[action](stored)
    # printable() escapes control characters, which a terminal would execute.
    print(printable(to_json(output, indent=2).decode() if json else "\n".join(_format_output(output))))


def _check_run_names(action: Action, run: str, more: Sequence[str]) -> None:
    """Raise SettingsInvalid if a run's name is missing, or if there are too many names."""
    if action in ("list", "delete", "recover"):
        return
    if not run:
        raise SettingsInvalid(f"`sabir runs {action}` needs the name of a run; `sabir runs list` shows them")
    if more and action != "decide":
        raise SettingsInvalid(f"`sabir runs {action}` accepts one run, not also {more[0]!r}; call it once for each run")


def _change_run(stored: "Runs", change: Callable[[str], None], run: str) -> CommandOutput:
    change(run)
    return [stored.summary(run)]


def _store_decision(stored: "Runs", run: str, more: Sequence[str]) -> CommandOutput:
    path, answer, *rest = (*more, "", "")[: max(2, len(more))]
    decision: str | list[Message] = answer or loads("" if sys.stdin.isatty() else sys.stdin.read())
    if not path or not decision or rest:
        remedy = "`sabir runs show RUN` shows the path"
        raise SettingsInvalid(
            f"`sabir runs decide RUN PATH TEXT` needs these three, or JSON on stdin for TEXT; {remedy}"
        )
    stored.decide(run, path, decision)
    return [stored.summary(run)]


def _delete_runs(stored: "Runs", names: list[str], older_than: str | None) -> list[str] | int:
    if bool(names) == (older_than is not None):
        remedy = "or use `sabir runs delete --older-than 30d`, but not both"
        raise SettingsInvalid(f"`sabir runs delete` needs the names of runs or an age; give the names, {remedy}")
    if older_than is not None:
        return stored.delete_ended(_parse_age(older_than))
    stored.delete(*names)
    return names


def _parse_age(age: str) -> float:
    number, unit = age[:-1], age[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        raise SettingsInvalid(
            f"{age!r} is not a valid age; give a whole number of days, hours, minutes or seconds: 30d, 12h, 15m, 90s"
        )
    return float(number) * _UNITS[unit]


def _format_output(output: CommandOutput) -> Iterator[str]:
    """Yield a command's output as lines for people."""
    if isinstance(output, RunDetails):
        yield from _format_details(output)
    elif isinstance(output, Mapping):
        for label, value in output.items():
            yield f"{label}: {(', '.join(value) or 'nothing') if isinstance(value, list) else value}"
    else:
        yield from map(_format_summary, output) if output else ["no runs"]


def _format_summary(summary: RunSummary) -> str:
    head = f"{summary.state:9} {_format_age(summary.updated_at):>5}  {summary.run}"
    why = f"waits for {summary.waits_for}" if summary.waits_for else summary.fault or ""
    return one_line_kept(head, f"{summary.context}.{summary.name} {why}", WIDTH)


def _format_details(details: RunDetails) -> Iterator[str]:
    summary = details.summary
    rows = {
        "run": summary.run, "state": summary.state, "calls": f"{summary.context}.{summary.name}",
        "version": f"{summary.application} {summary.version}", "worker": summary.worker, "paused": summary.fault,
        "waits": summary.waits_for and f"for {summary.waits_for}",
        "fork of": summary.forked_from,
    }  # fmt: skip
    yield from (one_line_kept(f"{label:8}", value, WIDTH) for label, value in rows.items() if value)
    yield details.tree(WIDTH)


def _format_age(moment: float) -> str:
    seconds = max(0, int(time.time() - moment))
    return next(f"{seconds // length}{unit}" for unit, length in _UNITS.items() if seconds >= length or length == 1)
