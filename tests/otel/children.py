"""Processes that write their spans to a file, one line of JSON for each span.

python -m tests.otel.children FILE die STORE      begins the run "r", and is killed while an option runs
python -m tests.otel.children FILE live STORE     continues the run "r" to its end
python -m tests.otel.children FILE work URL       a worker, until standard input is closed
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import sabir_otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from sabir import Message
from sabir_runtime import BaseContext
from sabir_runtime.distributed import Worker
from sabir_runtime.durable import DurableRunner

from tests.otel.desk import Desk, Names


async def killed(ctx: BaseContext, observations: list[Message], options: Names = None, *, query: str) -> list[Message]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


async def run(way: str, place: str) -> None:
    if way == "work":
        async with Worker(Desk, place):
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)
        return
    async with DurableRunner(place, beat=0.05, poll=0.02) as runner:
        desk = Desk(runner)
        if way == "die":
            desk.search.policy = killed
            await runner.run(desk.agent, 'call search {"query": "rain"}', ["search"], run_id="r")
        await runner.launch()
        await runner.result("r")


def main() -> None:
    path, way, place = sys.argv[1:]
    with Path(path).open("a") as file:
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        sabir_otel.configure(tracer_provider=provider)
        asyncio.run(run(way, place))


if __name__ == "__main__":
    main()
