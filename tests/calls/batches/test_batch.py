"""Batches of all vendors against stand-ins: submit, status, collect and cancel, sync and async, in any process."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import sabir
import sabir_calls
from sabir.errors import CallTimedOut, InvalidRequest, RenderingRefused, SettingsInvalid
from sabir_calls import Batch, BatchError, BatchOutcome

from tests.calls.batches.stand_in import AnthropicStandIn, GoogleStandIn, OpenAIStandIn, StandIn

PROMPTS: dict[str, Any] = {"a": "One?", "bad-b": "Two?", "c": [sabir.system("Be brief."), sabir.user("Three?")]}
MODELS = ("openai:gpt-5", "openai.chat:gpt-5", "anthropic:claude-haiku-4-5", "google:gemini-2.5-flash")
KINDS = {"openai": OpenAIStandIn, "anthropic": AnthropicStandIn, "google": GoogleStandIn}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vendor(model: str) -> Iterator[StandIn]:
    with KINDS[sabir.authoring.split_model(model).provider]() as stand_in:
        yield stand_in


@pytest.fixture
def batches(model: str, vendor: StandIn) -> Iterator[Batch]:
    with open_batch(model, vendor) as batches:
        yield batches


def open_batch(model: str, vendor: StandIn, **how: Any) -> Batch:
    return sabir_calls.batch(model, api_key="test-key", base_url=vendor.url, **how)


def by_key(outcomes: Any) -> dict[str, BatchOutcome]:
    listed = list(outcomes)
    assert len({each.key for each in listed}) == len(listed)
    return {each.key: each for each in listed}


def content(outcome: BatchOutcome) -> object:
    """An outcome without the ids of its messages, which are new each time."""
    fields = outcome.reply and outcome.reply.model_dump(mode="json")
    for message in fields["messages"] if fields else ():
        del message["id"]
    return fields, str(outcome.error)


def test_replies_and_errors_come_by_key(batches: Batch) -> None:
    ticket = batches.submit_sync(PROMPTS)
    status = batches.wait_sync(ticket, every=0.01)
    outcomes = by_key(batches.collect_sync(ticket))

    assert status.is_final and status.phase == "ended"
    assert outcomes.keys() == PROMPTS.keys()
    assert (outcomes["a"].text, outcomes["c"].text) == ("re: a", "re: c")
    assert isinstance(outcomes["bad-b"].error, InvalidRequest)
    reply = outcomes["a"].unwrap()
    assert reply.is_batch and reply.usage.input_tokens == 1000
    assert [message.policy for message in reply.messages] == ["llm"]


async def test_async_and_sync_give_the_same_outcomes(batches: Batch, model: str, vendor: StandIn) -> None:
    async with open_batch(model, vendor) as async_batches:
        ticket = await async_batches.submit(PROMPTS)
        await async_batches.wait(ticket, every=0.01)
        outcomes = {each.key: each async for each in async_batches.collect(ticket)}

    again = by_key(await asyncio.to_thread(lambda: list(batches.collect_sync(ticket))))
    assert {key: content(each) for key, each in outcomes.items()} == {key: content(each) for key, each in again.items()}


def test_expired_and_cancelled_requests_are_failures(batches: Batch) -> None:
    ticket = batches.submit_sync({"a": "One?", "late-b": "Two?"})
    assert batches.wait_sync(ticket, every=0.01).phase in ("ended", "expired")
    outcomes = by_key(batches.collect_sync(ticket))
    assert outcomes["a"].text == "re: a" and isinstance(outcomes["late-b"].error, CallTimedOut)

    ticket = batches.submit_sync({"a": "One?", "gone-b": "Two?"})
    assert not batches.cancel_sync(ticket).is_final
    batches.wait_sync(ticket, every=0.01)
    outcomes = by_key(batches.collect_sync(ticket))
    assert getattr(outcomes["gone-b"].error, "code", None) == "cancelled"


def test_a_batch_that_is_not_over_has_no_results_yet(batches: Batch, vendor: StandIn) -> None:
    vendor.polls_until_end = 1_000
    ticket = batches.submit_sync(PROMPTS)

    with pytest.raises(BatchError, match=r"is running.*call wait"):
        list(batches.collect_sync(ticket))
    with pytest.raises(CallTimedOut, match="is not over"):
        batches.wait_sync(ticket, every=0.01, timeout=0.05)


def test_losses_are_refused_before_anything_is_sent(model: str, vendor: StandIn) -> None:
    with open_batch(model, vendor, strict=True, settings=sabir.Settings(extra_body_for={"other": {"x": 1}})) as batches:
        with pytest.raises(RenderingRefused) as refused:
            batches.submit_sync(PROMPTS)

    assert "prompt 'a'" in "".join(refused.value.__notes__)
    assert vendor.received == []


def test_renderings_and_names_of_options_are_those_of_the_adapter(batches: Batch, vendor: StandIn) -> None:
    def look_up(city: str) -> str:
        """Look up the weather."""
        return city

    option = sabir.option(name="look up")(look_up)
    prompts = {"a": batches.render("One?", options=[option])}
    ticket = batches.submit_sync(prompts)

    assert ticket.count("#") == 2  # the option's name was replaced in the request
    batches.wait_sync(ticket, every=0.01)
    assert by_key(batches.collect_sync(ticket))["a"].text == "re: a"


@pytest.mark.parametrize(
    ("prompts", "fault"),
    [
        ({}, "needs at least one prompt"),
        ({"a b": "Hello"}, "'a b' cannot be the key"),
        ([("a", "Hello"), ("a", "Bye")], "two prompts have the key 'a'"),
        ({"a": sabir.adapter("echo:m").render("Hello")}, "prompt 'a' is rendered for echo:m"),
    ],
)
def test_wrong_prompts_are_named(batches: Batch, vendor: StandIn, prompts: Any, fault: str) -> None:
    with pytest.raises(SettingsInvalid, match=fault):
        batches.submit_sync(prompts)
    assert vendor.received == []


@pytest.mark.parametrize("ticket", ["", "batch_1", "openai:gpt-5", "x.y:z#1", "openai.responses:gpt-5#b#%"])
def test_what_is_not_a_ticket_is_refused(batches: Batch, vendor: StandIn, ticket: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"ticket|is for x\.y:z"):
        batches.status_sync(ticket)
    assert vendor.received == []


def test_large_batches_of_google_are_sent_as_a_file() -> None:
    prompts: dict[str, Any] = {f"k{number}": "word " * 120_000 for number in range(10)} | {"bad-k": "One?"}
    with GoogleStandIn() as vendor, open_batch("google:gemini-2.5-flash", vendor) as batches:
        ticket = batches.submit_sync(prompts, name="large")
        batches.wait_sync(ticket, every=0.01)
        outcomes = by_key(batches.collect_sync(ticket))
        assert batches.submit_sync(prompts, name="large") == ticket
        calls = vendor.calls()

    assert outcomes.keys() == prompts.keys() and outcomes["k3"].text == "re: k3"
    assert calls.count("POST /upload/v1beta/files") == calls.count("POST /v1beta/models/*") == 1
    assert "GET /download/v1beta/files/*" in calls


def test_a_vendor_without_names_refuses_a_name() -> None:
    """The message says what to do instead; nothing is sent."""
    with AnthropicStandIn() as vendor, open_batch("anthropic:claude-haiku-4-5", vendor) as batches:
        with pytest.raises(SettingsInvalid, match="leave name= out, and store the ticket"):
            batches.submit_sync(PROMPTS, name="monday")
    assert vendor.received == []


def test_a_batch_that_failed_as_a_whole_says_why() -> None:
    with OpenAIStandIn() as vendor, open_batch("openai:gpt-5", vendor) as batches:
        ticket = batches.submit_sync(PROMPTS, name="monday")
        vendor.batches["batch_0"] |= {"status": "failed", "errors": {"data": [{"line": 2, "message": "Bad line"}]}}
        with pytest.raises(BatchError, match="failed and nothing was charged: line 2: Bad line"):
            list(batches.collect_sync(ticket))
        assert batches.submit_sync(PROMPTS, name="monday") != ticket  # a failed batch may be submitted again


def test_headers_of_beta_features_are_joined() -> None:
    def asking_for(beta: str) -> sabir.Settings:
        return sabir.Settings(vendor={"anthropic": {"betas": [beta]}})

    with AnthropicStandIn() as vendor, open_batch("anthropic:claude-haiku-4-5", vendor) as batches:
        prompts = {beta: batches.render("One?", settings=asking_for(beta)) for beta in ("one-2026", "two-2026")}
        batches.submit_sync({**prompts, "again": prompts["one-2026"]})
    assert vendor.received[0].headers["anthropic-beta"] == "one-2026,two-2026"


def test_requests_that_would_stream_are_sent_without_a_stream(model: str, vendor: StandIn) -> None:
    """Long answers are usually streamed, which batches refuse."""
    settings = sabir.Settings(max_output_tokens=32_000)
    with open_batch(model, vendor, settings=settings) as batches:
        batches.submit_sync(PROMPTS)
    assert all(b'"stream"' not in each.body for each in vendor.received)
