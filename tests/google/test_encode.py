"""What a history becomes on the wire of generateContent."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.contract.scope import DecodeScope, TurnScope
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.parts import KnownPart, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Settings
from sabir.vocabulary.target import ModelInfo, Target
from sabir_google.decode import part_block
from sabir_google.dialect import GENERATE_CONTENT, TABLES
from sabir_google.encode import generation
from sabir_google.services import VERTEX

ENDPOINT = "https://generativelanguage.googleapis.com"
HOME = Origin(provider="google", dialect="google.generate_content", model="gemini-3-pro-preview", endpoint=ENDPOINT)
AWAY = Origin(provider="other", dialect="other.wire", model="x")
PIXEL = "data:image/png;base64,iVBORw0KGgo="
DUMMY = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
DOTS = {"role": "user", "parts": [{"text": "…"}]}


def render(
    history: Sequence[Message], model: str = "gemini-2.5-flash", settings: Settings | None = None, **info: Any
) -> Rendering:
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=model, endpoint=ENDPOINT)
    return Renderer(GENERATE_CONTENT, target, model_info=ModelInfo(prefix="", **info)).render(history, (), settings)


def contents(history: Sequence[Message], model: str = "gemini-2.5-flash", **info: Any) -> Any:
    return json.loads(render(history, model, **info).body_bytes)["contents"]


def losses(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


def message(*parts: KnownPart, policy: str = "llm", origin: Origin | None = None) -> Message:
    return Message(policy=policy, origin=origin, payload={"kind": "parts", "parts": parts})


def call(name: str = "weather", number: int = 1, origin: Origin | None = AWAY, **further: Any) -> Message:
    payload = {"kind": "option_call", "invocation_id": f"call_{number}", "option_name": name, **further}
    return Message(policy="llm", origin=origin, payload=payload)


def result(value: Any = "18 °C", number: int = 1, name: str = "weather", **further: Any) -> Message:
    payload = {"kind": "option_result", "invocation_id": f"call_{number}", "option_name": name, **further}
    return Message(policy=name, payload=payload if further else {**payload, "result": value})


def response(answer: Message, **info: Any) -> Any:
    """The one function response that a result becomes."""
    return contents([sabir.user("?"), call(), answer], **info)[2]["parts"][0]["functionResponse"]


def test_a_later_system_message_is_the_users() -> None:
    """Only the start of a conversation is hoisted."""
    rendering = render([sabir.user("Hi"), sabir.assistant("Hello."), sabir.system("Be brief.")])

    assert json.loads(rendering.body_bytes)["contents"][2] == {"role": "user", "parts": [{"text": "Be brief."}]}
    assert losses(rendering) == [("downgraded", "")]


def test_a_conversation_that_the_model_opens_starts_with_a_users_content() -> None:
    """The wire wants the user first; the dots are a loss."""
    rendering = render([sabir.assistant("Hello."), sabir.user("Hi.")])

    assert [each["role"] for each in json.loads(rendering.body_bytes)["contents"]] == ["user", "model", "user"]
    assert json.loads(rendering.body_bytes)["contents"][0] == DOTS
    assert losses(rendering) == [("synthesized", "")]


def test_system_texts_alone_get_a_users_content() -> None:
    """Somebody must have spoken."""
    rendering = render([sabir.system("Be brief.")])

    assert json.loads(rendering.body_bytes)["contents"] == [DOTS]
    assert losses(rendering) == [("synthesized", "contents")]


def test_a_model_that_may_not_end_a_conversation_is_followed_by_the_user() -> None:
    """As the model's row says; where it says nothing, the model goes on with its own words."""
    history = [sabir.user("Hi."), sabir.assistant("Once upon")]

    assert [each["role"] for each in contents(history)] == ["user", "model"]
    closed = render(history, rejects=("ending_assistant",))
    assert json.loads(closed.body_bytes)["contents"][-1] == DOTS
    assert losses(closed) == [("synthesized", "contents")]


