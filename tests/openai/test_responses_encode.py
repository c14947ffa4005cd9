"""What a history and its settings become on the wire of Responses."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.contract.dialect import Rendering
from sabir.contract.scope import DecodeScope
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.parts import KnownPart, OpaquePart, TextPart
from sabir.vocabulary.settings import ModelInfo, Settings, Target
from sabir_openai.responses_dialect import RESPONSES

TARGET = Target(provider="openai", dialect="openai.responses", model="gpt-5.4", endpoint="https://example.org/v1")
HOME = Origin(
    provider="openai", dialect="openai.responses", model="gpt-5.4-2026-03-05", endpoint="https://example.org/v1"
)
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def render(
    history: Sequence[Message],
    options: Sequence[Option] = (),
    settings: Settings | None = None,
    info: ModelInfo | None = None,
) -> Rendering:
    return Renderer(RESPONSES, TARGET, model_info=info).render(history, options, settings)


def body(settings: Settings | None = None, options: Sequence[Option] = (), info: ModelInfo | None = None) -> Any:
    """The request's fields beside model and input."""
    found = render([sabir.user("Hi.")], options, settings, info).body
    assert (found["model"], found["input"]) == ("gpt-5.4", [text_message("user", "Hi.")])
    return {name: value for name, value in found.items() if name not in ("model", "input")}


def losses(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


def message(*parts: KnownPart, policy: str = "llm", origin: Origin | None = None) -> Message:
    return Message(policy=policy, origin=origin, payload={"kind": "parts", "parts": parts})


def call(arguments: Mapping[str, Any], origin: Origin | None = None, **further: Any) -> Message:
    payload = {"kind": "option_call", "invocation_id": "call_1", "option_name": "weather", "arguments": arguments}
    return Message(policy="llm", origin=origin, payload={**payload, **further})


def result(**said: Any) -> Message:
    payload = {"kind": "option_result", "invocation_id": "call_1", "option_name": "weather", **said}
    return Message(policy="weather", payload=payload)


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


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
    "output": {"type": "computer_screenshot", "image_url": PIXEL},
}


def answered(output: list[dict[str, Any]], model: str = "gpt-5.4") -> list[Message]:
    scope = DecodeScope(target=TARGET.model_copy(update={"model": model}))
    reply = RESPONSES.decode(
        json.dumps({"model": f"{model}-2026-03-05", "status": "completed", "output": output}).encode(), scope
    )
    opaque = OpaquePart(dialect=RESPONSES.name, block=SHOT, pair_id="call_2", pair="closes")
    shown = message(TextPart(text="Here:"), opaque, policy="user")
    return [sabir.user("?"), *reply.messages, result(result="18 °C"), shown]


def test_a_reply_goes_back_item_by_item_to_the_letter() -> None:
    """Law 3: content parts of one message stay together, those of two apart; unknown parts and items are kept."""
    rendering = render(answered(OUTPUT))

    assert rendering.body["input"][1:-3] == OUTPUT
    assert rendering.body["input"][-3:] == [
        {"type": "function_call_output", "call_id": "call_1", "output": "18 °C"},
        text_message("user", "Here:"),
        SHOT,
    ]
    assert rendering.losses == ()


def test_of_a_reply_of_another_model_only_the_words_go_back() -> None:
    """Signed and server-bound state goes only where it came from; each thing left out is a loss."""
    rendering = render(answered(OUTPUT, model="gpt-4o"))

    sent = [item for item in rendering.body["input"] if item.get("role") == "assistant" or "arguments" in item]
    kept = [item.get("content") or item["arguments"] for item in sent]
    assert kept == ["See [1].", "No more.", "And.", "[image not shown: A hat.]", '{ "city":"Rome" }']
    assert "gA==" not in json.dumps(rendering.body)
    assert {item["id"] for item in rendering.body["input"] if "id" in item} == set()
    assert [kind for kind, _ in losses(rendering)].count("dropped") >= 7


def test_reasoning_without_encrypted_content_is_a_loss_and_frees_what_it_led_to() -> None:
    """Its bare id is not found where nothing is stored, and the items bound to it want it."""
    bare = {**OUTPUT[0], "encrypted_content": None}
    rendering = render(answered([bare, OUTPUT[2], *OUTPUT[6:]]))

    unbound = [{name: value for name, value in item.items() if name != "id"} for item in (OUTPUT[2], OUTPUT[6])]
    assert rendering.body["input"][1:-3] == [*unbound, *OUTPUT[7:]]
    assert losses(rendering) == [
        ("dropped", "parts[0]"), ("withheld", "parts[1].state"), ("withheld", "payload.state"),
    ]  # fmt: skip


class Invoice(BaseModel):
    """An invoice."""

    total: float
    note: str | None = None


def test_a_response_format_is_strict_where_it_can_be_and_says_why_not() -> None:
    """The reason is in the losses."""
    strict = render([sabir.user("Hi.")], settings=Settings(response_format=Invoice))
    free = {"name": "my format!", "schema": {"type": "object", "additionalProperties": {"type": "string"}}}
    loose = render([sabir.user("Hi.")], settings=Settings(response_format=free))

    found = strict.body["text"]["format"]
    assert (found["type"], found["name"], found["strict"]) == ("json_schema", "Invoice", True)
    assert (found["schema"]["required"], found["schema"]["additionalProperties"]) == (["total", "note"], False)
    assert found["description"] == "An invoice."
    assert strict.losses == ()
    found = loose.body["text"]["format"]
    assert (found["strict"], found["schema"]) == (False, free["schema"])
    assert found["name"].startswith("my_format_")
    assert losses(loose) == [("downgraded", "settings.response_format"), ("rewritten", "settings.response_format.name")]


def test_what_the_server_holds_is_not_sent_twice_unsaid() -> None:
    """A history with the very answer that the setting names is refused; what came after it is sent."""
    settings = Settings(vendor={"openai": {"previous_response_id": "resp_1"}})
    reply = message(TextPart(text="Hi."), origin=HOME.model_copy(update={"response_id": "resp_1"}))
    history = [sabir.user("Hello!"), reply, *(sabir.user("And?") for _ in range(200))]
    renderer = Renderer(RESPONSES, TARGET)

    for _ in range(2):
        assert len(renderer.render(history[2:], settings=settings).body["input"]) == 200
        with pytest.raises(SettingsInvalid, match=r"previous_response_id 'resp_1'.*messages after it"):
            renderer.render(history, settings=settings)
