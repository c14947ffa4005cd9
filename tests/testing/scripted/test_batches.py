"""Scripted batches: answers by key, batches that run for a while, are cancelled or fail, and names."""

import pytest
from sabir.errors import RateLimited
from sabir_calls import Batch, BatchError
from sabir_testing import ScriptedBatches, ScriptMismatch, calls

PROMPTS = {"soup": "The soup was cold.", "bill": "The bill was wrong."}


def test_each_key_gets_its_answer() -> None:
    error = RateLimited("busy", provider="scripted")
    scripted = ScriptedBatches({"soup": calls(label={"is_good": False}), "bill": error}, polls=1)
    with Batch(scripted.adapter, scripted) as batches:
        ticket = batches.submit_sync(PROMPTS)
        assert [batches.status_sync(ticket).phase for _ in range(3)] == ["running", "ended", "ended"]
        assert batches.status_sync(ticket)[2:5] == (2, 1, 1)
        soup, bill = batches.collect_sync(ticket)

    (call,) = soup.unwrap().option_calls
    assert (call.policy, call.call.arguments, soup.unwrap().is_batch) == ("llm", {"is_good": False}, True)
    assert bill.error is error
    assert {key: prompt[0].text for key, prompt in scripted.prompts.items()} == PROMPTS


async def test_a_batch_is_cancelled_while_it_runs() -> None:
    scripted = ScriptedBatches(dict.fromkeys(PROMPTS, "bad"), polls=9)
    async with Batch(scripted.adapter, scripted) as batches:
        ticket = await batches.submit(PROMPTS)
        assert (await batches.cancel(ticket)).phase == "cancelled"
        assert [getattr(outcome.error, "code", None) async for outcome in batches.collect(ticket)] == ["cancelled"] * 2


def test_a_batch_fails_as_a_whole() -> None:
    scripted = ScriptedBatches({"soup": "bad"}, failure="no credit")
    batches = Batch(scripted.adapter, scripted)
    ticket = batches.submit_sync({"soup": "The soup was cold."})
    batches.wait_sync(ticket)
    with pytest.raises(BatchError, match="no credit"):
        list(batches.collect_sync(ticket))


def test_a_name_finds_the_submitted_batch() -> None:
    scripted = ScriptedBatches(dict.fromkeys(PROMPTS, "bad"))
    batches = Batch(scripted.adapter, scripted)
    tickets = {batches.submit_sync(PROMPTS, name="may"), batches.submit_sync(PROMPTS, name="may")}
    assert len(tickets) == 1
    assert batches.submit_sync(PROMPTS, name="june") not in tickets


def test_a_key_without_an_answer_is_named() -> None:
    scripted = ScriptedBatches({"soup": "bad"})
    with pytest.raises(ScriptMismatch, match="the program submits 'bill', which has no answer; the script has 'soup'"):
        Batch(scripted.adapter, scripted).submit_sync(PROMPTS)
