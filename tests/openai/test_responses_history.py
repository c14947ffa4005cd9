"""Stored Responses requests → sabir's own messages, options and settings, with nothing lost in silence."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory
from sabir.vocabulary.parts import MediaPart, OpaquePart, ReasoningPart, TextPart
from sabir.vocabulary.settings import Settings

DIALECT = sabir.dialect("openai.responses")
MODEL = "unlisted"
"""A model of which nothing is known, so that nothing is refused on its behalf."""
PIXEL = "data:image/png;base64,iVBORw0KGgo="
HELLO: dict[str, Any] = {"role": "user", "content": "Hi."}
CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":  "Rome"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look."}],
    "encrypted_content": "gAAA",
}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "name": "weather", "description": "The sky.", "parameters": SCHEMA, "strict": True}


def read(*items: Any, **fields: Any) -> DecodedHistory:
    return DIALECT.decode_history({"model": MODEL, "input": list(items), **fields})


def body_of(history: DecodedHistory) -> dict[str, Any]:
    rendering = DIALECT.render(
        history.messages, model=history.model, options=history.options, settings=history.settings
    )
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def losses(history: DecodedHistory) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in history.losses]


def test_roles_become_policies_without_hints() -> None:
    """D-07: the policy alone renders to the role; items may leave out their type."""
    history = read(
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
        HELLO,
        {"role": "assistant", "content": "Hello."},
    )

    assert [message.policy for message in history.messages] == ["system", "system", "user", "llm"]
    assert [message.text for message in history.messages] == ["Be brief.", "Be kind.", "Hi.", "Hello."]
    assert {message.role_hint_for_llm for message in history.messages} == {None}
    assert history.losses == ()


def test_a_string_is_the_users() -> None:
    """`input` may be one text."""
    history = DIALECT.decode_history({"model": MODEL, "input": "Hi."})

    assert [(message.policy, message.text) for message in history.messages] == [("user", "Hi.")]
    assert history.losses == ()


def test_instructions_lead_as_a_system_message() -> None:
    """Rendered back they are the first item of the input, which is named."""
    history = read(HELLO, instructions="Be brief.")

    assert [(message.policy, message.text) for message in history.messages] == [
        ("system", "Be brief."),
        ("user", "Hi."),
    ]
    assert losses(history) == [("relocated", "instructions")]
    body = body_of(history)
    assert body["input"][0]["role"] == "system"
    assert "instructions" not in body


def test_a_reply_in_a_history_is_what_decoding_it_gave() -> None:
    """The messages of a reply and those of the request that replays it say the same, state included (law 3)."""
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [{"type": "output_text", "text": "It rains.", "annotations": [], "logprobs": []}],
    }
    call = {**CALL, "id": "fc_1", "status": "completed"}
    response = {"id": "resp_1", "model": MODEL, "status": "completed", "output": [REASONING, message, call]}
    reply = DIALECT.decode(json.dumps(response))

    history = read(HELLO, REASONING, message, call, OUTPUT)
    said = history.messages[1:-1]

    assert [new.same_content(old) for new, old in zip(said, reply.messages, strict=True)] == [True, True]
    assert body_of(history)["input"][1:] == [REASONING, message, call, OUTPUT]
    assert history.losses == ()


def test_reasoning_goes_back_where_it_came_from() -> None:
    """Encrypted content is kept as it is, with the origin that lets it return."""
    history = read(HELLO, REASONING, {"role": "assistant", "content": "Rain."})
    said = history.messages[1]

    assert said.parts == (ReasoningPart(text="Look.", state=REASONING), TextPart(text="Rain."))
    assert said.origin is not None
    assert (said.origin.provider, said.origin.dialect, said.origin.model) == ("openai", "openai.responses", MODEL)
    assert body_of(history)["input"][1] == REASONING


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "input_image", "detail": "auto", "image_url": PIXEL}, MediaPart(modality="image", url=PIXEL)),
        (
            {"type": "input_image", "detail": "auto", "image_url": "https://example.org/sky.jpg"},
            MediaPart(modality="image", url="https://example.org/sky.jpg"),
        ),
        (
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
            MediaPart(modality="image", url="provider-file:openai/file-1"),
        ),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            MediaPart(modality="document", url="data:application/pdf;base64,JVBERi0=", name="a.pdf"),
        ),
        (
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            MediaPart(modality="document", url="https://example.org/a.pdf"),
        ),
        (
            {"type": "input_file", "file_id": "file-1"},
            MediaPart(modality="document", url="provider-file:openai/file-1"),
        ),
    ],
    ids=["image data", "image url", "image id", "file data", "file url", "file id"],
)
@pytest.mark.parametrize("place", ["message", "output"])
def test_a_medium_goes_there_and_back(part: dict[str, Any], expected: Any, place: str) -> None:
    """Every form that the wire has, of the user's and in results (PJ-15 … PJ-19)."""
    parts = [{"type": "input_text", "text": "Look:"}, part]
    given = [{**HELLO, "content": parts}] if place == "message" else [HELLO, CALL, {**OUTPUT, "output": parts}]
    history = read(*given)

    assert history.messages[-1].parts == (TextPart(text="Look:"), expected)
    assert history.losses == ()
    (last,) = body_of(history)["input"][-1:]
    assert last["content" if place == "message" else "output"] == parts


