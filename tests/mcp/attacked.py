"""A client of a hostile server: it calls an option, and prints the outcome as JSON.

It exits when its stdin closes, so that its peak memory can be read before.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from importlib import import_module
from typing import Any

import sabir
from sabir import Message, OptionCallPayload
from sabir_mcp import Limits, ServerUnreachable, options_from_mcp


async def run(server: Any, limits: Limits, seconds: float, calls: int) -> dict[str, Any]:
    """Call the option `calls` times; return the outcomes, and the seconds until the first."""
    call = Message(policy="llm", payload=OptionCallPayload(invocation_id="1", option_name="call", arguments={}))
    began = time.monotonic()
    outcomes, texts = [], []
    ended = 0.0
    try:
        async with options_from_mcp(server, timeout=seconds, connect_timeout=seconds, limits=limits) as options:
            began = time.monotonic()
            print("connected", flush=True)
            for _ in range(calls):
                (message,) = await sabir.answer([call], options)
                assert message.result is not None
                ended = ended or time.monotonic()
                outcomes.append(message.result.error_type or "answered")
                texts.append(message.result.error_message or "")
                del message
    except ServerUnreachable as error:
        outcomes.append("ServerUnreachable")
        texts.append(str(error))
    return {"outcomes": outcomes, "texts": texts, "seconds": (ended or time.monotonic()) - began}


def main() -> None:
    for module in ("mcp.server.mcpserver", "sabir_mcp.http", "sabir_mcp.stdio", "sabir_mcp.calls"):
        import_module(module)  # it takes seconds, which are not the server's
    settings = json.loads(sys.argv[1])
    if settings["most_memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (settings["most_memory"],) * 2)
    limits = Limits(**settings["limits"])
    outcome = asyncio.run(run(settings["server"], limits, settings["seconds"], settings["calls"]))
    print(json.dumps(outcome), flush=True)
    os.read(0, 1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    main()
