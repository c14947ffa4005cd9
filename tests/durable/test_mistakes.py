"""What cannot be right is said in one line, before anything waits for it."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from sabir.errors import SettingsInvalid
from sabir_runtime import BaseContext
from sabir_runtime.durable import DurableFault, DurableRunner, RunConflict, Runs, StoreInvalid
from sabir_runtime.durable.stores import bounds_of, open_store, parse_store
from sqlalchemy import text

from tests.durable.children import BEAT, POLL
from tests.durable.support import Program, saying, working


async def test_a_name_must_stand_in_a_line(sqlite: str) -> None:
    told = "is not a valid name for a run; use 1 to 200 printable characters"
    async with working(sqlite, main=saying("hello")) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
        for name in ("", "  ", "two\nlines", "a\x00b", "\x1b[31m", "r" * 201, "\u202egnirts", "\ud800"):
            for asked in (
                runner.run(program.main, "Hi.", run_id=name),
                runner.start(program.main, "Hi.", run_id=name),
                asyncio.to_thread(runner.runs.fork, "r", name=name),
            ):
                with pytest.raises(RunConflict, match=told) as caught:
                    await asked
                assert "\n" not in str(caught.value)
        assert len(runner.runs.list()) == 1


@pytest.mark.parametrize("given", [{name: s} for name in ("beat", "poll") for s in (0.0, float("nan"), float("inf"))])
def test_a_time_between_looks_is_one(sqlite: str, given: dict[str, float]) -> None:
    ((name, seconds),) = given.items()
    with pytest.raises(SettingsInvalid, match=f"{name}={seconds} is not a valid interval; give a number of seconds"):
        DurableRunner(sqlite, **given)
    with pytest.raises(SettingsInvalid, match="at_once=0 is not a valid limit; give 1 or more"):
        DurableRunner(sqlite, at_once=0)


@pytest.mark.parametrize("store", ["", " ", "runs.db", "sqlite://", "sqlite:///:memory:"])
def test_what_names_no_store_is_refused(store: str) -> None:
    for make in (DurableRunner, Runs):
        with pytest.raises(StoreInvalid, match=r"give sqlite:///file.db or postgresql://user@host/database"):
            make(store)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """It is not made: the name is a mistake more often than not."""
    store = f"sqlite:///{tmp_path / 'none' / 'runs.db'}"
    with pytest.raises(StoreInvalid, match=r"none/runs.db cannot be opened: unable to open database file"):
        await DurableRunner(store).launch()
    with pytest.raises(StoreInvalid, match="has no tables of runs"):
        Runs(store)

    assert list(tmp_path.iterdir()) == []


async def test_two_classes_of_one_name_are_told_apart(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take each other's runs; the same class again, or defined again in its module, is none of them."""
    other = ModuleType("other_program")
    monkeypatch.setitem(sys.modules, "other_program", other)
    other.__dict__.update(BaseContext=BaseContext, __file__="other_program.py")
    exec("class Program(BaseContext): pass", other.__dict__)  # as another file would define it
    runner = DurableRunner(sqlite)
    Program(runner)
    Program(runner)
    type("Program", (BaseContext,), {"__module__": __name__.rpartition(".")[0] + ".support"})(runner)
    with pytest.raises(
        DurableFault, match=r"support.Program and other_program.Program have the same stored name, .*; rename one"
    ):
        other.Program(runner)
    with pytest.raises(DurableFault, match="rename one of them, or give one of them another stored_as"):
        type("Desk", (BaseContext,), {"stored_as": "Program"})(runner)
    async with working(sqlite), DurableRunner(sqlite, beat=BEAT, poll=POLL) as second:  # two runners of one worker
        other.Program(second)
        with pytest.raises(DurableFault, match="have the same stored name"):
            await second.launch()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


async def test_a_server_that_says_nothing_is_not_waited_for(silent: int) -> None:
    """As where a network swallows packets: `connect_timeout` ends it, the URL's own where it gives one."""
    store = f"postgresql://me@127.0.0.1:{silent}/runs?connect_timeout=2"
    with pytest.raises(StoreInvalid, match=r"cannot be opened: .*timeout expired"):
        Runs(store)
    with pytest.raises(StoreInvalid, match=r"cannot be opened: .*timeout expired"):
        await DurableRunner(store).launch()


def test_connections_have_bounds_unless_the_url_says_otherwise(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    whole = {name: str(bound) for name, bound in bounds_of(parse_store(database)).items()}
    assert whole["connect_timeout"] == "10"
    engine = open_store(parse_store(f"{database}?keepalives_idle=77"))
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        used = driver.info.get_parameters()
        assert connection.execute(text("SELECT 1")).scalar() == 1
    engine.dispose()
    assert {name: used[name] for name in whole} == {**whole, "keepalives_idle": "77"}

    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    assert "connect_timeout" not in bounds_of(parse_store(database))


def test_to_look_at_runs_imports_no_engine(sqlite: str) -> None:
    """It takes a second; nor the driver of the other kind of store, nor a runner."""
    asyncio.run(one_run(sqlite))
    source = (
        "import sys; from sabir_cli.main import main;"
        f"code = main(['runs', 'list', '--store', {sqlite!r}]) or main(['runs', 'show', 'r', '--store', {sqlite!r}]);"
        "import json; print(json.dumps([code, [name for name in ('dbos', 'psycopg', 'sqlalchemy.orm', 'asyncpg',"
        " 'sabir_runtime.durable.runner', 'sabir_runtime.durable.engine') if name in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True)

    assert json.loads(done.stdout.splitlines()[-1]) == [0, []]


async def one_run(store: str) -> None:
    async with working(store, main=saying("hello")) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
