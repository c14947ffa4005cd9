"""One question at a time: whatever objects, tasks, threads and processes ask one conversation of one store."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sabir_session import Conversation, Store
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.session.askers import (
    ANSWERED,
    BUSY,
    STORES,
    UNFINISHED,
    Ask,
    Askers,
    Child,
    Outcomes,
    Plan,
    open_conversation,
)
from tests.session.support import Stopped

SHARED = ("path", "file", "postgres", "url")
"""The kinds of store that exclude other processes."""
PLANS = st.builds(
    lambda kinds, objects: Plan([Ask(kind, f"seat-{uuid4().hex[:6]}") for kind in kinds], objects),
    st.lists(st.sampled_from(["task", "thread"]), min_size=1, max_size=4),
    st.integers(1, 3),
)


@pytest.fixture(scope="module")
def children() -> Iterator[list[Child]]:
    """Two processes that live as long as the tests of this module."""
    children = [Child(), Child()]
    yield children
    for child in children:
        child.end()


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store."""
    return str(request.param)


@pytest.fixture
def place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of that kind."""
    return str(request.getfixturevalue("database")) if kind in ("postgres", "url") else str(tmp_path / "c.db")


def interrupt(keep: str | Store, name: str) -> None:
    """Ask for the seat UNFINISHED, and stop before its option has run."""

    def book(seat: str) -> str:
        raise Stopped

    model = ScriptedAdapter(calls(book={"seat": UNFINISHED}))
    with Conversation(model, options=[book], keep=keep, name=name) as chat, pytest.raises(Stopped):
        chat.ask_sync(UNFINISHED)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(plans=st.lists(PLANS, min_size=1, max_size=3), is_interrupted=st.booleans(), is_first=st.booleans())
def test_claims_let_one_question_run_at_a_time(
    kind: str, place: str, children: list[Child], plans: list[Plan], is_interrupted: bool, is_first: bool
) -> None:
    """Each accepted question runs its option once, an interrupted one included; a refused one runs nothing."""
    name = uuid4().hex
    helpers = children[: len(plans) - 1] if kind in SHARED else []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        log = Path(folder) / "log"
        log.touch()
        keep = STORES[kind](place)
        if isinstance(keep, Store):
            stack.enter_context(keep)
        if is_interrupted:
            interrupt(keep, name)
        own = Askers(keep, name, plans[0], log) if is_first else None
        for child, plan in zip(helpers, plans[1:], strict=False):
            child.open(kind, place, name, plan, log)
        own = own or Askers(keep, name, plans[0], log)
        outcomes = asked_at_once(own, helpers)
        check(outcomes, log.read_text().split("\n")[:-1], is_interrupted=is_interrupted)
        with open_conversation(keep, name, log) as chat:
            texts = [message.text for message in chat.messages if message.policy == "user"]
        assert texts == [line.partition(" ")[2] for line in log.read_text().split("\n")[:-1:2]]


def asked_at_once(own: Askers, helpers: list[Child]) -> Outcomes:
    """The outcomes in all processes."""
    for child in helpers:
        child.go()
    outcomes = own.ask()
    for child in helpers:
        outcomes |= child.outcomes()
    for child in helpers:
        child.let_go()
    own.close()
    return outcomes


def check(outcomes: Outcomes, lines: list[str], *, is_interrupted: bool) -> None:
    """Compare the log with the outcomes."""
    assert set(outcomes.values()) <= {ANSWERED, BUSY}
    accepted = [seat for seat, outcome in outcomes.items() if outcome == ANSWERED]
    assert accepted
    begun, ended = lines[::2], lines[1::2]
    assert [line.replace("begin", "end") for line in begun] == ended, "two options ran at the same time"
    assert sorted(line.partition(" ")[2] for line in begun) == sorted([UNFINISHED] * is_interrupted + accepted)


def test_claims_of_different_names_do_not_exclude_each_other(kind: str, place: str, tmp_path: Path) -> None:
    """A question of one conversation can run while one of another conversation runs."""
    with ExitStack() as stack:
        keep: Any = STORES[kind](place)
        if isinstance(keep, Store):
            stack.enter_context(keep)
        inner = stack.enter_context(open_conversation(keep, "inner", tmp_path / "log"))

        def book(seat: str) -> str:
            return inner.ask_sync(seat).text

        model = ScriptedAdapter(calls(book={"seat": "one"}), "Done.")
        outer = stack.enter_context(Conversation(model, options=[book], keep=keep, name="outer"))
        outer.ask_sync("Book it.")
        assert (tmp_path / "log").read_text() == "begin one\nend one\n"
