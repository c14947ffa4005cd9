"""The states of a thread: from which one leads to which (CH-20, D-24), and what a journal's events come to."""

from typing import get_args

import pytest
from hypothesis import strategies as st
from sabir_actors import AEIOUY, ActorError, ErrorCode, ThreadEvent, ThreadView
from sabir_actors.data import ThreadState
from sabir_actors.state import ENDS, MOVES, What
from sabir_session.state.codec import now

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