def test_a_call_that_follows_the_model_gets_a_users_content_before_it() -> None:
    """A turn between two of the model's may be empty here: its medium is dropped, the call's place stays legal."""
    lost = message(MediaPart(modality="image", url="data:image/gif;base64,R0lGODlh"), policy="user")
    settings = Settings(unsupported_media="drop")
    rendering = render([sabir.user("?"), sabir.assistant("So."), lost, call(), result()], settings=settings)

    assert [each["role"] for each in json.loads(rendering.body_bytes)["contents"]] == [
        "user", "model", "user", "model", "user",
    ]  # fmt: skip
    assert ("synthesized", "") in losses(rendering)


def test_a_result_that_holds_a_reference_goes_as_json_text() -> None:
    """`$ref` in a response is resolved as a reference to a part; the text cannot be."""
    rendering = render([sabir.user("?"), call(), result({"schema": [{"$ref": "#/x"}]})])
    found = json.loads(rendering.body_bytes)["contents"][2]["parts"][0]["functionResponse"]["response"]

    assert found == {"output": '{"schema":[{"$ref":"#/x"}]}'}
    assert losses(rendering) == [("rewritten", "payload.result")]


def test_a_results_media_stand_beside_its_text() -> None:
    """Functions answer with media from Gemini 3 on; what stood after a medium moves before it."""
    parts = (
        {"kind": "media", "modality": "image", "url": PIXEL},
        {"kind": "text", "text": "A map."},
    )
    rendering = render([sabir.user("?"), call(), result(parts=parts)])
    found = json.loads(rendering.body_bytes)["contents"][2]["parts"][0]["functionResponse"]

    assert found["response"] == {"output": "A map."}
    assert found["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]
    assert losses(rendering) == [("relocated", "payload.parts")]
    older = response(result(parts=parts), rejects=("results_media",))
    assert older == {"name": "weather", "response": {"output": ["[image not shown]", "A map."]}}


def test_an_id_is_only_ever_the_makers_own() -> None:
    """A call that came with an id takes it back, and so does its result; others have none: some endpoints refuse it."""
    own = call(origin=HOME, state={"call": {"id": "fc-9"}, "part": {"thoughtSignature": "c2ln"}})
    history = [sabir.user("?"), own, result(), call("add", 2, origin=HOME), result(3, 2, "add"), call(number=3)]
    found = contents([*history, result(number=3)], "gemini-3-pro-preview")
    calls = [part["functionCall"] for each in found for part in each["parts"] if "functionCall" in part]
    results = [part["functionResponse"] for each in found for part in each["parts"] if "functionResponse" in part]

    assert [each.get("id") for each in calls] == ["fc-9", None, None]
    assert [each.get("id") for each in results] == ["fc-9", None, None]
    elsewhere = contents([sabir.user("?"), own, result()], "gemini-2.5-flash")
    assert "fc-9" not in json.dumps(elsewhere)
    assert "c2ln" not in json.dumps(elsewhere)


def test_a_signature_goes_back_on_the_part_that_it_came_on() -> None:
    """Texts, thoughts, calls and images alike; an empty text carries one too, but only home."""
    parts = (
        ReasoningPart(text="Hm.", state={"part": {"thoughtSignature": "YQ=="}}),
        TextPart(text="So.", state={"part": {"thoughtSignature": "Yg=="}}),
        MediaPart(modality="image", url=PIXEL, state={"part": {"thoughtSignature": "Yw=="}}),
        TextPart(text="", state={"part": {"thoughtSignature": "ZA=="}}),
    )
    history = [sabir.user("?"), message(*parts, origin=HOME), sabir.user("!")]

    assert contents(history, "gemini-3-pro-preview")[1]["parts"] == [
        {"text": "Hm.", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "So.", "thoughtSignature": "Yg=="},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "Yw=="},
        {"text": "", "thoughtSignature": "ZA=="},
    ]
    away = render(history, "gemini-2.5-flash")
    assert json.loads(away.body_bytes)["contents"][1]["parts"] == [{"text": "So."}, {"text": "[image not shown]"}]
    assert losses(away) == [
        ("dropped", "parts[0]"),
        ("withheld", "parts[1].state"),
        ("withheld", "parts[2].state"),
        ("dropped", "parts[3]"),
        ("downgraded", "parts[2]"),
    ]


