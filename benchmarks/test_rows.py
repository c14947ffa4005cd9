"""The rows of what outlives a call measure what they say: policies, checkpoints, durable and remote calls, actors."""

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks import answers, environments, work
from benchmarks.checks import differs
from benchmarks.contenders import APART, actors, distributed, runtime
from benchmarks.goals import Record
from benchmarks.interleave import Pace, _interleaved
from benchmarks.rows import ROWS
from benchmarks.rows.row import EVERYBODY
from benchmarks.work import Given
from benchmarks.worker import Worker
from tests.servers.postgres import database, postgres
from tests.servers.shared_nats import nats

__all__ = ["database", "nats", "postgres"]  # fixtures

IN_MEMORY, SQLITE = Given("in memory", 10), Given("SQLite", 10)
PREPARED = {
    "policy": [
        (name, Given(wire, 10)) for wire in ("no options", "three options") for name in ("limit", "sabir_runtime")
    ],
    "append": [(name, Given("in memory", size)) for size in (10, 1000) for name in ("bare_append", "sabir_roles")],
    "checkpoint": [
        *((name, Given("SQLite", size)) for size in (1, 60) for name in ("bare_row", "sabir_runtime")),
        ("dump", Given("SQLite", 1000)),
    ],
    "durable_step": [("bare_step", SQLITE), ("sabir_durable", SQLITE)],
    "conversation": [("sabir_conversation", Given("openai.chat", size)) for size in (10, 100)],
    "ask": [("sabir_conversation", given) for given in (IN_MEMORY, SQLITE)],
    "actor_message": [("bare_queues", IN_MEMORY), ("sabir_actors", IN_MEMORY)],
    "actor_phase": [("bare_records", SQLITE), ("sabir_actors", SQLITE), ("sabir_actors", IN_MEMORY)],
}


def prepared(contender: str, task: str, given: Given) -> dict[str, Any]:
    """What a contender's process says of a task that it makes ready, runs once, checks, and ends."""
    pytest.importorskip("orjson")
    worker = Worker(contender)
    try:
        return worker.prepare(task, list(given))
    finally:
        worker.close()


@pytest.mark.parametrize(("task", "contender", "given"), [(task, *one) for task in PREPARED for one in PREPARED[task]])
def test_each_contender_does_the_work_of_its_row(task: str, contender: str, given: Given) -> None:
    """What it did is checked; of a checkpoint, what one takes on the disk is more than its text."""
    found = prepared(contender, task, given)

    assert found.keys() == {"evidence", "cold"}
    if task == "checkpoint":
        assert found["evidence"]["written"] >= found["evidence"]["bytes"] > 500


OTHER_WORK: list[tuple[str, Given, Any]] = [
    ("conversation", Given("openai.chat", 10), {"text": [answers.reply_text(), "No."]}),
    ("ask", SQLITE, {"text": [answers.reply_text(), "No."]}),
    ("append", IN_MEMORY, {"count": 10, "text": answers.reply_text()}),
    ("actor_phase", SQLITE, {"phases": work.PHASES[:-1], "text": answers.reply_text()}),
    ("actor_memory", Given(actors.PAUSED, 3), {"held": 1, "states": {"created": 2, "paused": 1}}),
    ("actor_workers", Given("Postgres", 2), {"completed": work.THREADS - 1, "workers": 2}),
    ("actor_workers", Given("Postgres", 2), {"completed": work.THREADS, "workers": 1}),
    ("throughput", Given("four workers", 200), {"count": 199, "texts": [answers.reply_text()]}),
    ("throughput", Given("four workers", 200), {"count": 200, "texts": ["", "No."]}),
]


@pytest.mark.parametrize(("task", "given", "evidence"), OTHER_WORK)
def test_other_work_is_noticed(task: str, given: Given, evidence: Any) -> None:
    assert differs(task, given, evidence)


def test_other_records_are_noticed() -> None:
    """One that is lost, one at another place, one that says something else."""
    given, entries = Given("SQLite", 4), work.conversation(36)
    bodies = [runtime.record_of(entries[place], place).model_dump_json() for place in range(4, 36)]
    said = {"count": 36, "bodies": bodies}

    assert not differs("checkpoint", given, said)
    assert "number of records" in differs("checkpoint", given, {**said, "count": 35})
    assert "record" in differs("checkpoint", given, {**said, "bodies": bodies[1:] + bodies[:1]})
    changed = [body.replace("umbrella", "parasol") for body in bodies]
    assert differs("checkpoint", given, {**said, "bodies": changed}).startswith("record: [(5, ")


def test_a_row_and_a_record_are_the_same_text_and_a_dump_is_all_of_them() -> None:
    """Ids and times apart; so that what both write can be compared."""
    texts = []
    for task in (
        runtime.Rows(Given("SQLite", 4)),
        runtime.Recording(Given("SQLite", 4)),
        runtime.Dumping(Given("", 1000)),
    ):
        task.renew()
        texts.append(task().evidence()["bodies"])
        task.close()
    unique = {"message_id": "", "created_at": "", "messages": ""}
    row, record, dumped = ([{**json.loads(body), **unique} for body in bodies] for bodies in texts)

    assert row == record
    assert [len(body) for body in texts[0]] == [len(body) for body in texts[1]]
    assert [body["sequence"] for body in dumped] == list(range(1000, 1000 + work.BATCH))


