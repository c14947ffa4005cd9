"""Killed at any point, a run ends as if it had not been: the crash matrix of the durable runner.

A child performs the run of `assistant` and is killed with SIGKILL: before and after every write of the ledger, the
engine's start and end of the run, every call of the provider and every option. Another child carries it on.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from sabir_runtime.durable import Runs, StoreInvalid
from sabir_runtime.durable.tables import CallRow

from tests.durable.assistant import TURNS, Journal
from tests.durable.children import Finished, perform, two_at_once

POINTS = 68
EFFECTS = {
    **{f"0:main/{turn}:model": f"asked {turn}" for turn in range(len(TURNS) + 1)},
    **{f"/[add-{turn}]/0:add": f"add {number}" for turn, (_, number) in enumerate(TURNS)},
    **{f"/[shout-{turn}]/0:shout": f"shout {word}" for turn, (word, _) in enumerate(TURNS)},
}
"""The end of a call's path → the line that its policy writes into the journal."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("whole")
    return perform(f"sqlite:///{folder / 'runs.db'}", folder)


def test_the_points_are_all_writes_provider_calls_and_options(uninterrupted: Finished) -> None:
    """Each is passed twice, before and after it: 8 bound calls, 4 answers, 2 batches with calls, 3 questions."""
    passed = Counter(name.partition(" ")[2] for name in uninterrupted.points)

    assert passed == {
        "create": 2, "init_workflow": 2, "claim": 2, "begin": 16, "decide": 4, "answer": 8, "finish": 16,
        "ask": 6, "work": 8, "release": 2, "update_workflow_outcome": 2,
    }  # fmt: skip
    assert len(uninterrupted.points) == POINTS
    assert uninterrupted.messages[-1].text == "done"


def test_a_run_killed_anywhere_ends_alike(store: str, tmp_path: Path, uninterrupted: Finished) -> None:
    """RN-24, RN-25, RN-26, D-11: nothing that was recorded is done again, and the messages are the same.

    On Postgres, the points after each write are left to `nox -s crashes`: the next point finds the same rows.
    """

    def kill_at(point: int) -> None:
        folder = tmp_path / f"killed-{point}"
        folder.mkdir()
        own = f"sqlite:///{folder / 'runs.db'}" if store.startswith("sqlite") else store
        interrupted(own, folder, point, uninterrupted)

    every = 1 if store.startswith("sqlite") or os.environ.get("SABIR_ALL_CRASHES") == "1" else 2
    two_at_once(kill_at, range(0, POINTS, every))


@pytest.mark.parametrize("point", [9, 21, 33, 45])
def test_branches_of_several_calls_each_are_killed_and_go_on(store: str, tmp_path: Path, point: int) -> None:
    """RN-32, D-11: no branch is given another's results; an engine that numbers steps as they start would do so."""
    killed = perform(store, tmp_path, until=point, program="branches")
    resumed = perform(store, tmp_path, program="branches")

    assert killed.was_killed
    assert [message.text for message in resumed.messages] == [f"{name}{index}" for name in "abc" for index in range(4)]


def interrupted(store: str, folder: Path, point: int, uninterrupted: Finished) -> None:
    """Kill the run at a point, carry it on, and see what was done again."""
    journal = Journal(folder / "journal")
    assert perform(store, folder, until=point).was_killed
    recorded, done_before = ledger(store, folder.name), Counter(journal.lines())

    resumed = perform(store, folder)

    done = Counter(journal.lines())
    shown = f"killed at point {point}"
    assert resumed.exit_code == 0, shown
    assert len(resumed.messages) == len(uninterrupted.messages), shown
    for ours, theirs in zip(resumed.messages, uninterrupted.messages, strict=True):
        assert ours.same_content(theirs), shown
    for ending, line in EFFECTS.items():
        is_recorded = any(call.path.endswith(ending) and (call.batch or call.result) for call in recorded)
        assert done[line] == max(1, done_before[line]) if is_recorded else 1 <= done[line] <= 2, (shown, line)


def ledger(store: str, run: str) -> list[CallRow]:
    try:
        with Runs(store) as runs:
            return runs.ledger.calls(run)
    except StoreInvalid:  # killed before there was one
        return []
