"""What a history, options and settings become on OpenAI's two wires, beside what the tables of all wires hold."""

import json
from typing import Any, get_type_hints

import pytest
import sabir
from openai.types.chat import ChatCompletionContentPartImageParam as ImageParam
from openai.types.chat import ChatCompletionContentPartInputAudioParam
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import FunctionToolParam, ResponseInputFileParam, ResponseInputImageParam
from openai.types.shared_params import FunctionDefinition
from pydantic import BaseModel, Field
from sabir.contract.scope import DecodeScope
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import MediaPart, OpaquePart, TextPart
from sabir.vocabulary.settings import Settings
from sabir_openai import settings
from sabir_openai.responses_dialect import RESPONSES as DIALECT

from tests.providers.wires import body, call, fold, home, items, lost, render, result, said, scope_of, whole

CHAT, RESPONSES = "openai.chat", "openai.responses"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
REASONING = ModelInfo(prefix="o", reasoning=True, rejects=("stop",))
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def head(**given: Any) -> dict[str, Any]:
    """The fields beside the messages that some settings give."""
    found = body(render(CHAT, sabir.user("Hi"), **given))
    return {name: value for name, value in found.items() if name not in ("model", "messages")}


@pytest.mark.parametrize(
    ("info", "quirks", "role"),
    [
        (ModelInfo(prefix="gpt-4o", reasoning=False), (), "system"),
        (REASONING, (), "developer"),
        (REASONING, ("system_role",), "system"),
    ],
)
def test_reasoning_models_take_instructions_as_developer(info: ModelInfo, quirks: tuple[str, ...], role: str) -> None:
    found = items(CHAT, sabir.system("A"), sabir.user("B"), sabir.system("C"), info=info, quirks=quirks)

    assert [message["role"] for message in found] == [role, "user", role]


NODES = {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"$defs": NODES, "$ref": "#/$defs/N"}, {**NODES["N"], "$defs": NODES}),
    ],
)
def test_the_parameters_of_an_option_are_an_object_with_properties(schema: dict[str, Any], sent: Any) -> None:
    """The vendor refuses any other root; a recursive model has a reference there."""
    declared = head(options=[Option.from_schema("weather", "Weather.", schema)])["tools"][0]["function"]

    assert declared == {"name": "weather", "description": "Weather.", "parameters": sent}


def test_ids_that_the_wire_takes_stay_and_others_become_valid() -> None:
    asked = call().model_copy(update={"payload": OptionCallPayload(invocation_id="x" * 70, option_name="weather")})
    answer = result().model_copy(update={"payload": OptionResultPayload(invocation_id="x" * 70, option_name="weather")})
    nine = Renderer(sabir.dialect(CHAT).dialect, sabir.dialect(CHAT).target, quirks=frozenset({"call_ids_9"}))
    found = json.loads(nine.render([call(1), result(1), asked, answer]).body_bytes)["messages"]

    assert len(items(CHAT, asked, answer)[0]["tool_calls"][0]["id"]) <= 64
    assert all(len(each["id"]) == 9 and each["id"].isalnum() for item in found[::2] for each in item["tool_calls"])
    assert [item["tool_call_id"] for item in found[1::2]] == [item["tool_calls"][0]["id"] for item in found[::2]]


class Order(BaseModel):
    count: int = 1
    code: str = Field(default="x", examples=["y"])


LIMITED = {"type": "object", "properties": {"code": {"type": "string", "minLength": 3}}, "required": ["code"]}


def form(name: str, fields: dict[str, Any]) -> Any:
    return fields["response_format"]["json_schema"] if name == CHAT else fields["text"]["format"]


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
def test_what_a_strict_schema_changes_or_cannot_say_is_a_loss(name: str) -> None:
    narrowed = render(name, sabir.user("Hi"), response_format=Order)
    loose = render(name, sabir.user("Hi"), response_format={"name": "my limits!", "schema": LIMITED})
    found = form(name, body(loose))

    assert [str(loss).removeprefix("rewritten: settings.response_format.schema.") for loss in narrowed.losses] == [
        "properties.code.examples: 'examples' was removed",
        "properties.count: 'count' is optional and was made required, "
        "because strict schemas have no optional properties",
        "properties.code: 'code' is optional and was made required, because strict schemas have no optional properties",
    ]
    assert (found["strict"], found["schema"]) == (False, LIMITED)
    assert found["name"].startswith("my_limits_")
    told, renamed = map(str, loose.losses)
    assert told == (
        "downgraded: settings.response_format: replies may not match the schema, because the schema cannot be strict: "
        "properties.code has 'minLength': 3, which strict schemas cannot contain"
    )
    assert renamed.startswith("rewritten: settings.response_format.name")


