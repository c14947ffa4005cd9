"""Stored Chat Completions requests → sabir's own messages, options and settings, with nothing lost in silence."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import DecodedHistory
from sabir.vocabulary.parts import MediaPart, OpaquePart, RefusalPart
from sabir.vocabulary.settings import Settings

DIALECT = sabir.dialect("openai.chat")
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":  "Rome"}'}}
MODEL = "unlisted"
"""A model of which nothing is known, so that nothing is refused on its behalf."""
PIXEL = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {
    "name": "weather",
    "description": "Current weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def read(*messages: Any, **fields: Any) -> DecodedHistory:
    return DIALECT.decode_history({"model": MODEL, "messages": list(messages), **fields})


def settings_of(**fields: Any) -> Settings:
    return read({"role": "user", "content": "Hi."}, **fields).settings


def body_of(history: DecodedHistory) -> dict[str, Any]:
    rendering = DIALECT.render(
        history.messages, model=history.model, options=history.options, settings=history.settings
    )
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def losses(history: DecodedHistory) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in history.losses]


def test_roles_become_policies_without_hints() -> None:
    """D-07: the policy alone renders to the role."""
    history = read(
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
    )

    assert [message.policy for message in history.messages] == ["system", "system", "user", "llm"]
    assert [message.text for message in history.messages] == ["Be brief.", "Be kind.", "Hi.", "Hello."]
    assert {message.role_hint_for_llm for message in history.messages} == {None}
    assert history.losses == ()
    assert history.model == MODEL


def test_what_the_assistant_said_has_its_origin_here() -> None:
    """Signed state goes back only where it came from; the assistant may be another policy."""
    stored = {"model": MODEL, "messages": [{"role": "assistant", "content": "Hello."}]}
    (message,) = DIALECT.decode_history(stored, policy="painter").messages

    assert message.policy == "painter"
    assert message.origin is not None
    assert (message.origin.provider, message.origin.dialect, message.origin.model) == ("openai", "openai.chat", MODEL)
    assert message.origin.endpoint == DIALECT.target.endpoint


def test_what_is_no_setting_or_not_offered_is_named_or_kept() -> None:
    """How a call is made is no setting; a choice of what is not offered stays as it is: rendering would refuse it."""
    history = read({"role": "user", "content": "Hi."}, stream=True, stream_options={"include_usage": True})
    choice = {"type": "function", "function": {"name": "elsewhere"}}

    assert losses(history) == [("dropped", "stream"), ("dropped", "stream_options")]
    assert settings_of(stream=False) == Settings()
    assert settings_of(tool_choice=choice) == Settings(vendor={"openai": {"tool_choice": choice}})


def test_a_part_of_another_form_is_read_or_kept() -> None:
    """Raw base64 is a data URL, by its first bytes; an unknown kind is kept for this dialect."""
    raw, unknown = {"filename": "a.pdf", "file_data": "JVBERi0="}, {"type": "hologram", "light": 1}
    (message,) = read({"role": "user", "content": [{"type": "file", "file": raw}, unknown]}).messages

    assert message.parts == (
        MediaPart(modality="document", url="data:application/pdf;base64,JVBERi0=", name="a.pdf"),
        OpaquePart(dialect="openai.chat", block=unknown),
    )


def test_calls_keep_their_words_and_results_find_their_option() -> None:
    """UP-13; the argument text goes back as it was written."""
    history = read(
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": '{"sky": "blue"}'},
    )
    call, result = history.messages

    assert call.call is not None
    assert (call.call.option_name, call.call.raw_arguments) == ("weather", '{"city":  "Rome"}')
    assert result.result is not None
    assert (result.policy, result.result.option_name, result.result.result) == (
        "weather",
        "weather",
        '{"sky": "blue"}',
    )
    assert body_of(history)["messages"] == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"sky": "blue"}'},
    ]
    assert history.losses == ()


def test_a_reused_id_means_the_latest_call() -> None:
    """UP-13: a provider may give the same id again in a later turn."""
    other = {**CALL, "function": {"name": "time", "arguments": "{}"}}
    history = read(
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "assistant", "tool_calls": [other]},
        {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
    )

    assert [each.result.option_name for each in history.messages if each.result] == ["weather", "time"]


def test_a_result_in_parts_stays_in_parts() -> None:
    """Several texts are not joined."""
    parts = [{"type": "text", "text": "rain"}, {"type": "text", "text": "wind"}]
    history = read(
        {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": parts}
    )

    assert body_of(history)["messages"][1]["content"] == parts


def test_a_result_without_its_call_is_named() -> None:
    """Its option is not known; rendering drops it, for the vendor refuses it (law 1)."""
    history = read({"role": "user", "content": "Hi."}, {"role": "tool", "tool_call_id": "call_9", "content": "18"})

    assert losses(history) == [("synthesized", "messages[1]")]
    assert history.messages[1].policy == "unknown"


def test_the_older_form_becomes_todays() -> None:
    """`functions`, `function_call` and the role `function` pair by name and order."""
    older = {"name": "weather", "arguments": "{}"}
    history = read(
        {"role": "assistant", "content": None, "function_call": older},
        {"role": "function", "name": "weather", "content": "rain"},
        {"role": "assistant", "content": None, "function_call": older},
        {"role": "function", "name": "weather", "content": "sun"},
        functions=[WEATHER],
        function_call={"name": "weather"},
    )
    first, rain, second, sun = history.messages

    assert first.call and second.call and rain.result and sun.result
    assert rain.result.invocation_id == first.call.invocation_id != second.call.invocation_id
    assert sun.result.invocation_id == second.call.invocation_id
    assert [option.name for option in history.options] == ["weather"]
    assert history.settings.option_choice == "weather"
    assert {kind for kind, _ in losses(history)} == {"rewritten"}
    assert [path for _, path in losses(history)] == [
        "messages[0].function_call",
        "messages[1]",
        "messages[2].function_call",
        "messages[3]",
        "functions[0]",
        "function_call",
    ]
    assert [message["role"] for message in body_of(history)["messages"]] == ["assistant", "tool"] * 2


def test_results_in_the_older_form_answer_the_first_open_call_of_their_option() -> None:
    """Calls without ids are answered in their order; another option's are left alone."""
    history = read(
        *({"role": "assistant", "function_call": {"name": name}} for name in ("weather", "time", "weather")),
        *({"role": "function", "name": name, "content": "x"} for name in ("weather", "weather", "time")),
    )
    calls = [message.call.invocation_id for message in history.messages if message.call]
    answered = [message.result.invocation_id for message in history.messages if message.result]

    assert answered == [calls[0], calls[2], calls[1]]


