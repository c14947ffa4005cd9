"""A turn of which nothing is left is none: its neighbours meet, and the wire's order is kept all the same."""

import pytest
from sabir.vocabulary.messages import Message

from tests.laws.rules import check_pairing
from tests.laws.test_dialect_laws import DIALECTS, items, render, renderer
from tests.laws.test_pairing_laws import said, tool_call, tool_result

GONE = {"call": tool_call("a", 1), "blank": said("llm", " "), "empty": said("llm", "")}
MORE = {
    "user": [said("user", "v")],
    "system": [said("system", "w")],
    "late result": [said("user", "v"), tool_result("a", 1)],
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
def test_where_nothing_is_left_of_a_turn_its_neighbours_may_meet(name: str, gone: Message, more: list[Message]) -> None:
    """Laws 1 and 4: the order is that of the wire, and what was sent before stays as it was."""
    asked = [said("user", "u"), said("system", "s"), gone]
    kept = renderer(name)
    before = items(name, render(name, asked, kept))
    rendering = render(name, [*asked, *more], kept)

    assert rendering is not None
    check_pairing(name, rendering.body_bytes)
    at = 2 if len(before) > 1 else 1
    assert items(name, rendering)[:at] == before[:at]
