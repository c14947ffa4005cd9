"""What the SDK's typed calls refuse or change before they send, and what becomes of the same thing here.

Each test asks the installed SDK first: where it no longer guards, the test fails, and docs/reference/guards.md with it.
"""

import inspect
import json
import re
from typing import Any

import httpx2
import pytest
import sabir
from google import genai
from google.auth.credentials import AnonymousCredentials
from google.genai import models as sdk_models
from google.genai.types import GenerateContentConfig, HttpOptions
from sabir.errors import CredentialsMissing, RenderingRefused
from sabir_google.request import ONLY_GEMINI, ONLY_VERTEX
from sabir_google.settings import GoogleSettings, camel_case

MODEL = "gemini-2.5-flash"
ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]
}
GIVEN: dict[str, Any] = {
    "audio_timestamp": {"audio_timestamp": True},
    "image_config.image_output_options": {"image_config": {"image_output_options": {}}},
    "image_config.output_compression_quality": {"image_config": {"output_compression_quality": 5}},
    "image_config.output_mime_type": {"image_config": {"output_mime_type": "image/png"}},
    "image_config.person_generation": {"image_config": {"person_generation": "ALLOW_ALL"}},
    "image_config.prominent_people": {"image_config": {"prominent_people": "BLOCK_PROMINENT_PEOPLE"}},
    "model_armor_config": {"model_armor_config": {"prompt_template_name": "p"}},
    "routing_config": {"routing_config": {"manual_mode": {"model_name": "m"}}},
    "safety_settings.method": {"safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "method": "SEVERITY"}]},
    "tool_config.function_calling_config.stream_function_call_arguments": {
        "tool_config": {"function_calling_config": {"stream_function_call_arguments": True}}
    },
    "tools.enterprise_web_search": {"tools": [{"enterprise_web_search": {"exclude_domains": ["e.org"]}}]},
    "tools.exa_ai_search": {"tools": [{"exa_ai_search": {"api_key": "k"}}]},
    "tools.google_maps.grounding_types": {"tools": [{"google_maps": {"grounding_types": {}}}]},
    "tools.google_search.blocking_confidence": {
        "tools": [{"google_search": {"blocking_confidence": "BLOCK_LOW_AND_ABOVE"}}]
    },
    "tools.google_search.exclude_domains": {"tools": [{"google_search": {"exclude_domains": ["e.org"]}}]},
    "tools.parallel_ai_search": {"tools": [{"parallel_ai_search": {"api_key": "k"}}]},
    "tools.retrieval": {"tools": [{"retrieval": {"disable_attribution": True}}]},
    "store": {"store": True},
    "tool_config.include_server_side_tool_invocations": {"tool_config": {"include_server_side_tool_invocations": True}},
    "tools.file_search": {"tools": [{"file_search": {"file_search_store_names": ["s"]}}]},
    "tools.mcp_servers.name": {"tools": [{"mcp_servers": [{"name": "n"}]}]},
    "tools.mcp_servers.streamable_http_transport": {
        "tools": [{"mcp_servers": [{"streamable_http_transport": {"url": "https://e.org"}}]}]
    },
}
"""Path → vendor settings with that field alone."""
NOT_OURS = {"enable_enhanced_civic_answers", "generation_output_config", "model_selection_config"}
"""What the SDK refuses for one service and `GoogleSettings` does not have."""
CONVERTERS = (
    r"def _(?:GenerateContentConfig|Tool|ToolConfig|ImageConfig|SafetySetting|GoogleSearch|GoogleMaps"
    r"|FunctionCallingConfig|McpServer)_to_(?:mldev|vertex)\("
)
"""Where the SDK turns these into what one of the services takes."""


class Sent:
    """The SDK's own client of either service, whose requests end here."""

    def __init__(self, *, vertex: bool = False) -> None:
        self.asked: list[httpx2.Request] = []
        self.answers = [ANSWER]
        transport = httpx2.MockTransport(self._answer)
        where: dict[str, Any] = {"api_key": "k"}
        if vertex:
            where = {"vertexai": True, "project": "p", "location": "l", "credentials": AnonymousCredentials()}
        options = HttpOptions(httpx_client=httpx2.Client(transport=transport))
        self.client = genai.Client(**where, http_options=options)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return httpx2.Response(200, json=self.answers[min(len(self.asked), len(self.answers)) - 1])

    def ask(self, **config: Any) -> Any:
        return self.client.models.generate_content(
            model=MODEL, contents="hi", config=GenerateContentConfig.model_validate(config)
        )


def rendered(client: Any = None, **vendor: Any) -> sabir.Rendering:
    given = sabir.Settings(vendor={"google": vendor})
    return sabir.adapter(f"google:{MODEL}", client=client).render("hi", settings=given)


@pytest.mark.parametrize(("paths", "vertex"), [(ONLY_VERTEX, False), (ONLY_GEMINI, True)], ids=["gemini", "vertex"])
def test_what_the_other_service_has_is_left_out_and_told(paths: tuple[str, ...], vertex: bool) -> None:
    """The SDK raises; here it is a loss, and nothing of it is sent."""
    for path in paths:
        sdk, name = Sent(vertex=vertex), path.rpartition(".")[2]
        with pytest.raises(ValueError, match=f"{name} parameter is only supported in"):
            sdk.ask(**GIVEN[path])
        rendering = rendered(sdk.client if vertex else None, **GIVEN[path])

        assert sdk.asked == []
        assert [(loss.kind, loss.path) for loss in rendering.losses] == [("dropped", f"settings.vendor.google.{path}")]
        assert not re.search(f'"({name}|{camel_case(name)})"', rendering.body_bytes.decode())


def test_the_wires_own_spelling_is_left_out_too() -> None:
    """Vendor settings are the wire's objects; what else stands in them stays."""
    search = {"googleSearch": {"excludeDomains": ["e.org"], "timeRangeFilter": {}}}
    rendering = rendered(tools=[search, {"codeExecution": {}}])

    assert json.loads(rendering.body_bytes)["tools"] == [
        {"googleSearch": {"timeRangeFilter": {}}},
        {"codeExecution": {}},
    ]
    assert [loss.path for loss in rendering.losses] == ["settings.vendor.google.tools.google_search.exclude_domains"]


def test_the_sdk_refuses_no_other_field_of_a_service() -> None:
    """Its converters, read; a field that a later SDK refuses belongs into the tables."""
    source = inspect.getsource(sdk_models)
    refused: set[str] = set()
    for found in re.finditer(CONVERTERS, source):
        converter = source[found.start() :].partition("\n\n\n")[0]
        refused |= set(re.findall(r"\['(\w+)'\]\) is not None:\n    raise ValueError", converter))

    assert refused - NOT_OURS == {path.rpartition(".")[2] for path in (*ONLY_VERTEX, *ONLY_GEMINI)}
    assert NOT_OURS.isdisjoint(GoogleSettings.model_fields)


def test_a_caches_short_name_is_made_whole() -> None:
    """As the SDK does it for the Gemini API; a whole name, and one for Vertex AI, stay as they are."""
    sdk = Sent()
    sdk.ask(cached_content="abc")

    whole = json.loads(sdk.asked[0].content)["cachedContent"]
    assert json.loads(rendered(cached_content="abc").body_bytes)["cachedContent"] == whole == "cachedContents/abc"
    assert json.loads(rendered(cached_content=whole).body_bytes)["cachedContent"] == whole
    at_vertex = rendered(Sent(vertex=True).client, cached_content="projects/p/locations/l/cachedContents/abc")
    assert json.loads(at_vertex.body_bytes)["cachedContent"] == "projects/p/locations/l/cachedContents/abc"


@pytest.mark.parametrize("model", ["m?key=1", "m&x"])
def test_a_model_cannot_lead_to_another_path(model: str) -> None:
    """The SDK refuses such a name; here it stays one segment of the path."""
    sdk = Sent()
    with pytest.raises(ValueError, match="invalid model"):
        sdk.client.models.generate_content(model=model, contents="hi")

    path = sabir.adapter(f"google:{model}").render("hi").path
    assert path.startswith("/v1beta/models/") and path.endswith(":generateContent")
    assert not {"?", "&"} & {*path}


def test_nothing_is_no_request() -> None:
    """The SDK wants contents; so do we."""
    with pytest.raises(ValueError, match="contents are required"):
        Sent().client.models.generate_content(model=MODEL, contents=[])

    with pytest.raises(RenderingRefused, match="there is nothing to send"):
        sabir.adapter(f"google:{MODEL}").render([])


def test_without_a_key_nothing_is_sent() -> None:
    """The SDK refuses to make a client; here the call names the variables."""
    with pytest.raises(ValueError, match=r"(?i)api.key"):
        genai.Client(vertexai=False)

    with pytest.raises(CredentialsMissing, match="GEMINI_API_KEY"):
        sabir.adapter(f"google:{MODEL}").complete_sync("hi")


def test_functions_are_run_by_nobody_but_the_user() -> None:
    """The SDK calls functions by itself, and asks again; here a call is a message."""
    called: list[str] = []

    def weather(city: str) -> str:
        """Current weather."""
        called.append(city)
        return "rain"

    sdk = Sent()
    call = {"functionCall": {"name": "weather", "args": {"city": "Rome"}}}
    asked = {"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}]}
    sdk.answers = [asked, ANSWER]
    sdk.ask(tools=[weather])
    reply = sabir.dialect("google.generate_content").decode(json.dumps(asked))

    assert (called, len(sdk.asked)) == (["Rome"], 2)
    assert (reply.finish_reason, len(reply.option_calls)) == ("option_calls", 1)


def test_an_answer_in_several_requests_is_told() -> None:
    """The SDK asks for the rest by an answer's token; here the reply ended at its limit, and the token is in it."""
    sdk, candidate = Sent(), {**ANSWER["candidates"][0], "finishReason": "CONTINUATION", "continuationToken": "AAAA"}
    sdk.answers = [{"candidates": [candidate]}, ANSWER]
    sdk.ask()
    reply = sabir.dialect("google.generate_content").decode(json.dumps(sdk.answers[0]))
    goes_on = rendered(continuation_token="AAAA")

    assert (reply.finish_reason, reply.raw_finish_reason, reply.details["candidates"][0]) == (
        "length", "CONTINUATION", {"continuationToken": "AAAA"},
    )  # fmt: skip
    assert [json.loads(each.content).get("continuationToken") for each in sdk.asked] == [None, "AAAA"]
    assert json.loads(goes_on.body_bytes)["continuationToken"] == "AAAA"
