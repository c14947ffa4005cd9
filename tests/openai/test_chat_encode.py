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
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import MediaPart, OpaquePart, Part, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Settings
from sabir.vocabulary.target import ModelInfo, Target
from sabir_openai.chat_dialect import CHAT
from sabir_openai.dialect import variant
from sabir_openai.settings import ChatSettings

TARGET = Target(provider="openai", dialect="openai.chat", model="gpt-4o", endpoint="https://api.openai.com/v1")
HOME = Origin(provider="openai", dialect="openai.chat", model="gpt-4o-2024-08-06", endpoint=TARGET.endpoint)
ELSEWHERE = Origin(provider="other", dialect="other.wire", model="x")
PNG = "data:image/png;base64,iVBORw0KGgo="
WAV = "data:audio/wav;base64,UklGRg=="
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


def said(*parts: Part, origin: Origin | None = None) -> Message:
    return Message(policy="llm", origin=origin, payload=PartsPayload(parts=parts))


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


def test_media_of_a_result_are_reported_and_its_text_stays() -> None:
    """Results are text on this wire."""
    rendering = render([call(), result(parts=(TextPart(text="chart:"), MediaPart(modality="image", url=PNG)))])
    content = json.loads(rendering.body_bytes)["messages"][1]["content"]

    assert [piece["text"] for piece in content] == ["chart:", "[image not shown]"]
    assert losses(rendering) == [("downgraded", "parts[1]")]


def test_text_after_a_call_comes_before_it_and_says_so() -> None:
    """A message has its content first; the order is a loss, not silence."""
    rendering = render([sabir.user("a"), call(), said(TextPart(text="calling")), result(result=1)])
    message = json.loads(rendering.body_bytes)["messages"][1]

    assert (message["content"], len(message["tool_calls"])) == ("calling", 1)
    assert losses(rendering) == [("relocated", "parts[0]")]


