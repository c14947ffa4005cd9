"""Turns, options and settings → Chat Completions requests: goldens, byte for byte where bytes matter."""

import json
from collections.abc import Sequence
from typing import Any, get_type_hints

import pytest
import sabir
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import BaseModel, Field
from sabir.contract.dialect import Rendering
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin
from sabir.vocabulary.settings import ModelInfo, Settings, Target
from sabir_openai.chat_dialect import CHAT
from sabir_openai.dialect import variant
from sabir_openai.settings import ChatSettings

TARGET = Target(provider="openai", dialect="openai.chat", model="gpt-4o", endpoint="https://api.openai.com/v1")
REASONING = ModelInfo(prefix="o", reasoning=True, rejects=("stop",))


def render(
    history: Sequence[Message],
    options: Sequence[Option] = (),
    settings: Settings | None = None,
    *,
    quirks: Sequence[str] = (),
    info: ModelInfo | None = None,
) -> Rendering:
    renderer = Renderer(CHAT, TARGET, model_info=info, quirks=frozenset(quirks))
    return renderer.render(history, options, settings)


def messages(history: Sequence[Message], **how: Any) -> list[Any]:
    found: list[Any] = json.loads(render(history, **how).body_bytes)["messages"]
    return found


def head(**settings: Any) -> dict[str, Any]:
    """The fields beside the messages that some settings give."""
    options = settings.pop("options", ())
    quirks, info = settings.pop("quirks", ()), settings.pop("info", None)
    body = json.loads(render([sabir.user("Hi")], options, Settings(**settings), quirks=quirks, info=info).body_bytes)
    return {name: value for name, value in body.items() if name not in ("model", "messages")}


def losses(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


def call(number: int = 1, origin: Origin | None = None, **fields: Any) -> Message:
    payload = OptionCallPayload(invocation_id=f"call_{number}", option_name="weather", **fields)
    return Message(policy="llm", origin=origin, payload=payload)


def result(number: int = 1, **fields: Any) -> Message:
    payload = OptionResultPayload(invocation_id=f"call_{number}", option_name="weather", **fields)
    return Message(policy="weather", payload=payload)


@pytest.mark.parametrize(
    ("info", "quirks", "role"),
    [
        (ModelInfo(prefix=""), (), "system"),
        (ModelInfo(prefix="gpt-4o", reasoning=False), (), "system"),
        (REASONING, (), "developer"),
        (REASONING, ("system_role",), "system"),
    ],
)
def test_reasoning_models_take_instructions_as_developer(info: ModelInfo, quirks: tuple[str, ...], role: str) -> None:
    """From o1 on; a later instruction stays where it was said."""
    found = messages([sabir.system("A"), sabir.user("B"), sabir.system("C")], info=info, quirks=quirks)

    assert [message["role"] for message in found] == [role, "user", role]


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
            {
                "type": "object",
                "properties": {"n": {"$ref": "#/$defs/N"}},
                "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}},
            },
        ),
    ],
)
def test_the_parameters_of_an_option_are_an_object_with_properties(
    schema: dict[str, Any], sent: dict[str, Any]
) -> None:
    """The vendor refuses any other root; a recursive model has a reference there."""
    declared = head(options=[Option.from_schema("weather", "Weather.", schema)])["tools"][0]["function"]

    assert declared == {"name": "weather", "description": "Weather.", "parameters": sent}


def test_ids_that_the_wire_takes_stay_and_others_become_valid() -> None:
    """At most 64 characters; an endpoint with ids of nine gets nine."""
    long = call(1).model_copy(update={"payload": OptionCallPayload(invocation_id="x" * 70, option_name="weather")})
    answer = result().model_copy(update={"payload": OptionResultPayload(invocation_id="x" * 70, option_name="weather")})
    nine = Renderer(variant("chat", 9), TARGET).render([call(1), result(1), long, answer]).body_bytes
    found = json.loads(nine)["messages"]

    assert len(messages([long, answer])[0]["tool_calls"][0]["id"]) <= 64
    assert all(len(each["id"]) == 9 and each["id"].isalnum() for item in found[::2] for each in item["tool_calls"])
    assert [item["tool_call_id"] for item in found[1::2]] == [item["tool_calls"][0]["id"] for item in found[::2]]


def test_quirks_rename_settings() -> None:
    """`max_tokens` for compatibles, but never for OpenAI's own reasoning models; Mistral's seed."""
    assert head(max_output_tokens=9, quirks=["max_tokens"]) == {"max_tokens": 9}
    assert head(max_output_tokens=9, quirks=["max_tokens"], info=REASONING) == {"max_completion_tokens": 9}
    assert head(seed=7, quirks=["random_seed"]) == {"random_seed": 7}


class Invoice(BaseModel):
    """An invoice."""

    number: str
    total: float
    note: str | None = None


class Order(BaseModel):
    count: int = 1
    code: str = Field(default="x", examples=["y"])


class Limited(BaseModel):
    code: str = Field(min_length=3)


def test_what_a_strict_schema_changes_or_cannot_say_is_a_loss() -> None:
    """Narrowed: rewritten. Not strict at all: downgraded, with the reason."""
    narrowed = render([sabir.user("Hi")], (), Settings(response_format=Order))
    loose = render([sabir.user("Hi")], (), Settings(response_format=Limited))
    schema = json.loads(loose.body_bytes)["response_format"]["json_schema"]

    assert {loss.kind for loss in narrowed.losses} == {"rewritten"}
    assert sorted(loss.reason.rsplit(": ", 1)[1] for loss in narrowed.losses) == [
        "'code' is optional and became required",
        "'count' is optional and became required",
        ["strict schemas ask more", "code loses 'examples'"][1],
    ]
    assert (schema["strict"], schema["schema"]) == (False, Limited.model_json_schema())
    assert [str(loss) for loss in loose.losses] == [
        "downgraded: settings.response_format: replies may miss the schema, for it cannot be strict: "
        "code uses 'minLength', which strict schemas do not have"
    ]


def test_a_format_name_is_made_valid_and_an_endpoint_without_schemas_gets_json() -> None:
    """Each with its loss."""
    renamed = render(
        [sabir.user("Hi")], (), Settings(response_format={"name": "My bill", "schema": {"type": "object"}})
    )
    plain = render([sabir.user("Hi")], (), Settings(response_format=Invoice), quirks=["json_object"])

    assert json.loads(renamed.body_bytes)["response_format"]["json_schema"]["name"].startswith("My_bill_")
    assert ("rewritten", "settings.response_format.name") in losses(renamed)
    assert json.loads(plain.body_bytes)["response_format"] == {"type": "json_object"}
    assert losses(plain) == [("downgraded", "settings.response_format")]


def test_every_field_of_the_sdk_has_its_place() -> None:
    """Neutral, vendor's, the dialect's own, or deprecated: a field that the SDK adds shows up here."""
    neutral = {
        "max_completion_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "tools", "tool_choice",
        "parallel_tool_calls", "response_format",
    }  # fmt: skip
    ours = {"model", "messages", "stream", "stream_options"}
    deprecated = {"max_tokens", "functions", "function_call"}
    known = set(get_type_hints(CompletionCreateParamsNonStreaming, include_extras=True))

    assert known == neutral | ours | deprecated | set(ChatSettings.model_fields)
