"""A client that is attacked: it calls the option of a hostile server once, and prints what happened, as JSON.

It ends when its stdin closes, so that its peak memory can be read until then.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import sabir
from sabir import Message, OptionCallPayload
from sabir_mcp import Limits, ServerUnreachable, options_from_mcp


async def run(server: Any, limits: Limits, seconds: float) -> dict[str, Any]:
    call = Message(policy="llm", payload=OptionCallPayload(invocation_id="1", option_name="call", arguments={}))
    began = time.monotonic()
    outcomes, texts = [], []
    ended = 0.0
    try:
        async with options_from_mcp(server, timeout=seconds, connect_timeout=seconds, limits=limits) as options:
            began = time.monotonic()
            for _ in range(2):
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
    settings = json.loads(sys.argv[1])
    server = settings["server"]
    outcome = asyncio.run(run(server, Limits(**settings["limits"]), settings["seconds"]))
    print(json.dumps(outcome), flush=True)
    os.read(0, 1)


if __name__ == "__main__":
    main()
