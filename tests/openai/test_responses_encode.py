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
from sabir.vocabulary.parts import KnownPart, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Settings
from sabir.vocabulary.target import ModelInfo, Target
from sabir_openai.responses_decode import opaque_item
from sabir_openai.responses_dialect import RESPONSES

TARGET = Target(provider="openai", dialect="openai.responses", model="gpt-5.4", endpoint="https://example.org/v1")
HOME = Origin(
    provider="openai", dialect="openai.responses", model="gpt-5.4-2026-03-05", endpoint="https://example.org/v1"
)
AWAY = Origin(provider="other", dialect="other.wire", model="x")
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


def opaque(block: Any) -> OpaquePart:
    return OpaquePart(dialect=RESPONSES.name, block=block)


def call(arguments: Mapping[str, Any], origin: Origin | None = None, **further: Any) -> Message:
    payload = {"kind": "option_call", "invocation_id": "call_1", "option_name": "weather", "arguments": arguments}
    return Message(policy="llm", origin=origin, payload={**payload, **further})


def result(**said: Any) -> Message:
    payload = {"kind": "option_result", "invocation_id": "call_1", "option_name": "weather", **said}
    return Message(policy="weather", payload=payload)


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def test_system_messages_stay_apart_and_where_they_are() -> None:
    """No `instructions`: it would join them, and is not inherited from a previous response."""
    rendering = render([sabir.system("A."), sabir.system("B."), sabir.user("C."), sabir.system("D."), sabir.user("E.")])

    said = [("system", "A."), ("system", "B."), ("user", "C."), ("system", "D."), ("user", "E.")]
    assert rendering.body["input"] == [text_message(role, text) for role, text in said]
    assert "instructions" not in rendering.body
    assert rendering.losses == ()


def test_arguments_go_back_as_they_came_to_the_same_dialect_alone() -> None:
    """A call's own text is replayed; another dialect's is written anew; its state goes home only."""
    further = {"raw_arguments": '{ "city": "Rome" }', "state": {"id": "fc_1", "status": "completed", "namespace": "n"}}
    elsewhere = HOME.model_copy(update={"model": "gpt-4o"})
    sent = [
        render([call({"city": "Rome"}, origin, **further), result()]).body["input"][0]
        for origin in (HOME, elsewhere, AWAY)
    ]

    bare = {"type": "function_call", "call_id": "call_1", "name": "weather"}
    assert sent[0] == {**bare, "arguments": '{ "city": "Rome" }', "id": "fc_1", "status": "completed", "namespace": "n"}
    assert sent[1] == {**bare, "arguments": '{ "city": "Rome" }'}
    assert sent[2] == {**bare, "arguments": '{"city":"Rome"}'}


@pytest.mark.parametrize(
    ("further", "lost"),
    [
        ({"raw_arguments": "{city", "invalid_arguments": True}, ("rewritten", "payload.arguments")),
        ({"state": {"type": "custom"}}, ("downgraded", "payload")),
    ],
)
def test_what_a_call_of_chat_loses_here_is_a_loss(further: dict[str, Any], lost: tuple[str, str]) -> None:
    """Text that is no JSON object has no place; a custom call becomes a function call."""
    chat = HOME.model_copy(update={"dialect": "openai.chat"})
    rendering = render([call({}, chat, **further), result()])

    assert (rendering.body["input"][0]["type"], rendering.body["input"][0]["arguments"]) == ("function_call", "{}")
    assert lost in losses(rendering)


def test_a_result_of_media_alone_does_not_become_null() -> None:
    """Sound has no place in a result: a text says that it is missing, for null would be another answer."""
    sound = MediaPart(modality="audio", url="data:audio/wav;base64,UklGRg==")
    rendering = render([call({}), result(parts=[sound])], settings=Settings(unsupported_media="drop"))

    assert rendering.body["input"][1]["output"] == "(its media are not shown)"
    assert losses(rendering)[-1] == ("synthesized", "payload.result")