def test_a_refusal_goes_back_as_a_refusal() -> None:
    """The wire has a content part for it; an endpoint of plain text gets it as text, and the loss says so."""
    history = [sabir.user("a"), said(RefusalPart(text="No.")), sabir.user("b")]

    assert messages(history)[1] == {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    plain = render(history, quirks=["plain_text"])
    assert json.loads(plain.body_bytes)["messages"][1] == {"role": "assistant", "content": "No."}
    assert losses(plain) == [("downgraded", "parts[0]")]


def test_argument_text_goes_back_to_its_dialect_as_it_came() -> None:
    """Byte for byte to where such text is known; canonical elsewhere; never empty."""
    raw = '{ "city" : "Ulm" }'
    history = [
        call(1, HOME, arguments={"city": "Ulm"}, raw_arguments=raw),
        call(2, ELSEWHERE, arguments={"city": "Ulm"}, raw_arguments=raw),
        call(3, HOME, raw_arguments=""),
        *(result(number) for number in (1, 2, 3)),
    ]
    calls = messages(history)[0]["tool_calls"]

    assert [each["function"]["arguments"] for each in calls] == [raw, '{"city":"Ulm"}', "{}"]


def test_arguments_that_are_no_json_object_are_a_loss_elsewhere() -> None:
    """Their text goes home as it came; another dialect gets an empty object, and the loss says so."""
    broken = {"raw_arguments": "{city: Ulm", "invalid_arguments": True}
    home, foreign = (render([call(1, origin, **broken), result(1)]) for origin in (HOME, ELSEWHERE))
    texts = [
        json.loads(each.body_bytes)["messages"][0]["tool_calls"][0]["function"]["arguments"] for each in (home, foreign)
    ]

    assert texts == ["{city: Ulm", "{}"]
    assert (losses(home), losses(foreign)) == ([], [("rewritten", "payload.arguments")])


def test_a_custom_call_of_another_target_becomes_a_function_call() -> None:
    """Its state does not go there; the loss says what it became."""
    custom = {"arguments": {"input": "4 + 4"}, "state": {"type": "custom"}}
    elsewhere = HOME.model_copy(update={"endpoint": "https://other.example/v1"})
    foreign = render([call(1, elsewhere, **custom), result(1)])

    assert json.loads(foreign.body_bytes)["messages"][0]["tool_calls"][0]["type"] == "function"
    assert ("downgraded", "payload") in losses(foreign)
    assert losses(render([call(1, HOME, **custom), result(1)])) == []


@pytest.mark.parametrize(
    "parts", [(TextPart(text="So: "), RefusalPart(text="No.")), (RefusalPart(text="No. "), RefusalPart(text="Never."))]
)
def test_a_refusal_beside_another_part_is_a_text(parts: tuple[Part, ...]) -> None:
    """The wire takes texts, or exactly one refusal."""
    rendering = render([sabir.user("a"), said(*parts, origin=HOME), sabir.user("b")])
    refusals = [("downgraded", f"parts[{index}]") for index, part in enumerate(parts) if part.kind == "refusal"]

    content = json.loads(rendering.body_bytes)["messages"][1]["content"]
    assert content == [{"type": "text", "text": part.text} for part in parts if not isinstance(part, OpaquePart)]
    assert losses(rendering) == refusals


def test_a_result_of_media_alone_does_not_become_null() -> None:
    """Nothing of it may be shown: a text says so, for null would be another answer."""
    history = [call(1), result(1, parts=(MediaPart(modality="image", url=PNG),))]
    rendering = render(history, settings=Settings(unsupported_media="drop"))

    assert json.loads(rendering.body_bytes)["messages"][1]["content"] == "(its media are not shown)"
    assert losses(rendering)[-1] == ("synthesized", "payload.result")


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


def test_a_custom_call_and_further_fields_go_back_to_their_maker_alone() -> None:
    """Law 3; a signature of another endpoint is not sent (UP-12)."""
    custom = {"arguments": {"input": "4 + 4"}, "state": {"type": "custom", "further": {"signature": "t"}}}
    signed = {"arguments": {}, "state": {"further": {"extra_content": {"signature": "s"}}}}
    home = [call(1, HOME, **custom), call(2, HOME, **signed), result(1), result(2)]
    foreign = [call(1, ELSEWHERE, **custom), call(2, ELSEWHERE, **signed), result(1), result(2)]

    assert messages(home)[0]["tool_calls"] == [
        {"id": "call_1", "type": "custom", "custom": {"name": "weather", "input": "4 + 4"}, "signature": "t"},
        {
            "id": "call_2",
            "type": "function",
            "function": {"name": "weather", "arguments": "{}"},
            "extra_content": {"signature": "s"},
        },
    ]
    assert [each["function"]["arguments"] for each in messages(foreign)[0]["tool_calls"]] == ['{"input":"4 + 4"}', "{}"]
    assert "extra_content" not in messages(foreign)[0]["tool_calls"][1]


def spoken(origin: Origin) -> Message:
    return said(
        MediaPart(modality="audio", url=WAV, state={"audio": {"id": "audio_1", "expires_at": 9}}),
        TextPart(text="Hello.", state={"transcript_of": "audio_1"}),
        origin=origin,
    )


def test_what_a_text_came_with_is_withheld_where_the_endpoint_takes_a_text_alone() -> None:
    """At home, too: only some endpoints take a block of content back as it was."""
    chunk = {"type": "text", "text": "Hi.", "id": "chunk-1"}
    history = [sabir.user("?"), said(TextPart(text="Hi.", state={"chunk": chunk}), origin=HOME), sabir.user("!")]
    plain, echoed = render(history), render(history, quirks=["echoes_reasoning"])

    assert losses(plain) == [("withheld", "parts[0].state")]
    assert losses(echoed) == []
    assert json.loads(echoed.body_bytes)["messages"][1]["content"] == [chunk]


def test_a_sound_goes_back_by_its_id_and_its_transcript_is_part_of_it() -> None:
    """Echo `audio:{id}`; to anyone else the transcript stands for it."""
    rendering = render([sabir.user("a"), spoken(ELSEWHERE), sabir.user("b")])

    assert messages([sabir.user("a"), spoken(HOME), sabir.user("b")])[1] == {
        "role": "assistant",
        "audio": {"id": "audio_1"},
    }
    assert [part["text"] for part in json.loads(rendering.body_bytes)["messages"][1]["content"]] == [
        "[audio not shown]",
        "Hello.",
    ]
    assert losses(rendering) == [
        ("withheld", "parts[0].state"), ("withheld", "parts[1].state"), ("downgraded", "parts[0]"),
    ]  # fmt: skip


def test_a_dropped_sound_leaves_no_empty_message() -> None:
    """UP-15 under the policy that drops what is not taken."""
    sound = said(MediaPart(modality="audio", url=WAV), origin=ELSEWHERE)
    rendering = render([sabir.user("a"), sound], (), Settings(unsupported_media="drop"))

    assert [message["role"] for message in json.loads(rendering.body_bytes)["messages"]] == ["user"]
    assert losses(rendering) == [("dropped", "parts[0]")]


def thought(origin: Origin | None = HOME) -> list[Message]:
    state = {"field": "reasoning_content", "details": [{"type": "reasoning.encrypted", "data": "x"}]}
    block = {"type": "reference", "reference_ids": [1]}
    return [
        sabir.user("a"),
        said(
            ReasoningPart(text="Hm. ", state=state),
            ReasoningPart(text="", state={"chunk": {"type": "thinking", "thinking": []}}),
            TextPart(text="Ah."),
            OpaquePart(dialect="openai.chat", block=block),
            origin=origin,
        ),
        sabir.user("b"),
    ]


def test_reasoning_goes_back_where_the_endpoint_wants_it() -> None:
    """`reasoning_content` and `reasoning_details` of compatibles, in the fields they came in."""
    assert messages(thought(), quirks=["echoes_reasoning"])[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": []},
            {"type": "text", "text": "Ah."},
            {"type": "reference", "reference_ids": [1]},
        ],
        "reasoning_content": "Hm. ",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
    }


def test_reasoning_is_a_loss_where_the_endpoint_refuses_it() -> None:
    """Nothing official takes it back; the loss names the part."""
    rendering = render(thought())

    assert json.loads(rendering.body_bytes)["messages"][1] == {"role": "assistant", "content": "Ah."}
    assert losses(rendering) == [("dropped", "parts[0]"), ("dropped", "parts[1]"), ("dropped", "parts[3]")]


def test_endpoints_that_alternate_get_neighbours_as_one_message() -> None:
    """The quirk of templates that refuse two user messages in a row."""
    history = [sabir.user("a"), sabir.user("b", sabir.image(PNG)), sabir.user("c")]

    assert len(messages(history)) == 3
    assert messages([sabir.user("a"), sabir.user("b")], quirks=["joins_turns", "plain_text"]) == [
        {"role": "user", "content": "a\n\nb"}
    ]
    assert [part["type"] for part in messages(history, quirks=["joins_turns", "plain_text"])[0]["content"]] == [
        "text",
        "text",
        "image_url",
        "text",
    ]


def test_endpoints_of_plain_text_get_one_string() -> None:
    """Paragraphs of a speaker; of an assistant the very characters that it said."""
    history = [sabir.user("a", "b"), said(TextPart(text="He"), TextPart(text="llo.")), sabir.user("c")]

    assert [message["content"] for message in messages(history, quirks=["plain_text"])] == ["a\n\nb", "Hello.", "c"]
    assert [type(message["content"]) for message in messages(history)] == [list, list, str]


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
