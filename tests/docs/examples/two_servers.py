"""An agent with the options of two MCP servers: `python two_servers.py MODEL SERVER.py SERVER.py QUESTION`."""

import asyncio
import sys

import sabir
from sabir_mcp import options_from_mcp
from sabir_session import CallEnded, Conversation


async def main(model: str | sabir.Adapter, first: list[str], second: list[str], question: str) -> str:
    """Ask once; each call is printed when it ends."""
    async with options_from_mcp(first) as some, options_from_mcp(second) as others:
        chat = Conversation(model, options=[*some, *others])
        async with chat.stream(question) as stream:
            async for event in stream:
                if isinstance(event, CallEnded):
                    print(event.call.call.option_name, dict(event.call.call.arguments))
            return (await stream.answer()).text


if __name__ == "__main__":
    model, first, second, question = sys.argv[1:]
    print(asyncio.run(main(model, [sys.executable, first], [sys.executable, second], question)))
