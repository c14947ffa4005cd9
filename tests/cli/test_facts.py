"""Facts about models in the user's settings file: which command reads them, and what it says of wrong ones."""

import json
from pathlib import Path

import pytest
import sabir
from sabir_cli.facts import facts_of, open_adapter

from tests.cli.conftest import Command
from tests.cli.test_config import file, write

__all__ = ["file"]

FACTS = """
model = "echo:any"

[model_facts."openai:gpt-9"]
efforts = ["low", "high"]
rejects = ["stop"]

[model_facts."openai:gpt-9-mini"]
reasoning = false

[model_facts."openai:gpt-5"]
efforts = ["high"]
"""


def test_the_longest_name_counts(file: Path) -> None:
    write(file, FACTS)

    assert facts_of("openai.chat:gpt-9-mini-2") == facts_of("openai:gpt-9-mini")
    assert getattr(facts_of("openai:gpt-9-mini"), "reasoning", None) is False
    assert getattr(facts_of("openai:gpt-9"), "efforts", None) == ("low", "high")
    assert facts_of("openai:gpt-8") is None is facts_of("echo:gpt-9")


def test_commands_render_with_the_facts_of_the_file(file: Path) -> None:
    """Every command opens its adapters so."""
    write(file, FACTS)
    rendering = open_adapter("openai:gpt-5").render("Hi.", settings=sabir.Settings(reasoning_effort="minimal"))
    assert rendering.body["reasoning"] == {"effort": "high"}  # type: ignore[index,call-overload]


def test_models_are_listed_with_the_facts_of_the_file(file: Path, command: Command) -> None:
    """A note names what the file overrides; a machine reads it beside each row."""
    write(file, FACTS)
    out, notes = command("models", "openai")
    rows = {row["prefix"]: row for row in json.loads(command("models", "openai", "--json")[0])}

    assert notes.splitlines() == [
        "openai:gpt-9: config.toml overrides efforts, rejects",
        "openai:gpt-9-mini: config.toml overrides reasoning",
        "openai:gpt-5: config.toml overrides efforts",
    ]
    assert [line for line in out.splitlines() if line.split()[:1] == ["openai:gpt-9"]]
    assert (rows["gpt-5"]["efforts"], rows["gpt-5"]["overridden"]) == (["high"], ["efforts"])
    assert (rows["gpt-5"]["rejects"], rows["o1"]["overridden"]) == (["temperature", "top_p", "stop"], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('model_facts = "x"', "must contain tables"),
        ("[model_facts.gpt]\nrejects = []", "must be a table named"),
        ('[model_facts."openai:gpt"]\neffort = []', "effort: Extra inputs"),
    ],
)
def test_wrong_facts_are_named(file: Path, command: Command, text: str, reason: str) -> None:
    write(file, text)

    assert reason in command("models", "openai", code=2)[1]


def test_facts_are_no_setting_of_the_command(file: Path, command: Command) -> None:
    """`config` shows and sets values; tables are edited in the file."""
    write(file, FACTS)

    assert "model_facts" not in command("config")[0]
    assert "write tables [model_facts" in command("config", "set", "model_facts", "x", code=2)[1]
