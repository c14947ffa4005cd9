"""`sabir runs`: what a person sees of runs, and what they can do, with no worker there."""

import asyncio
import json
import shlex
import shutil
from pathlib import Path

import pytest
import sabir
from sabir_runtime import human_policy
from sabir_runtime.durable import DurableRunner, Runs, RunStopped, decision

from tests.cli.command import run
from tests.cli.conftest import Command
from tests.durable.children import BEAT, POLL
from tests.durable.support import Program, saying


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with two runs."""
    path = tmp_path_factory.mktemp("stored") / "runs.db"
    asyncio.run(_two_runs(f"sqlite:///{path}"))
    return path


@pytest.fixture
def folder(tmp_path: Path, stored: Path) -> Path:
    shutil.copy(stored, tmp_path)
    return tmp_path


async def _two_runs(store: str) -> None:
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        program = Program(runner, main=human_policy(decision), other=saying("\x1b[31mhello"))
        await runner.run(program.other, "Hi.", run_id="greeting")
        performing = asyncio.ensure_future(runner.run(program.main, "Pay?", run_id="order-7"))
        while not await asyncio.to_thread(lambda: runner.runs.list(state="waiting")):
            await asyncio.sleep(POLL)
    with pytest.raises(RunStopped):
        await performing


class Told(Command):
    """`sabir runs` in this process: its own takes seconds to import the engine."""

    def __call__(self, *arguments: str, given: bytes | None = b"", code: int = 0) -> tuple[str, str]:
        return super().__call__("runs", *arguments, given=given or b"", code=code)

    def out(self, *arguments: str, given: bytes = b"") -> str:
        """What it says; nothing else was written."""
        out, err = self(*arguments, given=given)
        assert err == ""
        return out


@pytest.fixture
def told(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "500")  # a long error stays on one line where it is printed to a pipe
    return Told(capsys, monkeypatch)


def test_the_command_is_installed(folder: Path) -> None:
    finished = run("runs", "list", "--state", "waiting", cwd=folder)

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert b"order-7  Program.main" in finished.stdout


def test_runs_are_listed_at_80_columns(told: Told) -> None:
    lines = told.out().splitlines()

    assert [line.split()[0] for line in lines] == ["waiting", "done"]
    assert "order-7  Program.main" in lines[0]
    assert all(len(line) <= 80 for line in lines)
    assert told.out("list", "--state", "failed") == "no runs\n"


def test_a_run_is_shown_with_its_calls(told: Told) -> None:
    """What a model wrote cannot steer the terminal."""
    shown = told.out("show", "greeting")

    assert shown.splitlines()[:3] == ["run       greeting", "state     done", "calls     Program.other"]
    assert "0:other done" in shown
    assert "hello" in shown
    assert "\x1b" not in shown
    (call,) = json.loads(told.out("show", "greeting", "--json"))["calls"]
    assert call["messages"][0]["payload"]["parts"][0]["text"] == "\x1b[31mhello"


def test_a_person_decides_from_the_command_line(told: Told) -> None:
    told.out("decide", "order-7", "0:main", "yes")
    again = told.error("decide", "order-7", "0:main", "no")
    with Runs("sqlite:///runs.db") as runs:
        call = runs.show("order-7").calls[0]

    assert [(message.policy, message.text) for message in call.messages] == [("human", "yes")]
    assert "already has a decision or a result" in again


def test_messages_are_decided_from_standard_input(told: Told) -> None:
    from sabir.vocabulary.history import dumps

    given = dumps([sabir.assistant("one", policy="me"), sabir.assistant("two", policy="me")])
    told.out("decide", "order-7", "0:main", given=given.encode())
    with Runs("sqlite:///runs.db") as runs:
        assert [message.text for message in runs.show("order-7").calls[0].messages] == ["one", "two"]


def test_runs_are_steered(told: Told) -> None:
    assert told.out("pause", "order-7").split()[0] == "paused"
    assert told.out("resume", "order-7").split()[0] == "queued"
    assert told.out("cancel", "order-7").split()[0] == "cancelled"
    assert told.out("fork", "order-7", "--name", "again") == "run: again\n"
    assert json.loads(told.out("fork", "greeting", "--at", "0:other", "--json"))["run"]
    assert told.out("show", "again").splitlines()[1] == "state     queued"


def test_runs_that_ended_are_deleted(told: Told) -> None:
    told.out("fork", "greeting", "--name", "again")
    told.out("cancel", "again")
    assert told.out("delete", "greeting", "again") == "deleted: greeting, again\n"
    told.out("fork", "order-7", "--name", "more")
    told.out("cancel", "more")
    assert told.out("delete", "--older-than", "1d") == "deleted: 0\n"
    assert json.loads(told.out("delete", "--older-than", "0s", "--json")) == {"deleted": 1}
    assert [each["run"] for each in json.loads(told.out("--json"))] == ["order-7"]


def test_a_run_says_which_worker_it_waits_for(told: Told) -> None:
    told.out("fork", "greeting", "--name", "later", "--for-version", "2")
    (line,) = told.out("list", "--state", "queued").splitlines()

    assert "later  Program.other waits for a worker of version '2'" in line
    assert len(line) <= 80
    assert "waits     for a worker of version '2' (none is running)" in told.out("show", "later").splitlines()


def test_runs_of_the_dead_are_given_back(told: Told) -> None:
    assert json.loads(told.out("recover", "--json")) == {"requeued": ["order-7"]}
    assert told.out("recover") == "requeued: nothing\n"


MISTAKES = {
    "show": "`sabir runs show` needs the name of a run; `sabir runs list` shows them",
    "show x": "no run is named 'x'; `sabir runs list` shows the names",
    "decide order-7": "`sabir runs decide RUN PATH TEXT` needs these three",
    "decide order-7 0:main yes no": "`sabir runs decide RUN PATH TEXT` needs these three",
    "cancel order-7 x": "`sabir runs cancel` accepts one run, not also 'x'; call it once for each run",
    "delete": "`sabir runs delete` needs the names of runs or an age; give the names, or use `sabir runs delete",
    "delete greeting --older-than 1d": "needs the names of runs or an age; give the names, or use `sabir runs delete",
    "delete --older-than soon": "'soon' is not a valid age; give a whole number of days, hours, minutes or seconds",
    "delete --older-than 1.5d": "'1.5d' is not a valid age",
    "delete greeting order-7": "run 'order-7' is waiting and was not deleted; cancel it first",
    "delete greeting x": "no run is named 'x'",
    "list --limit 0": "limit=0 is too low; give the number of runs to list, 1 or more",
    "fork greeting --name 'a\nb'": "'a\\nb' is not a valid name for a run; use 1 to 200 printable characters",
    "list --store ''": "the store is not a valid URL; give sqlite:///file.db or postgresql://user@host/database",
    "cancel greeting": "run 'greeting' is already done; fork it to run it again",
    "list --store sqlite:///none.db": "has no tables of runs; give the store URL that a DurableRunner uses",
}


def test_what_is_missing_is_said_in_one_line(told: Told) -> None:
    for command, line in MISTAKES.items():
        assert line in told.error(*shlex.split(command))
