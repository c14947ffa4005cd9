"""What a history becomes on the wire of generateContent."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.contract.turns import TurnScope
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.parts import KnownPart, MediaPart
from sabir.vocabulary.settings import ModelInfo, Settings, Target
from sabir_google.dialect import GENERATE_CONTENT, TABLES
from sabir_google.encode import generation
from sabir_google.services import VERTEX

ENDPOINT = "https://generativelanguage.googleapis.com"
AWAY = Origin(provider="other", dialect="other.wire", model="x")


def render(
    history: Sequence[Message], model: str = "gemini-2.5-flash", settings: Settings | None = None, **info: Any
) -> Rendering:
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=model, endpoint=ENDPOINT)
    return Renderer(GENERATE_CONTENT, target, model_info=ModelInfo(prefix="", **info)).render(history, (), settings)


def message(*parts: KnownPart, policy: str = "llm", origin: Origin | None = None) -> Message:
    return Message(policy=policy, origin=origin, payload={"kind": "parts", "parts": parts})


def call(name: str = "weather", number: int = 1, origin: Origin | None = AWAY, **further: Any) -> Message:
    payload = {"kind": "option_call", "invocation_id": f"call_{number}", "option_name": name, **further}
    return Message(policy="llm", origin=origin, payload=payload)


def result(value: Any = "18 °C", number: int = 1, name: str = "weather", **further: Any) -> Message:
    payload = {"kind": "option_result", "invocation_id": f"call_{number}", "option_name": name, **further}
    return Message(policy=name, payload=payload if further else {**payload, "result": value})


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
