"""Requests that no provider sends: headers of the connection itself, and paths that lead to another resource."""

from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
import sabir
from sabir.authoring.transport import HOP_BY_HOP, check_path
from sabir.errors import SettingsInvalid
from sabir_testing.loopback import Server

from tests.providers.ways import WAYS

MODELS = ("openai.responses:m", "openai.chat:m", "azure:m", "anthropic:m", "google:m", "mistral:m")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_headers_of_the_connection_are_refused(model: str, way: Callable[..., object]) -> None:
    """A second length or transfer coding could hide another request in the body."""
    with Server([]) as server, sabir.adapter(model, api_key="k", base_url=server.url) as llm:
        for name in HOP_BY_HOP:
            settings = sabir.Settings(extra_headers={name.title(): "chunked"}, max_output_tokens=9, retries=0)
            with pytest.raises(SettingsInvalid, match=rf"extra_headers has {name.title()}, which the HTTP client"):
                way(llm, settings=settings)
        assert server.requests == []


def azure(model: str, url: str) -> sabir.ModelAdapter:
    client = openai.AzureOpenAI(api_key="k", api_version="2026-01-01", azure_endpoint=url)
    return sabir.adapter(f"openai.chat:{model}", client=client)


def bedrock(model: str, url: str) -> sabir.ModelAdapter:
    client = anthropic.AnthropicBedrock(api_key="k", aws_region="eu-west-1", base_url=url)
    return sabir.adapter(f"anthropic:{model}", client=client)


def vertex(model: str, url: str) -> sabir.ModelAdapter:
    client = anthropic.AnthropicVertex(access_token="k", project_id="p", region="r", base_url=url)
    return sabir.adapter(f"anthropic:{model}", client=client)


def azure_by_name(model: str, url: str) -> sabir.ModelAdapter:
    return sabir.adapter(f"azure.chat:{model}", api_key={"api_key": "k", "api_version": "2024-10-21"}, base_url=url)


def bedrock_by_name(model: str, url: str) -> sabir.ModelAdapter:
    key = {"api_key": "k", "aws_region": "eu-west-1"}
    return sabir.adapter(f"bedrock.messages:{model}", api_key=key, base_url=url)


def vertex_by_name(model: str, url: str) -> sabir.ModelAdapter:
    key = {"access_token": "k", "project_id": "p", "region": "r"}
    return sabir.adapter(f"vertex.messages:{model}", api_key=key, base_url=url)


def google(model: str, url: str) -> sabir.ModelAdapter:
    return sabir.adapter(f"google:{model}", api_key="k", base_url=url)


@pytest.mark.parametrize("way", [WAYS["whole"], WAYS["streamed"]], ids=["whole", "stream"])
@pytest.mark.parametrize("make", [azure, azure_by_name, bedrock, bedrock_by_name, vertex, vertex_by_name, google])
@pytest.mark.parametrize("model", ["../../files/secret", "..", "models/../../x", "a/..", "x%2F..%2Fy"])
def test_a_model_whose_name_leads_elsewhere_is_refused(
    make: Callable[[str, str], sabir.ModelAdapter], model: str, way: Callable[..., object]
) -> None:
    """Where the model stands in the path, the user's key would reach another resource."""
    with Server([]) as server:
        llm = make(model, server.url)
        with pytest.raises(SettingsInvalid, match=r"expected a name without '\.\.'"):
            way(llm, settings=sabir.Settings(max_output_tokens=9, retries=0))
        assert server.requests == []


@pytest.mark.parametrize("path", ["/m/%2e%2E/x", "/m/%252e./x", "/../x"])
def test_an_encoded_path_is_read_as_servers_and_proxies_read_it(path: str) -> None:
    with pytest.raises(SettingsInvalid):
        check_path(path)
    check_path("/v1/models/gemini-3.5-pro:generateContent?alt=sse")


def test_a_model_in_the_body_may_have_any_name() -> None:
    rendering: Any = sabir.adapter("openai.chat:../x", api_key="k").render("Hello")

    assert rendering.body["model"] == "../x"