def test_a_session_begins_anew_before_it_has_grown_much() -> None:
    """So that each figure is of the size that it is said to be of."""
    task = runtime.Recording(Given("SQLite", 640))
    sizes = []
    for _ in range(5):
        task.renew()
        task()
        sizes.append(len(task.journal))
    task.close()

    assert sizes == [672, 704, 672, 704, 672]


@pytest.mark.parametrize(("wire", "concurrency"), [("one worker", 1), ("four workers", 8)])
@pytest.mark.parametrize(("task", "size"), [("remote", 10), ("throughput", 200)])
@pytest.mark.parametrize("contender", ["bare_request", "sabir_distributed"])
def test_other_processes_answer(contender: str, task: str, size: int, wire: str, concurrency: int, nats: str) -> None:
    """Every request, with the reply; how long each took is among the figures."""
    found = prepared(contender, task, Given(wire, size, nats, concurrency))

    assert 0 < found["cold"]["figures"]["median"] <= found["cold"]["figures"]["p99"]


def test_what_was_started_for_a_task_ends_with_it(nats: str) -> None:
    """By itself, as its stdin closes: it ends too when the contender is killed."""
    task = distributed.Requests(Given("four workers", 10, nats), 10, 10)
    task.close()

    assert [process.returncode for process in task.processes] == [0, 0, 0, 0]


def test_bare_requests_have_the_size_of_those_of_the_runner() -> None:
    """Ten messages more are their texts more."""
    one, ten = (json.loads(distributed.request_of(count)) for count in (1, 10))

    assert [len(each["observations"]) for each in (one, ten)] == [1, 10]
    assert one.keys() == ten.keys() >= {"id", "context", "policy", "seconds_left"}
    assert json.loads(distributed.reply())["result"][0]["payload"]["parts"][0]["text"] == answers.reply_text()


def test_sabir_alone_is_measured_without_what_runs_need() -> None:
    """The import row stays what it is: neither loaded, nor installed beside it, nor asked of peers."""
    heavy = ["sabir_session", "sabir_runtime", "dbos", "nats", "sqlalchemy"]
    source = f"import sys, benchmarks.contenders.sabir; print(set({heavy}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", source], cwd=environments.ROOT, capture_output=True, check=True)

    assert done.stdout.strip() == b"set()"
    assert environments.requirements_of("sabir") == ("{core}", "{openai}", "{anthropic}", "{google}")
    assert not set(APART) & {*EVERYBODY, *ROWS["imports"].contenders}


def test_the_bare_rows_are_those_of_a_thread() -> None:
    """As many, of the same kinds, of each phase: what is asked, what is answered, that it is done."""
    bare, own = actors.Rows(SQLITE), actors.Phases(SQLITE)
    for each in (bare, own):
        each.renew()
        each()
    kinds = [[kind for kind, _ in rows] for rows in (bare.journal.read(), own.rows())]
    for each in (bare, own):
        each.close()

    assert kinds[0] == kinds[1]
    assert len(kinds[0]) > 4 * len(work.PHASES)


def test_threads_in_progress_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All together, each asked its model for each phase, none begun after another's last; one too few is noticed."""
    monkeypatch.setattr(actors, "LEAST", 0.2)
    monkeypatch.setattr(actors, "MOST", 0.6)
    given = Given("in memory", 20)
    figures = prepared("sabir_actors", "actor_heartbeat", given)["cold"]["figures"]

    assert 0 < figures["median"] <= figures["p99"]
    right = {"together": 20, "completed": 20, "phases": [20] * 3, "begun": 20}
    assert not differs("actor_heartbeat", given, right)
    assert all(differs("actor_heartbeat", given, {**right, name: 19}) for name in right)


@pytest.mark.parametrize("wire", ["created, in memory", actors.PAUSED])
def test_idle_threads_are_as_said(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, or paused; what they take is told."""
    monkeypatch.setattr(actors, "REMEMBERED", 2)

    assert prepared("sabir_actors", "actor_memory", Given(wire, 3))["evidence"]["held"] > 0


def test_workers_share_the_threads(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them run some, and end with the task."""
    monkeypatch.setattr(work, "THREADS", 24)

    found = prepared("sabir_workers", "actor_workers", Given("Postgres", 2, database))
    assert found["cold"]["figures"]["each"] > 0


class Scripted:
    """In place of a contender's process: says what is asked of it, each round a nanosecond more."""

    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def ask(self, do: str, **what: Any) -> Record:
        if do == "prepare":
            return {"cold": {"elapsed": 0.01}, "evidence": {"bytes": 7.0}}
        self.heard.append(self.name)
        cost = len(self.heard)
        return {"cpu": cost, "wall": cost, "elapsed": 0.01, "figures": {"p99": cost}}


def test_cases_that_are_compared_take_turns() -> None:
    """Each round begins with another; figures of the rounds become medians, what was shown once stays."""
    heard: list[str] = []
    small, large = Given("SQLite", 1), Given("SQLite", 10000)
    pairs: Any = {("dump", small): Scripted("small", heard), ("dump", large): Scripted("large", heard)}

    found = _interleaved("checkpoint", pairs, Pace(round_seconds=0.01, rounds=3), {})

    assert heard == ["small", "large", *["small", "large"], *["large", "small"], *["small", "large"]]
    assert [(each["size"], each["cpu"], each["p99"], each["bytes"]) for each in found] == [
        (1, 6, 6, 7),
        (10000, 5, 5, 7),
    ]
