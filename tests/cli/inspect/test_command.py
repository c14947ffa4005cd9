"""`sabir inspect` as a command: the file that it writes, the address that it prints, and its errors."""

import http.client
import importlib.util
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest
import sabir

from tests.cli.command import SCRIPT, environment
from tests.cli.conftest import Command
from tests.cli.inspect.samples import trip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    sabir.save(tmp_path / "trip.json", trip())
    return tmp_path / "trip.json"


def test_html_writes_one_private_file_and_replaces_it_only_with_force(file: Path, command: Command) -> None:
    page = file.with_suffix(".html")
    page.touch(0o644)

    assert "add --force" in command.error("inspect", str(file), "--html", str(page))
    _, err = command("inspect", str(file), "-m", "openai:gpt-5", "--html", str(page), "--force")

    assert err.startswith("wrote") and stat.S_IMODE(page.stat().st_mode) == 0o600
    text = page.read_text("utf-8")
    assert "Bolzano" in text and 'id="renderings"' in text
    command("inspect", str(file), "--html", str(page), "--force", "--redact")
    assert "Bolzano" not in page.read_text("utf-8")


def test_without_the_extra_one_line_says_what_to_install(
    file: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "uvicorn" else real(name, *more)
    )

    assert command.error("inspect", str(file)) == (
        'the page needs uvicorn; pip install "sabir-cli[inspect]", or write a file with --html FILE'
    )
    command("inspect", str(file), "--html", str(file.with_suffix(".html")))


def test_the_last_saved_conversation_is_the_default(command: Command, tmp_path: Path) -> None:
    assert "no conversation is saved" in command.error("inspect", "--html", str(tmp_path / "a.html"))
    command("chat", "-m", "echo:small", "--name", "monday", "Hello there!")
    for arguments in ([], ["monday"]):
        command("inspect", *arguments, "--html", str(tmp_path / "a.html"), *(["--force"] if arguments else []))
        assert "Hello there!" in (tmp_path / "a.html").read_text("utf-8")


def test_the_documents_of_other_commands_are_read_from_a_pipe(command: Command, tmp_path: Path) -> None:
    for arguments in (("demo", 'call time_in {"city": "Lima"}'), ("chat", 'call time_in {"city": "Lima"}')):
        out, _ = command(*arguments, "-m", "echo:small", "--json")
        page = tmp_path / f"{arguments[0]}.html"
        command("inspect", "-", "--html", str(page), given=out.encode())
        assert "Lima" in page.read_text("utf-8")


def test_unreadable_files_and_names_are_one_line(file: Path, command: Command) -> None:
    page = ("--html", str(file.with_suffix(".html")))
    file.with_name("bad.json").write_text("[1, 2", "utf-8")

    assert "'bad.json'" in command.error("inspect", str(file.with_name("bad.json")), *page)
    assert "cannot be read" in command.error("inspect", str(file.with_name("none.json")), *page)
    assert "is not a store; remove --name" in command.error("inspect", str(file), "--name", "a", *page)


def test_no_open_prints_the_address_serves_and_ends_with_an_interrupt(file: Path) -> None:
    process = subprocess.Popen(
        [SCRIPT, "inspect", str(file), "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    try:
        assert process.stdout is not None
        match = re.fullmatch(
            r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/conversation)\n", process.stdout.readline().decode()
        )
        assert match is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=20)
        connection.request("GET", match[2])
        assert b"Bolzano" in connection.getresponse().read()
        connection.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, b"") and b"Traceback" not in err and err.endswith(b"stopped\n")
