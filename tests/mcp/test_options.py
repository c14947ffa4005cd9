"""Options of a server, in a process of its own, over HTTP, and in this process: offered, chosen, called, left."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
import sabir
from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from sabir_mcp import ServerLost, options_from_mcp

from tests.mcp.conftest import PLAIN, WEATHER, answered, calling, error_of, texts_of, value_of
from tests.mcp.weather import CITY, PAGES, make_server


async def test_each_of_a_servers_options_is_an_option(server: Any) -> None:
    """All pages of them, in their order, with the server's own words."""
    async with options_from_mcp(server) as options:
        assert [each.name for each in options] == [tool.name for page in PAGES for tool in page]
        assert options[0] == sabir.Option.from_schema("forecast", "The weather in a city.", CITY)
        assert options[1].description == "Measure it"
        assert (options.server, options.instructions) == ("weather", "Ask about one city at a time.")
        assert repr(options[:1]) == repr((options[0],))
        assert repr(options).startswith("<options of MCP server 'weather': forecast, measure, ")


async def test_a_call_is_answered_by_the_server(server: Any) -> None:
    """Text is a text part, a structured value the JSON value that it is."""
    async with options_from_mcp(server) as options:
        assert texts_of(await answered(options, "forecast", city="Rome")) == ["rain in Rome"]
        assert value_of(await answered(options, "measure", city="Rome")) == {"celsius": 18}


async def test_arguments_reach_the_server_as_they_are(server: Any) -> None:
    given = {"list": [1, {"deep": [None, 2.5, True]}], "text": "é\n", "self": {"name": {}}}
    async with options_from_mcp(server) as options:
        assert value_of(await answered(options, "repeat", **given)) == given


async def test_a_model_chooses_and_is_answered() -> None:
    """The loop of every sabir program."""
    llm = sabir.adapter("echo:small")
    async with options_from_mcp(WEATHER, only=["forecast"]) as options:
        chat = [sabir.user('call forecast {"city": "Oslo"}')]
        reply = await llm.complete(chat, options=options)
        chat += reply.messages
        chat += await sabir.answer(reply, options)
        reply = await llm.complete(chat, options=options)

    assert reply.text == "rain in Oslo"


@pytest.mark.parametrize(
    "dialect", ["openai.chat", "openai.responses", "anthropic.messages", "google.generate_content"]
)
async def test_every_dialect_takes_a_name_that_vendors_do_not(dialect: str) -> None:
    """The option keeps the server's name; the dialect finds one for the wire, and the reply comes back to it."""
    provider, _, spoken = dialect.partition(".")
    async with options_from_mcp(make_server(), only=["weather.alerts/now"]) as options:
        rendering = sabir.adapter(f"{provider}.{spoken}:any").render("Any alerts?", options=options)
        names = {each.name for each in sabir.dialect(dialect).decode_history(rendering.body_bytes).options}
        assert texts_of(await answered(options, "weather.alerts/now")) == ["none"]

    assert len(names) == 1
    assert names.isdisjoint({"weather.alerts/now"})


async def test_only_exclude_and_prefix_choose_and_name() -> None:
    chosen = {"only": ["measure", "forecast", "fail"], "exclude": ["fail"], "prefix": "rome_"}
    async with options_from_mcp(make_server(), **chosen) as options:
        assert [each.name for each in options] == ["rome_forecast", "rome_measure"]
        assert texts_of(await answered(options, "rome_forecast", city="Rome")) == ["rain in Rome"]


async def test_two_servers_that_offer_the_same_are_told_apart() -> None:
    """Without a prefix, core refuses two options of one name; with one, each call goes to its server."""
    async with options_from_mcp(WEATHER, prefix="a_") as one, options_from_mcp(make_server(), prefix="b_") as two:
        both = [*one, *two]
        results = await sabir.answer([calling("b_forecast", city="B"), calling("a_forecast", city="A")], both)

    assert [texts_of(message) for message in results] == [["rain in B"], ["rain in A"]]


@pytest.mark.parametrize("which", ["only", "exclude"])
async def test_a_name_that_is_not_offered_is_refused(which: str) -> None:
    """A choice that a later version of the server no longer has is seen at once, not when a model misses it."""
    with pytest.raises(
        sabir.errors.OptionInvalid, match="MCP server 'plain' offers no option 'x'; it offers: again, array"
    ):
        async with options_from_mcp(PLAIN, **{which: ["x"]}):
            raise AssertionError("it was entered")


