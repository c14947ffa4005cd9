"""What settings and options become beside the contents of a request."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.base.values import FrozenDict
from sabir.contract.protocols import Rendering
from sabir.contract.scope import LossLog, RequestScope
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.settings import Settings, SettingsReader
from sabir.vocabulary.target import ModelInfo, Target
from sabir_google.dialect import GENERATE_CONTENT
from sabir_google.plugin import google

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Option.from_schema("weather", "Current weather.", CITY)
MODEL = "gemini-2.5-flash"


class Invoice(BaseModel):
    """What is to be paid."""

    total: int


def render(
    settings: Settings, options: Sequence[Option] = (), model: str = MODEL, info: ModelInfo | None = None
) -> Rendering:
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=model)
    return Renderer(GENERATE_CONTENT, target, model_info=info).render([sabir.user("Hi.")], options, settings)


def body(settings: Settings, options: Sequence[Option] = (), model: str = MODEL) -> Any:
    """The request's fields beside its contents."""
    found = json.loads(render(settings, options, model).body_bytes)
    assert found.pop("contents") == [{"role": "user", "parts": [{"text": "Hi."}]}]
    return found


def losses(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


def vendor(**settings: Any) -> Settings:
    return Settings(vendor={"google": settings})


def test_no_setting_is_no_field() -> None:
    """The vendor's own defaults hold."""
    assert body(Settings()) == {}


def test_every_wire_setting_is_looked_at() -> None:
    """One that no code of a dialect looked at is a failure, not silence."""
    reader = SettingsReader(Settings())
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=MODEL)
    GENERATE_CONTENT.encode_request(
        RequestScope(target, reader, options=(), option_names={}, system=(), vendor=FrozenDict(), losses=LossLog())
    )

    assert reader.unread() == ()


def test_sampling_is_in_the_generation_config() -> None:
    """The wire's names, and the values as they are."""
    settings = Settings(max_output_tokens=9, temperature=0, top_p=0.5, seed=7, stop=("a", "b"))

    assert body(settings) == {
        "generationConfig": {
            "maxOutputTokens": 9,
            "temperature": 0.0,
            "topP": 0.5,
            "seed": 7,
            "stopSequences": ["a", "b"],
        }
    }
    assert render(settings).losses == ()


def test_more_stop_texts_than_five_are_losses() -> None:
    """The first five hold."""
    rendering = render(Settings(stop=("a", "b", "c", "d", "e", "f")))

    assert json.loads(rendering.body_bytes)["generationConfig"]["stopSequences"] == ["a", "b", "c", "d", "e"]
    assert losses(rendering) == [("dropped", "settings.stop[5]")]


@pytest.mark.parametrize("parallel", [True, False])
def test_parallel_calls_have_no_field(parallel: bool) -> None:
    """The model decides it."""
    rendering = render(Settings(parallel_options=parallel), [WEATHER])

    assert losses(rendering) == [("dropped", "settings.parallel_options")]


def test_options_are_function_declarations_by_json_schema() -> None:
    """The schema goes as it is; a description that is empty stays out."""
    plain = Option.from_schema("plain", "", {"type": "object", "properties": {}})

    assert body(Settings(), [WEATHER, plain]) == {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Current weather.", "parametersJsonSchema": CITY},
                    {"name": "plain", "parametersJsonSchema": {"type": "object", "properties": {}}},
                ]
            }
        ]
    }


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("weather", {"mode": "ANY", "allowedFunctionNames": ["weather"]}),
    ],
)
def test_a_choice_is_a_mode(choice: str, config: Any) -> None:
    """One option is to be chosen by allowing no other."""
    assert body(Settings(option_choice=choice), [WEATHER])["toolConfig"] == {"functionCallingConfig": config}


def test_a_choice_of_what_is_not_offered_is_refused_and_one_without_options_lost() -> None:
    """A name is a mistake; a mode without options says nothing."""
    with pytest.raises(SettingsInvalid, match=r"'sunset'.*not offered; offered are: weather"):
        render(Settings(option_choice="sunset"), [WEATHER])
    assert losses(render(Settings(option_choice="required"))) == [("dropped", "settings.option_choice")]


