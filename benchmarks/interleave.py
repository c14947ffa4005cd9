"""The parent: one worker a contender, rounds in changing order, medians.

    a row's cases ─▶ prepare all ─▶ rounds: A B C · B C A · C A B … ─▶ records: medians and spread of each

What is slow is run less often, but with everybody else at least once: `rounds` in a record says how often.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Timer
from typing import Any, NamedTuple

from benchmarks import environments, servers
from benchmarks.environments import Absent
from benchmarks.work import Given

Record = dict[str, Any]
FURTHER = ("talk", "other_model")
"""What a record says of its case where there is something to say."""
TALKS = {"agents": "agents' conversation", "plain": "plain conversation"}


def place_of(record: Record) -> str:
    """Where it was measured: the wire, another model than the wire's own, which conversation."""
    model, talk = record.get("other_model"), record.get("talk")
    return ", ".join(filter(None, (record["wire"], model, talk and TALKS[talk])))


def at_once(concurrency: int) -> str:
    """How many calls are in flight, where it is more than one."""
    return f" c={concurrency}" if concurrency > 1 else ""


class Pace(NamedTuple):
    """How much time is given: seconds of one round of one contender, rounds, and a contender's seconds in all."""

    round_seconds: float = 0.05
    rounds: int = 9
    most_seconds: float = 6.0


QUICK = Pace(round_seconds=0.02, rounds=3, most_seconds=1.0)


LONGEST = 400
"""Seconds after which a run is given up, and its process ended."""


class Worker:
    def __init__(self, contender: str) -> None:
        command = [str(environments.python_of(contender)), "-m", "benchmarks.worker", contender]
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the worker
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            command, cwd=environments.ROOT, env=environments.variables() | {"TMPDIR": self.folder.name}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
        )  # fmt: skip
        self.ended = ""

    def await_start(self) -> None:
        """Its library is imported by then; Absent where that failed."""
        if reason := self._read().get("absent"):
            raise Absent(reason)

    def ask(self, do: str, **what: Any) -> Record:
        """Send a command, await its answer: {"absent": reason} of a process that ended, or was too slow."""
        if self.ended:
            return {"absent": self.ended}
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self.process.stdin.flush()
        return self._read()

    def _read(self) -> Record:
        assert self.process.stdout is not None
        giving_up = Timer(LONGEST, self.process.kill)
        giving_up.start()
        line = self.process.stdout.readline()
        giving_up.cancel()
        if not line:
            self.complaints.seek(0)
            last = self.complaints.read().strip().splitlines() or [f"without a word, or after {LONGEST} s"]
            self.ended = f"its process ended: {last[-1][:200]}"
            return {"absent": self.ended}
        found: Record = json.loads(line)
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.complaints.close()
        self.folder.cleanup()


@contextmanager
def workers(contenders: Iterable[str], absent: dict[str, str]) -> Iterator[dict[str, Worker]]:
    """A worker of each contender that can be had; why the others cannot goes into `absent`."""
    made: dict[str, Worker] = {}
    try:
        for contender in contenders:
            with _noted(contender, absent):
                made[contender] = Worker(contender)
        for contender, worker in made.items():
            with _noted(contender, absent):
                worker.await_start()
        yield {contender: worker for contender, worker in made.items() if not worker.ended}
    finally:
        for worker in made.values():
            worker.close()


@contextmanager
def _noted(contender: str, absent: dict[str, str]) -> Iterator[None]:
    """Why a contender cannot be had goes into `absent`."""
    try:
        yield
    except Absent as reason:
        absent[contender] = str(reason)


def measured(
    task: str, cases: Sequence[Given], contenders: Sequence[str], pace: Pace, absent: dict[str, str]
) -> list[Record]:
    """The records of a task: each case by each contender that does it."""
    records: list[Record] = []
    with workers(contenders, absent) as ready:
        for case in cases:
            _say(f"  {task} {place_of(case._asdict())} {case.size}{at_once(case.concurrency)}")
            with _noted(f"{task}, {case.wire}", absent), _served(case) as served:
                pairs = {(name, served): worker for name, worker in ready.items()}
                records += _interleaved(task, pairs, pace, absent)
    return records


