"""What a history, its settings and its options become on the wire of generateContent."""

from typing import Any

import pytest
import sabir
from sabir.contract.scope import DecodeScope
from sabir.contract.turns import TurnScope
from sabir.vocabulary.parts import MediaPart
from sabir_google.dialect import GENERATE_CONTENT, TABLES
from sabir_google.encode import generation
from sabir_google.plugin import google
from sabir_google.request import VERTEX

from tests.laws.oracle import check_request
from tests.providers.wires import body, call, fold, lost, render, result, said, same, scope_of, whole

NAME = GENERATE_CONTENT.name
FILE = "https://generativelanguage.googleapis.com/v1beta/files/abc"
REPORT = "https://x.org/report"


@pytest.mark.parametrize(
    ("model", "number"),
    [("gemini-2.5-pro", 2), ("models/gemini-3-pro", 3), ("gemini-flash-lite-latest", 3), ("gemma-3-27b", 0), ("", 0)],
)
def test_a_models_generation_is_in_its_name(model: str, number: int) -> None:
    assert generation(model) == number


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"url": REPORT}, None),
        ({"url": REPORT, "mime": "application/*"}, None),
        ({"url": "provider-file:google/gs://bucket/report"}, None),
        ({"url": REPORT, "mime": "Application/PDF; q=1"}, {"mimeType": "application/pdf;q=1", "fileUri": REPORT}),
        ({"url": REPORT, "name": "Report.PDF"}, {"mimeType": "application/pdf", "fileUri": REPORT}),
        ({"url": f"{REPORT}.json"}, {"mimeType": "application/json", "fileUri": f"{REPORT}.json"}),
        ({"url": "provider-file:google/files/abc"}, {"fileUri": FILE}),
    ],
)
def test_a_document_goes_with_its_type_or_says_that_it_wants_one(part: Any, sent: Any) -> None:
    """The vendor knows it of its own files alone; in a result as well as in a message."""
    medium = MediaPart(modality="document", **part)
    rendering = render(NAME, said(medium, policy="user"), call(), result(parts=[medium]), model="gemini-3-pro")
    asked, _, answered = body(rendering)["contents"]
    if sent:
        assert asked["parts"] == [{"fileData": sent}]
    else:
        (shown,) = asked["parts"]
        assert shown["text"].startswith("[document not shown")
        assert answered["parts"][0]["functionResponse"]["response"] == {"output": shown["text"]}
        told = [loss for loss in rendering.losses if loss.kind == "downgraded"]
        assert [loss.path for loss in told] == ["parts[0]"] * 2
        assert all("pass mime=, for example 'application/pdf'" in loss.reason for loss in told)
    dropped = render(NAME, sabir.user("?", medium), unsupported_media="drop")
    assert [loss.kind for loss in dropped.losses] == ([] if sent else ["dropped"])


@pytest.mark.parametrize("endpoint", ["https://aiplatform.googleapis.com", "https://mine.example"])
def test_a_count_at_vertex_has_fields_of_its_own(endpoint: str) -> None:
    """It knows no whole request, and refuses a name that it does not know; its clients say so, not their address."""
    rendering = render(NAME, sabir.system("Be brief."), sabir.user("Hi"))
    target = rendering.target.model_copy(update={"endpoint": endpoint})
    whole = {**rendering.body, "safetySettings": [], "toolConfig": {}, "labels": {}, "generationConfig": {"seed": 1}}
    assert GENERATE_CONTENT.encode_count

    _, counted = GENERATE_CONTENT.encode_count(whole, TurnScope(target, TABLES, quirks=frozenset({VERTEX})))
    assert counted == {**rendering.body, "generationConfig": {"seed": 1}}
    _, counted = GENERATE_CONTENT.encode_count(whole, TurnScope(target, TABLES))
    assert counted.keys() == {"generateContentRequest"}


@pytest.mark.parametrize(
    ("model", "takes"),
    [("gemini-3-pro-preview", True), ("gemini-2.5-flash", False), ("gemini-2.5-computer-use-preview", True)],
)
def test_models_before_gemini_3_take_no_resolution_of_one_medium(model: str, takes: bool) -> None:
    """They refuse the request, but for those that use a computer; clips they do take."""
    hints = {"media_resolution": {"level": "MEDIA_RESOLUTION_LOW"}, "video_metadata": {"fps": 0.5}}
    rendering = render(NAME, sabir.user(sabir.video("https://x.org/v.mp4", vendor={"*": hints})), model=model)
    (found,) = body(rendering)["contents"][0]["parts"]

    check_request(NAME, rendering.body_bytes)
    assert ("mediaResolution" in found, "videoMetadata" in found) == (takes, True)
    assert lost(rendering) == ([] if takes else [("dropped", "parts[0].vendor")])


FORMAT = [("dropped", "settings.response_format.title"), ("dropped", "settings.response_format.description")]
NODE = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}
MORE = {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "a+"}, "b": {"not": {}}}}
SAID_TWICE = {"reasoning_effort": "low", "vendor": {"thinking_config": {"thinking_level": "LOW"}}}
BESIDE = {"reasoning_effort": "low", "vendor": {"thinking_config": {"include_thoughts": True}}}


@pytest.mark.parametrize(
    ("given", "schema", "losses"),
    [
        ({"name": "sum", "schema": {"type": "integer"}, "description": "All."},
         {"type": "integer", "title": "sum", "description": "All."}, []),
        ({"name": "tree", "schema": NODE, "description": "All."}, NODE, FORMAT),
        ({"name": "output", "schema": MORE}, MORE, [
            ("downgraded", "settings.response_format.schema.properties.pattern.pattern"),
            ("downgraded", "settings.response_format.schema.properties.b.not"),
        ]),
    ],
)  # fmt: skip
def test_a_format_says_its_name_and_what_the_vendor_does_not_read_is_told(given: Any, schema: Any, losses: Any) -> None:
    rendering = render(NAME, sabir.user("Hi."), response_format=given)

    assert body(rendering)["generationConfig"]["responseJsonSchema"] == schema
    assert lost(rendering) == losses


