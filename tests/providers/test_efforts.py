"""The effort that is sent: OpenAI's models on both wires by the table of efforts, and the rows of every models.toml.

18 models × 7 values × 2 wires ──▶ an accepted value, the nearest one, and a loss unless it is the one asked for
"""

import re
from pathlib import Path

import pytest
import sabir
from sabir.authoring.efforts import EFFORTS, nearest_effort
from sabir.vocabulary.models import ReasoningEffort, read_models

from tests.missing_models import LISTS, coverage, sdk_models
from tests.providers.efforts import LINES, Line
from tests.providers.wires import DIALECTS, body, lost, render

_, _, CHAT, RESPONSES = DIALECTS
PROVIDERS = ("anthropic", "google", "local", "openai")
PATH = "settings.reasoning_effort"
ROOT = Path(__file__).parents[2]
TABLES = [*ROOT.glob("plugins/*/src/**/models.toml"), *ROOT.glob("tests/third_party/*/src/*/models.toml")]


def sent(wire: str, model: str, effort: ReasoningEffort) -> tuple[str | None, list[tuple[str, str]]]:
    rendering = render(wire, sabir.user("Hi."), model=model, reasoning_effort=effort)
    fields = body(rendering)
    value = fields.get("reasoning_effort") if wire == CHAT else fields.get("reasoning", {}).get("effort")
    return value, lost(rendering)


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
@pytest.mark.parametrize("line", LINES, ids=[line.model for line in LINES])
def test_openai_gets_the_nearest_effort_that_the_model_accepts(line: Line, wire: str) -> None:
    """Ties go down. Another value is `rewritten`; one that starts or ends reasoning is `downgraded`."""
    accepted = [effort for effort in line.accepted.split() if wire == RESPONSES or effort != "max"]
    for place, effort in enumerate(EFFORTS):
        steps = {EFFORTS.index(each): abs(EFFORTS.index(each) - place) for each in accepted}
        nearest = EFFORTS[min(each for each, distance in steps.items() if distance == min(steps.values()))]
        kind = "downgraded" if "none" in (nearest, effort) else "rewritten"
        losses = [] if nearest == effort else [(kind, PATH)]

        assert sent(wire, line.model, effort) == (nearest, losses), effort


def test_the_table_of_efforts_is_complete() -> None:
    models = [line.model for line in LINES]

    assert len(models) == len(set(models)) == 18
    assert sum(model.startswith("gpt-6") for model in models) == 7
    assert all(line.source and line.chat_source and re.match(r"\d{4}", line.date) for line in LINES)


@pytest.mark.parametrize(
    ("effort", "accepted", "nearest"),
    [
        ("xhigh", ("low", "high", "max"), "high"),
        ("minimal", ("none", "low"), "none"),
        ("none", ("medium", "low"), "low"),
        ("low", ("max", "xhigh"), "xhigh"),
        ("high", ("high",), "high"),
    ],
)
def test_of_two_equally_near_efforts_the_lower_one_is_sent(
    effort: ReasoningEffort, accepted: tuple[ReasoningEffort, ...], nearest: str
) -> None:
    assert nearest_effort(effort, accepted) == nearest


def test_a_gateway_gets_max_on_chat() -> None:
    """That `max` is refused is known of OpenAI's own endpoint only."""
    llm = sabir.adapter("deepseek:deepseek-v4", settings=sabir.Settings(reasoning_effort="max"))

    assert body(llm.render("Hi."))["reasoning_effort"] == "max"


@pytest.mark.parametrize("path", TABLES, ids=[path.parent.name for path in TABLES])
def test_every_row_names_its_sources_with_their_dates(path: Path) -> None:
    rows = read_models(path.read_text("utf-8"))

    assert rows
    for row in rows:
        assert row.sources, row.prefix
        assert all(re.fullmatch(r"20\d\d-[01]\d-[0-3]\d https://\S+", source) for source in row.sources), row.prefix


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_model_that_reasons_lists_its_efforts(provider: str) -> None:
    for row in sabir.models(provider):
        if row.reasoning:
            assert row.efforts, row.prefix
            assert list(row.efforts) == [effort for effort in EFFORTS if effort in row.efforts], row.prefix
        else:
            assert row.efforts is None, row.prefix


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
@pytest.mark.parametrize("model", [line.model for line in LINES if line.model.startswith("gpt-6")])
def test_the_gpt_6_family_gets_no_samplers(model: str, wire: str) -> None:
    rendering = render(wire, sabir.user("Hi."), model=model, temperature=0.5, top_p=0.5)

    assert not {"temperature", "top_p"} & body(rendering).keys()
    assert lost(rendering) == [("dropped", "settings.temperature"), ("dropped", "settings.top_p")]


def test_the_chore_compares_the_rows_with_the_lists_of_the_sdks() -> None:
    for listed in LISTS:
        found = coverage(listed)
        assert len(found.known) + len(found.assumed) + len(found.unknown) == len(sdk_models(listed)) > 5, listed
    openai, anthropic, _ = map(coverage, LISTS)

    assert {line.model for line in LINES} - {"gpt-5.2-pro", "gpt-5-pro"} <= {*openai.known}
    assert "gpt-6-cyber" in openai.assumed and "gpt-rosalind-research" in openai.unknown
    assert not anthropic.assumed and not anthropic.unknown
