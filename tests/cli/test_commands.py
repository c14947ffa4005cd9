"""Further commands from the entry-point group `sabir.commands`, as installed packages bring them."""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from sabir import discovery as registry
from sabir_cli.main import main

from tests.cli.command import error_line, run

SOURCE = '''
from cyclopts import App

def greet(name: str, *, loud: bool = False) -> int:
    """Greet somebody."""
    print(f"Hello, {name.upper() if loud else name}!")
    return 5

def crash() -> None:
    """Fail."""
    raise RuntimeError("out of order")

def leave() -> None:
    """Leave in the old way."""
    raise SystemExit(9)

tools = App(name="kit", help="Several commands.")

@tools.command
def sharpen() -> None:
    """Sharpen."""
    print("sharp")

number = 3
'''


@pytest.fixture
def install(tmp_path: Path) -> "Install":
    """Makes distributions with commands; gives the environment in which they are installed."""
    return Install(tmp_path)


class Install:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "acme_commands.py").write_text(SOURCE, "utf-8")
        (folder / "broken_commands.py").write_text("import no_such_module", "utf-8")

    def __call__(self, distribution: str, commands: Mapping[str, str]) -> dict[str, str]:
        info = self.folder / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
        rows = "".join(f"{name} = {target}\n" for name, target in commands.items())
        (info / "entry_points.txt").write_text(f"[sabir.commands]\n{rows}", "utf-8")
        return {"PYTHONPATH": os.pathsep.join((str(self.folder), os.environ.get("PYTHONPATH", "")))}


@pytest.mark.parametrize(
    ("target", "arguments", "code", "out", "said"),
    [
        ("greet", ["Ada", "--loud"], 5, "Hello, ADA!\n", ""),
        ("tools", ["sharpen"], 0, "sharp\n", ""),
        ("leave", [], 9, "", ""),
        ("crash", [], 70, "", "sabir: unexpected RuntimeError: out of order; set SABIR_DEBUG=1 to see where\n"),
    ],
    ids=["a function", "an app", "exits", "raises"],
)
def test_a_function_or_an_app_becomes_a_command(
    install: Install, target: str, arguments: list[str], code: int, out: str, said: str
) -> None:
    """The integer that it returns is the exit code, and what it raises is one line."""
    finished = run("ours", *arguments, env=install("acme", {"ours": f"acme_commands:{target}"}))

    assert (finished.returncode, finished.stdout.decode(), finished.stderr.decode()) == (code, out, said)


def test_the_help_page_lists_them_the_broken_one_as_broken(install: Install) -> None:
    """One that cannot be loaded stops no other."""
    (install.folder / "leaving_commands.py").write_text("class Out(BaseException): ...\nraise Out('of order')", "utf-8")
    commands = {"greet": "acme_commands:greet", "gone": "broken_commands:gone", "out": "leaving_commands:out"}
    finished = run("--help", env=install("acme", commands))
    text = finished.stdout.decode()

    assert finished.returncode == 0
    assert "Greet somebody." in text
    assert "Broken: ModuleNotFoundError" in text
    assert "Broken: Out: of order" in text
    assert "Talk to a model" in text


def test_the_help_page_waits_for_no_command_for_ever_and_imports_no_provider(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not finish loading stands there with its reason."""
    go_on = threading.Event()
    monkeypatch.setattr(sys, "command_goes_on", go_on, raising=False)
    monkeypatch.setattr("sabir.discovery.LONGEST_LOAD", 1.0)
    monkeypatch.syspath_prepend(str(install.folder))
    install("acme", {"hang": "hanging_commands:hang", "greet": "acme_commands:greet"})
    (install.folder / "hanging_commands.py").write_text("import sys; sys.command_goes_on.wait()", "utf-8")
    entry_points = install.folder / "acme-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text(f"{entry_points.read_text('utf-8')}[sabir.providers]\nacme = acme_provider:acme\n", "utf-8")
    monkeypatch.setattr(registry.default_registry, "_claims", {})

    assert main(["--help"]) == 0
    go_on.set()
    page = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Broken: 'hang' of acme 1.0 (hanging_commands:hang) did not finish loading within 1 s" in page
    assert "Greet somebody." in page
    assert "acme_provider" not in sys.modules


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("broken_commands:gone", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("acme_commands:gone", "AttributeError"),
        ("acme_commands:number", "int, neither a function nor a cyclopts App"),
    ],
)
def test_a_broken_command_says_whose_it_is(install: Install, target: str, reason: str) -> None:
    finished = run("gone", "--any", "arguments", env=install("acme", {"gone": target}))
    line = error_line(finished)

    assert finished.returncode == 3
    assert line.startswith("command 'gone' of acme 1.0 cannot be loaded: ")
    assert reason in line
    assert line.endswith("reinstall or remove the package")


def test_a_command_that_is_not_asked_for_is_not_loaded(install: Install) -> None:
    """A package that is slow or loud at import disturbs no other command."""
    env = install("acme", {"greet": "acme_commands:greet", "loud": "loud_commands:loud"})
    (install.folder / "loud_commands.py").write_text("print('loaded')\ndef loud() -> None: ...", "utf-8")

    assert b"loaded" not in run("greet", "Ada", env=env).stdout
    assert b"loaded" not in run("chat", "-m", "echo:any", "Hello", env=env).stdout
    assert b"loaded" in run("loud", env=env).stdout


def test_two_claims_of_one_name_are_reported_and_the_own_commands_stay(install: Install) -> None:
    """CD-04: both claimants are named."""
    install("acme", {"greet": "acme_commands:greet"})
    env = install("zenith", {"greet": "acme_commands:leave"})
    finished = run("--help", env=env)

    assert finished.returncode == 0
    assert "provided by acme 1.0 and zenith 1.0" in error_line(finished)
    assert run("chat", "-m", "echo:any", "Hello", env=env).stdout == b"Hello\n"


def test_no_package_can_take_the_place_of_an_own_command(install: Install) -> None:
    """`sabir providers` is what one asks when plugins misbehave."""
    env = install("acme", {"providers": "acme_commands:crash"})

    assert isinstance(json.loads(run("providers", "--json", env=env).stdout), list)
    assert "command 'providers' of acme 1.0 is not available" in error_line(run("--help", env=env))
