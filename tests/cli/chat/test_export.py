"""A conversation as Markdown: who spoke, what was said and shown, what was called."""

from pathlib import Path

import sabir
from sabir_cli.chat.export import as_markdown, format_of


def test_the_form_is_the_files_ending_in_either_case() -> None:
    assert [format_of(Path(name)) for name in ("a.JSON", "a.Jsonl", "a.MD")] == ["json", "jsonl", "markdown"]


def test_a_conversation_reads_from_top_to_bottom(history: list[sabir.Message]) -> None:
    assert as_markdown(history) == (
        "## system\n\nBe brief.\n\n## user\n\nWhat time is it there?\n\n[image tower.png]\n\n"
        "## llm\n\n`time_in(city='Paris')`\n\n> \"14:03\"\n\nIt is 14:03.\n"
    )