def test_an_endpoint_without_schemas_gets_json() -> None:
    plain = render(CHAT, sabir.user("Hi"), response_format=Order, quirks=["json_object"])

    assert body(plain)["response_format"] == {"type": "json_object"}
    assert lost(plain) == [("dropped", "settings.response_format.schema")]


def test_every_field_of_the_sdk_has_its_place() -> None:
    neutral = {
        "max_completion_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "tools", "tool_choice",
        "parallel_tool_calls", "response_format",
    }  # fmt: skip
    ours = {"model", "messages", "stream", "stream_options"}
    deprecated = {"max_tokens", "functions", "function_call"}
    known = set(get_type_hints(CompletionCreateParamsNonStreaming, include_extras=True))

    assert known == neutral | ours | deprecated | set(settings.ChatSettings.model_fields)


# ---- hints


def test_an_endpoint_that_knows_no_strict_takes_none() -> None:
    option = Option.from_schema("look", "", CITY, vendor={"*": {"strict": True}})
    image = sabir.image(PIXEL, vendor={"deepseek": {"detail": "low"}})
    rendering = sabir.adapter("deepseek:unlisted").render(sabir.user("Look:", image), options=[option])

    assert rendering.body["tools"][0]["function"] == {"name": "look", "parameters": CITY}
    assert lost(rendering) == [("dropped", "options[0].vendor.*.strict")]
    assert rendering.body["messages"][0]["content"][1]["image_url"] == {"url": PIXEL, "detail": "low"}
    both = sabir.dialect(CHAT).dialect.tables.at(frozenset({"no_strict", "call_ids_9"}), ModelInfo(prefix=""))
    assert (both.calls.ids.longest, both.calls.hints) == (9, None)


@pytest.mark.parametrize(
    ("model", "typed", "ours"),
    [
        (settings.ImageHints, get_type_hints(ImageURL) | get_type_hints(ImageParam), {"url", "image_url"}),
        (settings.OpenAIMediaHints, get_type_hints(ChatCompletionContentPartInputAudioParam), {"input_audio"}),
        (settings.ChatFileHints, get_type_hints(File), {"file"}),
        (settings.ImageHints, get_type_hints(ResponseInputImageParam), {"file_id", "image_url"}),
        (settings.FileHints, get_type_hints(ResponseInputFileParam), {"file_data", "file_id", "file_url", "filename"}),
        (settings.ChatOptionHints, get_type_hints(FunctionDefinition), {"name", "description", "parameters"}),
        (settings.ResponsesOptionHints, get_type_hints(FunctionToolParam), {"name", "description", "parameters"}),
    ],
)
def test_hints_are_the_fields_of_the_sdk(model: type[BaseModel], typed: dict[str, Any], ours: set[str]) -> None:
    taken = {name for name, field in model.model_fields.items() if not field.exclude}

    assert taken == typed.keys() - ours - {"type"}


def test_a_stored_field_that_is_no_hint_stays_a_loss() -> None:
    content = [
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "ultra"}},
        {"type": "image_url", "image_url": {"url": PIXEL}, "detail": "low"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}, "detail": "low"},
    ]
    later = {"type": "function", "function": {"name": "later", "parameters": CITY, "defer_loading": True}}
    stored = {"model": "unlisted", "messages": [{"role": "user", "content": content}], "tools": [later]}
    history = sabir.dialect(CHAT).decode_history(stored)
    images = [part for part in history.messages[0].parts if isinstance(part, MediaPart)]

    assert [image.vendor for image in images] == [{}, {}, {"openai": {"detail": "high"}}]
    assert [loss.path.removeprefix("messages[0].") for loss in history.losses] == [
        "content[0].image_url.detail", "content[1].detail", "content[2].detail",
    ]  # fmt: skip
    # Where its dialect has no hint that loads it later, no model may choose the function freely.
    assert (history.options, history.settings.vendor) == ((), {"openai": {"tools": [later]}})


# ---- what goes back to Responses

