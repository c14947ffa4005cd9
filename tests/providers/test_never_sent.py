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


AZURE: Any = {"api_key": "k", "api_version": "2024-10-21"}
BEDROCK: Any = {"api_key": "k", "aws_region": "eu-west-1"}
VERTEX: Any = {"access_token": "k", "project_id": "p", "region": "r"}
MAKE: dict[str, Callable[[str, str], sabir.ModelAdapter]] = {
    "google": lambda model, url: sabir.adapter(f"google:{model}", api_key="k", base_url=url),
    "azure": lambda model, url: sabir.adapter(f"azure.chat:{model}", api_key=AZURE, base_url=url),
    "bedrock": lambda model, url: sabir.adapter(f"bedrock.messages:{model}", api_key=BEDROCK, base_url=url),
    "vertex": lambda model, url: sabir.adapter(f"vertex.messages:{model}", api_key=VERTEX, base_url=url),
    "client of azure": lambda model, url: sabir.adapter(
        f"openai.chat:{model}", client=openai.AzureOpenAI(azure_endpoint=url, **AZURE)),
    "client of bedrock": lambda model, url: sabir.adapter(
        f"anthropic:{model}", client=anthropic.AnthropicBedrock(base_url=url, **BEDROCK)),
    "client of vertex": lambda model, url: sabir.adapter(
        f"anthropic:{model}", client=anthropic.AnthropicVertex(base_url=url, **VERTEX)),
}  # fmt: skip


@pytest.mark.parametrize("way", [WAYS["whole"], WAYS["streamed"]], ids=["whole", "stream"])
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
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