def test_calls_keep_their_words_and_results_find_their_option() -> None:
    """UP-13; the argument text goes back as it was written."""
    history = read(HELLO, CALL, OUTPUT)
    call, result = history.messages[1].call, history.messages[2].result

    assert call is not None and result is not None
    assert (call.option_name, call.raw_arguments) == ("weather", '{"city":  "Rome"}')
    assert (history.messages[2].policy, result.option_name, result.result) == ("weather", "weather", "rain")
    assert body_of(history)["input"][1:] == [CALL, OUTPUT]


def test_the_vendors_own_calls_pair_with_their_outputs() -> None:
    """Law 1 for opaque parts: a call and what a user's program answered, and a search that the server made itself."""
    custom = {"type": "custom_tool_call", "call_id": "call_2", "name": "run", "input": "1"}
    answer = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "1"}
    search = {"type": "tool_search_call", "call_id": "call_3", "execution": "server", "arguments": {}}
    found = {"type": "tool_search_output", "call_id": "call_3", "execution": "server", "tools": []}
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    history = read(HELLO, custom, answer, search, found, compaction, HELLO)
    parts = [part for message in history.messages for part in message.parts if isinstance(part, OpaquePart)]

    assert [(part.pair_id, part.pair) for part in parts] == [
        ("call_2", "opens"),
        ("call_2", "closes"),
        ("call_3", "opens"),
        ("call_3", "closes"),
        (None, None),
    ]
    assert [message.policy for message in history.messages] == ["user", "llm", "user", "llm", "user"]
    assert body_of(history)["input"][1:-1] == [custom, answer, search, found, compaction]


def test_an_item_of_another_role_is_not_the_assistants() -> None:
    """Tools that a developer adds midway."""
    added = {"type": "additional_tools", "role": "developer", "tools": []}
    history = read(HELLO, added)

    assert [message.policy for message in history.messages] == ["user", "user"]
    assert body_of(history)["input"][1] == added


def test_what_only_the_vendor_holds_is_named() -> None:
    """A reference is a loss, with or without its type; a result of its call has no option's name."""
    history = read(HELLO, {"type": "item_reference", "id": "fc_1"}, {"id": "rs_1"}, OUTPUT)

    assert losses(history) == [("dropped", "input[1]"), ("dropped", "input[2]"), ("synthesized", "input[3]")]
    assert "fc_1" in history.losses[0].reason


def test_what_a_message_has_no_place_for_is_named_by_its_path() -> None:
    """Law 2."""
    image = {"type": "input_image", "detail": "auto", "image_url": PIXEL, "sharpness": 9}
    history = read(
        {**HELLO, "id": "msg_1", "status": "completed", "content": [image]},
        CALL,
        {**OUTPUT, "id": "fco_1"},
        {"role": "user", "content": []},
        {"role": "assistant", "content": ""},
    )

    assert losses(history) == [
        ("dropped", "input[0].id"),
        ("dropped", "input[0].content[0].sharpness"),
        ("dropped", "input[2].id"),
        ("dropped", "input[3]"),
        ("dropped", "input[4]"),
    ]