OUTPUT: list[dict[str, Any]] = [
    {"id": "rs_1", "type": "reasoning", "encrypted_content": "gA==",
     "summary": [{"type": "summary_text", "text": "Hm."}]},
    {
        "id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "See [1].", "logprobs": [], "annotations": [{
                "type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 4, "end_index": 7,
            }]},
            {"type": "refusal", "refusal": "No more."},
            {"type": "output_hologram", "beam": 7},
            {"type": "output_text", "text": "", "annotations": []},
        ],
    },
    {"id": "msg_2", "type": "message", "status": "completed", "role": "assistant", "content": [
        {"type": "output_text", "text": "And.", "annotations": []},
    ]},
    {"id": "msg_3", "type": "message", "status": "incomplete", "role": "assistant", "content": []},
    {"id": "ig_1", "type": "image_generation_call", "status": "completed", "output_format": "webp",
     "result": "UklGRg==", "revised_prompt": "A hat."},
    {"id": "ig_2", "type": "image_generation_call", "status": "failed", "result": None},
    {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "weather",
     "arguments": '{ "city":"Rome" }'},
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "hats"}},
    {"id": "cu_1", "type": "computer_call", "call_id": "call_2", "status": "completed", "pending_safety_checks": []},
]  # fmt: skip
SHOT = {
    "type": "computer_call_output",
    "call_id": "call_2",
    "output": {"type": "computer_screenshot", "image_url": "u"},
}
HERE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Here:"}]}


def answered(output: list[dict[str, Any]], model: str = "gpt-5.4") -> list[Message]:
    scope = scope_of(RESPONSES, model)
    scope = type(scope)(target=scope.target.model_copy(update={"endpoint": sabir.dialect(RESPONSES).target.endpoint}))
    reply = whole(scope, {"model": f"{model}-2026-03-05", "status": "completed", "output": output})
    opaque = OpaquePart(dialect=RESPONSES, block=SHOT, pair_id="call_2", pair="closes")
    shown = said(TextPart(text="Here:"), opaque, policy="user")
    return [sabir.user("?"), *reply.messages, result(result="18 °C"), shown]


def test_a_reply_goes_back_item_by_item_to_the_letter() -> None:
    rendering = render(RESPONSES, *answered(OUTPUT), model="gpt-5.4")

    assert rendering.body["input"][1:-3] == OUTPUT
    told = {"type": "function_call_output", "call_id": "call_1", "output": "18 °C"}
    assert rendering.body["input"][-3:] == [told, HERE, SHOT]
    assert rendering.losses == ()


def test_of_a_reply_of_another_model_only_the_words_go_back() -> None:
    """Signed and server-bound state goes only where it came from; each thing left out is a loss, a search is text."""
    rendering = render(RESPONSES, *answered(OUTPUT, model="gpt-4o"), model="gpt-5.4")

    sent = [item for item in rendering.body["input"] if item.get("role") == "assistant" or "arguments" in item]
    kept = [item.get("content") or item["arguments"] for item in sent]
    hat, hats = "[image not shown: A hat.]", "[web_search]\nhats"
    assert kept == ["See [1].", "No more.", "And.", hat, '{ "city":"Rome" }', hats]
    assert "gA==" not in json.dumps(rendering.body)
    assert {item["id"] for item in rendering.body["input"] if "id" in item} == set()
    assert [kind for kind, _ in lost(rendering)].count("dropped") >= 7


def test_reasoning_without_encrypted_content_is_a_loss_and_frees_what_it_led_to() -> None:
    """Its bare id is not found where nothing is stored, and the items bound to it want it."""
    bare = {**OUTPUT[0], "encrypted_content": None}
    rendering = render(RESPONSES, *answered([bare, OUTPUT[2], *OUTPUT[6:]]), model="gpt-5.4")

    unbound = [{name: value for name, value in item.items() if name != "id"} for item in (OUTPUT[2], OUTPUT[6])]
    assert rendering.body["input"][1:-3] == [*unbound, *OUTPUT[7:]]
    assert lost(rendering) == [
        ("dropped", "parts[0]"), ("withheld", "parts[1].state"), ("withheld", "payload.state"),
    ]  # fmt: skip


def test_what_the_server_holds_is_not_sent_twice_unsaid() -> None:
    given = Settings(vendor={"openai": {"previous_response_id": "resp_1"}})
    reply = said("Hi.", origin=home(RESPONSES).model_copy(update={"response_id": "resp_1"}))
    history = [sabir.user("Hello!"), reply, *(sabir.user("And?") for _ in range(200))]
    renderer = Renderer(DIALECT, sabir.dialect(RESPONSES).target)

    for _ in range(2):
        assert len(renderer.render(history[2:], settings=given).body["input"]) == 200
        with pytest.raises(SettingsInvalid, match=r"previous_response_id 'resp_1'.*messages after it"):
            renderer.render(history, settings=given)


NULLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "weather", "arguments": "{}", "status": None,
      "namespace": None}, {"status", "namespace"}),
    ({"type": "message", "id": "msg_1", "role": "assistant", "status": None, "phase": None,
      "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": None}]},
     {"status", "phase", "logprobs"}),
    ({"type": "message", "id": "msg_1", "role": "assistant", "phase": None,
      "content": [{"type": "refusal", "refusal": "No.", "note": None}]}, {"phase", "note"}),
    ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E", "content": None,
      "status": "completed"}, {"content", "status"}),
    ({"type": "file_search_call", "id": "fs_1", "status": None, "queries": ["q"], "results": None}, {"status"}),
    ({"type": "code_interpreter_call", "id": "ci_1", "status": None, "container_id": "cn", "code": None,
      "outputs": None}, {"status"}),
    ({"type": "image_generation_call", "id": "ig_1", "status": "generating", "result": None, "size": None}, set()),
]  # fmt: skip
"""An output item, and the fields that are not sent back; the vendor's own calls go back with null fields."""


@pytest.mark.parametrize(("item", "omitted"), NULLS)
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_fields_that_the_wire_refuses_in_requests_are_not_sent_back(way: str, item: Any, omitted: set[str]) -> None:
    output = [item, {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed",
                     "content": [{"type": "output_text", "text": "b", "annotations": []}]}]  # fmt: skip
    response = {"id": "resp_1", "model": "unlisted", "status": "completed", "output": output}
    scope = DecodeScope(sabir.dialect(RESPONSES).target.model_copy(update={"model": "unlisted"}))
    done = [{"type": "response.output_item.done", "output_index": at, "item": each} for at, each in enumerate(output)]
    stream = [*done, {"type": "response.completed", "response": response}]
    reply = whole(scope, response) if way == "whole" else fold(scope, *stream)
    results = [result().model_copy(update={"payload": OptionResultPayload(invocation_id="c", option_name="weather")})]
    sent = items(RESPONSES, sabir.user("?"), *reply.messages, *(results if reply.option_calls else []), sabir.user("!"))

    def fields_of(item: Any) -> dict[str, Any]:
        content = [{k: v for k, v in each.items() if k not in omitted} for each in item.get("content") or ()]
        return {k: v for k, v in item.items() if k not in omitted} | ({"content": content} if content else {})

    assert sent[1] == fields_of(item)


@pytest.mark.parametrize("extra", [{"namespace": "tools"}, {"caller": {"type": "program", "caller_id": "p"}}])
def test_an_output_repeats_the_namespace_and_the_caller_of_its_call(extra: dict[str, Any]) -> None:
    """With the name: a name of a namespace is not found by itself. An output of a plain call has its id alone."""
    for further in (extra, {}):
        asked = call(origin=home(RESPONSES), state={"id": "fc_1", **further})
        _, answer = items(RESPONSES, asked, result(result="x"))
        name = {"name": "weather"} if further else {}
        assert answer == {"type": "function_call_output", "call_id": "call_1", **further, **name, "output": "x"}
        stored = json.dumps({"model": "m", "input": [{"type": "function_call", "call_id": "call_1", "name": "weather",
                                                      "arguments": "{}", **further}, answer]})  # fmt: skip
        assert sabir.dialect(RESPONSES).decode_history(stored).losses == ()


def test_a_background_response_that_must_not_be_stored_is_refused() -> None:
    """The API stores what it generates in the background, so `store` False could not be obeyed."""
    settings = Settings(vendor={"openai": {"background": True, "store": False}})
    with pytest.raises(SettingsInvalid, match=r"background=True and store=False.*remove one of the two"):
        sabir.dialect("openai.responses").render([sabir.user("Hi.")], settings=settings)


STORING = [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}]


@pytest.mark.parametrize("vendor", STORING)
def test_a_result_alone_is_sent_if_the_server_stores_its_call(vendor: dict[str, Any]) -> None:
    answers = [{"type": "function_call_output", "call_id": f"call_{at}", "output": "x"} for at in (1, 2, 3)]
    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So?"}]}
    history = [result(1, result="x"), result(2, result="x"), sabir.user("So?"), result(3, result="x")]
    rendering = render(RESPONSES, *history, vendor=vendor)

    assert (body(rendering)["input"], rendering.losses) == ([*answers[:2], words, answers[2]], ())
    named = [{**each, "name": "weather"} for each in answers]
    stored = sabir.dialect(RESPONSES).decode_history(json.dumps({"model": "m", **vendor, "input": named}))
    again = sabir.dialect(RESPONSES).render(stored.messages, model="m", settings=stored.settings)
    assert (stored.losses, again.losses, body(again)["input"]) == ((), (), answers)


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
def test_a_result_without_its_call_is_a_loss_if_nothing_stores_the_call(name: str) -> None:
    rendering = render(name, sabir.user("?"), result())

    assert lost(rendering) == [("dropped", "")]
