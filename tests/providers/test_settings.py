"""What settings and options are beside the messages of a request, on each wire and for each kind of model."""

import re
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.errors import SettingsInvalid

from tests.providers.wires import DIALECTS, ITEMS, MODELS, body, lost, render

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
HAIKU, OLDEST, SONNET, OPUS = "claude-haiku-4-5", "claude-3-haiku-20240307", "claude-sonnet-5-5", "claude-opus-4-6"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = sabir.Option.from_schema("weather", "Current weather.", CITY)
DEFAULTS = {"max_tokens": 1024, "store": False}
"""What is said where nothing was asked for."""


def beside(
    name: str, model: str = "", options: Any = (), **settings: Any
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The fields beside the model, the messages and the declarations; and the losses without `settings.`."""
    rendering = render(name, sabir.user("Hi."), model=model or MODELS[name], options=options, **settings)
    own = {field: value for field, value in body(rendering).items() if DEFAULTS.get(field, ...) != value}
    for field in ("model", ITEMS[name], "tools"):
        own.pop(field, None)
    return own, [(kind, path.removeprefix("settings.")) for kind, path in lost(rendering)]


def adaptive(effort: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def config(**fields: Any) -> dict[str, Any]:
    return {"generationConfig": fields}


def thinks(**fields: Any) -> dict[str, Any]:
    return config(thinkingConfig=fields)


LESS, NOT = [("downgraded", "reasoning_effort")], [("dropped", "reasoning_effort")]
SAID_SO = [("rewritten", "reasoning_effort")]
EFFORTS: list[tuple[str, str, str, dict[str, Any], list[tuple[str, str]]]] = [
    (CLAUDE, "", "high", adaptive("high"), []),
    (CLAUDE, "", "xhigh", adaptive("xhigh"), []),
    (CLAUDE, "", "minimal", adaptive("low"), SAID_SO),
    (CLAUDE, "", "none", adaptive("low"), LESS),
    (CLAUDE, SONNET, "none", {"thinking": {"type": "between_tools"}}, LESS),
    (CLAUDE, "claude-opus-5", "none", {"thinking": {"type": "disabled"}}, []),
    (CLAUDE, OPUS, "xhigh", adaptive("high"), SAID_SO),
    (CLAUDE, OPUS, "minimal", {"thinking": {"type": "disabled"}}, LESS),
    (CLAUDE, OPUS, "max", adaptive("max"), []),
    (CLAUDE, HAIKU, "medium", {"thinking": {"type": "enabled", "budget_tokens": 10_000}, "max_tokens": 20_000}, []),
    (CLAUDE, HAIKU, "none", {"thinking": {"type": "disabled"}}, []),
    (CLAUDE, OLDEST, "low", {}, NOT),
    (GEMINI, "gemini-3-pro-preview", "low", thinks(thinkingLevel="LOW"), []),
    (GEMINI, "gemini-3.5-flash", "medium", thinks(thinkingLevel="MEDIUM"), []),
    (GEMINI, "gemini-3-flash", "minimal", thinks(thinkingLevel="MINIMAL"), []),
    (GEMINI, "gemini-3-flash", "none", thinks(thinkingLevel="MINIMAL"), LESS),
    (GEMINI, "gemini-3-flash", "max", thinks(thinkingLevel="HIGH"), SAID_SO),
    (GEMINI, "models/gemini-3-pro-preview", "medium", thinks(thinkingLevel="LOW"), SAID_SO),
    (GEMINI, "gemini-3-pro-preview", "none", thinks(thinkingLevel="LOW"), LESS),
    (GEMINI, "gemini-3.1-pro-preview", "medium", thinks(thinkingLevel="MEDIUM"), []),
    (GEMINI, "gemini-3.1-flash-lite", "minimal", thinks(thinkingLevel="MINIMAL"), []),
    (GEMINI, "gemini-3.1-flash-image", "low", thinks(thinkingLevel="MINIMAL"), SAID_SO),
    (GEMINI, "gemini-3.7-flash", "minimal", thinks(thinkingLevel="LOW"), SAID_SO),
    (GEMINI, "gemini-flash-latest", "none", thinks(thinkingLevel="LOW"), LESS),
    (GEMINI, "gemini-4-argon", "xhigh", thinks(thinkingLevel="HIGH"), SAID_SO),
    (GEMINI, "gemini-4-neon", "xhigh", thinks(thinkingLevel="XHIGH"), []),
    (GEMINI, "gemini-4-neon", "max", thinks(thinkingLevel="XHIGH"), SAID_SO),
    (GEMINI, "robotics-er-2", "high", thinks(thinkingLevel="HIGH"), []),
    (GEMINI, "gemini-2.5-flash", "none", thinks(thinkingBudget=0), SAID_SO),
    (GEMINI, "gemini-2.5-flash", "high", thinks(thinkingBudget=24576), SAID_SO),
    (GEMINI, "gemini-2.5-pro", "none", thinks(thinkingBudget=512), [*LESS, *SAID_SO]),
    (GEMINI, "gemini-2.0-flash", "low", {}, NOT),
    (CHAT, "gpt-5", "low", {"reasoning_effort": "low"}, []),
    (CHAT, "gpt-4o", "low", {}, NOT),
    (RESPONSES, "", "low", {"reasoning": {"effort": "low"}}, []),
    (RESPONSES, "gpt-4o", "low", {}, NOT),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "effort", "fields", "losses"), EFFORTS)
def test_effort_is_said_as_the_model_takes_it(name: str, model: str, effort: str, fields: Any, losses: Any) -> None:
    room = {"max_output_tokens": 20_000} if "max_tokens" in fields else {}

    assert beside(name, model, reasoning_effort=effort, **room) == (fields, losses)


SAMPLED = {"max_output_tokens": 9, "temperature": 0, "top_p": 0.5, "seed": 7, "stop": ("a", "b")}
OLD = {"version": "2023-06-01"}
GIVEN: list[tuple[str, str, dict[str, Any], dict[str, Any], list[str]]] = [
    *((name, "", {}, {}, []) for name in DIALECTS),
    (GEMINI, "", SAMPLED,
     config(maxOutputTokens=9, temperature=0.0, topP=0.5, seed=7, stopSequences=["a", "b"]), []),
    (CHAT, "", SAMPLED,
     {"max_completion_tokens": 9, "temperature": 0.0, "top_p": 0.5, "seed": 7, "stop": ["a", "b"]}, []),
    (RESPONSES, "", SAMPLED, {"max_output_tokens": 9, "temperature": 0.0, "top_p": 0.5}, ["stop", "seed"]),
    (CLAUDE, "", {"max_output_tokens": 7}, {"max_tokens": 7}, []),
    (CLAUDE, "", {"seed": 7}, {}, ["seed"]),
    (CLAUDE, "", {"stop": ("END", "\n\n", " ")}, {"stop_sequences": ["END"]}, ["stop[1]", "stop[2]"]),
    (CLAUDE, "", {"stop": "\n"}, {}, ["stop[0]"]),
    (GEMINI, "", {"stop": tuple("abcdef")}, config(stopSequences=list("abcde")), ["stop[5]"]),
    (CHAT, "", {"stop": tuple("abcdef")}, {"stop": list("abcd")}, ["stop[4]", "stop[5]"]),
    # Samplers are fields of Anthropic's older version alone: newer models, thinking, both at once, more than the most
    (CLAUDE, HAIKU, {"temperature": 0.2, "vendor": {"top_k": 5}}, {}, ["temperature", "vendor.anthropic.top_k"]),
    (CLAUDE, HAIKU, {"temperature": 0.2, "vendor": {"top_k": 5, **OLD}}, {"temperature": 0.2, "top_k": 5}, []),
    (CLAUDE, "", {"temperature": 1.0, "top_p": 0.9, "vendor": OLD}, {}, ["temperature", "top_p"]),
    (CLAUDE, HAIKU, {"temperature": 1.5, "vendor": OLD}, {}, ["temperature"]),
    (CLAUDE, HAIKU, {"temperature": 0.5, "top_p": 0.9, "vendor": OLD}, {"temperature": 0.5}, ["top_p"]),
    (CLAUDE, OLDEST, {"temperature": 0.5, "top_p": 0.9, "vendor": OLD}, {"temperature": 0.5, "top_p": 0.9}, []),
    (CLAUDE, OLDEST, {"response_format": CITY}, {}, ["response_format"]),
    (CHAT, "gpt-5", {"stop": "a"}, {}, ["stop"]),
    (CHAT, "gpt-5.1", {"temperature": 1}, {"temperature": 1.0}, []),
    (CHAT, "gpt-5.1", {"temperature": 1, "reasoning_effort": "none"},
     {"temperature": 1.0, "reasoning_effort": "none"}, []),
    (CHAT, "gpt-5.1", {"temperature": 1, "reasoning_effort": "low"}, {"reasoning_effort": "low"}, ["temperature"]),
    (RESPONSES, "gpt-5", {"temperature": 0.5}, {"include": ["reasoning.encrypted_content"]}, ["temperature"]),
    # A choice, and whether several may be made, without options
    *((name, "", {"option_choice": "auto", "parallel_options": True}, {}, ["option_choice", "parallel_options"])
      for name in (CLAUDE, CHAT, RESPONSES)),
    (GEMINI, "", {"option_choice": "required"}, {}, ["option_choice"]),
    (GEMINI, "", {"parallel_options": True}, {}, ["parallel_options"]),
    (GEMINI, "", {"option_choice": "required", "vendor": {"tools": [{"googleSearch": {}}]}}, {}, ["option_choice"]),
    (GEMINI, "", {"option_choice": "required", "vendor": {"tools": [{"function_declarations": [{"name": "f"}]}]}},
     {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, []),
    # The vendor's own settings, as the wire spells them
    (GEMINI, "", {"vendor": {"top_k": 40, "candidate_count": 2, "response_modalities": ["TEXT", "IMAGE"]}},
     config(topK=40, candidateCount=2, responseModalities=["TEXT", "IMAGE"]), []),
    (GEMINI, "", {"vendor": {"safety_settings": [{"category": "C", "threshold": "T"}], "labels": {"team_name": "a_b"},
                             "cached_content": "cachedContents/1", "continuation_token": "bW9yZQ=="}},
     {"safetySettings": [{"category": "C", "threshold": "T"}], "labels": {"team_name": "a_b"},
      "cachedContent": "cachedContents/1", "continuationToken": "bW9yZQ=="}, []),
    *((CLAUDE, "", {"vendor": {field: value}}, {field: value}, []) for field, value in {
        "service_tier": "auto", "metadata": {"user_id": "u"}, "container": "c", "cache_control": {"type": "ephemeral"},
    }.items()),
    *((CHAT, "", {"vendor": {field: value}}, {field: value}, []) for field, value in {
        "service_tier": "flex", "logprobs": True, "n": 2}.items()),
    (RESPONSES, "", {"vendor": {"background": True}}, {"background": True, "store": True}, []),
    (RESPONSES, "", {"vendor": {"previous_response_id": "r", "verbosity": "low"}},
     {"previous_response_id": "r", "text": {"verbosity": "low"}}, []),
    (RESPONSES, "", {"vendor": {"reasoning": {"summary": "auto"}}, "reasoning_effort": "high"},
     {"reasoning": {"summary": "auto", "effort": "high"}}, []),
    (RESPONSES, "gpt-5", {"vendor": {"include": ["x"]}}, {"include": ["reasoning.encrypted_content", "x"]}, []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "given", "fields", "losses"), GIVEN)
def test_a_setting_is_a_field_or_a_loss(name: str, model: str, given: Any, fields: Any, losses: list[str]) -> None:
    assert beside(name, model, **given) == (fields, [("dropped", path) for path in losses])


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def mode(word: str, *names: str) -> dict[str, Any]:
    allowed = {"allowedFunctionNames": list(names)} if names else {}
    return {"toolConfig": {"functionCallingConfig": {"mode": word, **allowed}}}


WEAKER, GONE = [("downgraded", "option_choice")], [("dropped", "option_choice")]
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
CALCULATOR = {"type": "custom", "custom": {"name": "calculator"}}
CHOICES: list[tuple[str, str, dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    *((CLAUDE, HAIKU, given, {"tool_choice": choice}, []) for given, choice in [
        ({"option_choice": "auto"}, {"type": "auto"}),
        ({"option_choice": "none"}, {"type": "none"}),
        ({"option_choice": "required"}, {"type": "any"}),
        ({"option_choice": "weather"}, {"type": "tool", "name": "weather"}),
        ({"parallel_options": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"option_choice": "required", "parallel_options": True}, {"type": "any", "disable_parallel_tool_use": False}),
        ({"option_choice": "web_search", "vendor": {"tools": [{"type": "web_search_20260318", "name": "web_search"}]}},
         {"type": "tool", "name": "web_search"}),
    ]),
    *((CLAUDE, model, {"option_choice": choice}, {"tool_choice": {"type": "auto"}}, WEAKER)
      for model in ("", "claude-fable-5-1") for choice in ("required", "weather")),
    (CLAUDE, HAIKU, {"option_choice": "required", "reasoning_effort": "low", "max_output_tokens": 20_000},
     {"tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 20_000},
     WEAKER),
    (CLAUDE, "", {"option_choice": "none", "parallel_options": False}, {"tool_choice": {"type": "none"}},
     [("dropped", "parallel_options")]),
    (CLAUDE, OPUS, {"option_choice": "required", "reasoning_effort": "high"},
     {"tool_choice": {"type": "any"}, **adaptive("high")}, []),
    (CLAUDE, "", {"option_choice": "none", "vendor": {"tool_choice": {"type": "auto"}}},
     {"tool_choice": {"type": "auto"}}, GONE),
    (GEMINI, "", {"option_choice": "auto"}, mode("AUTO"), []),
    (GEMINI, "", {"option_choice": "none"}, mode("NONE"), []),
    (GEMINI, "", {"option_choice": "required"}, mode("ANY"), []),
    (GEMINI, "", {"option_choice": "weather"}, mode("ANY", "weather"), []),
    *((GEMINI, "", {"parallel_options": several}, {}, [("dropped", "parallel_options")]) for several in (True, False)),
    (GEMINI, "", {"option_choice": "auto", "vendor": {"tool_config": mode("VALIDATED")["toolConfig"]}},
     mode("VALIDATED"), GONE),
    *((CHAT, "", {"option_choice": word, "parallel_options": False},
       {"tool_choice": word, "parallel_tool_calls": False}, []) for word in ("auto", "none", "required")),
    (CHAT, "", {"option_choice": "weather"}, {"tool_choice": function("weather")}, []),
    (CHAT, "", {"option_choice": "calculator", "vendor": {"tools": [CALCULATOR]}}, {"tool_choice": CALCULATOR}, []),
    (CHAT, "", {"option_choice": "required", "vendor": {"tool_choice": ALLOWED}}, {"tool_choice": ALLOWED}, GONE),
    (RESPONSES, "", {"option_choice": "required", "parallel_options": False},
     {"tool_choice": "required", "parallel_tool_calls": False}, []),
    (RESPONSES, "", {"option_choice": "weather"}, {"tool_choice": {"type": "function", "name": "weather"}}, []),
    (RESPONSES, "", {"option_choice": "shell", "vendor": {"tools": [{"type": "custom", "name": "shell"}]}},
     {"tool_choice": {"type": "custom", "name": "shell"}}, []),
    (RESPONSES, "", {"option_choice": "auto", "vendor": {"tool_choice": {"type": "web_search"}}},
     {"tool_choice": {"type": "web_search"}}, GONE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "given", "fields", "losses"), CHOICES)
def test_a_choice_is_in_the_wires_words(name: str, model: str, given: Any, fields: Any, losses: Any) -> None:
    assert beside(name, model, [WEATHER], **given) == (fields, losses)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_wrong_setting_is_named_with_its_remedy(name: str) -> None:
    with pytest.raises(SettingsInvalid, match="'wether', which is not an offered option; options are: weather"):
        beside(name, options=[WEATHER], option_choice="wether")
    with pytest.raises(SettingsInvalid, match=r"service_teer: .*; its fields .*service_tier.*extra_body") as refused:
        beside(name, vendor={"service_teer": "auto"})

    assert f"vendor['{name.partition('.')[0]}']" in str(refused.value)
    assert "\n" not in str(refused.value)


BARE = sabir.Option.from_schema("my option", "", {"type": "object", "properties": {"a": {"type": "string"}}})
DECLARED: dict[str, tuple[Any, Any]] = {
    CLAUDE: (
        {"name": "weather", "description": "Current weather.", "input_schema": CITY},
        {"input_schema": BARE.parameters},
    ),
    GEMINI: (
        {"name": "weather", "description": "Current weather.", "parametersJsonSchema": CITY},
        {"parametersJsonSchema": BARE.parameters},
    ),
    CHAT: (
        {"name": "weather", "description": "Current weather.", "parameters": CITY, "strict": True},
        {"parameters": BARE.parameters},
    ),
    RESPONSES: (
        {"type": "function", "name": "weather", "description": "Current weather.", "parameters": CITY, "strict": True},
        {"type": "function", "parameters": BARE.parameters, "strict": False},
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_an_option_is_declared_by_its_schema(name: str) -> None:
    rendering = render(name, sabir.user("Hi."), options=[WEATHER, BARE])
    tools = body(rendering)["tools"]
    first, second = (
        tools[0]["functionDeclarations"] if name == GEMINI else [tool.get("function", tool) for tool in tools]
    )
    wire = second.pop("name")

    assert (first, second) == DECLARED[name]
    assert re.fullmatch(r"my_option_\w+", wire)
    assert rendering.option_names == {wire: "my option"}
    assert ("rewritten", "options[1]") in lost(rendering)


class Invoice(BaseModel):
    """An invoice."""

    total: float
    note: str | None = None


def form(name: str, fields: dict[str, Any]) -> Any:
    return {
        CLAUDE: lambda: fields["output_config"]["format"], GEMINI: lambda: fields["generationConfig"],
        CHAT: lambda: fields["response_format"]["json_schema"], RESPONSES: lambda: fields["text"]["format"],
    }[name]()  # fmt: skip


@pytest.mark.parametrize("name", DIALECTS)
def test_a_reply_is_held_to_a_schema(name: str) -> None:
    fields, losses = beside(name, response_format=Invoice)
    found, plain = form(name, fields), Invoice.model_json_schema()

    assert losses == []
    if name == GEMINI:
        assert found == {"responseMimeType": "application/json", "responseJsonSchema": plain}
        return
    required = ["total"] if name == CLAUDE else ["total", "note"]
    assert (found["schema"]["required"], found["schema"]["additionalProperties"]) == (required, False)
    if name != CLAUDE:
        assert (found["name"], found["strict"], found["description"]) == ("Invoice", True, "An invoice.")
