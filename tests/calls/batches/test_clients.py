"""Every request of a batch with the SDKs' real clients: the plugin's own, and the user's, sync and async."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import openai
import pytest
import sabir
import sabir_calls
import sabir_google
from google import genai
from sabir.errors import ServerFailed, SettingsInvalid
from sabir_calls import Batch

from tests.calls.batches.stand_in import AnthropicStandIn, GoogleStandIn, OpenAIStandIn, StandIn

CREATE = r"POST .*(/batches|/models/\*)"
PROMPTS = {"a": "One?", "b": "Two?"}


@contextlib.asynccontextmanager
async def openai_clients(url: str) -> AsyncIterator[tuple[Any, Any]]:
    with openai.OpenAI(api_key="k", base_url=url) as client:
        async with openai.AsyncOpenAI(api_key="k", base_url=url) as async_client:
            yield client, async_client


@contextlib.asynccontextmanager
async def anthropic_clients(url: str) -> AsyncIterator[tuple[Any, Any]]:
    with anthropic.Anthropic(api_key="k", base_url=url) as client:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=url) as async_client:
            yield client, async_client


@contextlib.asynccontextmanager
async def google_clients(url: str) -> AsyncIterator[tuple[Any, Any]]:
    options = sabir_google.http_options(base_url=url)
    client = genai.Client(api_key="k", http_options=options)
    yield client, client
    options.httpx_client.close()
    await options.httpx_async_client.aclose()


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
    "google:gemini-2.5-flash": (
        GoogleStandIn,
        google_clients,
        (
            "POST /v1beta/models/*", "GET /v1beta/batches/*", "POST /v1beta/batches/*", "GET /v1beta/batches/*",
            "GET /v1beta/batches/*", "GET /v1beta/batches/*", "GET /v1beta/batches/*",
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


async def test_own_and_users_clients_send_the_same(model: str, vendor: StandIn) -> None:
    _, clients_of, calls = VENDORS[model]
    async with clients_of(vendor.url) as (client, async_client):
        for how in ({"api_key": "k", "base_url": vendor.url}, {"client": client}):
            await asyncio.to_thread(use_sync, sabir_calls.batch(model, **how))
            assert tuple(vendor.calls()) == calls
            assert all(each.body == b"" for each in vendor.received if each.method == "GET")
            vendor.received.clear()
        for how in ({"api_key": "k", "base_url": vendor.url}, {"client": async_client}):
            await use(sabir_calls.batch(model, **how))
            assert tuple(vendor.calls()) == calls
            vendor.received.clear()


def use_sync(opened: Batch) -> None:
    with opened as batches:
        ticket = batches.submit_sync(PROMPTS)
        batches.status_sync(ticket)
        batches.cancel_sync(ticket)
        batches.wait_sync(ticket, every=0.01)
        assert {each.key for each in batches.collect_sync(ticket)} == {"a", "b"}


async def use(opened: Batch) -> None:
    async with opened as batches:
        ticket = await batches.submit(PROMPTS)
        await batches.status(ticket)
        await batches.cancel(ticket)
        await batches.wait(ticket, every=0.01)
        assert {each.key async for each in batches.collect(ticket)} == {"a", "b"}


def test_the_uploaded_file_has_its_own_content_type() -> None:
    with OpenAIStandIn() as vendor, sabir_calls.batch("openai:gpt-5", api_key="k", base_url=vendor.url) as batches:
        batches.submit_sync(PROMPTS)
    assert vendor.received[0].headers["content-type"].startswith("multipart/form-data; boundary=")


def test_a_provider_without_batches_is_named() -> None:
    with pytest.raises(SettingsInvalid, match=r"provider 'azure' has no operation 'batches.create'"):
        sabir_calls.batch("azure:deployment", base_url="https://x.openai.azure.com", api_key="k")


def test_the_creation_of_a_batch_is_not_repeated(model: str, vendor: StandIn) -> None:
    """The vendor may have created it before its connection broke off or its gateway failed."""
    route = next(each for each in vendor.routes if re.fullmatch(CREATE, each))
    setattr(vendor, vendor.routes[route], failing)
    settings = sabir.Settings(retries=sabir.RetryPolicy(first_delay=0))
    with sabir_calls.batch(model, api_key="k", base_url=vendor.url, settings=settings) as batches:
        with pytest.raises(ServerFailed):
            batches.submit_sync(PROMPTS)
    assert vendor.calls().count(route) == 1


def failing(request: object, *_: object) -> bytes:
    raise TimeoutError
