"""What two requests have in common is the same whether it is seen in their bytes or in their values.

bodies as rendered, of which the later begins with the earlier ──bytes──▶ SharedPrefix
the same bodies with white space, which begin alike nowhere   ──values─▶ the same SharedPrefix
"""

import json

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir import Message
from sabir.contract.dialect import Rendering
from sabir.errors import RenderingRefused
from sabir.vocabulary.reply import Usage

from tests.laws.every import on_every
from tests.laws.histories import histories
from tests.laws.targets import Wire, wires


def weather(city: str) -> str:
    """Current weather in a city."""
    return city


option = sabir.option(weather)
USAGES = st.sampled_from([None, Usage(input_tokens=1000, output_tokens=10)])


def spaced(rendering: Rendering, indent: int) -> Rendering:
    """The rendering with white space between the values of its body, which changes nothing that a model reads."""
    body = json.dumps(json.loads(rendering.body_bytes), ensure_ascii=False, indent=indent)
    return rendering.model_copy(update={"body_bytes": body.encode()})


@given(history=histories, count=st.integers(1, 6), usage=USAGES)
@on_every({wire.adapter.target.dialect: wire for wire in wires()}.values())
def test_bytes_and_values_tell_the_same_common_beginning(
    wire: Wire, history: list[Message], count: int, usage: Usage | None
) -> None:
    try:
        earlier, later = (wire.adapter.render(each) for each in (history[:count], history))
    except RenderingRefused:  # nothing of the beginning can be sent
        return

    by_values = spaced(later, 1).shared_prefix(spaced(earlier, 2), usage)
    assert later.shared_prefix(earlier, usage) == by_values


@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_tools_behind_the_messages_count_too(dialect: str) -> None:
    """A body that somebody else wrote may end with the tools: one more of them is a change."""
    llm = next(wire.adapter for wire in wires() if wire.adapter.target.dialect == dialect)
    rendering = llm.render("Hi", options=[option])
    body = json.loads(rendering.body_bytes)
    body["tools"] = body.pop("tools")

    def ending_with(tools: list[object]) -> Rendering:
        text = json.dumps({**body, "tools": tools}, ensure_ascii=False, separators=(",", ":"))
        return rendering.model_copy(update={"body_bytes": text.encode()})

    shared = ending_with(body["tools"] * 2).shared_prefix(ending_with(body["tools"]))
    assert shared.changed == "tools[1]"
