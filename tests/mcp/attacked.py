"""A client of a hostile server: it calls an option, and reports the outcome; it runs in a process of its own."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import sabir
from sabir import Message, OptionCallPayload
from sabir_mcp import Limits, ServerUnreachable, options_from_mcp

CONNECTED = "connected"


class Settings(NamedTuple):
    """What a client is told: seconds for connecting and for a call, and bytes that it may use beyond those it has."""

    server: Any
    calls: int
    connect_timeout: float
    timeout: float
    limits: Mapping[str, int]
    most_memory: int = 0


class Report(NamedTuple):
    """Of each call how it ended and the error's text, and the seconds until the first end."""

    outcomes: tuple[str, ...]
    texts: tuple[str, ...]
    seconds: float


async def run(told: Settings, pipe: "Connection[Any, Any]") -> Report:
    call = Message(policy="llm", payload=OptionCallPayload(invocation_id="1", option_name="call", arguments={}))
    began = time.monotonic()
    outcomes, texts = [], []
    ended = 0.0
    timeouts = {"timeout": told.timeout, "connect_timeout": told.connect_timeout}
    try:
        async with options_from_mcp(told.server, **timeouts, limits=Limits(**told.limits)) as options:
            began = time.monotonic()
            pipe.send(CONNECTED)
            for _ in range(told.calls):
                (message,) = await sabir.answer([call], options)
                assert message.result is not None
                ended = ended or time.monotonic()
                outcomes.append(message.result.error_type or "answered")
                texts.append(message.result.error_message or "")
                del message
    except ServerUnreachable as error:
        outcomes.append("ServerUnreachable")
        texts.append(str(error))
    return Report(tuple(outcomes), tuple(texts), (ended or time.monotonic()) - began)


def main(told: Settings, pipe: "Connection[Any, Any]") -> None:
    """Send the report; then wait for a word, so that the peak memory can be read before the end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if told.most_memory:
        pages = int(Path("/proc/self/statm").read_text("utf-8").split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + told.most_memory,) * 2)
    try:
        pipe.send(asyncio.run(run(told, pipe)))
        pipe.recv()
    except KeyboardInterrupt:  # end as Python does, which multiprocessing would not
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