def test_refusals_and_sounds_go_back() -> None:
    """A refusal in its words, a sound by its id."""
    sound = {"role": "assistant", "audio": {"id": "audio_1"}}
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    history = read(refusal, {"role": "user", "content": "Sing."}, sound)

    assert history.messages[0].parts == (RefusalPart(text="No."),)
    assert history.messages[2].parts[0].kind == "media"
    sent = body_of(history)["messages"]
    assert sent[0]["content"] == [{"type": "refusal", "refusal": "No."}]
    assert sent[2] == sound
    assert history.losses == ()


def test_a_custom_call_goes_back_as_one() -> None:
    """Its input is text."""
    custom = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}
    history = read(
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
    )

    assert body_of(history)["messages"][0]["tool_calls"] == [custom]


def test_what_a_message_has_no_place_for_is_named_by_its_path() -> None:
    """Law 2."""
    part = {"type": "image_url", "image_url": {"url": PIXEL, "sharpness": 9}, "cache": True}
    marked = {**CALL, "index": 3, "function": {**CALL["function"], "note": "x"}}  # type: ignore[dict-item]
    history = read(
        {"role": "user", "name": "Ada", "content": [part]},
        {"role": "assistant", "name": "bot", "weight": 0, "content": None, "tool_calls": [marked]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18", "name": "clock"},
        {"role": "user", "content": []},
        {"role": "assistant", "content": ""},
    )

    assert losses(history) == [
        ("dropped", "messages[0].name"),
        ("dropped", "messages[0].content[0].image_url.sharpness"),
        ("dropped", "messages[0].content[0].cache"),
        ("dropped", "messages[1].tool_calls[0].function.note"),
        ("dropped", "messages[1].tool_calls[0].index"),
        ("dropped", "messages[1].name"),
        ("dropped", "messages[1].weight"),
        ("dropped", "messages[2].name"),
        ("dropped", "messages[3]"),
        ("dropped", "messages[4]"),
    ]
    assert [message.result.option_name for message in history.messages if message.result] == ["weather"]


def test_tools_become_options() -> None:
    """Function tools; the vendor's own stay its own, in its settings."""
    custom = {"type": "custom", "custom": {"name": "run"}}
    history = read(
        {"role": "user", "content": "Hi."},
        tools=[{"type": "function", "function": {**WEATHER, "strict": True}}, custom],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        parallel_tool_calls=False,
    )
    (option,) = history.options

    assert (option.name, option.description, option.parameters) == (*WEATHER.values(),)
    assert history.settings.vendor == {"openai": {"tools": [custom]}}
    assert (history.settings.option_choice, history.settings.parallel_options) == ("weather", False)
    assert history.losses == ()
    body = body_of(history)
    assert body["tools"] == [{"type": "function", "function": {**WEATHER, "strict": True}}, custom]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize("loose", [False, True])
def test_a_strict_flag_that_rendering_would_change_is_a_hint(loose: bool) -> None:
    """Without one, rendering declares a schema strict exactly where that changes nothing of its meaning."""
    schema = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}}
    declared = {**WEATHER, **({"parameters": schema} if loose else {}), "strict": loose}
    history = read({"role": "user", "content": "Hi."}, tools=[{"type": "function", "function": declared}])

    assert history.options[0].vendor == {"openai": {"strict": loose}}
    assert body_of(history)["tools"] == [{"type": "function", "function": declared}]
    assert history.losses == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_completion_tokens": 9}, {"max_output_tokens": 9}),
        ({"max_tokens": 9}, {"max_output_tokens": 9}),
        (
            {"max_tokens": 9, "max_completion_tokens": 8},
            {"max_output_tokens": 8, "extra_body": {"max_tokens": 9}},
        ),
        ({"temperature": 0, "top_p": 0.5, "seed": 3}, {"temperature": 0, "top_p": 0.5, "seed": 3}),
        ({"stop": "END"}, {"stop": "END"}),
        ({"stop": ["A", "B"]}, {"stop": ["A", "B"]}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"reasoning_effort": "cosmic"}, {"extra_body": {"reasoning_effort": "cosmic"}}),
        ({"temperature": -1}, {"extra_body": {"temperature": -1}}),
        ({"seed": "3"}, {"extra_body": {"seed": "3"}}),
        ({"tool_choice": "required"}, {"option_choice": "required"}),
        ({"n": 2, "user": "u"}, {"vendor": {"openai": {"n": 2, "user": "u"}}}),
        ({"n": "many"}, {"extra_body": {"n": "many"}}),
        ({"trace": "a1"}, {"extra_body": {"trace": "a1"}}),
        ({"response_format": {"type": "json_object"}}, {"extra_body": {"response_format": {"type": "json_object"}}}),
        ({"temperature": None, "tools": None, "user": None, "stop": None}, {}),
    ],
    ids=str,
)
def test_settings_have_their_neutral_name_or_stay_verbatim(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """A neutral name first, then the plugin's own setting, then `extra_body`."""
    assert settings_of(**fields) == Settings(**expected)


def test_a_response_format_is_a_schema() -> None:
    """Name, description and schema; the flag `strict` is rendering's to decide."""
    schema = {**WEATHER["parameters"]}  # type: ignore[dict-item]
    form = {"name": "weather", "schema": schema, "strict": True, "description": "The sky."}
    history = read({"role": "user", "content": "Hi."}, response_format={"type": "json_schema", "json_schema": form})
    found = history.settings.response_format

    assert found is not None
    assert (found.name, found.description, found.schema_view) == ("weather", "The sky.", schema)
    assert body_of(history)["response_format"] == {"type": "json_schema", "json_schema": form}
    assert history.losses == ()