def measured_together(
    task: str, cases: Sequence[Given], contenders: Sequence[str], pace: Pace, absent: dict[str, str]
) -> list[Record]:
    """The same with all cases interleaved, so that they can be compared with each other: a worker for each."""
    with ExitStack() as stack:
        pairs: dict[tuple[str, Given], Worker] = {}
        for case in cases:
            with _noted(f"{task}, {case.wire}", absent):
                served = stack.enter_context(_served(case))
                ready = stack.enter_context(workers(contenders, absent))
                pairs |= {(name, served): worker for name, worker in ready.items()}
        _say(f"  {task} {', '.join(f'{case.wire} {case.size}' for case in cases)}")
        return _interleaved(task, pairs, pace, absent)


@contextmanager
def _served(case: Given) -> Iterator[Given]:
    """The case with the URL of the server that it asks for, while that runs."""
    if not case.url:
        yield case
        return
    with servers.running(case.url, case.size) as url:
        yield case._replace(url=url)


class _Measuring(NamedTuple):
    """One contender at one case: its worker, how often a round runs, what the rounds gave, what it showed."""

    worker: Worker
    runs: int
    rounds: list[Record]
    evidence: Record


def _interleaved(
    task: str, pairs: Mapping[tuple[str, Given], Worker], pace: Pace, absent: dict[str, str]
) -> list[Record]:
    measuring: dict[tuple[str, Given], _Measuring] = {}
    for pair, worker in pairs.items():
        found = worker.ask("prepare", task=task, given=list(pair[1]))
        if "absent" not in found:
            measuring[pair] = _begun(worker, found, pace)
        elif found["absent"]:
            absent[_place(task, *pair)] = found["absent"]
    everyone = list(measuring)
    for number in range(pace.rounds):
        turn = number % max(len(everyone), 1)
        for pair in everyone[turn:] + everyone[:turn]:
            one = measuring[pair]
            if sum(each.get("elapsed", pace.most_seconds) for each in one.rounds) < pace.most_seconds:
                one.rounds.append(one.worker.ask("round", runs=one.runs))
    for pair, one in list(measuring.items()):
        if reasons := [each["absent"] for each in one.rounds if "absent" in each]:
            absent[_place(task, *pair)] = reasons[0]
            del measuring[pair]
    return [_record(task, case, name, one) for (name, case), one in measuring.items()]


def _place(task: str, name: str, case: Given) -> str:
    return f"{name} ({task}, {place_of(case._asdict())}, {case.size})"


def _begun(worker: Worker, found: Record, pace: Pace) -> _Measuring:
    """How often a round runs; what takes longer than all rounds may is not repeated."""
    cold = found["cold"]
    warm = cold if cold["elapsed"] > 3 * pace.most_seconds else worker.ask("round", runs=1)
    is_slow = "absent" in warm or warm["elapsed"] > pace.most_seconds
    runs = 1 if is_slow else max(1, int(pace.round_seconds / warm["elapsed"]))
    return _Measuring(worker, runs, [warm] if is_slow else [], found["evidence"])


def _record(task: str, case: Given, contender: str, one: _Measuring) -> Record:
    rounds = one.rounds
    shown = {key: found for key, found in one.evidence.items() if key != "turns"}
    record: Record = {
        "task": task, "contender": contender, "wire": case.wire, "size": case.size, "concurrency": case.concurrency,
        **{name: getattr(case, name) for name in FURTHER if getattr(case, name)},
        "rounds": len(rounds), "runs": one.runs, **shown,
    }  # fmt: skip
    for clock in ("cpu", "wall"):
        values = [each[clock] for each in rounds]
        record[clock] = statistics.median(values)
        record[f"{clock}_spread"] = [min(values), max(values)]
    figures = [each["figures"] for each in rounds if each.get("figures")]
    for name in figures[0] if figures else ():
        record[name] = statistics.median(each[name] for each in figures)
    turns = [each["turns"] for each in rounds if each.get("turns")]
    if turns:
        record["turns"] = _smoothed([statistics.median(column) for column in zip(*turns, strict=True)])
    return record


def _smoothed(turns: Sequence[float]) -> dict[str, float]:
    """What single turns cost: each turn's neighbourhood of eleven, its median."""
    wanted = [turn for turn in (10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500) if turn <= len(turns)]
    return {str(turn): statistics.median(turns[max(turn - 9, 0) : turn + 2]) for turn in wanted}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
