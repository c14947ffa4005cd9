"""A server that fails, dies, lies or is silent gives an error result, or an error where the block is entered."""

import asyncio
import sys
from contextlib import nullcontext
from typing import Any

import pytest
import sabir
from mcp import Client
from mcp.server import ServerRequestContext
from mcp.types import ListToolsResult, PaginatedRequestParams, Tool
from sabir_mcp import AnswerInvalid, ServerTimedOut, ServerUnreachable, options_from_mcp
from sabir_mcp.servers import label_of
from sabir_testing.network import network_forbidden

from tests.mcp.conftest import PLAIN, WEATHER, answered, error_of, http_server, texts_of, value_of
from tests.mcp.weather import make_server

SILENT = [sys.executable, "-c", "import sys; sys.stdin.read()"]
GONE = [sys.executable, "-c", "raise SystemExit(3)"]
SECRET = "sk-12345"


async def test_an_option_that_fails_gives_its_own_words(server: Any) -> None:
    """An error result, and the server goes on."""
    async with options_from_mcp(server) as options:
        assert error_of(await answered(options, "fail")) == ("option_failed", "the station is closed")
        assert texts_of(await answered(options, "forecast", city="Rome")) == ["rain in Rome"]


async def test_a_fault_of_the_server_is_an_error_result(server: Any) -> None:
    """With what the protocol says of it."""
    async with options_from_mcp(server) as options:
        kind, said = error_of(await answered(options, "fault"))
        assert texts_of(await answered(options, "forecast", city="Rome")) == ["rain in Rome"]

    assert kind == "ServerRefused"
    assert said.startswith("MCP server 'weather': it refuses a call of 'fault': ")


async def test_a_refusal_with_the_code_of_a_lost_connection_is_a_refusal() -> None:
    """The SDK uses for both a code that servers use as they like."""
    async with options_from_mcp(PLAIN) as options:
        await answered(options, "again")
        await options.refresh()
        found = error_of(await answered(options, "new"))

    assert found == ("ServerRefused", "MCP server 'plain': it refuses a call of 'new': no new today (-32000)")


async def test_an_answer_that_does_not_fit_its_output_schema_arrives_unchanged(server: Any) -> None:
    """Output schemas are not checked: to check one is to run a stranger's regular expressions."""
    async with options_from_mcp(server) as options:
        assert texts_of(await answered(options, "mismeasure")) == ["cold", '{"celsius": "cold"}']


async def test_content_of_a_kind_that_the_protocol_does_not_know_is_an_error_result() -> None:
    """It says which; and the connection goes on."""
    async with options_from_mcp(PLAIN) as options:
        kind, said = error_of(await answered(options, "hologram"))
        assert (kind, said) == (
            "AnswerInvalid",
            "MCP server 'plain': its answer to a call of 'hologram' has content of type 'hologram', which the "
            "protocol does not define",
        )
        kind, said = error_of(await answered(options, "textless"))
        assert kind == "AnswerInvalid"
        assert said.startswith("MCP server 'plain': its answer to a call of 'textless' does not follow the protocol: ")
        assert "text: Field required" in said
        assert texts_of(await answered(options, "again")) == ["changed"]


@pytest.mark.parametrize("way", ["process", "http"])
async def test_a_server_that_dies_in_mid_call_gives_an_error_result(caplog: pytest.LogCaptureFixture, way: str) -> None:
    """So does every later call; nothing hangs, and the block runs on and is left in peace."""
    dying = nullcontext(WEATHER) if way == "process" else http_server()
    with dying as server:
        async with options_from_mcp(server, timeout=None) as options:
            waiting = asyncio.create_task(answered(options, "wait"))
            await answered(options, "await_waiting")
            died = await answered(options, "die")
            later = await answered(options, "forecast", city="Rome")
            found = [error_of(each)[0] for each in (died, later, await waiting)]

    assert found == ["ServerLost"] * 3
    assert error_of(died)[1].startswith(
        "MCP server 'weather': the connection ended before a call of 'die' was answered: "
    )
    logged = [record.getMessage() for record in caplog.records if record.name == "sabir"]
    of_options = [text for text in logged if text.endswith(" raised ServerLost")]
    assert len(of_options) == 3
    assert len(logged) - len(of_options) == (way == "http"), logged


async def test_a_silent_server_gives_an_error_result_in_time(server: Any) -> None:
    """It is told that nobody waits any longer, and the connection goes on."""
    async with options_from_mcp(server, timeout=0.3) as options:
        kind, said = error_of(await answered(options, "wait"))
        left = await answered(options, "await_left")

    assert (kind, said) == (
        "ServerTimedOut",
        "MCP server 'weather': no answer to a call of 'wait' within 0.3 s; allow more time with timeout=",
    )
    assert left.result is not None


async def test_a_client_with_a_limit_of_its_own_keeps_it() -> None:
    """The shorter of the two holds."""
    async with Client(make_server(), read_timeout_seconds=0.2) as client:
        async with options_from_mcp(client, timeout=None) as options:
            kind, said = error_of(await answered(options, "wait"))

    assert kind == "ServerTimedOut"
    assert said.startswith("MCP server 'weather': no answer to a call of 'wait': ")


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (f"no-such-command --key {SECRET}", "FileNotFoundError: .*'no-such-command'"),
        (["/no/such/command", SECRET], "'command' cannot be reached: FileNotFoundError"),
        (GONE, "MCPError: Connection closed"),
        (f"http://user:{SECRET}@127.0.0.1:9/{SECRET}?key={SECRET}", "'127.0.0.1' cannot be reached: ConnectError"),
    ],
)
async def test_a_server_that_is_not_there_is_an_error_where_the_block_is_entered(server: Any, said: str) -> None:
    """It names the command or the host, and no argument, path or key."""
    with pytest.raises(ServerUnreachable, match=said) as caught:
        async with options_from_mcp(server):
            raise AssertionError("it was entered")

    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


