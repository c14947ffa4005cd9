"""What a stored request becomes, and that it goes back as it was."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory
from sabir.errors import HistoryInvalid
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, OpaquePart, TextPart

DIALECT = sabir.dialect("google.generate_content")
USER = {"role": "user", "parts": [{"text": "?"}]}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def decode(*contents: Any, **further: Any) -> DecodedHistory:
    return DIALECT.decode_history({"contents": list(contents), **further})


def back(history: DecodedHistory) -> Any:
    """The request that a history renders to."""
    rendering = DIALECT.render(history.messages, options=history.options, settings=history.settings)
    assert rendering.losses == ()
    return json.loads(rendering.body_bytes)


def call(name: str = "weather", **further: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **further}}


def answer(response: Any, name: str = "weather", **further: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **further}}


def result(message: Message) -> Any:
    assert message.result is not None
    return message.result


def test_a_conversation_with_all_that_it_offers_goes_back_as_it_was() -> None:
    """Every field of a request that has a neutral name, and some that have none."""
    request = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            USER,
            {
                "role": "model",
                "parts": [{"text": "Hm.", "thought": True}, {**call(id="fc-1"), "thoughtSignature": "c2ln"}],
            },
            {"role": "user", "parts": [answer({"celsius": 18}, id="fc-1")]},
            {"role": "model", "parts": [{"text": "Mild."}]},
            {"role": "user", "parts": [{"text": "And here?"}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "weather", "description": "W.", "parametersJsonSchema": PARAMETERS}]},
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 4,
            "maxOutputTokens": 9,
            "seed": 1,
            "stopSequences": ["x"],
            "responseMimeType": "application/json",
            "responseJsonSchema": {"title": "T", "type": "object"},
            "thinkingConfig": {"thinkingBudget": 1},
        },
        "safetySettings": [{"category": "A", "threshold": "B"}],
        "cachedContent": "cachedContents/1",
        "unheardOf": {"a_b": 1},
    }
    history = DIALECT.decode_history(request)

    assert [message.policy for message in history.messages] == [
        "system", "user", "llm", "llm", "weather", "llm", "user",
    ]  # fmt: skip
    assert history.settings.option_choice == "weather"
    assert history.settings.vendor["google"]["top_k"] == 4
    assert history.settings.extra_body == {"unheardOf": {"a_b": 1}}
    assert history.losses == ()
    assert back(history) == request


def test_a_request_that_names_its_model_gives_its_signatures_back_to_it() -> None:
    """The path names it on the wire; whoever stored the body may add it, in either form."""
    signed = {**call(id="fc-1"), "thoughtSignature": "c2ln"}
    request = (USER, {"role": "model", "parts": [signed]}, {"role": "user", "parts": [answer({}, id="fc-1")]})
    for model in ("gemini-3-pro", "models/gemini-3-pro-preview"):
        history = decode(*request, model=model)
        rendering = DIALECT.render(history.messages, model="gemini-3-pro-preview")
        assert json.loads(rendering.body_bytes)["contents"] == list(request)
    elsewhere = DIALECT.render(decode(*request).messages, model="gemini-3-pro-preview")
    assert "c2ln" not in elsewhere.body_bytes.decode()
    assert [loss.kind for loss in elsewhere.losses] == ["withheld", "synthesized"]


def test_both_spellings_are_read() -> None:
    """The vendor's SDK mixes them, and has an alphabet of its own for base64; what is the user's stays as it is."""
    history = decode(
        {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "-_8="}}]},
        {
            "role": "model",
            "parts": [{"function_call": {"name": "weather", "args": {"a_b": 1}}, "thought_signature": "c2ln"}],
        },
        {"role": "user", "parts": [{"function_response": {"name": "weather", "response": {"c_d": 2}}}]},
        system_instruction={"parts": {"text": "Be brief."}},
        generation_config={"max_output_tokens": 9, "thinking_config": {"include_thoughts": True}},
        tools={"function_declarations": [{"name": "weather"}]},
    )
    found = back(history)

    assert found["contents"][0]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "+/8="}}]
    assert found["contents"][1]["parts"] == [
        {"functionCall": {"name": "weather", "args": {"a_b": 1}}, "thoughtSignature": "c2ln"}
    ]
    assert found["contents"][2]["parts"][0]["functionResponse"]["response"] == {"c_d": 2}
    assert found["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert found["generationConfig"]["maxOutputTokens"] == 9
    assert found["tools"][0]["functionDeclarations"][0]["name"] == "weather"


@pytest.mark.parametrize("role", [{}, {"role": "function"}, {"role": ""}])
def test_a_content_that_is_not_the_models_is_the_users(role: Any) -> None:
    """Older requests name functions, or nobody."""
    (message,) = decode({**role, "parts": [{"text": "Hi."}]}).messages

    assert (message.policy, message.text) == ("user", "Hi.")


def test_a_call_in_pieces_is_stored_as_one() -> None:
    """As an answer that came as a stream is; pieces that do not join are no call."""
    piece = {"jsonPath": "$.city", "stringValue": "Rome"}
    begun, rest = (
        {"functionCall": {"name": "weather", "willContinue": True}},
        {"functionCall": {"partialArgs": [piece]}},
    )
    (_, asked) = decode(USER, {"role": "model", "parts": [begun, rest]}).messages
    assert asked.call is not None and asked.call.arguments == {"city": "Rome"}
    damaged = {"functionCall": {"name": "weather", "partialArgs": [{**piece, "jsonPath": "$"}]}}
    with pytest.raises(HistoryInvalid, match=r"contents\[1\] holds a call in pieces"):
        decode(USER, {"role": "model", "parts": [damaged]})


def test_results_answer_by_id_and_else_by_name_in_their_order() -> None:
    """The same function twice: the first result is the first call's."""
    model = {"role": "model", "parts": [call(), call("add"), call(), call(id="fc-1"), call(id="fc-2")]}
    answers = [
        answer({"n": 4}, id="fc-2"),
        answer({"n": 1}),
        answer({"n": 2}),
        answer({"n": 0}, "add"),
        answer({"n": 3}, id="fc-1"),
    ]
    history = decode(USER, model, {"role": "user", "parts": answers})
    ids = [message.call.invocation_id for message in history.messages if message.call]
    found = {result(each).invocation_id: result(each).result["n"] for each in history.messages if each.result}

    assert [found[each] for each in ids] == [1, 0, 2, 3, 4]
    assert len(set(ids)) == 5


