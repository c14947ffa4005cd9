"""A row in another serialization is refused wherever the engine reads it: no pickle in a store is ever loaded."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS, DBOSClient, SetWorkflowID
from sabir_runtime.durable import DurableRunner, RowRefused, engine, stores
from sabir_runtime.durable.engine import make_client
from sabir_runtime.durable.row_guard import SERIALIZATION
from sqlalchemy import create_engine, text

from tests.durable.children import BEAT, POLL
from tests.durable.foreign_rows import PAYLOADS, SCHEMAS, mark, poison, unguarded
from tests.durable.support import Gate, Program, saying, working

QUEUE = "sabir.Program"
PATIENCE = 5.0
"""Seconds after which a workflow that was performed again is not waited for."""


LOADED = {
    "notifications.message",
    "operation_outputs.error",
    "operation_outputs.output",
    "streams.value",
    "workflow_events.value",
    "workflow_input.inputs",
    "workflow_output.error",
    "workflow_output.output",
}
"""Columns with values that DBOS loads as pickles. It keeps no inputs and results in `workflow_status` since 3.4."""


@DBOS.step(name="tests.step")
def step() -> str:
    return "stepped"


@DBOS.step(name="tests.failing")
def failing() -> None:
    raise LookupError("failed")


@DBOS.workflow(name="tests.child")
def child() -> str:
    return "child"


@DBOS.workflow(name="tests.everything")
def everything() -> str:
    """Use everything whose value the engine records, so that a second run reads it again."""
    for use in (
        step, failing, child,
        lambda: DBOS.recv(timeout_seconds=0),
        lambda: DBOS.set_event("key", "value"),
        lambda: DBOS.get_event("other", "key", timeout_seconds=0),
        lambda: DBOS.write_stream("stream", "value"),
        lambda: DBOS.sleep(0.001),
    ):  # fmt: skip
        with suppress(Exception):
            use()
    return "everything"


@DBOS.workflow(name="tests.ending")
def ending() -> None:
    raise LookupError("ended")


def record_everything(client: DBOSClient) -> None:
    """Record values of every kind, and wait for the workflows that record them."""
    with SetWorkflowID("other"), suppress(LookupError):
        DBOS.start_workflow(ending).get_result()
    with SetWorkflowID("everything"):
        DBOS.start_workflow(everything).get_result()
    client.send("everything", "message")
    client.create_schedule(
        schedule_name="schedule", workflow_name="tests.child", schedule="0 0 1 1 *", context={"a": 1}
    )
    client.pause_schedule("schedule")


def perform_again(client: DBOSClient, store: str) -> None:
    """Have the worker perform the workflow from its records, then once more without what it received."""
    for statement in ("SELECT 1", "DELETE FROM {}operation_outputs WHERE function_name IN ('DBOS.recv', 'DBOS.sleep')"):
        with unguarded(store) as connection:
            schema = SCHEMAS[connection.dialect.name]
            connection.execute(text(statement.format(schema)))
            cancel = f"UPDATE {schema}workflow_status SET status = 'CANCELLED' WHERE workflow_uuid = 'everything'"
            connection.execute(text(cancel))
        client.resume_workflow("everything", queue_name=QUEUE)
        deadline = time.monotonic() + PATIENCE
        while is_open("everything", store) and time.monotonic() < deadline:
            time.sleep(POLL)


def is_open(workflow: str, store: str) -> bool:
    """Return whether a workflow has not ended; without the guard, one whose inputs are a pickle never ends."""
    with unguarded(store) as connection:
        query = f"SELECT status FROM {SCHEMAS[connection.dialect.name]}workflow_status WHERE workflow_uuid = :name"
        return connection.execute(text(query), {"name": workflow}).scalar() in ("ENQUEUED", "PENDING")


def read_by_client(client: DBOSClient) -> dict[str, object]:
    """Call every method of the client that reads recorded values; returns its result or its error."""
    now = datetime.now(UTC)
    readers: dict[str, Callable[[], Any]] = {
        "list_workflows": client.list_workflows,
        "list_queued_workflows": client.list_queued_workflows,
        "list_workflow_steps": lambda: client.list_workflow_steps("everything"),
        "get_result": lambda: client.retrieve_workflow("everything").get_result(polling_interval_sec=POLL),
        "get_result of a failed one": lambda: client.retrieve_workflow("other").get_result(polling_interval_sec=POLL),
        "get_event": lambda: client.get_event("everything", "key", timeout_seconds=0),
        "read_stream": lambda: list(client.read_stream("everything", "stream")),
        "list_schedules": client.list_schedules,
        "get_schedule": lambda: client.get_schedule("schedule"),
        "trigger_schedule": lambda: client.trigger_schedule("schedule"),
        "backfill_schedule": lambda: client.backfill_schedule("schedule", now - timedelta(400), now),
        "fork_workflow": lambda: client.fork_workflow("everything", 100),
    }
    results: dict[str, object] = {}
    for name, read in readers.items():
        try:
            results[name] = read()
        except Exception as error:
            results[name] = error
    return results


def read_poisoned(client: DBOSClient, store: str, folder: Path) -> dict[str, object]:
    """Poison every value that the engine recorded, and have the worker and a client read each of them."""
    poison(store, folder, "operation_outputs", "notifications", "workflow_events", "workflow_events_history", "streams")
    perform_again(client, store)
    poison(store, folder, *PAYLOADS)
    results = read_by_client(client)
    perform_again(client, store)
    return results


async def sweep(store: str, folder: Path) -> dict[str, object]:
    """Record values of every kind, poison and read them, and perform a run in the same worker; return its results."""
    folder.mkdir()
    async with working(store, main=saying("hello")) as (runner, program):
        client = make_client(runner.runs.engine)
        await asyncio.to_thread(record_everything, client)
        results = await asyncio.to_thread(read_poisoned, client, store, folder)
        results["run"] = [message.text for message in await runner.run(program.main, "Hi.")]
        await asyncio.to_thread(client.destroy)
    return results


async def test_no_row_of_the_engine_can_load_a_pickle(store: str, tmp_path: Path) -> None:
    results = await sweep(store, tmp_path / "loaded")

    assert list((tmp_path / "loaded").iterdir()) == []
    assert results["run"] == ["hello"]
    for name in ("get_result", "get_result of a failed one", "get_event", "read_stream"):
        assert isinstance(results[name], RowRefused), (name, results[name])


async def test_without_the_guard_the_engine_loads_each_of_these_pickles(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above would see a file for each column that the engine loads by the serialization of its row."""
    for module in (stores, engine):
        monkeypatch.setattr(module, "guard_engine", lambda _: None)

    await sweep(store, tmp_path / "loaded")

    loaded = {path.name for path in (tmp_path / "loaded").iterdir()}
    assert sorted(loaded) == sorted(LOADED)


