"""The command in a process of its own: exit codes, one-line errors, pipes, terminals, signals."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import sabir
from sabir.authoring import ReasoningEffort
from sabir_cli.ascii import ASCII
from sabir_cli.chat.command import Effort

from tests.cli.command import SCRIPT, environment, error_line, run, run_here
from tests.cli.terminal import on_terminal, posix

COLOUR = b"\x1b[3"
FOR_COMMANDS = frozenset({"pydantic", "rich", "cyclopts", "asyncio"})
FOR_CONVERSATIONS = frozenset({"pydantic", "pydantic_core", "sabir_session", "prompt_toolkit", "asyncio", "sqlite3"})


def test_the_help_page_fits_80_columns() -> None:
    finished = run("--help")
    text = finished.stdout.decode()

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert all(f" {name} " in text for name in ("chat", "demo", "models", "providers", "render"))
    assert "--install-completion" in text
    assert "Exit codes:" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_names_both_packages() -> None:
    """A report of a fault needs the command's and core's."""
    assert re.match(rb"sabir-cli 0\..*, sabir 0\.", run_here("--version").stdout)


@pytest.mark.parametrize(("arguments", "hint"), [(["chta"], "chat"), (["providers", "--jsn"], "--json")])
def test_a_misspelt_word_is_a_usage_error_with_a_suggestion(arguments: list[str], hint: str) -> None:
    finished = run_here(*arguments)

    assert finished.returncode == 2
    assert hint in error_line(finished)
    assert "--help`" in error_line(finished)


def imported_by(folder: Path, *commands: list[str]) -> set[str]:
    """The modules that a process has after it ran these commands, none of which fails."""
    code = f"import sys; from sabir_cli.main import main; [main(each) for each in {commands!r}]"
    finished = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules, file=sys.stderr)"],
        cwd=folder, capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    assert "sabir: " not in finished.stderr
    return set(finished.stderr.split())


def test_nothing_but_a_send_imports_an_sdk(tmp_path: Path) -> None:
    """CD-04: what starts often must start fast, and what is not sent needs no key."""
    sabir.save(tmp_path / "talk.json", [sabir.user("Hello")])
    (tmp_path / "stored.json").write_text('{"messages": [{"role": "user", "content": "Hello"}]}', "utf-8")
    loaded = imported_by(
        tmp_path,
        ["--help"], ["providers"], ["models"], ["chat", "-m", "echo:any", "Hello"],
        ["render", "talk.json", "-m", "openai:gpt-4.1", "--json"], ["import", "stored.json", "--from", "openai.chat"],
    )  # fmt: skip

    assert "sabir_cli.main" in loaded
    assert {"openai", "httpx2", "xllamacpp", "anthropic", "google.genai"} & loaded == set()


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [([[], ["--help"], ["--version"]], FOR_COMMANDS), ([["chat", "--help"], ["chats", "--help"]], FOR_CONVERSATIONS)],
    ids=["all", "chat and chats"],
)
def test_help_imports_no_heavy_module(commands: list[list[str]], heavy: frozenset[str], tmp_path: Path) -> None:
    """The first thing that a new user types is answered at once."""
    loaded = imported_by(tmp_path, *commands)

    assert "sabir_cli.exits" in loaded
    assert heavy & loaded == set()
    assert {name for name in loaded if name.startswith("sabir.")} <= {
        "sabir.authoring", "sabir.base", "sabir.base.errors", "sabir.base.files", "sabir.base.renamed",
    }  # fmt: skip


def test_the_help_of_reasoning_effort_lists_what_the_library_takes() -> None:
    """The command repeats the list, so that its help page does not import the library."""
    assert get_args(Effort) == get_args(ReasoningEffort)


def test_a_closed_pipe_ends_quietly() -> None:
    """`sabir models | head -1` is no error to report."""
    with subprocess.Popen([SCRIPT, "models", "echo"], stdout=-1, stderr=-1, env=environment()) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        err = process.stderr.read()

    assert (process.returncode, err) == (141, b"")


@posix
def test_an_interrupted_option_ends_the_command_with_130(tmp_path: Path) -> None:
    """Ctrl-C reaches the option itself; no traceback, whatever it was doing."""
    source = (
        "import sys, time\ndef wait() -> None:\n    print('ready', file=sys.stderr, flush=True)\n    time.sleep(60)\n"
    )
    (tmp_path / "waiting.py").write_text(source, "utf-8")
    command = [SCRIPT, "chat", "-m", "echo:any", "--option", "waiting:wait", "call wait {}"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, cwd=tmp_path, env=environment()) as process:
        assert process.stderr
        while process.stderr.readline() != b"ready\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()

    assert process.returncode == 130
    assert b"Traceback" not in rest


def test_a_character_that_the_encoding_lacks_is_replaced() -> None:
    """A terminal of the last century gets an answer too."""
    finished = run("chat", "-m", "echo:any", "naïve", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert (finished.returncode, finished.stdout) == (0, b"na?ve\n")


def test_a_fault_shows_its_traceback_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sabir\ndef fail(): raise RuntimeError('a fault')\nsabir.providers = fail\n", "utf-8"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    finished = run("providers", env=env)
    debugged = run("providers", env={**env, "SABIR_DEBUG": "1"})

    assert finished.returncode == debugged.returncode == 70
    assert error_line(finished) == "unexpected RuntimeError: a fault; set SABIR_DEBUG=1 to see where"
    assert b"Traceback" in debugged.stderr


@posix
def test_colours_are_a_terminals_alone() -> None:
    """https://no-color.org."""
    assert COLOUR in on_terminal("providers")[1]
    assert b"\x1b" not in run_here("providers").stdout


@posix
def test_a_models_text_does_not_steer_the_terminal() -> None:
    """Somebody else wrote what the model repeats."""
    _, seen = on_terminal("chat", "-m", "echo:any", "\x1b]0;owned\x07\x1b[2J")

    assert b"\x1b]0" not in seen
    assert "␛]0;owned␇␛[2J".encode() in seen


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_is_installed_for_a_shell(shell: str, tmp_path: Path) -> None:
    """The script knows the commands and their options."""
    script = tmp_path / "completion"
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    finished = run_here("--install-completion", "--shell", shell, "--output", str(script), env=home)

    assert finished.returncode == 0
    assert all(word in script.read_text("utf-8") for word in ("sabir", "render", "strict"))


def test_an_unknown_shell_is_a_usage_error(tmp_path: Path) -> None:
    """Completion is installed for those that it knows."""
    finished = run_here("--install-completion", "--shell", "tcsh", env={"HOME": str(tmp_path)})

    assert finished.returncode == 2
    assert "tcsh" in error_line(finished)


@pytest.mark.parametrize("command", ["models", "providers", "config"])
def test_a_c_locale_is_written_ascii_in_place_of_our_signs(command: str) -> None:
    """Nothing is raised, and nothing else is different."""
    narrow = {"COLUMNS": "60"}
    finished = run(command, env={"LC_ALL": "C", "PYTHONUTF8": "0", **narrow})

    assert finished.stdout.decode("ascii") == run_here(command, env=narrow).stdout.decode().translate(ASCII)
    assert b"Traceback" not in finished.stderr


def test_a_c_locale_gets_a_help_page() -> None:
    text = run("--help", env={"LC_ALL": "C", "PYTHONUTF8": "0"}).stdout.decode("ascii")

    assert "Exit codes:" in text and "?" not in text
