"""Attacks by servers: the error, the seconds until it, the peak memory of the client's process, and the server's end.

Each row runs in a client process of its own, forked from one that has imported all, whose peak memory is read from
outside.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sabir_mcp import Limits

from tests.mcp import attacked
from tests.mcp.attacked import CONNECTED, Report, Settings

HERE = Path(__file__).parent
BOUND = Limits().message_bytes
MOST = 4
"""How many times the bound an attack may need."""
CONNECTING = ("silent_start", "drip_list")
WAITING = ("silent", "drip", "pings", "logs", *CONNECTING)
"""Attacks that end when the time is over."""
SHORT, LONG = 1.5, 25.0
"""Timeouts of a client: for what an attack holds up, and for what needs time on a busy machine."""
SLACK = 1.0
"""Seconds after the timeout in which an error must come."""
PATIENCE = 60.0
"""Seconds after which a client that is stopped by an attack is killed."""
UNLIMITED = {"message_bytes": sys.maxsize, "message_values": sys.maxsize, "tools": sys.maxsize, "parts": sys.maxsize}
UNLIMITED_SECONDS, UNLIMITED_MEMORY = 3.0, 2**29
"""What a client without limits may use, so that an attack does not stop the machine."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
CLIENTS = multiprocessing.get_context("forkserver")
CLIENTS.set_forkserver_preload(["mcp.server.mcpserver", "sabir_mcp.http", "sabir_mcp.stdio", "sabir_mcp.calls"])


class Row(NamedTuple):
    """An attack, the transports that it runs over, its outcomes, and the limit that its error names."""

    attack: str
    transports: Sequence[str]
    outcomes: Sequence[str]
    limit: str = ""


ALL = ("stdio", "json", "events")
LIVE = ("stdio", "events")
TOO_LARGE = ("AnswerTooLarge", "AnswerTooLarge")
CLOSED = ("AnswerTooLarge", "ServerLost")
ROWS = (
    Row("schema", LIVE, ("answered", "answered")),
    Row("text_bomb", ALL, ("answered", "answered")),
    Row("image", ALL, ("answered", "answered")),
    Row("parts", ALL, TOO_LARGE, "parts"),
    Row("more_parts", ("stdio",), CLOSED, "message_values"),
    Row("values", ("stdio",), CLOSED, "message_values"),
    Row("values", ("json", "events"), TOO_LARGE, "message_values"),
    Row("quoted_id", ("events",), TOO_LARGE, "message_values"),
    Row("endless", ("stdio",), CLOSED, "message_bytes"),
    Row("endless", ("json", "events"), TOO_LARGE, "message_bytes"),
    Row("endless_id", ("events",), TOO_LARGE, "message_bytes"),
    Row("emoji", ("stdio",), CLOSED, "message_bytes"),
    Row("emoji", ("json", "events"), TOO_LARGE, "message_bytes"),
    Row("gzip", ("json", "events"), TOO_LARGE, "compressed"),
    Row("silent", LIVE, ("ServerTimedOut",)),
    Row("drip", ALL, ("ServerTimedOut",)),
    Row("pings", LIVE, ("ServerTimedOut",)),
    Row("logs", LIVE, ("ServerTimedOut",)),
    Row("silent_start", LIVE, ("ServerUnreachable",), "connect_timeout"),
    Row("drip_list", ALL, ("ServerUnreachable",), "connect_timeout"),
    Row("many_tools", LIVE, ("ServerUnreachable",), "tools"),
    Row("many_icons", LIVE, ("answered", "answered")),
    Row("endless_pages", ("stdio",), ("ServerUnreachable",), "pages of tools"),
    Row("endless_pages", ("events",), ("ServerUnreachable",)),  # in time or by the limit: 1,000 requests are slow
    Row("large_pages", LIVE, ("ServerUnreachable",), "message_bytes"),
    Row("circle", ("stdio",), ("ServerUnreachable",), "came twice"),
)
CASES = [pytest.param(transport, row, id=f"{row.attack}-{transport}") for row in ROWS for transport in row.transports]
NEED_LIMITS = [
    ("stdio", "endless"), ("stdio", "values"), ("stdio", "parts"), ("stdio", "emoji"), ("stdio", "many_tools"),
    ("stdio", "endless_pages"), ("stdio", "large_pages"), ("events", "values"), ("events", "endless"),
    ("json", "endless"),
]  # fmt: skip


def timeouts(attack: str) -> tuple[float, float]:
    """The seconds for connecting, and for a call."""
    return (SHORT if attack in CONNECTING else LONG), (SHORT if attack in WAITING else LONG)


