"""`sabir runs`: what the runs of a store are doing, and what shall become of them.

sabir runs                              the newest runs
sabir runs list --state waiting         those that wait for a person
sabir runs show RUN                     its calls, as a tree
sabir runs cancel|pause|resume RUN
sabir runs fork RUN --at PATH           a new run, anew from that call on
sabir runs decide RUN PATH TEXT         a person's answer; without TEXT, messages as JSON from standard input
sabir runs recover                      give back what dead workers had
"""

import json as json_text
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir import Message
from sabir.errors import SettingsInvalid
from sabir.history import loads

from sabir_durable.views import RunDetails, RunState, RunSummary, one_line_kept

if TYPE_CHECKING:
    from sabir_durable.runs import Runs

Action: TypeAlias = Literal["list", "show", "cancel", "pause", "resume", "fork", "decide", "recover"]
WIDTH = 80
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# A command line is one flat function: its parameters are what the user can write.
def runs(
    action: Action = "list",
    run: str = "",
    path: str = "",
    answer: str = "",
    *,
    store: str = "sqlite:///runs.db",
    state: RunState | None = None,
    limit: int = 20,
    at: str | None = None,
    name: str | None = None,
    json: bool = False,
) -> None:
    """List durable runs, show one, or say what shall become of it.

    Parameters
    ----------
    action
        What to do.
    run
        The run's name; needed by all but list and recover.
    path
        For decide: the call that waits, as show names it.
    answer
        For decide: what the person says; without it, messages are read as JSON from standard input.
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
    json
        Write JSON.
    """
    if action == "recover":
        from sabir_durable.recovery import recover_store

        _tell({"requeued": recover_store(store)}, json=json)
        return
    from sabir_durable.runs import Runs

    with Runs(store) as stored:
        if action == "list":
            _list(stored.list(state=state, limit=limit), json=json)
            return
        if not run:
            raise SettingsInvalid(f"`sabir runs {action}` needs the name of a run; `sabir runs list` shows them")
        if action == "show":
            _show(stored.show(run), json=json)
        elif action == "fork":
            _tell({"run": stored.fork(run, at=at, name=name)}, json=json)
        else:
            _steer(stored, action, run, path, answer)
            _list([stored.show(run).summary], json=json)


def _steer(stored: "Runs", action: Action, run: str, path: str, answer: str) -> None:
    steps: dict[str, Callable[[str], None]] = {
        "cancel": stored.cancel,
        "pause": stored.pause,
        "resume": stored.resume,
    }
    if action in steps:
        steps[action](run)
        return
    said: str | list[Message] = answer
    if not answer:
        said = loads("" if sys.stdin.isatty() else sys.stdin.read())
    if not path or not said:
        raise SettingsInvalid("`sabir runs decide RUN PATH TEXT` needs all three; `sabir runs show RUN` names the path")
    stored.decide(run, path, said)


def _list(summaries: "tuple[RunSummary, ...] | list[RunSummary]", *, json: bool) -> None:
    if json:
        _write(json_text.dumps([summary.model_dump(mode="json") for summary in summaries], indent=2))
        return
    for summary in summaries:
        head = f"{summary.state:9} {_ago(summary.updated_at):>5}  {summary.run}"
        _write(one_line_kept(head, f"{summary.context}.{summary.name} {summary.fault or ''}", WIDTH))
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
    print(_CONTROL.sub("�", text))


def _ago(moment: float) -> str:
    seconds = max(0, int(time.time() - moment))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
