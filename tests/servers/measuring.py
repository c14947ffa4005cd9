"""Calls in child processes, each measured from outside: its highest memory, its seconds, and how it ended.

    Measured() ── url, wire, method, bounds ──▶ a process that has loaded the SDKs ── fork ──▶ the call
                                                        └── wait4 ◀── the kernel's highest resident size

Run as a program, this module is that process: it reads a job a line, and prints an outcome a line.
"""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import sabir
from sabir.hooks.plugins import installed_hooks
from sabir_testing.loopback import Server, head

from tests.servers.attacks import WIRES, says

Method: TypeAlias = Literal["complete", "complete_sync", "stream", "stream_sync"]
METHODS: tuple[Method, ...] = ("complete", "complete_sync", "stream", "stream_sync")
MODULES = (
    "openai", "anthropic", "google.genai", "google.auth.aio.credentials", "anyio._backends._asyncio", "h11",
    "httpcore2", "opentelemetry.metrics", "truststore",
)  # fmt: skip
"""What a call loads beside adapters."""


class Outcome(NamedTuple):
    """One call. `peak` is in bytes and includes the interpreter; `error` is "" for a reply."""

    peak: int
    seconds: float
    error: str
    message: str


class Measured:
    """Makes calls in children of one process; use it in a `with` block."""

    def __enter__(self) -> "Measured":
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def measure(
        self, response: bytes, wire: str, method: Method, bounds: Mapping[str, int | None], *, enough: int = 0
    ) -> Outcome:
        """Serve that response to a call; `peak` and `enough` are above what a short answer takes."""
        with Server([response]) as server:
            usual = self.usual_peak(wire, method)
            outcome = self.call(server.url, wire, method, bounds, enough=enough and usual + enough)
        return outcome._replace(peak=max(outcome.peak - usual, 0))

    @cache  # noqa: B019 - one object a run
    def usual_peak(self, wire: str, method: Method) -> int:
        """The bytes that a call with a short answer takes."""
        with Server([head() + says(wire, b'"a"')]) as server:
            return self.call(server.url, wire, method, {}).peak

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def call(
        self,
        url: str,
        wire: str,
        method: Method,
        bounds: Mapping[str, int | None],
        timeout: float = 60,
        idle: float = 60,
        enough: int = 0,
    ) -> Outcome:
        """Call the server at `url` once, without retries; end it when it takes `enough` bytes of memory, if not 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"url": url, "wire": wire, "method": method, "bounds": dict(bounds), "timeout": timeout, "idle": idle}
        self._process.stdin.write(json.dumps([job, enough]) + "\n")
        self._process.stdin.flush()
        return Outcome(*json.loads(self._process.stdout.readline()))


async def _call(llm: sabir.Adapter, method: Method) -> None:
    match method:
        case "complete":
            await llm.complete("hi")
        case "complete_sync":
            llm.complete_sync("hi")
        case "stream":
            async for _ in llm.stream("hi"):
                pass
        case "stream_sync":
            for _ in llm.stream_sync("hi"):
                pass


def _ended(
    url: str, wire: str, method: Method, bounds: dict[str, Any], timeout: float, idle: float
) -> tuple[float, str, str]:
    settings = sabir.Settings(retries=0, timeout=timeout, idle=idle, bounds=sabir.Bounds(**bounds))
    llm = sabir.adapter(f"{wire}:m", api_key="k", base_url=url, settings=settings)
    began = time.monotonic()
    try:
        asyncio.run(_call(llm, method))
    except Exception as error:
        return time.monotonic() - began, type(error).__name__, str(error)
    return time.monotonic() - began, "", ""


def _in_a_child(job: dict[str, Any], enough: int) -> Outcome:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as answer:
            json.dump(_ended(**job), answer)
        os._exit(0)
    os.close(writer)
    while enough and not select.select([reader], [], [], 0.005)[0]:
        if int(Path(f"/proc/{child}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > enough:
            os.kill(child, signal.SIGKILL)
            break
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status, used = os.wait4(child, 0)
    ended = json.loads(text) if text else [0.0, "Killed", f"status {status}"]
    return Outcome(used.ru_maxrss * 1024, *ended)


if __name__ == "__main__":
    for name in MODULES:  # once, so that children need not
        import_module(name)
    installed_hooks()
    for wire in WIRES:
        sabir.adapter(f"{wire}:m", api_key="k", base_url="http://127.0.0.1:9").render("hi")
    for line in sys.stdin:
        print(json.dumps(_in_a_child(*json.loads(line))), flush=True)