def test_a_result_without_a_call_stays_and_is_a_loss_when_rendered() -> None:
    """Nothing is lost in silence."""
    history = decode(USER, {"role": "user", "parts": [answer({"n": 1})]})
    rendering = DIALECT.render(history.messages)

    assert result(history.messages[1]).result == {"n": 1}
    assert [loss.kind for loss in rendering.losses] == ["dropped"]


@pytest.mark.parametrize(
    ("response", "fields"),
    [
        ({"output": "18 °C"}, {"result": "18 °C"}),
        ({"output": None}, {"result": None}),
        ({}, {"result": {}}),
        ({"error": "no"}, {"is_error": True, "error_type": "error", "error_message": "no"}),
        (
            {"error": {"type": "Boom", "message": "no", "retryable": True}},
            {"is_error": True, "error_type": "Boom", "error_message": "no", "retryable": True},
        ),
    ],
)
def test_a_response_is_a_result_or_an_error(response: Any, fields: Any) -> None:
    """UP-09, the other way round; and back."""
    history = decode(USER, {"role": "model", "parts": [call()]}, {"role": "user", "parts": [answer(response)]})
    found = result(history.messages[2])

    assert {name: getattr(found, name) for name in fields} == fields
    assert back(history)["contents"][2]["parts"] == [answer(response)]


