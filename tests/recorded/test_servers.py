"""The servers of recordings: ready when they say so, stopped with all that they started, and clear about why not."""

import os
import select
import sys
from pathlib import Path

import pytest
from sabir_local.server import find_weights, template_for

from tests.recorded import servers

READY = r"running on (http://\S+)"
PROGRAM = """
import subprocess, sys
held = "import signal, sys; held = open(sys.argv[1], 'w'); print('running on http://there', flush=True); signal.pause()"
subprocess.run([sys.executable, "-c", held, sys.argv[1]])
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv(servers.CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def test_a_server_ends_with_everything_that_it_started(tmp_path: Path) -> None:
    """A child of the program holds a pipe open for as long as it lives."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    watched = select.poll()
    watched.register(reading, select.POLLHUP)

    with servers.running("held", [sys.executable, "-c", PROGRAM, str(pipe)], {}, READY) as address:
        assert address == "http://there"
        assert watched.poll(0) == []
    assert watched.poll(servers.STOP_SECONDS * 1000) == [(reading, select.POLLHUP)]
    os.close(reading)


def test_a_server_that_ends_at_once_says_its_last_line_and_where_its_log_is(cache: Path) -> None:
    """One line, and nothing waits."""
    command = [sys.executable, "-c", "print('one'); print('no such model')"]
    with pytest.raises(servers.ServerUnavailable) as caught:
        with servers.running("brief", command, {}, READY):
            pass

    assert str(caught.value) == f"brief ended before it was ready, saying 'no such model'; see {cache / 'brief.log'}"
    assert (cache / "brief.log").read_text() == "one\nno such model\n"


def test_a_server_sees_no_key_of_the_process_that_starts_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third party's program gets the variables that it is given, and those that any program needs."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-a-vendor")
    program = "import os; print('running on http://' + os.environ.get('OPENAI_API_KEY', 'nothing') + os.environ['OWN'])"
    with servers.running("curious", [sys.executable, "-c", program], {"OWN": "-own"}, READY) as address:
        assert address == "http://nothing-own"


def test_a_missing_program_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where npm or uv is missing, nothing is tried."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        servers.ServerUnavailable, match=r"^recording needs the program 'npm', which is not on the path"
    ):
        servers.install_aimock()
    with pytest.raises(servers.ServerUnavailable, match=r"^recording needs the program 'uv', which is not on the path"):
        servers.install_litellm()


def test_an_installation_that_fails_is_tried_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was left half full is no installation."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("npm", "node"):
        (programs / name).write_text(f"#!{sys.executable}\nimport sys; sys.exit('network unreachable')\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))

    for _ in range(2):
        with pytest.raises(servers.ServerUnavailable, match=r"^`npm install --prefix …` failed: network unreachable; "):
            servers.install_aimock()


def test_the_recorded_server_is_led_to_single_calls() -> None:
    """The embedded model's template is one that can be shown a single call; if it changes, this has to."""
    weights = find_weights(None)
    single = servers.with_single_calls(template_for(weights))
    assert "tool_calls[:1]" in single
    with pytest.raises(servers.ServerUnavailable, match=r"adapt tests/recorded/servers\.py"):
        servers.with_single_calls("")
