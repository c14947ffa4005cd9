"""`sabir threads`: what a person sees of threads, and what they can do, whichever process a thread runs in."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sabir_actors import AEIOUY, ActorSystem, Chain, Phase, ThreadClient, command
from sabir_actors.durable import DurableQueue
from sabir_cli.main import main
from sabir_session import SQLiteStore
from sabir_testing.scripted import ScriptedAdapter, always

from tests.cli.command import KEYS, SCRIPT, environment, run

STORE = "threads.db"
OWN = Chain("review", (Phase("draft", "Draft."), Phase("final", "End.")))
ESCAPE = "\x1b[31m"


class Command:
    """The command in this process, in a folder of its own."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> str:
        code, out, err = self.ended(*arguments)
        assert (code, err) == (0, "")
        return out

    def error(self, *arguments: str) -> str:
        code, _, err = self.ended(*arguments)
        assert code != 0
        (line,) = err.splitlines()
        return line.removeprefix("sabir: ")

    def ended(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["threads", *arguments])
        shown = self._capture.readouterr()
        return int(code), shown.out, shown.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """The command, without keys; the model is echo, which needs none."""
    for name in [name for name in os.environ if name.endswith(KEYS)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")  # a long error stays on one line where it is printed to a pipe
    monkeypatch.setenv(command.MODEL_VARIABLE, "echo:small")
    yield Command(capsys)


def stored(text: str, *, chain: str | None = None, paused: bool = False, dies: bool = False) -> str:
    """A thread in the store that is created; its id. `paused`: started and paused; `dies`: its process ended in it."""

    async def make() -> str:
        with SQLiteStore(Path(STORE)) as store:
            hangs = ScriptedAdapter(always(lambda sent: "Never."))
            system = ActorSystem("echo:small", store=store, chains=[OWN], adapters=lambda _: hangs)
            async with system:
                client = ThreadClient(system)
                thread_id = await client.create("user1", text, chain=chain)
                if paused or dies:
                    await client.start(thread_id)
                if paused:
                    await client.pause(thread_id)
            return thread_id

    return asyncio.run(make())


def test_the_command_is_installed(tmp_path: Path) -> None:
    finished = run("threads", "run", "Why?", "--model", "echo:small", cwd=tmp_path)
    first, *lines = finished.stdout.decode().splitlines()

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert re.fullmatch(r"thread [0-9a-f-]{36}", first)
    assert lines[-3:] == ["completed 6/6", "", "Continue."]


def test_a_thread_is_run_listed_and_shown(told: Command) -> None:
    """What a user asked, and a model wrote, cannot steer the terminal."""
    question = f"Why is the sky {ESCAPE}blue? " + "And why " * 20
    thread_id = told("run", question).splitlines()[0].removeprefix("thread ")
    (line,) = told().splitlines()
    shown = told("show", thread_id[:4])

    assert line.startswith(f"{thread_id[:8]}  completed    6/6")
    assert len(line) <= 80
    assert f"thread  {thread_id}\nstate   completed\nasked   Why is the sky " in shown
    assert "\x1b" not in line + shown
    assert re.search(r"^action \([\d.]+ s, \d+ in, \d+ out\)$", shown, re.MULTILINE)
    assert [name for name in AEIOUY if f"\n{name} (" in shown] == list(AEIOUY)


def test_a_store_that_is_not_there_is_not_made_by_looking(told: Command) -> None:
    """A mistyped name leaves no file behind."""
    for words in ((), ("show", "a"), ("watch", "a"), ("pause", "a"), ("resume", "a")):
        assert told.error(*words) == (
            "sqlite:///threads.db does not exist; `sabir threads run` creates it, or name another with --store"
        )
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show",), "`sabir threads show` needs the id of a thread; `sabir threads` lists the ids"),
        (("run",), "`sabir threads run` needs a question or request"),
        (("run", " "), "`sabir threads run` needs a question or request"),
        (("show", "zz"), "no thread has an id that begins with 'zz'; `sabir threads` lists the ids"),
        (
            ("list", "--store", "x.db"),
            "'x.db' is not a store; pass sqlite:///file.db or postgresql://user@host/database",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line_with_its_remedy(told: Command, words: tuple[str, ...], said: str) -> None:
    stored("Why?")

    assert told.error(*words) == said


def test_an_unknown_model_is_refused_before_a_thread_could_fail_of_it(told: Command) -> None:
    """Neither a new thread nor one that is half done is spent on a mistyped name."""
    thread_id = stored("Why?", dies=True)

    assert "provider 'nope' is not installed" in told.error("run", "Why?", "--model", "nope:small")
    assert "provider 'nope' is not installed" in told.error("resume", thread_id, "--model", "nope:small")
    assert [each["status"] for each in told.json()] == ["processing"]


def test_a_thread_that_failed_says_why(told: Command) -> None:
    code, out, err = told.ended("run", "Why?", "--model", "openai:gpt-5")
    thread_id = out.splitlines()[0].removeprefix("thread ")

    assert code == 1
    assert err.startswith(f"sabir: thread {thread_id} failed: openai has no key; set the variable OPENAI_API_KEY")
    assert "\nwhy     openai has no key" in told("show", thread_id)
    code, out, err = told.ended("watch", thread_id, "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["cause"]["cause"] == "CredentialsMissing"


def test_a_thread_whose_process_died_is_resumed(told: Command) -> None:
    for thread_id in (stored("One", dies=True), stored("Two", paused=True), stored("Three")):
        assert told("resume", thread_id).splitlines()[-3] == "completed 6/6"


def test_a_thread_of_a_programs_own_chain_is_left_alone(told: Command) -> None:
    """The command does not know its phases; to try would end it as failed."""
    thread_id = stored("Why?", chain="review", dies=True)

    said = (
        f"thread {thread_id} uses the chain 'review', "
        "which only the program that created it has; resume the thread with that program"
    )
    assert told.error("resume", thread_id) == said
    assert told.json("show", thread_id)["status"] == "processing"
    assert told("pause", thread_id) == f"thread {thread_id} is paused\n"


def test_a_thread_of_a_queue_is_not_taken_from_its_workers(told: Command) -> None:
    """It is paused from here like any other; to put it into the queue again takes a system that has that queue."""

    async def make() -> str:
        with SQLiteStore(Path(STORE)) as store:
            queue = DurableQueue(f"sqlite:///{STORE}", at_once=0)
            async with ActorSystem("echo:small", store=store, queue=queue) as system:
                client = ThreadClient(system)
                thread_id = await client.create("user1", "Why?")
                await client.start(thread_id)
                return thread_id

    thread_id = asyncio.run(make())
    assert told("pause", thread_id) == f"thread {thread_id} is paused\n"
    assert f"thread {thread_id} is run by the workers of a queue" in told.error("resume", thread_id)
    assert [each["status"] for each in told.json()] == ["paused"]


def test_a_thread_is_steered(told: Command) -> None:
    thread_id = stored("Why?", dies=True)

    assert told.json("pause", thread_id)["status"] == "paused"
    assert "is paused and cannot be paused; it must be processing" in told.error("pause", thread_id)
    assert told("terminate", thread_id, "--reason", "too late") == f"thread {thread_id} is terminated\n"
    assert "\nwhy     too late" in told("show", thread_id)
    assert told("watch", thread_id) == "terminated 0/6\n"


def test_every_form_is_written_as_json(told: Command) -> None:
    thread = told.json("run", "Why?")
    shown = told.json("show", thread["thread_id"])

    assert thread["status"] == "completed"
    assert told.json() == [thread]
    assert told.json("watch", thread["thread_id"]) == thread
    assert {name: shown[name] for name in thread} == thread
    assert list(shown["phases"]) == list(AEIOUY)
    assert shown["phases"]["action"]["usage"]["model"] == "echo:small"
    assert set(shown["phases"]["action"]) >= {"response", "confidence", "seconds", "usage", "cost"}


@contextmanager
def in_second_phase(folder: Path, *words: str) -> "Iterator[tuple[subprocess.Popen[bytes], str]]":
    (folder / "slow.py").write_text(SLOW, "utf-8")
    command = [str(SCRIPT.parent / "python"), "slow.py", "run", "Why?", "--model", "echo:small", *words]
    environs = environment({"WAITS_FOR": str(folder / "go")})
    with subprocess.Popen(command, cwd=folder, env=environs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        thread_id = process.stdout.readline().decode().split()[1]
        while b"1/6" not in process.stdout.readline():
            pass
        yield process, thread_id


def test_an_interrupted_command_says_how_to_go_on(told: Command, tmp_path: Path) -> None:
    """Ctrl-C ends the process, not the thread; a second process sees it paused, a third goes on."""
    own = ("--store", "sqlite:///own.db")
    with in_second_phase(tmp_path, *own) as (process, thread_id):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    paused, resumed = (told(word, thread_id[:8], *own) for word in ("pause", "resume"))

    said = f"interrupted; `sabir threads resume {thread_id[:8]} --store sqlite:///own.db` continues the thread"
    assert process.returncode == 130
    assert [line for line in err.decode().splitlines() if line] == [f"sabir: {said}"]
    assert paused == f"thread {thread_id} is paused\n"
    assert "completed 6/6" in resumed


SLOW = """
import asyncio, os, pathlib, signal, sys
from sabir_actors import agents
from sabir_cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
real, asked = agents.evaluate, []
go = pathlib.Path(os.environ.get("WAITS_FOR", "never"))

async def evaluate(*given, **how):
    asked.append(1)
    while len(asked) > 1 and not go.exists():
        await asyncio.sleep(0.01)
    return await real(*given, **how)

agents.evaluate = evaluate
sys.exit(main(["threads", *sys.argv[1:]]))
"""
"""The command whose second phase waits for a file."""


def test_a_terminal_is_shown_the_live_table(told: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    out = told("run", "Why?")

    assert "understanding" in out
    assert "processing 0/6" not in out
