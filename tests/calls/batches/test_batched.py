"""An evaluation that waits for a batch: its ticket is stored, and a later process goes on with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir_calls
from sabir.errors import CallTimedOut, SettingsInvalid
from sabir_calls import BatchedAdapter, MemoryResponses

from tests.calls.batches.stand_in import AnthropicStandIn, OpenAIStandIn, Received

PROGRAM = """
import sys
import sabir_calls
from sabir_session import Conversation
url, folder = sys.argv[1:]
batches = sabir_calls.batch("openai:gpt-5", api_key="k", base_url=url)
llm = sabir_calls.batched(batches, f"{folder}/tickets.db", every=0.01)
with Conversation(llm, keep=f"{folder}/chats.db", name="night") as chat:
    answer = chat.ask_sync() if chat.unfinished else chat.ask_sync("One?")
    print(answer.text, len(chat.messages))
"""


@pytest.fixture
def vendor() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn() as stand_in:
        yield stand_in


@pytest.mark.parametrize("killed_at", ["POST /files", "POST /batches", "GET /batches/*", "GET /files/*/content"])
def test_a_killed_evaluation_continues_in_another_process(
    vendor: OpenAIStandIn, tmp_path: Path, killed_at: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, vendor.url, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def kill(request: Received) -> None:
        if f"{request.method} {vendor._route(request)[0]}" == killed_at:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)

    vendor.after = kill
    assert process.communicate(timeout=60)[0] == "" and process.returncode == -signal.SIGKILL
    vendor.after = lambda request: None
    again = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert (again.stdout, again.stderr) == ("re: request 2\n", "")
    assert len(vendor.batches) == 1


def open_batched(vendor: OpenAIStandIn, store: MemoryResponses) -> BatchedAdapter:
    batches = sabir_calls.batch("openai:gpt-5", api_key="k", base_url=vendor.url)
    return sabir_calls.batched(batches, store, every=0.01)


async def test_an_equal_call_gets_the_reply_of_the_same_batch(vendor: OpenAIStandIn) -> None:
    store = MemoryResponses()
    async with open_batched(vendor, store) as llm:
        first, second = await llm.complete("One?"), await llm.complete("One?")
        await llm.complete("Another?")

    assert first.text == second.text == "re: request"
    assert first.is_batch and len(vendor.batches) == 2


def test_a_failed_call_is_submitted_again(vendor: OpenAIStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_batched(vendor, MemoryResponses()) as llm:
        monkeypatch.setattr("sabir_calls.batches.batched.KEY", "late-request")
        with pytest.raises(CallTimedOut, match="before the batch expired"):
            llm.complete_sync("One?")
        monkeypatch.undo()
        assert llm.complete_sync("One?").text == "re: request"
        with pytest.raises(SettingsInvalid, match="batches have no streams"):
            llm.stream_sync("One?")


def test_a_vendor_without_names_is_asked_without_one() -> None:
    with AnthropicStandIn() as vendor:
        batches = sabir_calls.batch("anthropic:claude-haiku-4-5", api_key="k", base_url=vendor.url)
        with sabir_calls.batched(batches, MemoryResponses(), every=0.01) as llm:
            assert llm.complete_sync("One?").text == "re: request"
