"""One program, one thread: phases on the wires of three vendors, a change of model in mid-phase, a restart between.

    draft ── anthropic.messages ─▶ check ── openai.chat ─▶ (stopped, UPDATE_AGENT_CONFIG) ── google ─▶ final

Each phase chooses options, in three turns. The server stands outside, and takes what a wire's rules and its vendor's
own types accept, and nothing else.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
from sabir_actors import ActorSystem, Chain, Phase, ThreadClient
from sabir_session import SQLiteStore

from tests.actors.scripts import begun
from tests.session.crash import wires
from tests.session.crash.child import Fuse, asking
from tests.session.crash.service import Service, service

WIRES = {f"{dialect.partition('.')[0]}:{model}": dialect for dialect, model in wires.MODELS.items()} | {
    "openai:gpt-5": "openai.chat"
}
"""Model → the wire that it is spoken to by."""
OPTIONS = ("look_up", "book")
CHAIN = Chain(
    "trip",
    [
        Phase("draft", "You are the draft phase.", options=OPTIONS, model="anthropic:claude-sonnet-5"),
        Phase("check", "You are the check phase.", options=OPTIONS, model="openai:gpt-5"),
        Phase("final", "You are the final phase.", options=OPTIONS, model="anthropic:claude-sonnet-5"),
    ],
)


@pytest.fixture
def server() -> Iterator[Service]:
    """The vendors."""
    with service() as running:
        yield running


class Options:
    """Options that note their runs; `book` waits in the phase that is to be interrupted."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.waits = asyncio.Event()
        self.is_held = False

    def both(self) -> list[sabir.Option]:
        """The two."""

        async def look_up(city: str) -> str:
            """Look up a city."""
            self.runs.append(f"look_up {city}")
            return f"{city} is open"

        async def book(city: str, seats: int) -> str:
            """Book seats."""
            if self.is_held:
                self.waits.set()
                await asyncio.Event().wait()
            self.runs.append(f"book {city}")
            return "booked"

        return [sabir.option(look_up), sabir.option(book)]


def system_of(server: Service, store: SQLiteStore, options: Options) -> ActorSystem:
    """A system whose models are at the server, each by its own wire."""

    def adapter(model: str) -> sabir.Adapter:
        dialect = WIRES[model]
        return wires.adapter(dialect, asking(f"{server.url}/{dialect}/{dialect}", Fuse(0)))

    return ActorSystem(store=store, chains=[CHAIN], options=options.both(), adapters=adapter)


async def test_a_thread_goes_over_three_vendors_and_changes_one_in_mid_phase(server: Service, tmp_path: Path) -> None:
    """CH-28, CH-29, CH-17: what one vendor's phase had done when it was stopped, another's goes on with."""
    options, phase = Options(), 3  # runs of options that each phase needs
    with SQLiteStore(tmp_path / "trip.db") as store:
        async with system_of(server, store, options) as system:
            client, thread_id = await begun(system, "Two seats to Oslo.", chain="trip")
            while len(options.runs) < phase:
                await asyncio.sleep(0.001)
            options.is_held = True
            await options.waits.wait()
            await client.pause(thread_id)
        assert options.runs[phase:] == ["look_up Oslo"]
        options.is_held = False
        async with system_of(server, store, options) as system:
            client = ThreadClient(system)
            await client.configure(thread_id, "check", model="google:gemini-3-pro")
            await client.resume(thread_id)
            result = await client.result(thread_id)
    assert result.status == "completed" and result.output is not None
    assert result.output["response"] == "Booked: Oslo, for two."
    assert dict(server.refused) == {}
    asked = {dialect: len(bodies) for dialect, bodies in server.requests.items()}
    assert asked == {"anthropic.messages": 6, "openai.chat": 1, "google.generate_content": 2}
    assert sorted(options.runs) == sorted(["look_up Oslo", "book Oslo", "look_up Rome"] * len(CHAIN.phases))
