"""How a thread is shown on a terminal: a table that fits, and in which nothing moves."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console
from sabir_actors import AEIOUY, ThreadEvent, ThreadView, thread_display
from sabir_actors.data import PhaseOutput

ESCAPE = "\x1b[2J"


def view(**usage: Any) -> ThreadView:
    made = ThreadView()
    at = datetime.now(UTC)
    said = {"thread_id": "5e0a22a0-c178", "user_id": "me", "initial_input": f"{ESCAPE}Why?", "chain": "aeiou-y"}
    made.apply(ThreadEvent(what="created", at=at, data={**said, "phases": list(AEIOUY)}))
    made.apply(ThreadEvent(what="started", at=at, data={"by": "a system"}))
    output = PhaseOutput(response="So.", next_phase="experience", confidence=0.8).model_dump(mode="json")
    done = {"phase_type": "action", "output": output, "processing_time": 2.5, "usage": usage}
    made.apply(ThreadEvent(what="phase_done", at=at, data=done))
    return made


def drawn(seen: ThreadView, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, record=True)
    console.print(thread_display.table_of(seen, width))
    return console.export_text().splitlines()


def test_the_table_shows_phase_state_time_tokens_and_cost() -> None:
    lines = drawn(view(model="openai:gpt-5", input_tokens=1000, output_tokens=2000))
    cells = [[cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in lines]

    assert max(map(len, lines)) == 80
    assert cells[2] == ["phase", "state", "time", "tokens in", "out", "cost", "sure"]
    assert cells[4] == ["action", "done", "2.5 s", "1000", "2000", "$0.0212", "0.8"]
    assert cells[5][:2] == ["experience", "running"]
    assert [row[0] for row in cells[4:10]] == list(AEIOUY)
    assert cells[11] == ["5e0a22a0", "processing", "2.5 s", "1000", "2000", "$0.0212", ""]
    assert "\x1b" not in "".join(lines)


def test_a_narrow_terminal_is_not_overrun() -> None:
    lines = drawn(view(), 50)

    assert max(map(len, lines)) == 50
    assert [name for name in AEIOUY if not any(f"│ {name} " in line for line in lines)] == []
    assert "cost" not in lines[2]
    assert "…" not in "".join(lines)


def test_no_column_moves_while_a_thread_goes_on() -> None:
    """A live table whose lines jump cannot be read."""
    seen = view(model="openai:gpt-5", input_tokens=1000, output_tokens=2000)
    going = drawn(seen)
    seen.apply(ThreadEvent(what="failed", at=datetime.now(UTC), data={"error_message": "no"}))

    assert drawn(seen)[1] == going[1]


def test_without_the_table_of_prices_costs_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sabir_prices", None)

    assert thread_display.cost_of_phase({"model": "openai:gpt-5", "input_tokens": 1, "output_tokens": 1}) is None
