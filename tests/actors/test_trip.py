"""One program and one thread: two vendors' wires in its phases, a change of model in mid-thread, a restart between.

    look ── anthropic ─▶ (paused, stopped, UPDATE_AGENT_CONFIG) ─▶ answer ── openai.chat ─▶ close ── openai.chat

`python -m tests.actors.test_trip` records it anew from the embedded server.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import sabir
from sabir_actors import ActorSystem, Chain, Phase, ThreadClient
from sabir_actors.data import ThreadResult
from sabir_session import SQLiteStore
from sabir_testing.cassettes import provenance_of, recording, replaying

from tests.recorded import servers
from tests.recorded.wires import NOWHERE

RECORDED = Path(__file__).parent / "recordings" / "trip.yaml"


CLAUDE, GPT = "anthropic:smollm2", "openai.chat:smollm2"
CHAIN = Chain(
    "trip",
    [
        Phase("look", "You know the weather: in Paris it rains. Answer in one sentence.", model=CLAUDE),
        Phase("answer", "Answer in one sentence.", ask="Do I need an umbrella?", model=GPT),
        Phase("close", "Say good bye.", ask="Thank you.", model=CLAUDE),
    ],
)
SETTINGS = sabir.Settings(temperature=0, max_output_tokens=200)


def system_of(store: SQLiteStore) -> ActorSystem:
    return ActorSystem(store=store, chains=[CHAIN], settings=SETTINGS)


async def program(folder: Path) -> tuple[ThreadResult, dict[str, str]]:
    """How the thread ended, and which model each of its phases asked."""
    with SQLiteStore(folder / "trip.db") as store:
        async with system_of(store) as system:
            client = ThreadClient(system)
            thread_id = await client.create("olive", "What is the weather in Paris?", chain="trip")
            await client.start(thread_id)
            await client.pause(thread_id)  # the phase that runs ends, and is kept
            while "look" not in (await client.status(thread_id)).phases_completed:
                await asyncio.sleep(0.01)
        async with system_of(store) as system:
            client = ThreadClient(system)
            await client.configure(thread_id, "close", model=GPT)
            await client.resume(thread_id)
            result = await client.result(thread_id)
            usage = system.threads.view(thread_id).usage
    return result, {phase: str(figures["model"]) for phase, figures in usage.items()}


@contextmanager
def shell(address: str = NOWHERE, key: str = "sk-nothing") -> Iterator[None]:
    """What a user's shell would say of the two wires."""
    variables = {
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": key,
    }
    with patch.dict(os.environ, variables):
        yield


def record() -> None:
    with servers.embedded() as server, tempfile.TemporaryDirectory() as folder:
        said = {"model": server.provenance["weights"], "client": f"sabir-actors {version('sabir-actors')}"}
        provenance = {**server.provenance, **said, "date": datetime.now(UTC).date().isoformat()}
        with shell(server.address, server.api_key), recording(RECORDED, provenance):
            print(asyncio.run(program(Path(folder))))


def check(outcome: tuple[ThreadResult, dict[str, str]]) -> None:
    result, models = outcome
    assert result.status == "completed" and result.output is not None and result.output["response"]
    assert models == {"look": "anthropic:smollm2", "answer": GPT, "close": GPT}


async def test_the_program_on_its_recording(tmp_path: Path) -> None:  # CH-28, CH-29
    assert "not a vendor's own service" in provenance_of(RECORDED)["server"]
    with shell(), replaying(RECORDED) as cassette:
        check(await program(tmp_path))
        assert cassette.play_count == len(CHAIN.phases)


if __name__ == "__main__":
    record()
