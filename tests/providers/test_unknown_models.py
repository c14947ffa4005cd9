"""Models that no table knows, facts that a caller overrides, and the errors of vendors that know better.

unknown model ──▶ newest row of its line ──▶ rendering.assumptions, logged once        model_facts ──▶ its own facts
400 about a parameter ──▶ the setting, and the override that avoids it
"""

import ast
import logging
from typing import Any

import pytest
import sabir
from sabir.errors import InvalidRequest, SettingsInvalid
from sabir.vocabulary.models import ModelFacts

from tests.providers.wires import DIALECTS, body, lost, refused

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
FOLLOWED = [
    ("openai:gpt-7", "gpt-6.2-astra gpt-6.2-sol"),
    ("openai:gpt-7-mini", "gpt-6.2-astra gpt-6.2-sol"),
    ("openai:gpt-6.3-sol", "gpt-6.2-sol"),
    ("openai:gpt-6-cyber", "gpt-6.2-astra gpt-6.2-sol"),
    ("openai:gpt-5.9", "gpt-5.6"),
    ("openai.chat:gpt-5.9-2027-01-02", "gpt-5.6"),
    ("openai:o5-mini", "o4-mini"),
    ("anthropic:claude-opus-6", "claude-opus-5-5"),
    ("anthropic:claude-opus-5-7", "claude-opus-5-5"),
    ("anthropic:eu.anthropic.claude-sonnet-6-20270101-v1:0", "claude-sonnet-5-5"),
    ("google:gemini-5-flash", "gemini-4"),
    ("google:models/gemini-3.9-flash", "gemini-3.8-flash"),
]
KNOWN = (
    "openai:gpt-5-2025-08-07", "openai:gpt-6.2-astra-law", "openai:gpt-4.1-mini", "openai:o3-pro-2025-06-10",
    "anthropic:claude-opus-5-20260724", "anthropic:claude-sonnet-4-20250514", "anthropic:claude-3-5-haiku-20241022",
    "google:gemini-2.5-flash-preview-05-20", "google:gemini-3.1-pro-preview",
    "openai:gpt-oss-120b", "openai:my-deployment", "anthropic:claude-instant", "google:robotics-er-2", "echo:3.5",
)  # fmt: skip


def rendering_of(model: str, facts: Any = None, **settings: Any) -> Any:
    return sabir.adapter(model, model_facts=facts, settings=sabir.Settings(**settings)).render("Hi.")


@pytest.mark.parametrize(("model", "rows"), FOLLOWED, ids=[model for model, _ in FOLLOWED])
def test_an_unknown_model_follows_the_newest_of_its_line(model: str, rows: str) -> None:
    (assumption,) = rendering_of(model, max_output_tokens=100).assumptions

    assert any(f"like {model.partition(':')[0].partition('.')[0]}:{row};" in assumption for row in rows.split())
    assert "model_facts" in assumption
    assert rendering_of(model, max_output_tokens=100).losses == ()


@pytest.mark.parametrize("model", KNOWN)
def test_nothing_is_assumed_of_known_models_and_of_unknown_lines(model: str) -> None:
    """A snapshot's date is no later version."""
    assert rendering_of(model).assumptions == ()


def test_an_assumption_that_changes_the_request_is_a_loss() -> None:
    rendering = rendering_of("openai:gpt-7", temperature=0.5, reasoning_effort="none")

    assert body(rendering)["reasoning"] == {"effort": "low"}
    assert lost(rendering) == [("dropped", "settings.temperature"), ("downgraded", "settings.reasoning_effort")]
    assert all("gpt-7 is unknown and treated like gpt-6.2-" in loss.reason for loss in rendering.losses)


def test_an_assumption_is_logged_once_for_each_model(caplog: pytest.LogCaptureFixture) -> None:
    models = ["openai:gpt-8-logged", "openai:gpt-9-logged"]
    with caplog.at_level(logging.WARNING, "sabir"):
        for model in (models[0], *models):
            rendering_of(model)

    assert [record.message.partition(" ")[0] for record in caplog.records] == models


