"""What the SDK's typed calls refuse or change before they send, and what becomes of the same thing here.

Each test asks the installed SDK first: where it no longer guards, the test fails, and docs/reference/guards.md with it.
"""

import json
import warnings
from typing import Any

import anthropic
import httpx2
import pytest
import sabir
from anthropic._constants import MODEL_NONSTREAMING_TOKENS
from pydantic import BaseModel, Field
from sabir.errors import CredentialsMissing, InvalidRequest
from sabir_anthropic.plugin import anthropic as provider
from sabir_anthropic.request import BEYOND_CONTEXT, MODELS_AT_ONCE, most_at_once
from sabir_testing.loopback import Server, head

from tests.anthropic.answers import WIRE, message, streamed

ROWS = [info.prefix for info in provider.models()]
LONG = "Streaming is required"
ASKED: list[Any] = [{"role": "user", "content": "hi"}]


class Sent:
    """The SDK's own client, whose requests end here."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        http_client = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        self.messages = anthropic.Anthropic(api_key="k", http_client=http_client).messages

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=message({"type": "text", "text": "Hello."}))


def rendered(model: str, **settings: Any) -> sabir.Rendering:
    return sabir.adapter(f"anthropic:{model}").render("hi", settings=sabir.Settings(**settings))


def body(rendering: sabir.Rendering) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("model", [*MODELS_AT_ONCE, "claude-sonnet-5", "claude-opus-4-1-20250805"])
def test_a_longer_answer_than_the_sdk_waits_for_is_streamed(model: str) -> None:
    """It refuses one token more without a stream; here that token makes the request a stream."""
    sdk, most = Sent(), most_at_once(model)

    sdk.messages.create(model=model, max_tokens=most, messages=ASKED)
    with pytest.raises(ValueError, match=LONG):
        sdk.messages.create(model=model, max_tokens=most + 1, messages=ASKED)

    assert not rendered(model, max_output_tokens=most).streaming
    assert rendered(model, max_output_tokens=most + 1).streaming
    assert body(rendered(model, max_output_tokens=most + 1))["stream"] is True
    assert dict(MODELS_AT_ONCE) == MODEL_NONSTREAMING_TOKENS


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("model", ROWS)
def test_a_short_hi_is_what_the_typed_call_sends_or_tells_how_it_differs(model: str) -> None:
    """The maximum that the wire wants is told, with its number; where the SDK would refuse it at once, it streams."""
    sdk, rendering = Sent(), rendered(model)
    told, given = rendering.losses, body(rendering)

    if rendering.streaming:
        assert given.pop("stream") is True
        with pytest.raises(ValueError, match=LONG):
            sdk.messages.create(**given)
        sdk.messages.create(**given, stream=True).close()
    else:
        sdk.messages.create(**given)

    assert sdk.bodies == [body(rendering)]
    assert [(loss.kind, loss.path) for loss in told] == [("synthesized", "settings.max_output_tokens")]
    assert f"so {given['max_tokens']} was sent" in told[0].reason
    assert rendered(model, max_output_tokens=given["max_tokens"]).losses == ()


@pytest.mark.parametrize("info", provider.models(), ids=ROWS)
def test_a_made_up_maximum_leaves_room_for_the_prompt_and_for_thinking(info: Any) -> None:
    """A model that counts it with the prompt gets what may come at once, or what thinking was asked to take."""
    counts_together = BEYOND_CONTEXT in info.rejects
    most = body(rendered(info.prefix))["max_tokens"]
    assert most == (min(info.output_tokens, most_at_once(info.prefix)) if counts_together else info.output_tokens)

    for settings in ({"reasoning_effort": "max"}, {"vendor": _budget(20_000)}):
        given = body(rendered(info.prefix, **settings))
        assert most <= given["max_tokens"] <= info.output_tokens
        if info.reasoning and info.output_tokens > 20_000:
            assert given.get("thinking", {}).get("budget_tokens", 0) < given["max_tokens"]


def _budget(tokens: int) -> dict[str, Any]:
    return {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": tokens}}}


def test_who_asks_for_the_whole_of_a_long_answer_gets_the_whole() -> None:
    with Server([head(), streamed(WIRE)]) as server:
        with sabir.adapter("anthropic:claude-sonnet-5", base_url=server.url, api_key="k") as llm:
            reply = llm.complete_sync("hi")
            rendering = llm.render("hi")
        asked = server.requests[0]

    assert (reply.text, reply.finish_reason) == ("Hello.", "stop")
    assert (asked.body, json.loads(asked.body)["stream"]) == (rendering.body_bytes, True)
    assert reply.losses == rendering.losses


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-mythos-preview"])
def test_a_model_that_should_think_adaptively_is_asked_to(model: str) -> None:
    """The SDK warns of a budget; an effort here is none."""
    sdk, effort = Sent(), body(rendered(model, reasoning_effort="high", max_output_tokens=9000))
    budget: Any = {"type": "enabled", "budget_tokens": 2000}
    with pytest.warns(UserWarning, match="adaptive"):
        sdk.messages.create(model=model, max_tokens=9000, messages=ASKED, thinking=budget)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        sdk.messages.create(**effort)
    assert effort["thinking"] == {"type": "adaptive"}


def test_a_model_near_its_end_is_asked_all_the_same() -> None:
    """The SDK warns and sends; the vendor's answer tells when the model is gone."""
    sdk = Sent()
    with pytest.warns(DeprecationWarning, match="end-of-life"):
        sdk.messages.create(model="claude-sonnet-4-5", max_tokens=9, messages=ASKED)

    assert sdk.bodies[0]["model"] == body(rendered("claude-sonnet-4-5"))["model"]