@pytest.mark.parametrize("mime", ["audio/L16;codec=pcm;rate=24000", "audio/x-wav", "image/png"])
def test_a_type_goes_back_as_it_came(mime: str) -> None:
    """Its parameters say how raw sound is to be heard; spelling is the vendor's own."""
    part = {"inlineData": {"mimeType": mime, "data": "AAA="}}
    answer = part_block(part, DecodeScope(Target(provider="google", dialect="google.generate_content")))
    assert isinstance(answer, MediaPart)
    rendering = render([sabir.user("?"), message(answer, origin=HOME), sabir.user("!")], "gemini-3-pro-preview")

    assert json.loads(rendering.body_bytes)["contents"][1]["parts"] == [part]
    assert losses(rendering) == []


def test_a_state_of_another_shape_is_not_taken_for_a_signature() -> None:
    """Messages are edited, and written by hand: what is no state of this wire's own adds nothing to a part."""
    parts = (
        ReasoningPart(text="Hm.", state={"type": "reasoning", "id": "rs_1"}),
        TextPart(text="", state={"id": "msg_1"}),
        TextPart(text="So."),
    )
    rendering = render([sabir.user("?"), message(*parts, origin=HOME)], "gemini-3-pro-preview")
    found = json.loads(rendering.body_bytes)["contents"]

    assert found[1]["parts"] == [{"text": "Hm.", "thought": True}, {"text": "So."}]
    assert losses(rendering) == [("dropped", "parts[1]")]


@pytest.mark.parametrize("model", ["gemini-3-pro-preview", "gemini-3.5-flash", "gemini-flash-latest", "gemini-10-x"])
def test_the_first_call_of_a_foreign_step_carries_the_documented_dummy(model: str) -> None:
    """From Gemini 3 on a step without a signature is refused; each is a loss of its own."""
    history = [sabir.user("?"), call(), call("add", 2), result(), result(3, 2, "add"), call(number=3), result(number=3)]
    rendering = render(history, model)
    found = json.loads(rendering.body_bytes)["contents"]

    assert [part.get("thoughtSignature") for part in found[1]["parts"]] == [DUMMY, None]
    assert [part.get("thoughtSignature") for part in found[3]["parts"]] == [DUMMY]
    assert losses(rendering) == [("synthesized", "payload.state")] * 2


def test_a_signed_step_gets_no_dummy_and_an_older_model_none_at_all() -> None:
    """The signature of the first call is enough for those beside it."""
    signed = call(origin=HOME, state={"part": {"thoughtSignature": "c2ln"}})
    history = [sabir.user("?"), signed, call("add", 2, origin=HOME), result(), result(3, 2, "add")]

    found = contents(history, "gemini-3-pro-preview")[1]["parts"]
    assert [part.get("thoughtSignature") for part in found] == ["c2ln", None]
    assert DUMMY not in json.dumps(contents(history, "gemini-2.5-flash"))


@pytest.mark.parametrize(
    ("model", "number"),
    [("gemini-2.5-pro", 2), ("models/gemini-3-pro", 3), ("gemini-flash-lite-latest", 3), ("gemma-3-27b", 0), ("", 0)],
)
def test_a_models_generation_is_in_its_name(model: str, number: int) -> None:
    """What is no Gemini by its name demands nothing."""
    assert generation(model) == number