def test_an_item_id_of_another_make_stays_out_of_a_call() -> None:
    """The vendor refuses a call's id that does not begin with fc."""
    rendering = render([call({}, HOME, state={"id": "call_1", "status": "completed"}), result()])

    assert rendering.body["input"][0].keys() == {"type", "call_id", "name", "arguments", "status"}


def test_what_another_assistant_said_is_plain_text() -> None:
    """Law 9: texts are strings, for the vendor's own form wants the vendor's ids; the rest is in the losses."""
    said = (TextPart(text="Yes."), RefusalPart(text="No."), MediaPart(modality="image", url=PIXEL, prompt_hint="a hat"))
    rendering = render([sabir.user("?"), message(ReasoningPart(text="Hm."), *said, origin=AWAY), sabir.user("!")])
    dropping = render([message(*said, origin=AWAY)], settings=Settings(unsupported_media="drop"))

    texts = ["Yes.", "No.", "[image not shown: a hat]"]
    assert rendering.body["input"][1:-1] == [
        {"type": "message", "role": "assistant", "content": text} for text in texts
    ]
    assert losses(rendering) == [("dropped", "parts[0]"), ("downgraded", "parts[2]"), ("downgraded", "parts[3]")]
    assert [item["content"] for item in dropping.body["input"]] == texts[:2]
    assert losses(dropping) == [("downgraded", "parts[1]"), ("dropped", "parts[2]")]


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


def test_a_block_of_a_message_goes_into_one_and_an_item_stands_for_itself() -> None:
    """Whichever side gave it: the input takes no content parts, and a message no items."""
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    said = {"type": "output_text", "text": "Hm.", "annotations": []}
    added: dict[str, Any] = {"type": "additional_tools", "role": "developer", "tools": []}
    user = [TextPart(text="Listen:"), opaque(sound), opaque(added), opaque(sound), TextPart(text="Well?")]
    found = render([message(*user, policy="user"), message(opaque(said), opaque(added)), sabir.user("?")])

    text = {"type": "input_text", "text": "Listen:"}
    assert found.body["input"] == [
        {"type": "message", "role": "user", "content": [text, sound]},
        added,
        {"type": "message", "role": "user", "content": [sound, {"type": "input_text", "text": "Well?"}]},
        {"type": "message", "role": "assistant", "content": [said]},
        added,
        text_message("user", "?"),
    ]
    assert found.losses == ()


def test_a_call_of_the_vendors_goes_back_with_the_users_answer() -> None:
    """Unanswered it is a loss; a local shell's output names its call by either field."""
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": {"type": "exec"}}
    asked = [sabir.user("?"), *answered([call])[1:-2]]
    for name in ("id", "call_id"):
        output = {"type": "local_shell_call_output", name: "call_1", "output": "x"}
        found = render([*asked, message(opaque_item(output), policy="user")])
        assert (found.body["input"][1:], found.losses) == ([call, output], ())
    assert losses(render([*asked, sabir.user("!")])) == [("dropped", "parts[0]")]


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


def test_open_reasoning_of_a_compatible_endpoint_goes_back() -> None:
    """Its content says all that there is to say."""
    open_reasoning = {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    rendering = render(answered([open_reasoning, OUTPUT[2]]))

    assert rendering.body["input"][1:3] == [open_reasoning, OUTPUT[2]]


@pytest.mark.parametrize("origin", [HOME, AWAY, None], ids=["home", "away", "nowhere"])
def test_a_citation_that_is_not_the_vendors_is_a_loss(origin: Origin | None) -> None:
    """A citation goes back by its source, within the message that it came in; else there is nothing to send."""
    citation = {"kind": "url_citation", "url": "https://example.org"}
    rendering = render([message(TextPart(text="See.", citations=(citation,)), origin=origin)])

    assert rendering.body["input"][0]["content"] == "See."
    assert losses(rendering) == [("dropped", "parts[0].citations")]


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
