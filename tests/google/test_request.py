"""What settings and options become beside the contents of a request."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.contract.dialect import Rendering
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.settings import ModelInfo, Settings, Target
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