@pytest.mark.parametrize(
    ("settings", "thinking", "kind"),
    [(SAID_TWICE, {"thinkingLevel": "LOW"}, "dropped"),
     (BESIDE, {"thinkingBudget": 1024, "includeThoughts": True}, "rewritten")],
)  # fmt: skip
def test_the_vendors_own_form_of_a_setting_wins(settings: Any, thinking: Any, kind: str) -> None:
    rendering = render(NAME, sabir.user("Hi."), **settings)

    assert body(rendering)["generationConfig"] == {"thinkingConfig": thinking}
    assert lost(rendering) == [(kind, "settings.reasoning_effort")]


def test_every_gemini_before_3_takes_no_media_in_results() -> None:
    rows = {row.prefix: row for row in google.models()}

    assert list(rows) == sorted(rows, key=lambda prefix: (-len(prefix), prefix))
    assert {name for name, row in rows.items() if "results_media" in row.rejects} == {
        "gemini-1.5", "gemini-2.0", "gemini-2.5", "gemini-2.5-flash-image", "gemini-2.5-pro", "gemma-",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "refuses"),
    [
        ("gemini-2.5-pro", False), ("gemini-3-flash-preview", False), ("gemini-3.1-pro-preview", False),
        ("gemini-3.5-flash", False), ("gemini-3.5-flash-lite", True), ("gemini-3.6-flash", True),
        ("gemini-3.8-flash", True), ("gemini-4-argon", True), ("gemini-flash-lite-latest", True),
    ],
)  # fmt: skip
def test_newer_models_may_not_end_a_conversation_and_take_no_sampling(model: str, refuses: bool) -> None:
    """What the API ignores is a loss, not silence; the older ones go on with their own last words."""
    rendering = render(NAME, sabir.user("Hi."), sabir.assistant("Once"), model=model, temperature=1, top_p=1)

    assert [each["role"] for each in body(rendering)["contents"]] == ["user", "model", *(["user"] if refuses else [])]
    assert set(body(rendering).get("generationConfig", {})) == (set() if refuses else {"temperature", "topP"})
    told = {("synthesized", "contents"), ("dropped", "settings.temperature"), ("dropped", "settings.top_p")}
    assert set(lost(rendering)) == (told if refuses else set())


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_two_calls_with_one_id_get_two_ids(way: str) -> None:
    """Their results could not be told apart; ids that differ stay, and so do results without an id."""
    for ids in (("f1", "f1"), ("f1", "f2"), (None, None)):
        parts = [
            {"functionCall": {"name": "weather", "args": {"city": city}, **({"id": each} if each else {})}}
            for each, city in zip(ids, "xy", strict=True)
        ]
        answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        scope = DecodeScope(sabir.dialect(NAME).target.model_copy(update={"model": "gemini-2.5-flash"}))
        reply = whole(scope, answer) if way == "whole" else fold(scope, answer)
        results = sabir.answer_sync(reply, [weather])
        rendering = render(NAME, sabir.user("?"), *reply.messages, *results)
        _, calls, answers = body(rendering)["contents"]
        sent = [part["functionCall"].get("id") for part in calls["parts"]]
        assert sent == [part["functionResponse"].get("id") for part in answers["parts"]]
        reasons = [loss.reason for loss in rendering.losses if loss.kind == "rewritten"]
        if ids == ("f1", "f1"):
            assert sent[0] == "f1" != sent[1]
            assert len(reasons) == 1 and repr(sent[1]) in reasons[0]
        else:
            assert (sent, reasons) == ([*ids], [])


def weather(city: str) -> str:
    """Weather."""
    return city


PLAIN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"text": "Hi.", "thought": False}, {"text": "Hi."}),
    ({"text": "Hi.", "thoughtSignature": None, "thought": None}, {"text": "Hi."}),
    ({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thought": False},
     {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
]  # fmt: skip
"""A part, and the same without fields that say nothing."""


@pytest.mark.parametrize(("part", "plain"), PLAIN)
@pytest.mark.parametrize("role", ["user", "model"])
def test_a_field_that_says_nothing_leaves_a_stored_part_plain(role: str, part: Any, plain: Any) -> None:
    """`thought: false` marks ordinary content, which goes to every vendor."""
    question = {"role": "user", "parts": [{"text": "?"}]}
    both = [
        sabir.dialect(NAME).decode_history({"contents": [question, {"role": role, "parts": [each]}]})
        for each in (part, plain)
    ]

    assert both[0].messages[-1].parts == both[1].messages[-1].parts
    assert both[0].losses == both[1].losses
    assert both[0].messages[-1].parts[0].kind != "opaque"


@pytest.mark.parametrize(("part", "plain"), PLAIN)
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_field_that_says_nothing_leaves_a_part_of_a_reply_plain(way: str, part: Any, plain: Any) -> None:
    scope, end = scope_of(NAME), {"candidates": [{"finishReason": "STOP"}]}
    for parts in ([part], [{"text": "Oh. "}, part]):
        replies = []
        for given in (parts, [plain if each is part else each for each in parts]):
            if way == "streamed":
                replies.append(fold(scope, *({"candidates": [{"content": {"parts": [each]}}]} for each in given), end))
            else:
                replies.append(whole(scope, {"candidates": [{"content": {"parts": given}, "finishReason": "STOP"}]}))
        assert same(*replies)
        assert all(each.kind != "opaque" for each in replies[0].messages[0].parts)