@pytest.mark.parametrize(
    ("tool", "is_sent"),
    [({"googleSearch": {}}, False), ({"function_declarations": [{"name": "f"}]}, True)],
)
def test_a_choice_beside_the_vendors_own_tools_alone_is_lost(tool: Any, is_sent: bool) -> None:
    """The API refuses a function calling config without function declarations."""
    rendering = render(Settings(option_choice="required", vendor={"google": {"tools": [tool]}}))

    assert ("toolConfig" in json.loads(rendering.body_bytes)) is is_sent
    assert losses(rendering) == ([] if is_sent else [("dropped", "settings.option_choice")])


@pytest.mark.parametrize(
    ("model", "effort", "config", "lost"),
    [
        ("gemini-3-pro-preview", "low", {"thinkingLevel": "LOW"}, []),
        ("gemini-3.5-flash", "medium", {"thinkingLevel": "MEDIUM"}, []),
        ("gemini-3-flash", "minimal", {"thinkingLevel": "MINIMAL"}, []),
        ("gemini-3-flash", "none", {"thinkingLevel": "MINIMAL"}, ["downgraded"]),
        ("gemini-3-flash", "max", {"thinkingLevel": "HIGH"}, ["downgraded"]),
        ("models/gemini-3-pro-preview", "medium", {"thinkingLevel": "HIGH"}, ["downgraded"]),
        ("gemini-3-pro-preview", "none", {"thinkingLevel": "LOW"}, ["downgraded"]),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "MEDIUM"}, []),
        ("gemini-3.1-flash-lite", "minimal", {"thinkingLevel": "MINIMAL"}, []),
        ("gemini-3.1-flash-image", "low", {"thinkingLevel": "MINIMAL"}, ["downgraded"]),
        ("gemini-3.7-flash", "minimal", {"thinkingLevel": "LOW"}, ["downgraded"]),
        ("gemini-flash-latest", "none", {"thinkingLevel": "LOW"}, ["downgraded"]),
        ("gemini-4-argon", "xhigh", {"thinkingLevel": "HIGH"}, ["downgraded"]),
        ("gemini-4-neon", "xhigh", {"thinkingLevel": "XHIGH"}, []),
        ("gemini-4-neon", "max", {"thinkingLevel": "XHIGH"}, ["downgraded"]),
        ("robotics-er-2", "high", {"thinkingLevel": "HIGH"}, []),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}, ["rewritten"]),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 24576}, ["rewritten"]),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}, ["downgraded"]),
    ],
)
def test_effort_is_a_level_or_a_number_of_tokens(model: str, effort: Any, config: Any, lost: list[str]) -> None:
    """Levels from Gemini 3 on, tokens before; what is not what was asked for is a loss."""
    rendering = render(Settings(reasoning_effort=effort), model=model)

    assert json.loads(rendering.body_bytes)["generationConfig"] == {"thinkingConfig": config}
    assert losses(rendering) == [(kind, "settings.reasoning_effort") for kind in lost]


def test_a_model_that_does_not_reason_takes_no_effort() -> None:
    """As its row says."""
    info = next(row for row in google.models() if row.prefix == "gemini-2.0")
    rendering = render(Settings(reasoning_effort="low"), model="gemini-2.0-flash", info=info)

    assert "generationConfig" not in json.loads(rendering.body_bytes)
    assert losses(rendering) == [("dropped", "settings.reasoning_effort")]


def test_a_response_format_is_a_json_schema() -> None:
    """Its name and description are the schema's own where it has none."""
    rendering = render(Settings(response_format=Invoice))
    config = json.loads(rendering.body_bytes)["generationConfig"]

    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == Invoice.model_json_schema()
    assert rendering.losses == ()
    bare = {"name": "sum", "schema": {"type": "integer"}, "description": "All of it."}
    config = body(Settings(response_format=bare))["generationConfig"]
    assert config["responseJsonSchema"] == {"type": "integer", "title": "sum", "description": "All of it."}


