"""Every request of a batch with the SDKs' real clients: the plugin's own, and the user's, sync and async."""

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
import sabir
import sabir_calls
from sabir.errors import ServerFailed, SettingsInvalid

from tests.calls.batches.stand_in import AnthropicStandIn, OpenAIStandIn, StandIn

PROMPTS = {"a": "One?", "b": "Two?"}


def openai_clients(url: str) -> tuple[Any, Any]:
    return openai.OpenAI(api_key="k", base_url=url), openai.AsyncOpenAI(api_key="k", base_url=url)


def anthropic_clients(url: str) -> tuple[Any, Any]:
    return anthropic.Anthropic(api_key="k", base_url=url), anthropic.AsyncAnthropic(api_key="k", base_url=url)


VENDORS: dict[str, tuple[type[StandIn], Any, tuple[str, ...]]] = {
    "openai:gpt-5": (
        OpenAIStandIn,
        openai_clients,
        (
            "POST /files", "POST /batches", "GET /batches/*", "POST /batches/*/cancel", "GET /batches/*",
            "GET /batches/*", "GET /files/*/content",
        ),
    ),
    "anthropic:claude-haiku-4-5": (
        AnthropicStandIn,
        anthropic_clients,
        (
            "POST /v1/messages/batches", "GET /v1/messages/batches/*", "POST /v1/messages/batches/*/cancel",
            "GET /v1/messages/batches/*", "GET /v1/messages/batches/*", "GET /v1/messages/batches/*/results",
        ),
    ),
}  # fmt: skip


@pytest.fixture(params=VENDORS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vendor(model: str) -> Iterator[StandIn]:
    with VENDORS[model][0]() as stand_in:
        yield stand_in


def test_own_and_users_sync_clients_send_the_same(model: str, vendor: StandIn) -> None:
    for how in ({"api_key": "k", "base_url": vendor.url}, {"client": VENDORS[model][1](vendor.url)[0]}):
        vendor.received.clear()
        with sabir_calls.batch(model, **how) as batches:
            ticket = batches.submit_sync(PROMPTS)
            batches.status_sync(ticket)
            batches.cancel_sync(ticket)
            batches.wait_sync(ticket, every=0.01)
            assert {each.key for each in batches.collect_sync(ticket)} == {"a", "b"}
        assert tuple(vendor.calls()) == VENDORS[model][2]
        assert all(each.body == b"" for each in vendor.received if each.method == "GET")


async def test_own_and_users_async_clients_send_the_same(model: str, vendor: StandIn) -> None:
    for how in ({"api_key": "k", "base_url": vendor.url}, {"client": VENDORS[model][1](vendor.url)[1]}):
        vendor.received.clear()
        async with sabir_calls.batch(model, **how) as batches:
            ticket = await batches.submit(PROMPTS)
            await batches.status(ticket)
            await batches.cancel(ticket)
            await batches.wait(ticket, every=0.01)
            assert {each.key async for each in batches.collect(ticket)} == {"a", "b"}
        assert tuple(vendor.calls()) == VENDORS[model][2]


def test_the_uploaded_file_has_its_own_content_type() -> None:
    with OpenAIStandIn() as vendor, sabir_calls.batch("openai:gpt-5", api_key="k", base_url=vendor.url) as batches:
        batches.submit_sync(PROMPTS)
    assert vendor.received[0].headers["content-type"].startswith("multipart/form-data; boundary=")


def test_a_provider_without_batches_is_named() -> None:
    with pytest.raises(SettingsInvalid, match=r"provider 'azure' has no operation 'batches.create'"):
        sabir_calls.batch("azure:deployment", base_url="https://x.openai.azure.com", api_key="k")


def test_the_creation_of_a_batch_is_not_repeated(model: str, vendor: StandIn) -> None:
    """The vendor may have created it before its connection broke off or its gateway failed."""
    create = vendor.routes[next(route for route in vendor.routes if route.endswith(("/batches", "GenerateContent")))]
    setattr(vendor, create, failing)
    settings = sabir.Settings(retries=sabir.RetryPolicy(first_delay=0))
    with sabir_calls.batch(model, api_key="k", base_url=vendor.url, settings=settings) as batches:
        with pytest.raises(ServerFailed):
            batches.submit_sync(PROMPTS)
    assert len([call for call in vendor.calls() if "batch" in call]) == 1


def failing(request: object, *_: object) -> bytes:
    raise TimeoutError