BEFORE = {"reasoning_effort": "none", "stop": "a"}
OVERRIDES: list[tuple[ModelFacts, dict[str, Any], list[tuple[str, str]]]] = [
    ({}, {"reasoning_effort": "minimal"}, [("downgraded", "reasoning_effort"), ("dropped", "stop")]),
    ({"efforts": ["none", "high"]}, {"reasoning_effort": "none"}, [("dropped", "stop")]),
    ({"rejects": ()}, {"reasoning_effort": "minimal", "stop": ["a"]}, [("downgraded", "reasoning_effort")]),
    ({"efforts": (), "rejects": ()}, {"stop": ["a"]}, [("dropped", "reasoning_effort")]),
]


@pytest.mark.parametrize(("facts", "fields", "losses"), OVERRIDES)
def test_model_facts_override_single_facts(facts: ModelFacts, fields: dict[str, Any], losses: Any) -> None:
    """The other facts stay as the table has them; a mapping and a ModelInfo say the same."""
    rendering = rendering_of("openai.chat:gpt-5", facts, **BEFORE)
    info = sabir.ModelInfo.model_validate({"prefix": "any", **facts})

    assert {name: value for name, value in body(rendering).items() if name in BEFORE} == fields
    assert sorted(lost(rendering)) == sorted((kind, f"settings.{name}") for kind, name in losses)
    assert rendering_of("openai.chat:gpt-5", info, **BEFORE) == rendering


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"effort": ["low"]}, "model_facts: effort: Extra inputs"),
        ({"efforts": ["much"]}, "model_facts: efforts.0: Input should be 'none'"),
    ],
)
def test_a_wrong_fact_is_named(facts: Any, reason: str) -> None:
    with pytest.raises(SettingsInvalid, match=reason):
        sabir.adapter("openai:gpt-5", model_facts=facts)


O4_MINI = (
    "Unsupported value: 'minimal' is not supported with the 'o4-mini' model. "
    "Supported values are: 'low', 'medium', and 'high'."
)
NO_LEVEL = "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium."
REFUSALS = [
    (RESPONSES, O4_MINI, {"param": "reasoning.effort"}, "reasoning_effort", "{'efforts': ['low', 'medium', 'high']}"),
    (CHAT, "Unsupported parameter: 'temperature' is not supported with this model.", {"param": "temperature"},
     "temperature", "{'rejects': ['temperature']}"),
    (CHAT, "Unsupported parameter: 'max_tokens' is not supported with this model.", {}, "max_output_tokens",
     "{'rejects': ['max_output_tokens']}"),
    (CLAUDE, NO_LEVEL, {}, "reasoning_effort", "{'efforts': ['low', 'medium', 'high', 'max']}"),
    (CLAUDE, "adaptive thinking is not supported on this model", {}, "reasoning_effort", "{'efforts': []}"),
    (CLAUDE, "`temperature` is deprecated for this model.", {}, "temperature", "{'rejects': ['temperature']}"),
    (GEMINI, "Thinking level MINIMAL is not supported for this model. " + "x" * 600, {}, "reasoning_effort",
     "{'efforts': []}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "fields", "setting", "override"), REFUSALS)
def test_an_unsupported_parameter_is_named_with_its_override(
    name: str, text: str, fields: dict[str, str], setting: str, override: str
) -> None:
    error = refused(name, 400, {"error": {"message": text, "type": "invalid_request_error", **fields}})

    assert type(error) is InvalidRequest
    assert f" {setting}, or pass model_facts={override}" in str(error)


@pytest.mark.parametrize("name", DIALECTS)
def test_other_errors_name_no_override(name: str) -> None:
    texts = (
        "messages: roles must alternate",
        "image input is not supported by this model",
        "temperature: must be a number",
    )
    for text in texts:
        error = refused(name, 400, {"error": {"message": text, "type": "invalid_request_error"}})

        assert "model_facts" not in str(error)


def test_the_override_of_an_error_avoids_it() -> None:
    error = refused(RESPONSES, 400, {"error": {"message": O4_MINI, "param": "reasoning.effort"}})
    facts = ast.literal_eval(str(error).rpartition("model_facts=")[2])

    rendering = rendering_of("openai:my-deployment", facts, reasoning_effort="minimal")
    assert body(rendering)["reasoning"] == {"effort": "low"}