@pytest.mark.parametrize("response", [{"error": "x", "more": 1}, {"output": 1, "more": 2}, {"error": {"type": 7}}])
def test_a_response_that_says_more_is_a_result_whole(response: Any) -> None:
    """Rendered it stands under `output`, which a loss says."""
    history = decode(USER, {"role": "model", "parts": [call()]}, {"role": "user", "parts": [answer(response)]})

    assert result(history.messages[2]).result == response
    assert [(loss.kind, loss.path) for loss in history.losses] == [
        ("rewritten", "contents[2].parts[0].functionResponse.response")
    ]


def test_a_results_media_are_its_parts() -> None:
    """With its text; an object beside them is JSON text, which a loss says."""
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    model = {"role": "model", "parts": [call()]}
    for response, texts, kinds in (
        ({"output": "A map."}, ["A map."], []),
        ({}, [], []),
        ({"a": 1}, ['{"a":1}'], ["rewritten"]),
    ):
        history = decode(USER, model, {"role": "user", "parts": [answer(response, parts=[image])]})
        parts = result(history.messages[2]).parts
        assert [part.text for part in parts if part.kind == "text"] == texts
        assert [part.kind for part in parts][-1] == "media"
        assert [loss.kind for loss in history.losses] == kinds


def test_what_stands_beside_results_becomes_a_content_of_its_own() -> None:
    """One content of both would be read as the model's."""
    mixed = {"role": "user", "parts": [answer({"n": 1}), {"text": "So?"}]}
    found = back(decode(USER, {"role": "model", "parts": [call()]}, mixed))

    assert found["contents"][2:] == [
        {"role": "user", "parts": [answer({"n": 1})]}, {"role": "user", "parts": [{"text": "So?"}]},
    ]  # fmt: skip


VIDEO = {"fileData": {"fileUri": "https://x.org/v.mp4", "mimeType": "video/mp4"}}
SOUND = {"fileData": {"fileUri": "https://x.org/s.mp3", "mimeType": "audio/mpeg"}}
PIXEL = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
CLIP = {"fps": 1, "startOffset": "2s", "endOffset": "2.5s", "contentLayers": ["FRAMES"]}
LOW = {"level": "MEDIA_RESOLUTION_LOW", "numTokens": 9}


def test_how_a_medium_is_to_be_read_are_its_hints() -> None:
    """In either spelling, beside results as well; the numbers are those that were sent."""
    clip, pixel = VIDEO | {"videoMetadata": CLIP, "mediaResolution": LOW}, PIXEL | {"mediaResolution": LOW}
    snake = PIXEL | {"media_resolution": {"level": "A", "num_tokens": None}}
    null = PIXEL | {"mediaResolution": None}
    contents = [
        {"role": "user", "parts": [clip, pixel, null, snake]},
        {"role": "model", "parts": [call()]},
        {"role": "user", "parts": [answer({}, parts=[pixel])]},
    ]
    history = decode(*contents)
    media = [*history.messages[0].parts, *result(history.messages[2]).parts]
    low = {"level": "MEDIA_RESOLUTION_LOW", "num_tokens": 9}
    seen = {"fps": 1, "start_offset": "2s", "end_offset": "2.5s", "content_layers": ["FRAMES"]}

    assert [part.vendor.get("google", {}) for part in media if isinstance(part, MediaPart)] == [
        {"video_metadata": seen, "media_resolution": low},
        {"media_resolution": low},
        {},
        {"media_resolution": {"level": "A"}},
        {"media_resolution": low},
    ]
    assert history.losses == ()
    rendered = back(history)["contents"]
    assert rendered[0]["parts"].pop() == PIXEL | {"mediaResolution": {"level": "A"}}
    contents[0]["parts"] = [clip, pixel, PIXEL]
    assert json.dumps(rendered, sort_keys=True) == json.dumps(contents, sort_keys=True)