async def test_calls_at_once_are_answered_at_once(server: Any) -> None:
    """`meet` answers when two calls of it have come."""
    async with options_from_mcp(server) as options:
        found = await asyncio.gather(answered(options, "meet"), answered(options, "meet"))

    assert [texts_of(message) for message in found] == [["meet"], ["meet"]]


async def test_a_cancelled_call_is_cancelled_at_the_server(server: Any) -> None:
    async with options_from_mcp(server) as options:
        task = asyncio.create_task(answered(options, "wait"))
        await answered(options, "await_waiting")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert texts_of(await answered(options, "await_left")) == ["await_left"]


async def test_refresh_asks_again_and_the_sequence_holds_what_is_offered_now() -> None:
    """A list that changed is seen when it is asked for."""
    async with options_from_mcp(PLAIN) as options:
        before = [each.name for each in options]
        await answered(options, "again")
        assert [each.name for each in options] == before
        await options.refresh()

        assert [each.name for each in options] == ["again", "new"]


async def test_where_a_chosen_option_is_gone_refresh_says_so_and_changes_nothing() -> None:
    """Who chose by name relies on it."""
    async with options_from_mcp(PLAIN, only=["nothing", "again"]) as options:
        await answered(options, "again")
        with pytest.raises(sabir.errors.OptionInvalid, match="offers no option 'nothing'; it offers: again, new"):
            await options.refresh()

        assert [each.name for each in options] == ["nothing", "again"]


async def test_objects_of_the_sdk_are_servers_too(url: str) -> None:
    """Parameters, a transport, a client not yet entered, a server of its other class."""
    small = MCPServer("small")

    @small.tool()
    def forecast(city: str) -> str:
        return f"rain in {city}"

    parameters = StdioServerParameters(command=WEATHER[0], args=WEATHER[1:])
    for server in (parameters, streamable_http_client(url), Client(make_server()), small):
        async with options_from_mcp(server, only=["forecast"]) as options:
            message = await answered(options, "forecast", city="Rome")
            assert "rain in Rome" in message.model_dump_json()


async def test_a_client_that_its_owner_entered_stays_open() -> None:
    """Options use it; its owner leaves it."""
    async with Client(make_server()) as client:
        async with options_from_mcp(client, only=["forecast"]) as options:
            assert texts_of(await answered(options, "forecast", city="Rome")) == ["rain in Rome"]
        assert error_of(await answered(options, "forecast", city="Rome"))[0] == "ServerLost"

        assert len((await client.list_tools()).tools) == len(PAGES[0])


async def test_a_session_that_its_owner_entered_stays_open() -> None:
    """Page by page as with a client."""
    parameters = StdioServerParameters(command=WEATHER[0], args=WEATHER[1:])
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        async with options_from_mcp(session) as options:
            assert len(options) == sum(map(len, PAGES))
            assert texts_of(await answered(options, "forecast", city="Rome")) == ["rain in Rome"]

        assert len((await session.list_tools()).tools) == len(PAGES[0])


async def test_what_the_block_raises_is_raised_as_it_is(server: Any) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        async with options_from_mcp(server):
            raise error

    assert caught.value is error


async def test_a_cancelled_block_is_left() -> None:
    """Its server's process ends."""
    entered = asyncio.Event()
    kept = []

    async def use() -> None:
        async with options_from_mcp(WEATHER) as options:
            kept.append(options)
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert error_of(await answered(kept[0], "forecast", city="Rome"))[0] == "ServerLost"


async def test_a_block_may_be_entered_and_left_in_different_tasks(server: Any) -> None:
    """Fixtures and servers' life cycles do so; the SDK's own clients cannot."""
    block = options_from_mcp(server)
    options = await asyncio.create_task(block.__aenter__())
    assert texts_of(await asyncio.create_task(answered(options, "forecast", city="Rome"))) == ["rain in Rome"]
    await asyncio.create_task(block.__aexit__(None, None, None))


async def test_after_its_block_an_option_says_so(server: Any) -> None:
    """And so does `refresh`."""
    async with options_from_mcp(server) as options:
        pass

    kind, said = error_of(await answered(options, "forecast", city="Rome"))
    assert kind == "ServerLost"
    assert (
        said
        == "MCP server 'weather': its `async with options_from_mcp(…)` block has ended; call options inside the block"
    )
    with pytest.raises(ServerLost, match="block has ended"):
        await options.refresh()


def test_the_sdk_is_loaded_when_a_server_is_entered() -> None:
    """It takes a second; who only imports the package does not wait for it."""
    program = "import sys, json, sabir_mcp; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded.isdisjoint({"mcp", "mcp_types", "anyio", "httpx2", "starlette", "uvicorn", "jsonschema"})
