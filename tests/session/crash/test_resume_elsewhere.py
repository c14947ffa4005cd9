"""What was recorded under one provider goes on under any other, wherever it was interrupted (WI-02).

whole run under A ─▶ n records ─▶ for each k: a session that holds the first k ─▶ resumed under B ─▶ B's rules
"""

from typing import Any

import pytest
from sabir import ModelAdapter
from sabir.authoring import InProcessResponse, WireRequest
from sabir_session import evaluate_sync

from tests.session.crash import wires
from tests.session.crash.child import PROMPT
from tests.session.support import Line, ListJournal, numbers_of, recording, records_of

NUMBERS = [
    ("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1), ("tool", 3, 1), ("tool", 4, 1),
    ("assistant", 5, 2), ("tool", 6, 2), ("assistant", 7, 3),
]  # fmt: skip
DIALECTS = tuple(wires.MODELS)
WHERE_SEALED = {
    "openai.responses": "sealed-cipher",
    "anthropic.messages": "sealed-sign",
    "google.generate_content": "c2VhbGVkLXNpZ24=",
}
"""Dialect → what only its own maker may see again."""


def look_up(city: str) -> str:
    """Look up a city."""
    return f"{city} is open"


def book(city: str, seats: int) -> dict[str, Any]:
    """Book seats."""
    return {"booked": city, "seats": seats}


def strict(dialect: str, bodies: list[bytes]) -> ModelAdapter:
    """An adapter whose service takes only what that wire's rules and the vendor's own types accept."""

    def serve(request: WireRequest) -> InProcessResponse:
        bodies.append(request.body)
        return InProcessResponse(200, [wires.answer(dialect, request.body)])

    return wires.adapter(dialect, serve)


def recorded(dialect: str, lines: list[Line] | None = None, *, resume: bool = False) -> tuple[ListJournal, list[bytes]]:
    """The journal of a run under a dialect, whole or resumed, and the requests made for it."""
    bodies: list[bytes] = []
    journal = ListJournal(lines or ())
    llm = strict(dialect, bodies)
    evaluate_sync(llm, PROMPT, session=recording(journal), options=[look_up, book], resume=resume)
    return journal, bodies


@pytest.mark.parametrize("first", DIALECTS)
@pytest.mark.parametrize("second", DIALECTS)
def test_a_conversation_recorded_anywhere_is_resumed_everywhere(first: str, second: str) -> None:
    """WI-02, WI-43 … WI-47, D-16, D-45, UP-12, UP-14, UP-15: all ordered pairs of dialects, interrupted after each
    record; every request keeps the other's rules and holds nothing that was sealed for the first, and the records
    are numbered as in one run."""
    journal, _ = recorded(first)
    whole = records_of(recording(journal))
    assert numbers_of(recording(journal)) == NUMBERS
    for length in range(1, len(journal.lines)):
        resumed, bodies = recorded(second, journal.lines[:length], resume=True)
        session = recording(resumed)

        assert numbers_of(session) == NUMBERS, f"interrupted after {length} records"
        assert len(bodies) == 3 - sum(role == "assistant" for role, _, _ in NUMBERS[:length])
        assert resumed.lines[:length] == journal.lines[:length]
        assert [_words(record) for record in records_of(session)] == [_words(record) for record in whole]
        if first in WHERE_SEALED:
            assert any(WHERE_SEALED[first].encode() in body for body in bodies) == (first == second)


def _words(record: dict[str, Any]) -> tuple[Any, ...]:
    """What a record says whoever said it."""
    calls = [(call["name"], call["arguments"], call["status"]) for call in record["tool_calls"]]
    return record["role"], record["content"], calls
