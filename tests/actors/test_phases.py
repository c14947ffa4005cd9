"""Phases are data: the document's chain, and a user's own (CH-21, CH-23)."""

import pytest
import sabir
from pydantic import BaseModel
from sabir_actors import AEIOUY, AEIOUY_CHAIN, ActorError, Chain, Phase, PhaseReply, ThreadClient
from sabir_actors.data import ThreadResult
from sabir_testing.scripted import Scriptable, ScriptedAdapter

from tests.actors.support import ask, begun, failed, said, scripted


class Critique(BaseModel):
    faults: list[str]
    confidence: float = 0.0


@sabir.option
def search(query: str) -> str:
    return "found"


@sabir.option
def publish(text: str) -> str:
    return "done"


REVIEW = Chain(
    "review",
    [
        Phase("draft", "Write it.", options=("search",)),
        Phase("critique", "Find faults.", ask="What is wrong with it?", output=Critique, model="other:model"),
        Phase("final", "Write the last version.", options=None),
    ],
)


async def ran(chain: Chain, *answers: Scriptable) -> tuple[ThreadResult, ScriptedAdapter, list[str]]:
    llm = ScriptedAdapter(*answers)
    asked_for: list[str] = []

    def adapter(model: str) -> ScriptedAdapter:
        asked_for.append(model)
        return llm

    system, _ = scripted(chains=[chain], options=[search, publish], adapters=adapter)
    async with system:
        client, thread_id = await begun(system, "A poem", chain=chain.name)
        return await client.result(thread_id, every=0.01), llm, asked_for


def test_the_documents_chain() -> None:  # CH-21, CH-23
    assert (
        AEIOUY_CHAIN.names == AEIOUY == ("action", "experience", "intention", "observation", "understanding", "yield")
    )
    assert [AEIOUY_CHAIN.following(name) for name in AEIOUY] == [*AEIOUY[1:], None]
    assert all(phase.instructions.startswith(f"You are the {phase.name} phase") for phase in AEIOUY_CHAIN.phases)
    assert {phase.output for phase in AEIOUY_CHAIN.phases} == {PhaseReply}


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_a_chain_has_phases_each_of_its_own_name(names: list[str]) -> None:
    with pytest.raises(ActorError, match="pass at least one phase, with unique names") as caught:
        Chain("mine", [Phase(name, "Do it.") for name in names])
    assert caught.value.code == "INVALID_CONFIG"


async def test_an_own_chain_runs_by_the_same_actors() -> None:
    critique = Critique(faults=["too long"], confidence=0.25)
    result, llm, asked_for = await ran(REVIEW, said("Roses."), critique, said("Rose.", 1.0))
    assert result.status == "completed" and result.output is not None
    assert (result.output["response"], result.output["confidence"], result.output["next_phase"]) == ("Rose.", 1.0, None)
    assert [sent.option_names for sent in llm.sent] == [("search",), (), ("search", "publish")]
    assert [sent.user_text for sent in llm.sent] == ["A poem", "What is wrong with it?", "Continue."]
    assert asked_for == ["scripted:model", "other:model"]
    last, _, _ = await ran(Chain("check", [REVIEW.phase("critique")]), critique)
    assert last.output is not None
    assert (last.output["output"], last.output["confidence"]) == (critique.model_dump(), 0.25)
    assert [message.text for message in llm.last.messages] == [
        "Write the last version.", "A poem", "Roses.", critique.model_dump_json(), "Continue.",
    ]  # fmt: skip


async def test_phase_types_that_validation_allows_are_the_chains() -> None:
    system, llm = scripted(said(), said(), chains=[REVIEW], options=[search])
    async with system:
        client = ThreadClient(system)
        thread_id = await client.create("user", "A poem", chain="review")
        with pytest.raises(ActorError, match="Invalid phase_type: action; the chain 'review' has draft"):
            await client.configure(thread_id, "action", temperature=0.1)
        with pytest.raises(ActorError, match="no chain is named 'nope'"):
            await client.create("user", "A poem", chain="nope")
    assert llm.sent == ()


async def test_phases_of_the_threads_actor_are_no_messages_of_it() -> None:  # CH-39
    system, _ = scripted()
    async with system:
        message = ask("PROCESS_PHASE", "threads", thread_id="t", phase_type="action", input="x")
        assert failed(await system.send_message(message)) == ("UNKNOWN_TYPE", "Unknown message type: PROCESS_PHASE")
