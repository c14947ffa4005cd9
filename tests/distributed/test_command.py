"""`sabir worker` as it is run: it says when it listens, and leaves in good order (RN-30)."""

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sabir_cli.main import main
from sabir_runtime.distributed import Worker
from sabir_runtime.distributed.command import _run_worker, load_context

from tests.cli.command import SCRIPT
from tests.distributed.contexts import Desk
from tests.distributed.support import ROOT, Place, soon, until, worker_process
from tests.servers.nats import nats_server


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_it_finish_its_work_first(place: Place, tmp_path: Path, word: signal.Signals) -> None:
    with worker_process(place.url, place.name, "--concurrency", "40") as worker:
        async with place.runner() as runner:
            ctx = Desk(runner)
            asked = asyncio.ensure_future(ctx.hold("x", folder=str(tmp_path)))
            await until(lambda: list(tmp_path.glob("*.started")))
            os.kill(worker.pid, word)
            async with place.worker(Desk):
                await until_another_takes(ctx)
                assert worker.process.poll() is None
                (tmp_path / "go").touch()
                (said,) = await soon(asked)
            await until(lambda: worker.process.poll() is not None)

    assert said.text == str(worker.pid)
    assert worker.process.returncode == 0


async def until_another_takes(ctx: Desk) -> None:
    """Until so many requests in a row were taken by this process that the other cannot be among the takers."""
    async with asyncio.timeout(20):
        while True:
            said = await asyncio.gather(*(ctx.work("x", number=number) for number in range(30)))
            if {message.text.split()[1] for (message,) in said} == {str(os.getpid())}:
                return


async def test_a_signal_ends_the_search_for_a_server() -> None:
    searching = asyncio.ensure_future(_run_worker(Worker(Desk, "nats://127.0.0.1:1"), "nowhere", 60))
    await asyncio.sleep(0)  # its first step takes the signals over

    os.kill(os.getpid(), signal.SIGTERM)

    await soon(searching)


DESK = "tests.distributed.contexts:Desk"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["tests.distributed.contexts"], "does not name a context; write module:Class"),
        ([":Desk"], "does not name a context"),
        (["nowhere.at_all:Desk"], "no module is named 'nowhere'"),
        ([f"{DESK}s"], "has no context 'Desks'"),
        (["tests.distributed.support:DEADLINE"], "has no context 'DEADLINE'"),
        (["tests.distributed.contexts:hold"], "serves contexts, not the async function 'hold'; give a class"),
        (["tests.distributed.support:worker_process"], "cannot call 'worker_process' with only a runner: missing a"),
        (["tests.distributed.support:Gate"], "serves contexts, not the class 'Gate'; give a class"),
        ([DESK, "--url", "nats://127.0.0.1:sesame"], "NATS URL 1 of 1 cannot be read: its port is not a number"),
        (
            [DESK, "--url", "nats://127.0.0.1:1", "--patience", "0.1"],
            "no NATS server at nats://127.0.0.1:1 within 0.1 s",
        ),
        ([DESK, "--creds", "nowhere.creds"], "nowhere.creds cannot be read: No such file or directory"),
        ([DESK, "--inbox", "sabir.Desk"], "not a valid inbox prefix"),
    ],
)
def test_a_worker_that_cannot_start_says_why_in_one_line(
    arguments: list[str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read of a URL is not repeated; the exit code is that of wrong arguments."""
    assert main(["worker", *arguments]) == 2
    (line,) = capfd.readouterr().err.splitlines()

    assert line.startswith("sabir: ")
    assert reason in line
    assert "sesame" not in line


def test_a_fault_within_the_module_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needy_desk.py").write_text("import no_such_library\n", "utf-8")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load_context("needy_desk:Desk")


def test_a_worker_says_that_it_looks_for_its_server_and_that_it_found_it(name: str) -> None:
    """On stderr, long before its patience is over: where it looks, why in vain, for how long, and what to do."""
    with nats_server() as free:
        pass
    command = [SCRIPT, "worker", "tests.distributed.contexts:Desk", "--name", name, "--url", free]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            searching = process.stderr.readline()
            with nats_server(port=urlsplit(free).port):
                listening = process.stdout.readline()
                found = process.stderr.readline()
        finally:
            process.kill()

    reason = r"\S.*; trying for 60 s; start nats-server, or give another --url\n"
    assert re.fullmatch(f"sabir worker: cannot reach {re.escape(free)}: {reason}", searching)
    assert found == f"sabir worker: connected to {free}\n"
    assert listening.endswith(f"({free})\n")