async def submit(store: str, run: str) -> None:
    """Give a run to workers of the store, of which there is none yet."""
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        await runner.submit(Program(runner, main=saying("hello")).main, "Hi.", run_id=run)


@pytest.mark.parametrize("serialization", ["py_pickle", "portable_json"])
async def test_a_queued_run_in_another_serialization_is_paused_and_others_are_performed(
    store: str, tmp_path: Path, serialization: str
) -> None:
    for run in ("foreign", "other"):
        await submit(store, run)
    poison(store, tmp_path, "workflow_input", run="foreign")
    with unguarded(store) as connection:
        mark(connection, "workflow_status", serialization, "foreign")

    async with working(store, main=saying("hello")) as (runner, _):
        other = await runner.result("other")
        with pytest.raises(RowRefused) as caught:
            await runner.result("foreign")
        summary = await asyncio.to_thread(runner.runs.summary, "foreign")
        forked = await runner.result(await asyncio.to_thread(runner.runs.fork, "foreign"))

    expected = (
        f"run 'foreign': the value in the engine's column inputs is in the serialization {serialization!r}, not"
        " 'sabir_json', so it was not loaded; check which other program writes to the store, then fork the run"
    )
    assert str(caught.value) == expected
    assert (summary.state, summary.fault) == ("paused", f"RowRefused: {expected}")
    assert [message.text for message in other + forked] == ["hello", "hello"]
    assert not (tmp_path / "workflow_input.inputs").exists()