@contextmanager
def hostile(transport: str, attack: str, pid_file: Path | None = None) -> Iterator[Any]:
    """The server as `options_from_mcp` takes it; over HTTP it runs within the block."""
    command = [sys.executable, str(HERE / "hostile.py"), transport, attack, *([str(pid_file)] if pid_file else [])]
    if transport == "stdio":
        yield command
        return
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@contextmanager
def client(told: Settings) -> Iterator[tuple[Any, Any]]:
    """The process of a client, and the pipe to it."""
    near, far = CLIENTS.Pipe()
    process = CLIENTS.Process(target=attacked.main, args=(told, far))
    with near, far:
        process.start()
        far.close()
        try:
            yield process, near
        finally:
            process.kill()
            process.join()
            process.close()


def outcome_of(
    transport: str, attack: str, *, is_limited: bool = True, pid_file: Path | None = None
) -> tuple[Report, int] | None:
    """What a client reports, and its peak memory in bytes; None if it reports nothing."""
    with hostile(transport, attack, pid_file) as server:
        told = Settings(server, 1 if attack in WAITING else 2, *timeouts(attack), limits={})
        if not is_limited:
            told = Settings(server, 2, UNLIMITED_SECONDS, UNLIMITED_SECONDS, UNLIMITED, UNLIMITED_MEMORY)
        with client(told) as (process, pipe):
            try:
                found = CONNECTED
                while found == CONNECTED:
                    if not pipe.poll(PATIENCE if is_limited else 3 * UNLIMITED_SECONDS):
                        return None
                    found = pipe.recv()
            except EOFError:
                return None
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text("utf-8"))
            assert peak is not None
            return found, int(peak[1]) * 1024


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@cache
def baseline(transport: str) -> int:
    """The peak memory of a client whose server is harmless."""
    outcome = outcome_of(transport, "none")
    assert outcome is not None
    report, memory = outcome
    assert report.outcomes == ("answered", "answered")
    return memory


def memory_of(transport: str, outcome: tuple[Report, int] | None) -> float:
    """What an attack needed, as a multiple of the bound."""
    return (outcome[1] - baseline(transport)) / BOUND if outcome else 0


def faults_of(transport: str, row: Row, outcome: tuple[Report, int] | None) -> list[str]:
    """What is wrong with the outcome of a row."""
    if outcome is None:
        return ["the client died, or was stopped"]
    report, _ = outcome
    answered = set(row.outcomes) == {"answered"}
    checks = {
        f"{report.outcomes}: {report.texts}": report.outcomes == row.outcomes,
        f"the error does not name {row.limit}: {report.texts}": answered or row.limit in report.texts[0],
        f"it took {report.seconds:.1f} s": report.seconds < min(timeouts(row.attack)) + SLACK,
        f"it needed {memory_of(transport, outcome):.1f} times the bound": memory_of(transport, outcome) < MOST,
    }
    return [fault for fault, holds in checks.items() if not holds]


@pytest.mark.parametrize(("transport", "row"), CASES)
def test_an_attack_ends_in_an_error_in_time_and_within_memory(transport: str, row: Row, tmp_path: Path) -> None:
    """The connection works on, or is closed and says why; a process that it started has ended."""
    pid_file = tmp_path / "pid"
    outcome = outcome_of(transport, row.attack, pid_file=pid_file)
    if memory_of(transport, outcome) >= MOST:
        # How much is read before it is counted depends on how many chunks arrive at once: the smaller peak counts.
        outcome = outcome_of(transport, row.attack, pid_file=pid_file)

    assert faults_of(transport, row, outcome) == []
    if transport == "stdio":
        assert not is_alive(int(pid_file.read_text("utf-8")))


@pytest.mark.parametrize(("transport", "attack"), NEED_LIMITS)
def test_an_attack_succeeds_without_limits(transport: str, attack: str) -> None:
    """So the rows above fail if their limit is not checked."""
    row = next(row for row in ROWS if row.attack == attack and transport in row.transports)

    assert faults_of(transport, row, outcome_of(transport, attack, is_limited=False)) != []


@pytest.mark.parametrize(
    ("transport", "attack"),
    [("stdio", "silent_start"), ("stdio", "silent"), ("stdio", "pings"), ("stdio", "schema"), ("events", "drip")],
)
def test_an_interrupt_ends_a_client_promptly(transport: str, attack: str, tmp_path: Path) -> None:
    """Ctrl-C reaches the program while the server is silent, or floods it; the server's process ends too."""
    pid_file = tmp_path / "pid"
    calls = 10**9 if attack == "schema" else 1
    with hostile(transport, attack, pid_file) as server:
        with client(Settings(server, calls, 600, 600, limits={})) as (process, pipe):
            if attack == "silent_start":
                while not pid_file.exists():
                    time.sleep(0.01)
            else:
                assert pipe.recv() == CONNECTED
            time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
            process.join(timeout=10)
            assert process.exitcode == -signal.SIGINT

        if transport == "stdio":
            assert not is_alive(int(pid_file.read_text("utf-8")))