REPORT = "https://x.org/report"


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"url": REPORT}, None),
        ({"url": REPORT, "mime": "application/*"}, None),
        ({"url": "provider-file:google/gs://bucket/report"}, None),
        ({"url": REPORT, "mime": "Application/PDF; q=1"}, {"mimeType": "application/pdf;q=1", "fileUri": REPORT}),
        ({"url": REPORT, "name": "Report.PDF"}, {"mimeType": "application/pdf", "fileUri": REPORT}),
        ({"url": f"{REPORT}.json"}, {"mimeType": "application/json", "fileUri": f"{REPORT}.json"}),
        ({"url": "provider-file:google/files/abc"}, {"fileUri": f"{ENDPOINT}/v1beta/files/abc"}),
    ],
)
def test_a_document_goes_with_its_type_or_says_that_it_wants_one(part: Any, sent: Any) -> None:
    """The vendor knows it of its own files alone; in a result as well as in a message."""
    medium = MediaPart(modality="document", **part)
    rendering = render([message(medium, policy="user"), call(), result(parts=[medium])])
    asked, _, answered = json.loads(rendering.body_bytes)["contents"]
    if sent:
        assert asked["parts"] == [{"fileData": sent}]
    else:
        (said,) = asked["parts"]
        assert said["text"].startswith("[document not shown")
        assert answered["parts"][0]["functionResponse"]["response"] == {"output": said["text"]}
        lost = [loss for loss in rendering.losses if loss.kind == "downgraded"]
        assert [loss.path for loss in lost] == ["parts[0]"] * 2
        assert all("pass mime=, for example 'application/pdf'" in loss.reason for loss in lost)
    dropped = render([sabir.user("?", medium)], settings=Settings(unsupported_media="drop"))
    assert [loss.kind for loss in dropped.losses] == ([] if sent else ["dropped"])


def test_a_foreign_models_image_becomes_a_placeholder() -> None:
    """What another model drew is no part of this model's turn; nor is it lost in silence."""
    rendering = render([sabir.user("?"), message(MediaPart(modality="image", url=PIXEL), origin=AWAY)])

    assert json.loads(rendering.body_bytes)["contents"][1]["parts"] == [{"text": "[image not shown]"}]
    assert losses(rendering) == [("downgraded", "parts[0]")]


def test_opaque_parts_go_back_verbatim() -> None:
    """A model's own code and its output, and what only this wire says of a user's medium."""
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    clip = {"fileData": {"fileUri": "https://x.org/v.mp4"}, "videoMetadata": {"startOffset": "1s"}}
    history = [
        message(OpaquePart(dialect=GENERATE_CONTENT.name, block=clip), policy="user"),
        message(OpaquePart(dialect=GENERATE_CONTENT.name, block=code), TextPart(text="1"), origin=HOME),
    ]

    assert contents(history, "gemini-3-pro-preview") == [
        {"role": "user", "parts": [clip]},
        {"role": "model", "parts": [code, {"text": "1"}]},
    ]


def test_a_refusal_is_a_text() -> None:
    """The wire has no other form for one."""
    rendering = render([sabir.user("?"), message(RefusalPart(text="No."), origin=AWAY)])

    assert json.loads(rendering.body_bytes)["contents"][1]["parts"] == [{"text": "No."}]
    assert losses(rendering) == [("downgraded", "parts[0]")]


def test_an_option_name_is_made_one_of_the_wires() -> None:
    """Letters, digits and a few signs, the first a letter or `_`."""
    rendering = render([sabir.user("?"), call("9 lives.now"), result(name="9 lives.now")])
    name = json.loads(rendering.body_bytes)["contents"][1]["parts"][0]["functionCall"]["name"]

    assert name.startswith("x9_lives.now_")
    assert losses(rendering) == [("rewritten", "payload.option_name")]


def test_a_path_keeps_the_models_folder_and_is_quoted() -> None:
    """A tuned model is not below `models/`."""
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model="tunedModels/my own")

    assert GENERATE_CONTENT.path(target) == "/v1beta/tunedModels/my%20own:generateContent"


@pytest.mark.parametrize("endpoint", ["https://aiplatform.googleapis.com", "https://mine.example"])
def test_a_count_at_vertex_has_fields_of_its_own(endpoint: str) -> None:
    """It knows no whole request, and refuses a name that it does not know; its clients say so, not their address."""
    rendering = render([sabir.system("Be brief."), sabir.user("Hi")])
    target = rendering.target.model_copy(update={"endpoint": endpoint})
    body = {**rendering.body, "safetySettings": [], "toolConfig": {}, "labels": {}, "generationConfig": {"seed": 1}}
    assert GENERATE_CONTENT.encode_count

    _, counted = GENERATE_CONTENT.encode_count(body, TurnScope(target, TABLES, quirks=frozenset({VERTEX})))
    assert counted == {**rendering.body, "generationConfig": {"seed": 1}}
    _, counted = GENERATE_CONTENT.encode_count(body, TurnScope(target, TABLES))
    assert counted.keys() == {"generateContentRequest"}
