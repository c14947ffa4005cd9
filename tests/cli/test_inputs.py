"""What command lines name, found; and what cannot be found, said in one line."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import sabir
from sabir_cli import inputs
from sabir_cli.inputs import choose_model, known_models, load_options, read_message
from sabir_cli.output import UsageError

from tests.cli.command import SCRIPT, environment
from tests.cli.conftest import Relay, pipe


def test_without_any_model_the_error_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """sabir-local is a package of its own, which need not be installed."""
    monkeypatch.setattr(inputs, "EMBEDDED", "nowhere")

    with pytest.raises(sabir.ProviderMissing, match=r"'nowhere' is not installed.*-m provider:model.*SABIR_MODEL"):
        choose_model(None)


def test_models_with_the_longest_context_come_first_and_beginnings_are_left_out(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may speak for all names with a beginning that is itself no name."""
    rows = [("small", 10), ("family-", 99), ("", None), ("large", 50), ("unknown", None)]
    infos = tuple(sabir.ModelInfo(prefix=prefix, context_tokens=tokens) for prefix, tokens in rows)
    monkeypatch.setattr(relay, "models", lambda: infos)

    assert known_models("relay") == ["large", "small", "unknown"]


OPTIONS = """
import sabir

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

class Kit:
    @staticmethod
    def double(a: int) -> int:
        return 2 * a

ready = sabir.option(name="sum")(add)
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a module of options."""
    (tmp_path / "my_cli_options.py").write_text(OPTIONS, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_cli_options", raising=False)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_options_come_from_modules_in_the_current_folder() -> None:
    specs = ["my_cli_options:add", "my_cli_options:ready", "my_cli_options:Kit.double"]

    assert [option.name for option in load_options(specs)] == ["add", "sum", "double"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("add", "does not name a function; write module:function"),
        (":add", "does not name a function"),
        ("my_cli_options:", "does not name a function"),
        ("my_cli_options:nothing", "has no 'nothing'; it has .*add, Kit, ready, number"),
        ("my_cli_options:number", "which is not an option"),
        ("no_such_module:add", "cannot be imported.*ModuleNotFoundError"),
    ],
)
def test_a_specification_that_names_no_option_says_why(spec: str, complaint: str) -> None:
    """The specification is quoted, so that the wrong one of several is found."""
    with pytest.raises(sabir.errors.OptionInvalid, match=complaint) as caught:
        load_options([spec])
    assert repr(spec) in str(caught.value)


def test_the_current_folder_is_on_the_path_while_a_module_is_loaded_and_no_longer(folder: Path) -> None:
    """Its neighbours are found then; later it takes the place of no library. What the module adds itself stays."""
    sys.path[:] = before = [each for each in sys.path if each not in ("", str(folder))]
    (folder / "my_neighbour.py").write_text("import sys; sys.path.append('mine'); from my_cli_options import add")
    (folder / "my_broken.py").write_text("raise BaseException('stop')")

    assert [option.name for option in load_options(["my_neighbour:add"])] == ["add"]
    with pytest.raises(sabir.errors.OptionInvalid, match="BaseException: stop"):
        load_options(["my_broken:add"])
    assert sys.path == [*before, "mine"]


def test_a_piped_text_is_read_without_its_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """echo ends every text with a line break, and some editors begin it with a BOM."""
    pipe(monkeypatch, "\ufeffHello,\nü\n".encode())

    assert read_message("-") == ["Hello,\nü"]


def test_a_pipe_of_other_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first byte that is no text is named, and how a medium is given."""
    pipe(monkeypatch, b"ab\xff")

    with pytest.raises(UsageError, match=r"byte 2 .* not UTF-8 text; .*--image"):
        read_message(None)


def test_a_standard_input_that_may_never_end_is_not_read_beside_a_prompt() -> None:
    """A socket, say, of whatever started the command: only a pipe and a file are a part of the question."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        finished = subprocess.run(
            [SCRIPT, "chat", "-m", "echo:any", "Hello"],
            stdin=theirs, capture_output=True, env=environment(), timeout=60, check=False,
        )  # fmt: skip

    assert finished.stdout == b"Hello\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe cannot be asked there whether anything comes")
def test_a_pipe_on_which_nothing_comes_is_told() -> None:
    """As where a command runs without a terminal, and nobody closes its standard input; it is read all the same."""
    command = [SCRIPT, "chat", "-m", "echo:any", "Hello"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), **pipes) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith(b"sabir: waiting for text on standard input; if there is none")
        out, _ = running.communicate(b"Text.")

    assert out == b"Text.\n\nHello\n"