async def test_a_refused_run_continues_when_its_row_is_restored(store: str, tmp_path: Path) -> None:
    await submit(store, "r")
    with unguarded(store) as connection:
        mark(connection, "workflow_status", "portable_json")
    async with working(store, main=saying("hello")) as (runner, _):
        with pytest.raises(RowRefused):
            await runner.result("r")
        with unguarded(store) as connection:
            mark(connection, "workflow_status", SERIALIZATION)
        await asyncio.to_thread(runner.runs.resume, "r")
        messages = await runner.result("r")

    assert [message.text for message in messages] == ["hello"]


async def test_a_refused_result_names_the_run_and_the_column(store: str, tmp_path: Path) -> None:
    async with working(store, main=saying("hello")) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
        poison(store, tmp_path, "workflow_status", "workflow_output")
        told = "^run 'r': the value in the engine's column output or error is in the serialization"
        with pytest.raises(RowRefused, match=told):
            await runner.result("r")

    assert not list(tmp_path.glob("workflow_*"))


async def test_a_row_that_changes_between_two_reads_is_checked_at_each(store: str, tmp_path: Path) -> None:
    """A worker that has taken a run checks the row that it loads, not one that it read before."""
    gate = Gate()
    async with working(store, main=gate) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await gate.reached.wait()
        poison(store, tmp_path, "workflow_status", "workflow_input")
        await asyncio.to_thread(runner.runs.pause, "r")
        await asyncio.wait([performing])
        await asyncio.to_thread(runner.runs.resume, "r")
        with pytest.raises(RowRefused):
            await runner.result("r")

    assert not list(tmp_path.glob("workflow_*"))


async def test_an_engine_of_the_caller_is_guarded_too(sqlite: str, tmp_path: Path) -> None:
    """Its connections may be open already."""
    await submit(sqlite, "r")
    poison(sqlite, tmp_path, "workflow_status", "workflow_input")
    own = create_engine(sqlite)
    own.connect().close()
    workflows = await asyncio.to_thread(lambda: make_client(own).list_workflows())
    own.dispose()

    assert [workflow.workflow_id for workflow in workflows] == ["r"]
    assert not list(tmp_path.glob("workflow_*"))


def rows_of(store: str, *serializations: str) -> list[tuple[object, ...]]:
    """Fetch a row for each of these SQL values through a guarded engine."""
    guarded = stores.open_store(stores.parse_store(store))
    columns = "'r' AS workflow_uuid, 'x' AS value"
    with guarded.connect() as connection:
        rows = [connection.execute(text(f"SELECT {columns}, {each} AS serialization")) for each in serializations]
        fetched = [tuple(row.one()) for row in rows]
    guarded.dispose()
    return fetched


def test_another_serialization_is_refused_whatever_its_type(sqlite: str) -> None:
    """SQLite stores any type in any column."""
    rows = rows_of(sqlite, "x'70795f7069636b6c65'", "0", "'sabir_json '", "'msgpack'", "''")

    assert [row[2] for row in rows] == [SERIALIZATION] * 5
    assert all("sabir_refused" in str(row[1]) for row in rows)


def test_rows_in_our_serialization_are_unchanged(store: str) -> None:
    assert rows_of(store, "NULL", "'sabir_json'") == [("r", "x", None), ("r", "x", "sabir_json")]
