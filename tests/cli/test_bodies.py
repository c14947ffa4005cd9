"""Wire bodies for people: laid out to the width, cut where nobody reads, side by side where there is room."""

import io
import json
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sabir_cli.bodies import View, layout, shorten, show

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


def printed(views: list[View], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(console, views)
    return console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO of the line above


@given(values, st.integers(20, 120))
def test_a_layout_is_the_value_itself(value: Any, width: int) -> None:
    """Lines, indentation and folding change nothing of what the JSON says."""
    text = "\n".join(" " * line.indent + line.text for line in layout(value, width))

    assert json.loads(text) == value


def test_a_nested_value_that_fits_stays_on_its_line() -> None:
    """One short message is one line, not six."""
    body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}

    assert [line.text for line in layout(body, 100)] == [json.dumps(body, ensure_ascii=False)]
    assert len(layout(body, 80)) > 1


def test_nested_lines_fit_the_width() -> None:
    """What is laid out does not need the terminal to fold it."""
    body = {"messages": [{"role": "user", "content": [f"{number}" * 9]} for number in range(9)]}

    assert max(line.indent + len(line.text) for line in layout(body, 40)) <= 40


def test_base64_is_cut_and_prose_is_not() -> None:
    """Nobody reads an image's bytes; every word of a prompt may matter."""
    data, prose = "data:image/png;base64," + "A" * 5000, "word " * 500
    shortened = shorten({"image": data, "text": [prose], "number": 1})

    assert shortened == {"image": f"{data[:40]}… ({len(data)} characters)", "text": [prose], "number": 1}


@pytest.fixture
def views(history: list[sabir.Message]) -> list[View]:
    """One history for two models."""
    adapters = [sabir.adapter(f"echo:{model}") for model in ("one", "two")]
    return [View(str(adapter.target), adapter.render(history)) for adapter in adapters]


def test_two_views_stand_side_by_side_on_a_wide_terminal(views: list[View]) -> None:
    """The first line holds both targets."""
    first = printed(views, 130).splitlines()[0]

    assert first.split() == ["echo:one", "echo:two"]


def test_two_views_are_stacked_at_80_columns(views: list[View]) -> None:
    """Half of 80 columns is too narrow for JSON."""
    lines = printed(views, 80).splitlines()

    assert lines[0].strip() == "echo:one"
    assert lines.index("echo:two") > 10
    assert max(map(len, lines)) <= 80
