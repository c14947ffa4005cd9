"""The servers of recordings: ready when they say so, stopped with all that they started, and clear about why not."""

import os
import select
import sys
from pathlib import Path

import pytest
from sabir_local.models import find_weights
from sabir_local.server import template_for

from tests.recorded import servers

READY = r"running on (http://\S+)"
PROGRAM = """
import subprocess, sys
held = "import signal, sys; held = open(sys.argv[1], 'w'); print('running on http://there', flush=True); signal.pause()"
subprocess.run([sys.executable, "-c", held, sys.argv[1]])
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_a_server_sees_no_key_of_the_process_that_starts_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third party's program gets the variables that it is given, and those that any program needs."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-a-vendor")
    program = "import os; print('running on http://' + os.environ.get('OPENAI_API_KEY', 'nothing') + os.environ['OWN'])"
    with servers.running("curious", [sys.executable, "-c", program], {"OWN": "-own"}, READY) as address:
        assert address == "http://nothing-own"


def test_the_recorded_server_is_led_to_single_calls() -> None:
    weights = find_weights(None)
    single = servers.with_single_calls(template_for(weights))
    assert "tool_calls[:1]" in single
    with pytest.raises(servers.ServerUnavailable, match=r"adapt tests/recorded/servers\.py"):
        servers.with_single_calls("")
