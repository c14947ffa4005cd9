"""The rows about actors and threads measure what they say: messages, phases, heartbeats, workers, memory."""

from importlib import import_module

import pytest

from tests.benchmarks import broker, work
from tests.benchmarks.checks import differs
from tests.benchmarks.contenders import sabir_actors
from tests.benchmarks.interleave import SERVERS
from tests.benchmarks.test_rows_of_runs import prepared
from tests.benchmarks.work import Given
from tests.servers.postgres import database, postgres

__all__ = ["database", "postgres"]  # fixtures

IN_MEMORY, SQLITE = Given("in memory"), Given("SQLite")
DONE = {"evidence", "cold"}


@pytest.mark.parametrize("contender", ["bare_queues", "sabir_actors"])
def test_a_message_is_answered(contender: str) -> None:
    """By an actor as by a task behind two queues."""
    assert prepared(contender, "actor_message", IN_MEMORY).keys() == DONE


@pytest.mark.parametrize(
    ("contender", "given"), [("bare_records", SQLITE), ("sabir_actors", SQLITE), ("sabir_actors", IN_MEMORY)]
)
def test_a_thread_goes_through_its_phases(contender: str, given: Given) -> None:
    """In memory, in a store, and as rows that were written before; other work is noticed."""
    assert prepared(contender, "actor_phase", given).keys() == DONE
    assert differs("actor_phase", given, {"phases": work.PHASES[:-1], "text": work.reply_text()})


def test_the_bare_rows_are_those_of_a_thread() -> None:
    """As many, of the same kinds, of each phase: what is asked, what is answered, that it is done."""
    bare, own = import_module("tests.benchmarks.contenders.bare_records").Rows(SQLITE), sabir_actors.Phases(SQLITE)
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
    monkeypatch.setattr(sabir_actors, "LEAST", 0.2)
    monkeypatch.setattr(sabir_actors, "MOST", 0.6)
    given = Given("in memory", 20)
    figures = prepared("sabir_actors", "actor_heartbeat", given)["cold"]["figures"]

    assert 0 < figures["median"] <= figures["p99"]
    right = {"together": 20, "completed": 20, "phases": [20] * 3, "begun": 20}
    assert not differs("actor_heartbeat", given, right)
    assert all(differs("actor_heartbeat", given, {**right, name: 19}) for name in right)


@pytest.mark.parametrize("wire", ["created, in memory", sabir_actors.PAUSED])
def test_idle_threads_are_as_said(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, or paused; what they take is told, and one in another state is noticed."""
    monkeypatch.setattr(sabir_actors, "REMEMBERED", 2)
    given = Given(wire, 3)

    assert prepared("sabir_actors", "actor_memory", given)["evidence"]["held"] > 0
    assert differs("actor_memory", given, {"held": 1, "states": {"created": 2, "paused": 1}})


def test_workers_share_the_threads(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them run some, and end with the task; a thread or a worker too few is noticed."""
    monkeypatch.setattr(work, "THREADS", 24)
    given = Given("Postgres", 2, database)

    assert prepared("sabir_workers", "actor_workers", given)["cold"]["figures"]["each"] > 0
    assert differs("actor_workers", given, {"completed": 23, "workers": 2})
    assert differs("actor_workers", given, {"completed": 24, "workers": 1})


def test_every_server_that_a_case_may_name_is_started_by_a_contender() -> None:
    """And by no other name."""
    assert set(SERVERS) == {"stub", *broker.REQUIRED_BY}
