"""The rows about what outlives a process measure what they say: policies, checkpoints, durable and remote calls."""

import json
import subprocess
import sys
from importlib import import_module
from itertools import product
from typing import Any

import pytest

from tests.benchmarks import environments, work
from tests.benchmarks.checks import differs
from tests.benchmarks.goals import Record
from tests.benchmarks.interleave import APART, Pace, _interleaved
from tests.benchmarks.rows import ROWS
from tests.benchmarks.rows.row import EVERYBODY
from tests.benchmarks.work import Given
from tests.benchmarks.worker import Worker
from tests.servers.shared_nats import nats

__all__ = ["nats"]  # a fixture

RECORDED = [*product(["bare_row", "sabir_runtime"], [1, 60]), ("dump", 1000)]
STEPPED = ["bare_step", "sabir_durable"]
ASKED = ["bare_request", "sabir_distributed"]


def prepared(contender: str, task: str, given: Given) -> dict[str, Any]:
    """What a contender's process says of a task that it makes ready, runs once, checks, and ends."""
    pytest.importorskip("orjson")
    worker = Worker(contender)
    try:
        return worker.prepare(task, list(given))
    finally:
        worker.close()


@pytest.mark.parametrize("wire", ["no options", "three options"])
@pytest.mark.parametrize("contender", ["limit", "sabir_runtime"])
def test_a_policy_is_called_and_chooses(contender: str, wire: str) -> None:
    """With its options, by the runner and without one."""
    assert prepared(contender, "policy", Given(wire, 10)).keys() == {"evidence", "cold"}


@pytest.mark.parametrize("size", [10, 1000])
@pytest.mark.parametrize("contender", ["bare_append", "sabir_roles"])
def test_one_more_message_is_the_last_of_what_an_adapter_is_given(contender: str, size: int) -> None:
    """By a manager with roles as by a list; other work is noticed."""
    given = Given("in memory", size)

    assert prepared(contender, "append", given).keys() == {"evidence", "cold"}
    assert differs("append", given, {"count": size, "text": work.reply_text()})


@pytest.mark.parametrize(("contender", "size"), RECORDED)
def test_records_are_on_the_disk_at_every_size(contender: str, size: int) -> None:
    """Read back, they are the conversation; what one takes there is more than its text."""
    found = prepared(contender, "checkpoint", Given("SQLite", size))

    assert found["evidence"]["bytes"] > 500
    assert found["evidence"]["written"] >= found["evidence"]["bytes"]


def test_a_row_and_a_record_are_the_same_text_and_a_dump_is_all_of_them() -> None:
    """Ids and times apart; so that what both write can be compared."""
    bare, own, dump = (import_module(f"tests.benchmarks.contenders.{name}") for name in dict(RECORDED))
    texts = []
    for module, size in ((bare, 4), (own, 4), (dump, 1000)):
        task = module.TASKS["checkpoint"](Given("SQLite", size))
        task.renew()
        texts.append(module.EVIDENCE["checkpoint"](Given("SQLite", size), task())["bodies"])
        task.close()
    unique = {"message_id": "", "created_at": "", "messages": ""}
    row, record, dumped = ([{**json.loads(body), **unique} for body in bodies] for bodies in texts)

    assert row == record
    assert [len(body) for body in texts[0]] == [len(body) for body in texts[1]]
    assert [body["sequence"] for body in dumped] == list(range(1000, 1000 + work.BATCH))


def test_a_session_begins_anew_before_it_has_grown_much() -> None:
    """So that each figure is of the size that it is said to be of."""
    own = import_module("tests.benchmarks.contenders.sabir_runtime")
    task = own.Recording(Given("SQLite", 640))
    sizes = []
    for _ in range(5):
        task.renew()
        task()
        sizes.append(len(task.journal))
    task.close()

    assert sizes == [672, 704, 672, 704, 672]


