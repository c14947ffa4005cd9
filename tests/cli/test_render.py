"""`sabir render`: a saved history on the wire of several models, laid out for people, with nothing sent."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sabir_cli.render import View, layout, shorten, show

from tests.cli.conftest import Command


@pytest.fixture
def file(history: list[sabir.Message], tmp_path: Path) -> str:
    """The history in a file."""
    path = tmp_path / "talk.json"
    sabir.save(path, history)
    return str(path)


def test_bodies_and_losses_of_each_target_are_shown(file: str, command: Command) -> None:
    targets = ["-m", "openai:gpt-4.1", "-m", "openai.chat:gpt-4.1", "-m", "echo:any"]

    out, _ = command("render", file, *targets)
    assert [line for line in out.splitlines() if " · POST " in line] == [
        "openai.responses · POST /responses",
        "openai.chat · POST /chat/completions",
        "echo.plain · POST /echo",
    ]
    assert "no losses" not in out
    assert "does not accept image" in " ".join(out.split())


def test_json_gives_the_very_bodies(file: str, history: list[sabir.Message], command: Command) -> None:
    """Nothing is cut, and the options offered are in them."""
    model = "openai.chat:gpt-4.1"
    out, err = command("render", file, "-m", model, "--option", "sabir_cli.demo:time_in", "--json")
    (found,) = json.loads(out)
    from sabir_cli.demo import time_in

    expected = sabir.adapter(model).render(history, options=[time_in])
    assert err == ""
    assert found["body"] == json.loads(expected.body_bytes)
    assert found["losses"] == [loss.model_dump() for loss in expected.losses]
    assert (found["target"], found["dialect"], found["path"]) == ("openai:gpt-4.1", "openai.chat", "/chat/completions")


def test_strict_exits_1_where_something_was_downgraded(file: str, command: Command) -> None:
    """The bodies are shown all the same; the line says what the first loss is."""
    out, err = command("render", file, "-m", "echo:any", "--strict", code=1)

    assert "echo.plain · POST /echo" in out
    assert err.startswith("sabir: --strict: echo:any cannot accept everything: downgraded: ")
    assert err.count("\n") == 1


def test_strict_does_not_mind_what_was_only_rewritten(tmp_path: Path, command: Command) -> None:
    payload = sabir.OptionCallPayload(invocation_id="call 1/ü", option_name="time_in")
    call = sabir.Message(policy="llm", payload=payload)
    result = sabir.OptionResultBuilder.response_to(call).success("14:03")
    sabir.save(tmp_path / "talk.json", [sabir.user("Hello"), call, result])

    assert [loss.kind for loss in sabir.adapter("openai.chat:gpt-4.1").render([call, result]).losses] == ["rewritten"]
    command("render", str(tmp_path / "talk.json"), "-m", "openai.chat:gpt-4.1", "--strict")


def test_withheld_state_is_shown_and_is_no_reason_to_stop(tmp_path: Path, command: Command) -> None:
    origin = sabir.Origin(provider="google", dialect="google.generate_content", model="gemini-3-pro")
    part = sabir.TextPart(text="Hi.", state={"part": {"thoughtSignature": "c2ln"}})
    answer = sabir.Message(policy="llm", origin=origin, payload=sabir.PartsPayload(parts=(part,)))
    sabir.save(tmp_path / "talk.json", [sabir.user("Hello"), answer, sabir.user("?")])

    out, _ = command("render", str(tmp_path / "talk.json"), "-m", "openai.chat:gpt-4.1", "--strict")
    told = "parts[0].state: the signed state is only sent back to its origin, google"
    assert told in " ".join(out.split())


def test_a_history_is_read_from_a_pipe(history: list[sabir.Message], command: Command) -> None:
    out, _ = command("render", "-", "-m", "echo:any", "--json", given=sabir.dumps_lines(history).encode())

    assert len(json.loads(out)[0]["body"]["messages"]) == len(history)


WHOLE = '{"messages": [1], "options": [], "settings": {}, "model": "", "losses": []}'
REFUSED: dict[str, tuple[list[str], int, str]] = {
    "no JSON": (["nonsense"], 2, "not JSON"),
    "another history": (['[{"role": "user", "content": "Hi"}]'], 2, "decode_history"),
    "a number": (["[1]"], 2, "messages[0] is a number"),
    "no message": (['[{"policy": ""}]'], 2, "messages[0] is not a message"),
    "a broken whole": ([WHOLE], 2, "this is not the output of `sabir import --json`: messages"),
    "no provider": (["[]", "nowhere:x"], 3, "'nowhere' is not installed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_rendered_is_one_line(case: str, tmp_path: Path, command: Command) -> None:
    (text, *model), code, complaint = REFUSED[case]
    (tmp_path / "other.json").write_text(text, "utf-8")
    from_file = command.error("render", str(tmp_path / "other.json"), "-m", *(model or ["echo:any"]), code=code)
    from_pipe = command.error("render", "-", "-m", *(model or ["echo:any"]), given=text.encode(), code=code)

    assert complaint in from_file
    assert model or "other.json" in from_file
    assert model or from_pipe.startswith("standard input: ")


def test_a_history_of_which_nothing_is_left_is_refused(tmp_path: Path, command: Command) -> None:
    """An empty history would be an empty request."""
    (tmp_path / "empty.json").write_text("[]", "utf-8")
    out, err = command("render", str(tmp_path / "empty.json"), "-m", "echo:any", code=1)

    assert "add at least one user message" in " ".join(out.split())
    assert err == "sabir: echo:any cannot accept this conversation; the reason is shown above\n"


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
