"""Threads on what vendors' own services answered: several wires in one thread, refusals, streams (CH-28, CH-29)."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import sabir
from sabir import Settings
from sabir_actors import ActorSystem, Chain, Phase
from sabir_actors.data import ThreadResult
from sabir_session import TextArrived
from sabir_testing.loopback import Server, Step, whole

from tests.vendor.support import Exchange, exchanges

from .scripts import AT_ONCE, begun

ONCE = Settings(retries=sabir.RetryPolicy(attempts=1))
DIALECTS = {
    "openai": ("openai.responses", "openai.responses"),
    "anthropic": ("anthropic.messages", "anthropic.messages"),
    "google": ("google.generate_content", "gemini.generateContent"),
}
"""Provider → its dialect, and the name of its wire's exchanges."""
RECORDED = {provider: exchanges(wire) for provider, (_, wire) in DIALECTS.items()}


def plain(provider: str) -> tuple[Exchange, str]:
    """An answer of that vendor that is a text and nothing else, and the text."""
    for exchange in RECORDED[provider]:
        if exchange.status != 200 or exchange.response is None or "text" not in str(exchange.response):
            continue
        reply = sabir.dialect(DIALECTS[provider][0]).decode(exchange.body)
        if reply.finish_reason == "stop" and reply.text.strip() and not reply.text.lstrip().startswith(("{", "[")):
            return exchange, reply.text
    raise AssertionError(f"no plain answer of {provider}")


def refused(provider: str, status: int) -> Exchange:
    """An answer of that vendor with that status."""
    return next(each for each in RECORDED[provider] if each.status == status and each.response)


class Vendors:
    """One loopback server for each provider, which says what was recorded; adapters that ask them."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self._open = ExitStack()

    def answers(self, provider: str, *script: Step) -> Server:
        """Serve that."""
        self.servers[provider] = self._open.enter_context(Server(script))
        return self.servers[provider]

    def adapter(self, model: str) -> sabir.Adapter:
        """The adapter of a model, at its server."""
        return sabir.adapter(model, api_key="test", base_url=self.servers[model.partition(":")[0]].url)

    def close(self) -> None:
        """Close every server."""
        self._open.close()


@pytest.fixture
def vendors() -> Iterator[Vendors]:
    vendors = Vendors()
    yield vendors
    vendors.close()


def system_of(vendors: Vendors, *models: str, watch: list[str] | None = None) -> ActorSystem:
    """A system with a chain of one phase for each model."""
    chain = Chain("wires", [Phase(f"p{at}", f"You are phase {at}.", model=model) for at, model in enumerate(models, 1)])

    def seen(message: object, event: object) -> None:
        if isinstance(event, TextArrived) and watch is not None:
            watch.append(event.text)

    return ActorSystem(
        chains=[chain], adapters=vendors.adapter, settings=ONCE, restarts=AT_ONCE, watch=None if watch is None else seen
    )


async def ended(system: ActorSystem) -> ThreadResult:
    """How a thread of that chain ends."""
    async with system:
        client, thread_id = await begun(system, chain="wires")
        return await client.result(thread_id, every=0.01)


async def test_one_thread_on_three_wires_one_of_them_by_an_update(vendors: Vendors) -> None:
    """Each phase asks its own vendor; UPDATE_AGENT_CONFIG while the second runs has the third ask another.

    What a vendor said goes to the next one in its own wire's form.
    """
    said = {provider: plain(provider) for provider in DIALECTS}
    gate = threading.Event()
    for provider, (exchange, _) in said.items():
        script: list[Step] = [whole(exchange.body)]
        vendors.answers(provider, *([gate, *script] if provider == "anthropic" else script))
    system = system_of(vendors, "openai:gpt-5-mini", "anthropic:claude-sonnet-4-0", "openai:gpt-5-mini")
    async with system:
        client, thread_id = await begun(system, chain="wires")
        await asyncio.to_thread(vendors.servers["anthropic"].arrived.wait, 20)
        await client.configure(thread_id, "p3", model="google:gemini-2.5-flash")
        gate.set()
        result = await client.result(thread_id, every=0.01)
        outputs = [each.response for each in system.threads.view(thread_id).outputs.values()]
        models = [str(each["model"]) for each in system.threads.view(thread_id).usage.values()]
    assert result.status == "completed", result
    assert outputs == [said[provider][1] for provider in ("openai", "anthropic", "google")]
    assert models == ["openai:gpt-5-mini", "anthropic:claude-sonnet-4-0", "google:gemini-2.5-flash"]
    assert [len(vendors.servers[provider].asked) for provider in DIALECTS] == [1, 1, 1]
    asked = vendors.servers["google"].asked[0].body
    last = sabir.dialect("google.generate_content").decode_history(asked)
    texts = [message.text for message in last.messages]  # this wire joins neighbouring turns of one side
    assert texts == ["You are phase 3.", "Hello", said["openai"][1] + said["anthropic"][1], "Continue."]
