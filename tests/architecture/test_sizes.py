"""Bounds that keep every part readable in one sitting, and logic that is written once."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.project import functions, line_count, python_files, shown, syntax_tree

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
LONGEST_DRIVER = 15
ARGUED = "Longer than"
"""A docstring that holds these words says why its file or function is longer than the bound."""

PACKAGED = python_files("core", "plugins")


def is_argued(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the docstring says why it is long."""
    return ARGUED in (ast.get_docstring(node) or "")


def test_there_are_files_to_measure() -> None:
    """An empty list would pass every test below."""
    assert len(PACKAGED) >= 10


@pytest.mark.parametrize("path", PACKAGED, ids=shown)
def test_a_file_is_short_or_says_why_not(path: Path) -> None:
    """No file has more than 400 lines."""
    lines = path.read_text("utf-8").count("\n") + 1

    assert lines <= LONGEST_FILE or is_argued(syntax_tree(path))


@pytest.mark.parametrize("path", PACKAGED, ids=shown)
def test_a_function_is_short_or_says_why_not(path: Path) -> None:
    """No function has more than 60 lines."""
    long = [
        f"{node.name}:{node.lineno}: {line_count(node)} lines"
        for node in functions(path)
        if line_count(node) > LONGEST_FUNCTION and not is_argued(node)
    ]

    assert long == []


@pytest.mark.parametrize("path", PACKAGED, ids=shown)
def test_no_logic_is_written_twice_for_sync_and_async(path: Path) -> None:
    """Of a pair like `send` and `send_sync`, at most one is more than a thin driver."""
    by_stem: dict[str, set[str]] = {}
    for node in functions(path):
        if line_count(node) > LONGEST_DRIVER:
            stem = re.sub(r"^a(?=[a-z])|_sync$|_async$", "", node.name)
            by_stem.setdefault(stem, set()).add(node.name)

    assert [sorted(names) for names in by_stem.values() if len(names) > 1] == []
