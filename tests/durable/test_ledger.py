"""The ledger keeps the first word, and takes none from who lost the run."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sabir_runtime.durable import RunNotFound, RunTaken
from sabir_runtime.durable.layouts import make_tables
from sabir_runtime.durable.ledger import Hold, Ledger
from sabir_runtime.durable.stores import open_store, parse_store
from sabir_runtime.durable.tables import CallRequest, CallRow, RunRow

ASKED = CallRequest("llm", "digest", "{}")
PATH = "0:main"


@pytest.fixture
def ledger(store: str) -> Iterator[Ledger]:
    engine = open_store(parse_store(store))
    make_tables(engine)
    make_tables(engine)  # a second worker finds them
    yield Ledger(engine)
    engine.dispose()


@pytest.fixture
def hold(ledger: Ledger) -> Hold:
    ledger.create(RunRow("r", "app", "1", "Context", "main", "digest", "{}"))
    return claimed(ledger, "worker")[1]


def claimed(ledger: Ledger, worker: str) -> tuple[RunRow, Hold, dict[str, CallRow]]:
    taken = ledger.claim("r", worker)
    assert taken is not None
    return taken


def test_a_call_begins_once(ledger: Ledger, hold: Hold) -> None:
    """RN-24: nothing is returned the first time, the row that stands there each later time."""
    assert ledger.begin(hold, PATH, 0, ASKED) is None
    standing = ledger.begin(hold, PATH, 5, replace(ASKED, digest="other"))

    assert standing is not None
    assert (standing.number, standing.digest, standing.state) == (0, "digest", "started")


def test_the_first_batch_is_kept(ledger: Ledger, hold: Hold) -> None:
    """D-11: whoever comes later is told what was chosen; a result that belongs to another batch is not taken."""
    ledger.begin(hold, PATH, 0, ASKED)
    assert ledger.decide(hold, PATH, "[1]") is None
    standing = ledger.decide(hold, PATH, "[2]")
    refused = ledger.finish(hold, PATH, "[2]", "[2, 3]")

    assert standing is not None and refused is not None
    assert (standing.batch, refused.batch, refused.state) == ("[1]", "[1]", "started")


def test_the_first_result_or_failure_is_kept(ledger: Ledger, hold: Hold) -> None:
    """D-11, RN-26: one result only, and no failure after it; failures are results too, and so are answers."""
    for number, path in enumerate((PATH, "0:other")):
        ledger.begin(hold, path, number, ASKED)
    assert ledger.finish(hold, PATH, "[1]", None) is None
    assert ledger.fail(hold, "0:other", None, '{"type": "first"}') is None
    assert ledger.answer(hold, "0:main/[c1]", 2, ASKED, "[1]", 0.0) is None
    later = [
        ledger.finish(hold, PATH, "[1]", "[4]"), ledger.fail(hold, PATH, None, "{}"),
        ledger.finish(hold, "0:other", "[1]", None), ledger.answer(hold, "0:main/[c1]", 3, ASKED, "[2]", 0.0),
    ]  # fmt: skip

    assert [row and (row.state, row.batch, row.result, row.failure) for row in later] == [
        *[("done", "[1]", None, None)] * 2, ("failed", None, None, '{"type": "first"}'), ("done", None, "[1]", None),
    ]  # fmt: skip


def test_who_lost_the_run_writes_no_more(ledger: Ledger, hold: Hold) -> None:
    """Every write names the epoch in which the run was taken; each of them is refused in a later one."""
    ledger.begin(hold, PATH, 0, ASKED)
    run, later, known = claimed(ledger, "another")
    writes = (
        lambda: ledger.begin(hold, "0:main/0:new", 1, ASKED),
        lambda: ledger.decide(hold, PATH, "[1]"),
        lambda: ledger.wait(hold, PATH),
        lambda: ledger.answer(hold, "0:main/[c1]", 1, ASKED, "[1]", 0.0),
        lambda: ledger.finish(hold, PATH, "[1]", None),
        lambda: ledger.fail(hold, PATH, None, "{}"),
    )
    for write in writes:
        with pytest.raises(RunTaken, match="'r' was stopped, or given to another worker; see `sabir runs show r`"):
            write()

    assert (run.epoch, later.epoch, run.worker) == (2, 2, "another")
    assert [(call.state, call.batch) for call in ledger.calls("r")] == [("started", None)]
    assert list(known) == [PATH]
    assert ledger.finish(later, PATH, "[1]", None) is None


def test_a_person_decides_only_what_is_open(ledger: Ledger, hold: Hold) -> None:
    ledger.begin(hold, PATH, 0, ASKED)
    waiting = ledger.wait(hold, PATH)
    assert ledger.find_decided([("r", PATH)]) == []
    first, second = ledger.decide_for("r", PATH, "[1]"), ledger.decide_for("r", PATH, "[2]")

    assert (waiting.state, first, second) == ("waiting", True, False)
    assert [call.batch for call in ledger.find_decided([("r", PATH)])] == ["[1]"]


def test_what_is_not_there_is_named(ledger: Ledger, hold: Hold) -> None:
    with pytest.raises(RunNotFound, match=r"no run is named 'x'; `sabir runs list` shows"):
        ledger.run("x")
    with pytest.raises(RunNotFound, match=r"run 'r' has no call at '9:no'; `sabir runs show r` lists"):
        ledger.call("r", "9:no")


def test_a_run_is_written_down_once_with_what_belongs_to_it(ledger: Ledger, hold: Hold) -> None:
    """What shall happen with a new run happens in one transaction with it, or not at all."""
    done: list[str] = []
    asked = RunRow("r", "app", "1", "Context", "main", "other digest", "{}")
    assert ledger.create(asked, lambda _: done.append("r")).digest == "digest"

    def fails(connection: object) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        ledger.create(replace(asked, run="new"), fails)
    with pytest.raises(RunNotFound):
        ledger.run("new")
    assert done == []