@pytest.mark.parametrize(
    "part",
    [
        {"fileData": {"fileUri": "https://x.org/v"}},
        VIDEO | PIXEL,
        VIDEO | {"videoMetadata": {"fps": "1"}},
        VIDEO | {"videoMetadata": {"unheardOf": 1}},
        VIDEO | {"mediaResolution": "LOW"},
        VIDEO | {"partMetadata": {"a": 1}},
        PIXEL | {"videoMetadata": CLIP},
        SOUND | {"mediaResolution": LOW},
        {"videoMetadata": CLIP},
    ],
)
def test_a_part_that_says_more_than_a_medium_and_its_hints_stays_as_it_is(part: Any) -> None:
    """A file of no stated type; what no hint of that modality says."""
    history = decode({"role": "user", "parts": [part, {"text": "a"}]})

    assert [type(part) for part in history.messages[0].parts] == [OpaquePart, TextPart]
    assert back(history)["contents"][0]["parts"] == [part, {"text": "a"}]


def test_a_schema_of_the_vendors_own_form_becomes_a_json_schema() -> None:
    """Types in capitals, and `nullable`; names of properties stay as they are."""
    own = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["A"]},
            "b": {"type": "ARRAY", "items": {"type": "INTEGER"}},
        },
    }
    history = decode(USER, tools=[{"functionDeclarations": [{"name": "f", "description": "F.", "parameters": own}]}])

    assert history.options[0].parameters == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A"]},
            "b": {"type": "array", "items": {"type": "integer"}},
        },
    }


@pytest.mark.parametrize("spelling", ["responseJsonSchema", "response_json_schema"])
def test_what_a_declaration_says_besides_are_the_options_hints(spelling: str) -> None:
    """How it behaves, and what it answers; schemas stay as they are."""
    answers = {"type": "OBJECT", "properties": {"fooBar": {"type": "STRING"}}}
    declared = {"name": "f", "description": "F.", "parametersJsonSchema": PARAMETERS, "behavior": "BLOCKING"}
    history = decode(USER, tools=[{"functionDeclarations": [{**declared, "response": answers, spelling: answers}]}])

    assert [option.vendor for option in history.options] == [
        {"google": {"behavior": "BLOCKING", "response": answers, "response_json_schema": answers}}
    ]
    sent = {**declared, "response": answers, "responseJsonSchema": answers}
    assert back(history)["tools"] == [{"functionDeclarations": [sent]}]


@pytest.mark.parametrize("more", [{"behavior": 1}, {"unheardOf": "x"}, {"response": "STRING"}])
def test_a_declaration_that_says_more_stays_the_vendors(more: Any) -> None:
    """An option has no place for it."""
    declared = {"name": "f", "parametersJsonSchema": PARAMETERS, **more}
    history = decode(USER, tools=[{"functionDeclarations": [declared]}])

    assert history.options == ()
    assert back(history)["tools"] == [{"functionDeclarations": [declared]}]


@pytest.mark.parametrize(
    "config",
    [
        {"functionCallingConfig": {"mode": "VALIDATED"}},
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}},
        {"includeServerSideToolInvocations": True},
    ],
)
def test_a_choice_without_a_neutral_name_stays_the_vendors(config: Any) -> None:
    """Verbatim."""
    history = decode(USER, toolConfig=config)

    assert history.settings.option_choice is None
    assert history.settings.vendor["google"]["tool_config"] == config


def test_what_has_no_place_is_a_loss_by_its_path() -> None:
    """Nothing else is."""
    history = decode(
        {"role": "user", "parts": [{"text": "Hi."}], "note": 1},
        {"role": "model", "parts": []},
        generationConfig={"unheardOf": 1, "temperature": 0.5},
        systemInstruction={"parts": [{"text": "a"}, {"inlineData": {}}]},
    )

    assert [(loss.kind, loss.path) for loss in history.losses] == [
        ("dropped", "systemInstruction.parts[1]"),
        ("dropped", "contents[0].note"),
        ("dropped", "contents[1]"),
        ("dropped", "generationConfig.unheardOf"),
    ]