class Home(BaseModel):
    """Where someone lives."""

    street: str = Field(pattern="[a-z]+")


class Person(BaseModel):
    """Someone."""

    name: str
    home: Home = Field(description="Where they are.")


class Loose(BaseModel):
    """Anything goes."""

    thing: Any


def test_a_schema_keeps_what_the_sdk_keeps() -> None:
    """The SDK leaves out what is next to a reference; here the reference is replaced by its target."""
    home = anthropic.transform_schema(Person)["properties"]["home"]
    rendering = rendered("claude-sonnet-5", response_format=Person, max_output_tokens=9)
    pattern = [loss for loss in rendering.losses if loss.path.endswith("home.properties.street.pattern")]

    assert home == {"$ref": "#/$defs/Home"}
    schema = body(rendering)["output_config"]["format"]["schema"]
    assert schema["properties"]["home"] == {**schema["$defs"]["Home"], "description": "Where they are."}
    assert anthropic.transform_schema(schema)["properties"]["home"] == schema["properties"]["home"]
    assert [loss.kind for loss in pattern] == ["downgraded"]


def test_a_schema_that_the_sdk_refuses_is_told() -> None:
    with pytest.raises(ValueError, match="must have a 'type'"):
        anthropic.transform_schema(Loose)

    (loss,) = rendered("claude-sonnet-5", response_format=Loose, max_output_tokens=9).losses
    assert (loss.kind, loss.path) == ("downgraded", "settings.response_format.schema.properties.thing")
    assert "a schema without a type" in loss.reason


def test_without_a_key_nothing_is_sent() -> None:
    """The SDK raises TypeError at the call; here it is CredentialsMissing, with the variables."""
    with pytest.raises(TypeError, match="authentication"):
        anthropic.Anthropic(api_key=None, auth_token=None).messages.create(
            model="claude-sonnet-5", max_tokens=9, messages=ASKED
        )

    with pytest.raises(CredentialsMissing, match="ANTHROPIC_API_KEY"):
        sabir.adapter("anthropic:claude-sonnet-5").complete_sync("hi")


def test_bedrock_counts_no_tokens() -> None:
    """The SDK refuses before it sends; the error says so."""
    with anthropic.AnthropicBedrock(api_key="aws", aws_region="eu-west-1") as client:
        with pytest.raises(anthropic.AnthropicError, match="not supported in Bedrock"):
            client.messages.count_tokens(model="claude-sonnet-4-5", messages=ASKED)

        with pytest.raises(InvalidRequest, match="not supported in Bedrock"):
            sabir.adapter("anthropic:claude-sonnet-4-5", client=client).count_tokens_sync("hi")
