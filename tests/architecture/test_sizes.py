"""Bounds that keep every part readable in one sitting, and logic that is written once."""

import ast
import io
import re
import tokenize
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.project import (
    CORE,
    PROVIDERS,
    ROOT,
    Package,
    functions,
    line_count,
    python_files,
    shown,
    syntax_tree,
)

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
LONGEST_DRIVER = 15
ARGUED = "Longer than"
"""A docstring that holds these words says why its file or function is longer than the bound."""

MOST_OF_CORE = 3500
MOST_OF_A_PROVIDER = 1200
"""Lines of code: without blank lines, comments and docstrings."""
WITHOUT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
LARGER: Mapping[str, int] = {"core": 7240, "anthropic": 1450, "google": 1560, "openai": 2465}
"""Package beyond its bound → the bound that it has instead; docs/explanation/decisions/0013-sizes.md says why."""

PACKAGED = python_files("core", "plugins")


def is_argued(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the docstring says why it is long."""
    return ARGUED in (ast.get_docstring(node) or "")


def test_there_are_files_to_measure() -> None:
    """An empty list would pass every test below."""
    assert len(PACKAGED) >= 10


def code_lines(path: Path) -> int:
    """Lines that hold code."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type not in WITHOUT_CODE:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


def package_lines(package: Package) -> int:
    """Lines of code of a whole package, the stubs that type checkers read among them."""
    return sum(map(code_lines, [*package.modules(), *package.source.rglob("*.pyi")]))


@pytest.mark.parametrize("package", [CORE, *PROVIDERS], ids=str)
def test_a_package_can_be_read_in_an_afternoon_or_says_why_not(package: Package) -> None:
    """Core has at most 3,500 lines of code and a provider 1,200; what has more has a bound of its own, and a reason."""
    bound = MOST_OF_CORE if package is CORE else MOST_OF_A_PROVIDER

    assert package_lines(package) <= LARGER.get(str(package), bound)


def test_every_larger_bound_is_needed_and_has_its_reason() -> None:
    """A bound that is no longer needed would let a package grow back; one without a reason would argue nothing."""
    reasons = (ROOT / "docs" / "explanation" / "decisions" / "0013-sizes.md").read_text("utf-8")

    for package in (CORE, *PROVIDERS):
        if str(package) in LARGER:
            assert package_lines(package) > (MOST_OF_CORE if package is CORE else MOST_OF_A_PROVIDER)
            assert f"| `{package.name}` |" in reasons


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
