"""`sabir runs`: what the runs of a store are doing, and what shall become of them.

sabir runs                              the newest runs
sabir runs list --state waiting         those that wait for a person
sabir runs show RUN                     its calls, as a tree
sabir runs cancel|pause|resume RUN
sabir runs fork RUN --at PATH           a new run, anew from that call on
sabir runs delete RUN...                runs that have ended are forgotten
sabir runs delete --older-than 30d      all of them that ended so long ago
sabir runs decide RUN PATH TEXT         a person's answer; without TEXT, messages as JSON from standard input
sabir runs recover                      give back what dead workers had
"""

import json as json_text
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir import Message
from sabir.base.errors import printable
from sabir.errors import SettingsInvalid
from sabir.vocabulary.history import loads

from sabir_durable.views import RunDetails, RunState, RunSummary, one_line_kept

if TYPE_CHECKING:
    from sabir_durable.runs import Runs

Action: TypeAlias = Literal["list", "show", "cancel", "pause", "resume", "fork", "delete", "decide", "recover"]
WIDTH = 80
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Seconds in each, the largest first."""


# A command line is one flat function: its parameters are what the user can write.
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
    """List durable runs, show one, or say what shall become of it.

    Parameters
    ----------
    action
        What to do.
    run
        The run's name; needed by all but list and recover.
    more
        For decide: the call's path and the answer, or messages as JSON from standard input. For delete: further runs.
    store
        Where the runs are: sqlite:///file.db or postgresql://user@host/database.
    state
        For list: only runs in this state.
    limit
        For list: so many at most.
    at
        For fork: the call from which on the new run is performed anew.
    name
        For fork: the new run's name.
    for_version
        For fork: the version whose workers perform the new run; that of the other run unless given.
    older_than
        For delete, instead of names: all runs that ended so long ago, for example 30d, 12h, 15m or 90s.
    json
        Write JSON.
    """
    if action == "recover":
        from sabir_durable.recovery import recover_store

        _tell({"requeued": recover_store(store)}, json=json)
        return
    from sabir_durable.runs import Runs

    order = _Order(action, run, more, state, limit, at, name, for_version, older_than, json)
    order.check()
    with Runs(store) as stored:
        _ACTIONS[action](stored, order)


@dataclass(frozen=True)
class _Order:
    """What the command line says."""

    action: Action
    run: str
    more: tuple[str, ...]
    state: RunState | None
    limit: int
    at: str | None
    name: str | None
    for_version: str | None
    older_than: str | None
    json: bool

    def check(self) -> None:
        """Refuse names of runs that are missing, or too many."""
        if self.action in ("list", "delete"):
            return
        if not self.run:
            raise SettingsInvalid(f"`sabir runs {self.action}` needs the name of a run; `sabir runs list` shows them")
        if self.more and self.action != "decide":
            remedy = "call it once for each"
            raise SettingsInvalid(f"`sabir runs {self.action}` takes one run, not {self.more[0]!r} too; {remedy}")


def _delete(stored: "Runs", order: _Order) -> None:
    names = [order.run, *order.more] if order.run else []
    deleted: list[str] | int = names
    if bool(names) == (order.older_than is not None):
        remedy = "or `sabir runs delete --older-than 30d`, for all that ended so long ago"
        raise SettingsInvalid(f"`sabir runs delete RUN...` needs the names of runs, {remedy}")
    if order.older_than is None:
        stored.delete(*names)
    else:
        deleted = stored.delete_ended(_seconds(order.older_than))
    _tell({"deleted": deleted}, json=order.json)


def _seconds(age: str) -> float:
    number, unit = age[:-1], age[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        raise SettingsInvalid(
            f"{age!r} is no age; give a number of days, hours, minutes or seconds: 30d, 12h, 15m, 90s"
        )
    return float(number) * _UNITS[unit]


def _steer(stored: "Runs", order: _Order) -> None:
    steps: dict[str, Callable[[str], None]] = {
        "cancel": stored.cancel,
        "pause": stored.pause,
        "resume": stored.resume,
    }
    steps[order.action](order.run)
    _list([stored.summary(order.run)], json=order.json)


def _decide(stored: "Runs", order: _Order) -> None:
    path, answer, *rest = (*order.more, "", "")[: max(2, len(order.more))]
    said: str | list[Message] = answer
    if not answer:
        said = loads("" if sys.stdin.isatty() else sys.stdin.read())
    if not path or not said or rest:
        raise SettingsInvalid("`sabir runs decide RUN PATH TEXT` needs all three; `sabir runs show RUN` names the path")
    stored.decide(order.run, path, said)
    _list([stored.summary(order.run)], json=order.json)


def _fork(stored: "Runs", order: _Order) -> None:
    made = stored.fork(order.run, at=order.at, name=order.name, version=order.for_version)
    _tell({"run": made}, json=order.json)


_ACTIONS: dict[Action, Callable[["Runs", _Order], None]] = {
    "list": lambda stored, order: _list(stored.list(state=order.state, limit=order.limit), json=order.json),
    "show": lambda stored, order: _show(stored.show(order.run), json=order.json),
    "cancel": _steer,
    "pause": _steer,
    "resume": _steer,
    "fork": _fork,
    "delete": _delete,
    "decide": _decide,
}


def _list(summaries: "tuple[RunSummary, ...] | list[RunSummary]", *, json: bool) -> None:
    if json:
        _write(json_text.dumps([summary.model_dump(mode="json") for summary in summaries], indent=2))
        return
    for summary in summaries:
        head = f"{summary.state:9} {_ago(summary.updated_at):>5}  {summary.run}"
        why = f"waits for {summary.waits_for}" if summary.waits_for else summary.fault or ""
        _write(one_line_kept(head, f"{summary.context}.{summary.name} {why}", WIDTH))
    if not summaries:
        _write("no runs")


def _show(details: RunDetails, *, json: bool) -> None:
    if json:
        _write(details.model_dump_json(indent=2))
        return
    summary = details.summary
    rows = {
        "run": summary.run, "state": summary.state, "calls": f"{summary.context}.{summary.name}",
        "version": f"{summary.application} {summary.version}", "worker": summary.worker, "paused": summary.fault,
        "waits": summary.waits_for and f"for {summary.waits_for}",
        "fork of": summary.forked_from,
    }  # fmt: skip
    for label, value in rows.items():
        if value:
            _write(one_line_kept(f"{label:8}", value, WIDTH))
    _write(details.tree(WIDTH))


def _tell(told: dict[str, object], *, json: bool) -> None:
    if json:
        _write(json_text.dumps(told, indent=2))
        return
    for label, value in told.items():
        shown = ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else str(value)
        _write(f"{label}: {shown}")


def _write(text: str) -> None:
    """Print; what a model wrote cannot steer the terminal."""
    print(printable(text))


def _ago(moment: float) -> str:
    seconds = max(0, int(time.time() - moment))
    return next(f"{seconds // length}{unit}" for unit, length in _UNITS.items() if seconds >= length or length == 1)