def test_a_part_of_an_unknown_kind_stays_as_it_is() -> None:
    """As a message item of its own, which this dialect takes back."""
    part = {"type": "hologram", "light": 1}
    history = read({**HELLO, "content": [{"type": "input_text", "text": "Look:"}, part]})

    assert [kind.kind for kind in history.messages[0].parts] == ["text", "opaque"]
    assert body_of(history)["input"][1] == {"role": "user", "content": [part]}


def test_tools_become_options() -> None:
    """Function tools, also those that are loaded later, by a hint; built-in ones stay the vendor's own."""
    search = {"type": "web_search"}
    later = {**WEATHER, "name": "later", "defer_loading": True}
    history = read(HELLO, tools=[WEATHER, later, search], tool_choice={"type": "function", "name": "weather"})

    assert [(option.name, option.description, option.vendor) for option in history.options] == [
        ("weather", "The sky.", {}),
        ("later", "The sky.", {"openai": {"defer_loading": True}}),
    ]
    assert history.settings.vendor == {"openai": {"tools": [search]}}
    assert history.settings.option_choice == "weather"
    assert history.losses == ()
    body = body_of(history)
    assert body["tools"] == [WEATHER, later, search]
    assert body["tool_choice"] == {"type": "function", "name": "weather"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_output_tokens": 9, "temperature": 0}, {"max_output_tokens": 9, "temperature": 0}),
        ({"parallel_tool_calls": False}, {"parallel_options": False}),
        ({"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"reasoning": {"effort": "low", "summary": "auto"}},
            {"reasoning_effort": "low", "vendor": {"openai": {"reasoning": {"summary": "auto"}}}},
        ),
        ({"reasoning": {"effort": "cosmic"}}, {"vendor": {"openai": {"reasoning": {"effort": "cosmic"}}}}),
        ({"text": {"verbosity": "low"}}, {"vendor": {"openai": {"verbosity": "low"}}}),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            {"extra_body": {"text": {"format": {"type": "json_object"}, "verbosity": "low"}}},
        ),
        ({"verbosity": "low"}, {"extra_body": {"verbosity": "low"}}),
        ({"store": True, "include": []}, {"vendor": {"openai": {"store": True, "include": []}}}),
        ({"previous_response_id": "resp_1"}, {"vendor": {"openai": {"previous_response_id": "resp_1"}}}),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
            {"vendor": {"openai": {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}}},
        ),
        ({"stop": "END"}, {"extra_body": {"stop": "END"}}),
        ({"trace": "a1", "user": None, "text": None, "tool_choice": None}, {"extra_body": {"trace": "a1"}}),
    ],
    ids=str,
)
def test_settings_have_their_neutral_name_or_stay_verbatim(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """A neutral name first, then the plugin's own setting, then `extra_body`; rendered back, each is where it was."""
    history = read(HELLO, **fields)

    assert history.settings == Settings(**expected)
    sent = body_of(history)
    assert {name: sent.get(name) for name in fields} | {"include": None, "parallel_tool_calls": None} == fields | {
        "include": None,
        "parallel_tool_calls": None,
    }


def test_a_response_format_is_a_schema() -> None:
    """Name, description and schema, beside the verbosity."""
    form = {"type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True, "description": "The sky."}
    history = read(HELLO, text={"format": form, "verbosity": "low"})
    found = history.settings.response_format

    assert found is not None
    assert (found.name, found.description, found.schema_view) == ("weather", "The sky.", SCHEMA)
    assert body_of(history)["text"] == {"format": form, "verbosity": "low"}
    assert history.losses == ()


def test_a_choice_that_names_nothing_stays_as_it_is() -> None:
    """A built-in tool has no name that an option could have."""
    choice = {"type": "web_search"}
    history = read(HELLO, tools=[choice], tool_choice=choice)

    assert history.settings.vendor == {"openai": {"tools": [choice], "tool_choice": choice}}


@pytest.mark.parametrize("name", ["prompt", "conversation", "previous_response_id"])
def test_a_request_that_goes_on_from_the_vendors_store_may_have_no_input(name: str) -> None:
    """Its messages are with the vendor; what names them is a setting."""
    value = {"id": "pmpt_1"} if name == "prompt" else "id_1"
    history = DIALECT.decode_history({"model": MODEL, name: value})

    assert history.messages == ()
    assert history.settings.vendor == {"openai": {name: value}}
