"""The states of a thread: from which one leads to which (CH-20, D-24), and what a journal's events come to."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_actors import AEIOUY, ActorError, ErrorCode, ThreadEvent, ThreadView
from sabir_actors.data import ThreadState
from sabir_actors.protocol import now
from sabir_actors.state import ENDS, MOVES, What

STATES: tuple[ThreadState, ...] = get_args(ThreadState)
CREATED = {"thread_id": "t", "user_id": "u", "initial_input": "hi", "chain": "aeiou-y", "phases": AEIOUY}
STEERING = st.sampled_from([*MOVES, "taken", "refused"])


def event(what: What, **data: object) -> ThreadEvent:
    """An event of now."""
    return ThreadEvent(what=what, at=now(), data=dict(data))


def view_of(*events: ThreadEvent) -> ThreadView:
    """What they come to, after a creation."""
    view = ThreadView()
    for each in (event("created", **CREATED), *events):
        view.take(each)
    return view


def phase_done(phase: str) -> ThreadEvent:
    """The end of a phase."""
    return event("phase_done", phase_type=phase, output={"response": phase}, processing_time=0.1)


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("what", MOVES)
def test_a_move_is_allowed_from_the_states_of_the_table_alone(what: What, status: ThreadState) -> None:
    """CH-20, D-24: any other is INVALID_STATE, names the state, and changes nothing."""
    view = view_of()
    view.status = status
    if status in MOVES[what][0]:
        view.allow(what)
        return
    with pytest.raises(ActorError, match=f"thread t is {status}; it becomes {MOVES[what][1]} only from") as caught:
        view.allow(what)
    assert caught.value.code is ErrorCode.INVALID_STATE and not caught.value.retryable
    assert view.status == status


def test_no_move_leads_out_of_an_end() -> None:
    """CH-20: anything after terminate, completed and failed is refused."""
    assert {"completed", "failed", "terminated"} == ENDS
    assert all(before.isdisjoint(ENDS) for before, _ in MOVES.values())


@given(st.lists(STEERING, max_size=20))
def test_the_state_is_that_of_the_last_move(wanted: list[What]) -> None:
    """D-24: what is no move leaves the state and the time of the last change as they were."""
    view, status = view_of(), "created"
    for what in wanted:
        before = view.updated_at
        view.take(event(what))
        status = MOVES[what][1] if what in MOVES else status
        assert view.status == status
        assert what in MOVES or view.updated_at == before


@given(st.integers(0, len(AEIOUY)))
def test_completed_and_remaining_phases_are_the_chain_in_order(count: int) -> None:
    """CH-19, CH-21."""
    view = view_of(event("started"), *map(phase_done, AEIOUY[:count]))
    assert (*view.outputs, *view.remaining) == AEIOUY
    assert view.current_phase == (AEIOUY[count] if count < len(AEIOUY) else None)


def test_who_ran_a_thread_last_runs_it() -> None:
    """A start, a resume and a taking say by whom; other events leave that."""
    assert view_of().runner is None
    assert view_of(event("started", by="a"), event("paused")).runner == "a"
    assert view_of(event("started", by="a"), event("taken", by="b"), phase_done("action")).runner == "b"


def test_the_cause_of_an_end_is_kept() -> None:
    """CH-18, CH-49: later refusals do not hide it."""
    view = view_of(event("started"), event("failed", error_message="no", error_code="AGENT_ERROR"), event("refused"))
    assert (view.status, view.cause["error_message"]) == ("failed", "no")


def test_what_a_newer_release_wrote_beside_is_kept() -> None:
    """An event with fields that this release does not know is read."""
    told = ThreadEvent.model_validate({**event("paused").model_dump(), "weather": "rain"})
    assert view_of(event("started"), told).status == "paused"