async def never(context: "ServerRequestContext[Any]", params: PaginatedRequestParams | None) -> ListToolsResult:
    await asyncio.Event().wait()
    raise AssertionError("it waited")


@pytest.mark.parametrize("server", [SILENT, make_server(on_list_tools=never)], ids=["greets", "lists"])
async def test_a_server_that_never_greets_or_lists_is_given_up(server: Any) -> None:
    """The limit holds for greeting and listing together."""
    with pytest.raises(ServerUnreachable, match=r"did not list its options within 0\.2 s; raise connect_timeout="):
        async with options_from_mcp(server, connect_timeout=0.2):
            raise AssertionError("it was entered")


async def test_a_server_that_never_lists_again_is_given_up_too() -> None:
    """The options stay as they were."""
    offered = ListToolsResult(tools=[Tool(name="once", input_schema={"type": "object"})])
    asked: list[object] = []

    async def once(context: "ServerRequestContext[Any]", params: PaginatedRequestParams | None) -> ListToolsResult:
        asked.append(params)
        if len(asked) > 1:
            await asyncio.Event().wait()
        return offered

    async with options_from_mcp(make_server(on_list_tools=once), connect_timeout=0.5) as options:
        with pytest.raises(
            ServerTimedOut, match=r"a request for its options within 0\.5 s; allow more time with connect_"
        ):
            await options.refresh()
        assert [each.name for each in options] == ["once"]


async def test_a_server_without_options_is_no_server_of_options() -> None:
    """It refuses to list any, and says so."""
    with pytest.raises(ServerUnreachable, match="it refuses a request for its options: Method not found"):
        async with options_from_mcp(make_server(on_list_tools=None)):
            raise AssertionError("it was entered")


async def test_a_list_that_goes_round_in_a_circle_ends() -> None:
    async with options_from_mcp(PLAIN) as options:
        await answered(options, "circle")
        with pytest.raises(AnswerInvalid, match="its list of options repeats itself: the cursor 'round' came twice"):
            await options.refresh()
        assert len(options) == 6


async def test_input_schemas_of_strangers_are_neither_followed_nor_run() -> None:
    """Malformed keywords are ignored, references are not resolved, and patterns are not matched."""
    long = "a" * 40 + "!"
    async with options_from_mcp(PLAIN, timeout=5) as options:
        with network_forbidden():
            found = await answered(options, "nothing", self={"self": {"self": 1}}, far=2)
        assert value_of(found) is None
        assert texts_of(await answered(options, "again", text=long, more={"x": 1})) == ["changed"]
        assert value_of(await answered(options, "circle", text=long)) is None


async def test_a_list_that_the_protocol_does_not_allow_is_refused() -> None:
    """The SDK reads it as a whole; the options stay as they were."""
    async with options_from_mcp(PLAIN) as options:
        await answered(options, "array")
        with pytest.raises(AnswerInvalid, match="its answer to a request for its options does not follow the protocol"):
            await options.refresh()
        assert len(options) == 6


async def test_an_option_that_is_listed_twice_is_one() -> None:
    """A call goes by its name alone."""
    first, again = (Tool(name="same", description=said, input_schema={"type": "object"}) for said in ("first", "again"))

    async def offer(context: "ServerRequestContext[Any]", params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[first, again])

    async with options_from_mcp(make_server(on_list_tools=offer)) as options:
        assert [each.description for each in options] == ["first"]


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("", "server is ''; expected a command, an http"),
        ([], r"server is \[\]; expected a command"),
        ("ws://host/mcp", "server is 'ws://host/mcp'; expected a command, an http"),
        (3, "server is of type int; expected a command"),
        ("python 'unclosed", "cannot be split into words: No closing quotation; pass a list"),
    ],
)
async def test_what_is_no_server_is_refused(server: Any, said: str) -> None:
    with pytest.raises(sabir.SettingsInvalid, match=said):
        async with options_from_mcp(server):
            raise AssertionError("it was entered")


@pytest.mark.parametrize("which", ["only", "exclude"])
async def test_a_string_where_names_belong_is_refused(which: str) -> None:
    """It would be taken letter by letter."""
    with pytest.raises(sabir.SettingsInvalid, match=rf"{which} is the string 'fail'; pass a list: {which}=\['fail'\]"):
        async with options_from_mcp(make_server(), **{which: "fail"}):
            raise AssertionError("it was entered")


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("https://key@mcp.example.com/secret?token=1", "mcp.example.com"),
        ("/opt/bin/serve --key 1", "serve"),
        (["serve", "--key", "1"], "serve"),
        (make_server(), "weather"),
        (object(), "server"),
    ],
)
def test_a_server_is_shown_without_what_may_be_secret(server: Any, name: str) -> None:
    """Errors become results, and results go to models."""
    assert label_of(server) == name
