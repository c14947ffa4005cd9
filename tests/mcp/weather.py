"""A server made with the SDK's own class: an option for each thing that an answer may be.

python weather.py            by stdin and stdout
python weather.py http       by streamable HTTP on loopback; its port is the first line that it prints
"""

import asyncio
import base64
import os
import socket
import sys
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n a small picture").decode()
WAV = base64.b64encode(b"RIFF....WAVE a short sound").decode()
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANYTHING: dict[str, Any] = {"type": "object"}
TEMPERATURE = {"type": "object", "properties": {"celsius": {"type": "integer"}}, "required": ["celsius"]}

PAGES = (
    (
        Tool(name="forecast", description="The weather in a city.", input_schema=CITY),
        Tool(name="measure", title="Measure it", input_schema=CITY, output_schema=TEMPERATURE),
    ),
    (
        Tool(name="photograph", input_schema=ANYTHING),
        Tool(name="mismeasure", input_schema=ANYTHING, output_schema=TEMPERATURE),
        Tool(name="weather.alerts/now", description="A name that no vendor takes.", input_schema=ANYTHING),
    ),
    tuple(
        Tool(name=name, input_schema=ANYTHING)
        for name in ("repeat", "fail", "fault", "die", "meet", "wait", "await_waiting", "await_left")
    ),
)


class Events:
    """What a test waits for, instead of for some time."""

    def __init__(self) -> None:
        self.met = asyncio.Barrier(2)
        self.waiting, self.left = asyncio.Event(), asyncio.Event()


def text(said: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=said)], **more)


def parts() -> CallToolResult:
    return CallToolResult(
        content=[
            TextContent(text="The sky now:"),
            ImageContent(data=PNG, mime_type="image/png"),
            AudioContent(data=WAV, mime_type="audio/wav"),
        ]
    )


async def waited(name: str, events: Events) -> CallToolResult:
    if name == "meet":
        await events.met.wait()
    elif name == "wait":
        events.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            events.left.set()
    elif name == "await_waiting":
        await events.waiting.wait()
    else:
        await events.left.wait()
    return text(name)


def make_server(**more: Any) -> "Server[Any]":
    """A new server; its events live in the loop that calls it first."""
    events: list[Events] = []

    async def offer(context: "ServerRequestContext[Any]", params: PaginatedRequestParams | None) -> ListToolsResult:
        page = int(params.cursor) if params and params.cursor else 0
        last = page == len(PAGES) - 1
        return ListToolsResult(tools=list(PAGES[page]), next_cursor=None if last else str(page + 1))

    async def answer(context: "ServerRequestContext[Any]", params: CallToolRequestParams) -> CallToolResult:
        if not events:
            events.append(Events())
        name, city = params.name, (params.arguments or {}).get("city", "")
        if name == "fault":
            raise ValueError("a fault of the server's own")
        if name == "die":
            os._exit(3)
        at_once = {
            "forecast": lambda: text(f"rain in {city}"),
            "measure": lambda: text('{"celsius": 18}', structured_content={"celsius": 18}),
            "mismeasure": lambda: text("cold", structured_content={"celsius": "cold"}),
            "photograph": parts,
            "repeat": lambda: CallToolResult(content=[], structured_content=params.arguments),
            "weather.alerts/now": lambda: text("none"),
            "fail": lambda: text("the station is closed", is_error=True),
        }
        return at_once[name]() if name in at_once else await waited(name, events[0])

    given: dict[str, Any] = {"on_list_tools": offer, "on_call_tool": answer, **more}
    return Server("weather", instructions="Ask about one city at a time.", **given)


def serve_http() -> None:
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    app = make_server().streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


async def serve_streams() -> None:
    from mcp.server.stdio import stdio_server

    server = make_server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        asyncio.run(serve_streams())
