"""Complete 1,000 prompts at a server on this machine, 64 at once: complete_many, and httpx2 by hand.

    python -m benchmarks.many [--prompts 1000] [--delay 0.05] [--at-once 64] [--rounds 7]

    this process ──starts in turn──▶ a process of each contender ──requests──▶ server process: answers after the delay

Each contender runs in a new process and checks the texts of all answers. The rows show medians over the rounds: seconds
until all answers were there, CPU time, and by how much the peak of the resident memory grew after the first requests.
In brackets, the contender's throughput and its memory are divided by those of httpx2. Both keep all answers: replies,
or parsed JSON.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeAlias

from benchmarks.answers import reply, reply_text
from benchmarks.work import MODELS

WIRE = "openai.chat"
MODEL = MODELS[WIRE]
Run: TypeAlias = Callable[[list[str], int], Awaitable[list[Any]]]
"""Sends prompts, so many at once, and returns the answers in order."""


class Round(NamedTuple):
    """What one process needed: wall-clock and CPU seconds, and the growth of its resident memory's peak in MB."""

    wall: float
    cpu: float
    memory: float


class Answering(asyncio.Protocol):
    """A connection of the server. Each request is answered after `delay` seconds."""

    def __init__(self, delay: float) -> None:
        body = reply(WIRE)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.answer, self.delay, self.received = head + body, delay, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self.received = b""  # a client sends its next request only after the answer
            asyncio.get_running_loop().call_later(self.delay, self.transport.write, self.answer)


def run_server(pipe: Connection, delay: float) -> None:
    """Serve until the process is ended. Sends the URL through the pipe."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Answering(delay), "127.0.0.1", 0, backlog=1024)
        pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        await server.serve_forever()

    asyncio.run(serve())


def with_httpx2(url: str) -> Run:
    """The loop that one would write for this server alone: a client, a semaphore, and json."""
    import httpx2

    async def run(prompts: list[str], at_once: int) -> list[Any]:
        limit = asyncio.Semaphore(at_once)
        async with httpx2.AsyncClient(base_url=url, headers={"Authorization": "Bearer k"}) as client:

            async def ask(prompt: str) -> Any:
                async with limit:
                    body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}
                    response = await client.post("/chat/completions", json=body)
                return response.raise_for_status().json()

            return await asyncio.gather(*map(ask, prompts))

    return run


def with_sabir(url: str) -> Run:
    """`complete_many` of sabir-calls."""
    import sabir
    from sabir_calls import complete_many

    async def run(prompts: list[str], at_once: int) -> list[Any]:
        async with sabir.adapter(f"openai.chat:{MODEL}", api_key="k", base_url=url) as llm:
            return await complete_many(llm, prompts, at_once=at_once)

    return run


CONTENDERS: dict[str, Callable[[str], Run]] = {"httpx2": with_httpx2, "sabir": with_sabir}


def text_of(answer: Any) -> str:
    """Return the text of a parsed answer or of an outcome."""
    text: str = answer["choices"][0]["message"]["content"] if isinstance(answer, dict) else answer.text
    return text


def measure(name: str, url: str, prompts: int, at_once: int) -> Round:
    """Send the prompts with one contender. Raises ValueError for a wrong answer."""
    run = CONTENDERS[name](url)

    async def all_prompts() -> Round:
        await run(["Ready?"] * 2, 2)  # the first call imports and connects
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = time.perf_counter(), time.process_time()
        answers = await run([f"Umbrella on day {number}?" for number in range(prompts)], at_once)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if [text_of(answer) for answer in answers] != [reply_text()] * prompts:
            raise ValueError(f"{name} returned wrong answers")
        return Round(wall, cpu, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)

    return asyncio.run(all_prompts())


def measure_in_process(name: str, url: str, prompts: int, at_once: int) -> Round:
    """Run `measure` in a new process."""
    command = [sys.executable, "-m", "benchmarks.many", "--contender", name, "--url", url]
    command += ["--prompts", str(prompts), "--at-once", str(at_once)]
    return Round(*json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def table(rounds: dict[str, list[Round]]) -> str:
    """Return a line of medians for each contender."""
    medians = {name: Round(*map(statistics.median, zip(*each, strict=True))) for name, each in rounds.items()}
    lines = [f"{'':10}{'seconds':>16}{'CPU s':>9}{'MB':>16}"]
    base = medians["httpx2"]
    for name, (wall, cpu, memory) in medians.items():
        lines.append(
            f"{name:10}{wall:9.2f} ({base.wall / wall:.2f}){cpu:9.2f}{memory:9.1f} ({memory / base.memory:.2f})"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure all contenders in turn, or the one that `--contender` names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contender:
        print(json.dumps(measure(given.contender, given.url, given.prompts, given.at_once)))
        return
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=run_server, args=(there, given.delay), daemon=True)
    server.start()
    url, rounds = here.recv(), dict[str, list[Round]]()
    for number in range(given.rounds):
        for name in sorted(CONTENDERS, reverse=bool(number % 2)):
            rounds.setdefault(name, []).append(measure_in_process(name, url, given.prompts, given.at_once))
    server.terminate()
    print(table(rounds))


if __name__ == "__main__":
    main()