@pytest.mark.parametrize("contender", STEPPED)
def test_steps_are_in_the_database(contender: str) -> None:
    """Each of them, and the last one's text is the reply; the run ends when it is told to."""
    assert prepared(contender, "durable_step", Given("SQLite", 10)).keys() == {"evidence", "cold"}


@pytest.mark.parametrize(("wire", "concurrency"), [("one worker", 1), ("four workers", 8)])
@pytest.mark.parametrize(("task", "size"), [("remote", 10), ("throughput", 200)])
@pytest.mark.parametrize("contender", ASKED)
def test_other_processes_answer(contender: str, task: str, size: int, wire: str, concurrency: int, nats: str) -> None:
    """Every request, with the reply; how long each took is among the figures."""
    found = prepared(contender, task, Given(wire, size, nats, concurrency))

    assert 0 < found["cold"]["figures"]["median"] <= found["cold"]["figures"]["p99"]


def test_what_was_started_for_a_task_ends_with_it(nats: str) -> None:
    """By itself, as its stdin closes: it ends too when the contender is killed."""
    bare = import_module("tests.benchmarks.contenders.bare_request")
    task = bare.Requests(Given("four workers", 10, nats), 10, 10)
    task.close()

    assert [process.returncode for process in task.processes] == [0, 0, 0, 0]


def test_bare_requests_have_the_size_of_those_of_the_runner() -> None:
    """Ten messages more are their texts more."""
    bare = import_module("tests.benchmarks.contenders.bare_request")
    one, ten = (json.loads(bare.request_of(count)) for count in (1, 10))

    assert [len(each["observations"]) for each in (one, ten)] == [1, 10]
    assert one.keys() == json.loads(bare.request_of(1)).keys() >= {"id", "context", "policy", "seconds_left"}
    assert json.loads(bare.reply())["result"][0]["payload"]["parts"][0]["text"] == work.reply_text()


def test_sabir_alone_is_measured_without_what_runs_need() -> None:
    """The import row stays what it is: neither loaded, nor installed beside it, nor asked of peers."""
    heavy = ["sabir_session", "sabir_runtime", "sabir_durable", "sabir_distributed", "dbos", "nats", "sqlalchemy"]
    source = f"import sys, tests.benchmarks.contenders.sabir; print(set({heavy}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", source], cwd=environments.ROOT, capture_output=True, check=True)

    assert done.stdout.strip() == b"set()"
    assert environments.requirements_of("sabir") == ("{core}", "{openai}", "{anthropic}", "{google}")
    assert not set(EVERYBODY) & set(APART)
    assert not set(APART) & set(ROWS["imports"].contenders)


def test_other_records_and_replies_are_noticed() -> None:
    """One that is lost, one that says something else, one reply too few."""
    own = import_module("tests.benchmarks.contenders.recording")
    given, entries = Given("SQLite", 4), work.conversation(36)
    bodies = [own.record_of(entries[place], place).model_dump_json() for place in range(4, 36)]
    said = {"count": 36, "bodies": bodies}

    assert not differs("checkpoint", given, said)
    assert "number of records" in differs("checkpoint", given, {**said, "count": 35})
    assert "record" in differs("checkpoint", given, {**said, "bodies": bodies[1:] + bodies[:1]})
    changed = [body.replace("umbrella", "parasol") for body in bodies]
    assert differs("checkpoint", given, {**said, "bodies": changed}).startswith("record: [(5, ")
    replied = {"count": 200, "texts": [work.reply_text()]}
    assert not differs("throughput", Given("four workers", 200), replied)
    assert "number" in differs("throughput", Given("four workers", 200), {**replied, "count": 199})
    assert "replies" in differs("throughput", Given("four workers", 200), {**replied, "texts": ["", "No."]})


class Scripted:
    """In place of a contender's process: says what is asked of it, each round a nanosecond more."""

    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def ask(self, do: str, **what: Any) -> Record:
        """A figure for every round."""
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