def test_nothing_is_written_beside_a_reference() -> None:
    """The vendor takes no further keyword there, so that the name and the description are losses."""
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}
    rendering = render(Settings(response_format={"name": "tree", "description": "All.", "schema": schema}))

    assert json.loads(rendering.body_bytes)["generationConfig"]["responseJsonSchema"] == schema
    assert losses(rendering) == [("dropped", "settings.response_format")] * 2


def test_keywords_that_the_vendor_does_not_read_are_losses() -> None:
    """A reply may miss what they ask; names of properties are no keywords."""
    schema = {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "a+"}, "b": {"not": {}}}}
    rendering = render(Settings(response_format=schema))

    assert [loss.reason.rpartition(" ")[2] for loss in rendering.losses] == ["'not'", "'pattern'"]
    assert losses(rendering) == [("downgraded", "settings.response_format")] * 2


def test_vendor_settings_are_spelled_as_the_wire_does() -> None:
    """Those of the generation stand in its config, what they hold as it is."""
    safety = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
    settings = vendor(
        top_k=40,
        candidate_count=2,
        response_modalities=["TEXT", "IMAGE"],
        safety_settings=[safety],
        cached_content="cachedContents/1",
        continuation_token="bW9yZQ==",
        labels={"team_name": "a_b"},
    )

    assert body(settings) == {
        "generationConfig": {"topK": 40, "candidateCount": 2, "responseModalities": ["TEXT", "IMAGE"]},
        "safetySettings": [safety],
        "cachedContent": "cachedContents/1",
        "continuationToken": "bW9yZQ==",
        "labels": {"team_name": "a_b"},
    }


def test_vendor_tools_stand_beside_the_options() -> None:
    """Search, code execution and the like."""
    settings = vendor(tools=[{"googleSearch": {}}], tool_config={"includeServerSideToolInvocations": True})
    found = body(settings, [WEATHER])

    assert [list(tool) for tool in found["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert found["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_the_vendors_own_form_of_a_setting_wins() -> None:
    """Both were said; the one that is more exact holds, and the other is a loss where it is gone."""
    shown = Settings(reasoning_effort="low", vendor={"google": {"thinking_config": {"include_thoughts": True}}})
    assert body(shown)["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": True}}

    settings = Settings(reasoning_effort="low", vendor={"google": {"thinking_config": {"thinking_level": "LOW"}}})
    assert body(settings)["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "LOW"}}
    assert losses(render(settings)) == [("dropped", "settings.reasoning_effort")]

    validated = {"functionCallingConfig": {"mode": "VALIDATED"}}
    rendering = render(Settings(option_choice="auto", vendor={"google": {"tool_config": validated}}), [WEATHER])
    assert json.loads(rendering.body_bytes)["toolConfig"] == validated
    assert losses(rendering) == [("dropped", "settings.option_choice")]


def test_an_unknown_vendor_setting_is_refused_by_name() -> None:
    """Strict: a slip of the pen is no silence."""
    with pytest.raises(SettingsInvalid, match="topk"):
        render(vendor(topk=4))


def test_every_row_of_the_models_is_read() -> None:
    """Longest prefixes first; every Gemini before 3 takes no media in results."""
    rows = {row.prefix: row for row in google.models()}

    assert list(rows) == sorted(rows, key=lambda prefix: (-len(prefix), prefix))
    assert {name for name, row in rows.items() if "results_media" in row.rejects} == {
        "gemini-1.5", "gemini-2.0", "gemini-2.5", "gemini-2.5-flash-image", "gemma-",
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
    with sabir.adapter(f"google:{model}") as llm:
        rendering = llm.render([sabir.user("Hi."), sabir.assistant("Once")], settings=Settings(temperature=1, top_p=1))
    body = json.loads(rendering.body_bytes)

    assert [each["role"] for each in body["contents"]] == ["user", "model", *(["user"] if refuses else [])]
    assert set(body.get("generationConfig", {})) == (set() if refuses else {"temperature", "topP"})
    lost = {("synthesized", "contents"), ("dropped", "settings.temperature"), ("dropped", "settings.top_p")}
    assert set(losses(rendering)) == (lost if refuses else set())
