"""`sabir render`: a saved history on the wire of several models, with nothing sent."""

import io
import json
import sys
from pathlib import Path

import pytest
import sabir
from sabir_cli.main import main


@pytest.fixture
def file(history: list[sabir.Message], tmp_path: Path) -> str:
    """The history in a file."""
    path = tmp_path / "talk.json"
    sabir.save(path, history)
    return str(path)


def test_bodies_and_losses_of_each_target_are_shown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One history, three wires, no key."""
    targets = ["-m", "openai:gpt-4.1", "-m", "openai.chat:gpt-4.1", "-m", "echo:any"]

    assert main(["render", file, *targets]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if " · POST " in line] == [
        "openai.responses · POST /responses",
        "openai.chat · POST /chat/completions",
        "echo.plain · POST /echo",
    ]
    assert "losses: none" in out
    assert "takes no image" in " ".join(out.split())


def test_a_wide_terminal_shows_them_side_by_side(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COLUMNS stands for the terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    main(["render", file, "-m", "openai:gpt-4.1", "-m", "echo:any"])

    assert capsys.readouterr().out.split("\n")[0].split() == ["openai:gpt-4.1", "echo:any"]


def test_json_gives_the_very_bodies(
    file: str, history: list[sabir.Message], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is cut, and the options offered are in them."""
    model = "openai.chat:gpt-4.1"
    assert main(["render", file, "-m", model, "--option", "sabir_cli.clock:time_in", "--json"]) == 0
    out, err = capsys.readouterr()
    (found,) = json.loads(out)
    from sabir_cli.clock import time_in

    expected = sabir.adapter(model).render(history, options=[time_in])
    assert err == ""
    assert found["body"] == json.loads(expected.body_bytes)
    assert found["losses"] == [loss.model_dump() for loss in expected.losses]
    assert (found["target"], found["dialect"], found["path"]) == ("openai:gpt-4.1", "openai.chat", "/chat/completions")


def test_strict_exits_1_where_something_was_downgraded(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The bodies are shown all the same; the line says what the first loss is."""
    assert main(["render", file, "-m", "echo:any", "--strict"]) == 1
    out, err = capsys.readouterr()

    assert "echo.plain · POST /echo" in out
    assert err.startswith("sabir: --strict: echo:any would lose something: downgraded: ")
    assert err.count("\n") == 1


def test_strict_exits_0_where_nothing_was_lost(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An image is nothing that this wire cannot take."""
    assert main(["render", file, "-m", "openai:gpt-4.1", "--strict"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("capsys")
def test_strict_does_not_mind_what_was_only_rewritten(tmp_path: Path) -> None:
    """Same meaning, other characters: no reason to stop."""
    payload = sabir.OptionCallPayload(invocation_id="call 1/ü", option_name="time_in")
    call = sabir.Message(policy="llm", payload=payload)
    result = sabir.OptionResultBuilder.response_to(call).success("14:03")
    sabir.save(tmp_path / "talk.json", [sabir.user("Hello"), call, result])
    arguments = ["render", str(tmp_path / "talk.json"), "-m", "openai.chat:gpt-4.1"]

    assert [loss.kind for loss in sabir.adapter("openai.chat:gpt-4.1").render([call, result]).losses] == ["rewritten"]
    assert main([*arguments, "--strict"]) == 0


def test_withheld_state_is_shown_and_is_no_reason_to_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A signature beside a text from elsewhere, at the place where it stood."""
    origin = sabir.Origin(provider="google", dialect="google.generate_content", model="gemini-3-pro")
    part = sabir.TextPart(text="Hi.", state={"part": {"thoughtSignature": "c2ln"}})
    answer = sabir.Message(policy="llm", origin=origin, payload=sabir.PartsPayload(parts=(part,)))
    sabir.save(tmp_path / "talk.json", [sabir.user("Hello"), answer, sabir.user("?")])

    assert main(["render", str(tmp_path / "talk.json"), "-m", "openai.chat:gpt-4.1", "--strict"]) == 0
    told = f"withheld: {answer.id[:8]} parts[0].state: its state goes back only to where it came from, google"
    assert told in " ".join(capsys.readouterr().out.split())


def test_a_history_is_read_from_a_pipe(
    history: list[sabir.Message], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON Lines as well as an array."""
    piped = io.TextIOWrapper(io.BytesIO(sabir.dumps_lines(history).encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", piped)

    assert main(["render", "-", "-m", "echo:any", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)[0]["body"]["messages"]) == len(history)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "no JSON"),
        ('[{"role": "user", "content": "Hi"}]', "decode_history"),
        ("[1]", "messages[0] is a number"),
        ('[{"policy": ""}]', "messages[0] is no message"),
    ],
)
def test_a_file_that_is_no_history_is_refused_by_name(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which file, which message, what is wrong with it."""
    (tmp_path / "other.json").write_text(text, "utf-8")

    assert main(["render", str(tmp_path / "other.json"), "-m", "echo:any"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "other.json" in err
    assert complaint in err
    assert err.count("\n") == 1


def test_a_pipe_that_is_no_history_says_that_it_was_the_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no file name to look for."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"nonsense"), encoding="utf-8"))

    assert main(["render", "-", "-m", "echo:any"]) == 2
    assert capsys.readouterr().err.startswith("sabir: standard input: ")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["missing.json", "-m", "echo:any"], 2), (["{file}", "-m", "nowhere:x"], 3), ([], 2)]
)
def test_what_cannot_be_rendered_is_one_line(
    arguments: list[str], code: int, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file, a missing provider, a missing argument."""
    assert main(["render", *(argument.format(file=file) for argument in arguments)]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_a_history_of_which_nothing_is_left_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty history would be an empty request."""
    (tmp_path / "empty.json").write_text("[]", "utf-8")

    assert main(["render", str(tmp_path / "empty.json"), "-m", "echo:any"]) == 1
    out, err = capsys.readouterr()
    assert "give at least one user message" in " ".join(out.split())
    assert err == "sabir: echo:any cannot take this history at all\n"


def test_rendering_loads_no_sdk_and_needs_no_key(file: str) -> None:
    """Law 6, and the promise of the command: nothing is sent."""
    from tests.cli.command import run

    finished = run("render", file, "-m", "openai:gpt-4.1", "--json", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert finished.returncode == 0
    assert b"| sabir_openai" in finished.stderr or b"sabir_openai" in finished.stderr
    assert b" openai\n" not in finished.stderr
    assert b" httpx2\n" not in finished.stderr
