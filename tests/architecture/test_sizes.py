"""Bounds that keep every part readable in one sitting, and logic that is written once."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.project import (
    CORE,
    PACKAGES,
    ROOT,
    Package,
    functions,
    line_count,
    nodes,
    python_files,
    shown,
    syntax_tree,
)
from tests.rules import check_each

LONGEST_FILE = 500
LONGEST_FUNCTION = 60
LONGEST_DRIVER = 15
ARGUED = "Longer than"
"""A docstring that holds these words says why its file or function is longer than the bound."""

AUTHORING = CORE.source / "authoring"
LIMITS: Mapping[str, int] = {"core without authoring": 8_250, "authoring": 2_110}
"""Lines of code that a part may have. A change that needs more raises its limit by one reasoned line in DECISION."""
DECISION = ROOT / "docs" / "explanation" / "decisions" / "0013-sizes.md"

WITHOUT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
"""Tokens of lines without code: blank ones, comments; docstrings are left out apart."""

PACKAGED = python_files("core", "plugins")


def is_argued(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ARGUED in (ast.get_docstring(node) or "")


def test_there_are_files_to_measure() -> None:
    """An empty list would pass every test below."""
    assert len(PACKAGED) >= 10


def code_lines(path: Path) -> int:
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type not in WITHOUT_CODE:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


@functools.cache
def package_lines(package: Package) -> int:
    """Lines of code of a whole package, the stubs that type checkers read among them."""
    return sum(map(code_lines, [*package.modules(), *package.source.rglob("*.pyi")]))


@functools.cache
def figures() -> Mapping[str, int]:
    """Lines of code of each package, of core in two parts, and all lines of tests."""
    lines = {str(package): package_lines(package) for package in PACKAGES}
    authoring = sum(map(code_lines, [*AUTHORING.rglob("*.py"), *AUTHORING.rglob("*.pyi")]))
    parts = {"core without authoring": lines.pop("core") - authoring, "authoring": authoring}
    return (
        parts
        | lines
        | {"tests/, all lines": sum(path.read_text("utf-8").count("\n") for path in python_files("tests"))}
    )


def report() -> str:
    limits = {part: f" of {limit:,}" for part, limit in LIMITS.items()}
    return "\n".join(f"{part:24}{figure:>8,}{limits.get(part, '')}" for part, figure in figures().items())


def beyond(part: str) -> Iterator[str]:
    if figures()[part] > LIMITS[part]:
        yield f"{part}: {figures()[part]:,} lines of code, its limit is {LIMITS[part]:,}"


def test_core_keeps_its_limits() -> None:
    """All other parts are only reported: `pytest -s` or `python -m tests.architecture.test_sizes` shows them."""
    print(f"\n{report()}")

    check_each(LIMITS, beyond, f"make it smaller, or argue for more in {DECISION.name}")


def test_the_decision_about_sizes_names_the_limits() -> None:
    words = DECISION.read_text("utf-8")

    assert all(f"| {part} | {limit:,} |" in words for part, limit in LIMITS.items())


def too_long_a_file(path: Path) -> Iterator[str]:
    """The file, where it is long and does not say why."""
    lines = path.read_text("utf-8").count("\n") + 1
    if lines > LONGEST_FILE and not is_argued(syntax_tree(path)):
        yield f"{shown(path)}:1: has {lines} lines, more than {LONGEST_FILE}"


def test_a_file_is_short_or_says_why_not() -> None:
    """No file has more than 500 lines."""
    check_each(PACKAGED, too_long_a_file, f"divide it, or say in its docstring for what it is {ARGUED!r}")


def too_long_functions(path: Path) -> Iterator[str]:
    """The functions that are long and do not say why."""
    for node in functions(path):
        if line_count(node) > LONGEST_FUNCTION and not is_argued(node):
            yield f"{shown(path)}:{node.lineno}: {node.name} has {line_count(node)} lines, more than {LONGEST_FUNCTION}"


def test_a_function_is_short_or_says_why_not() -> None:
    """No function has more than 60 lines."""
    check_each(PACKAGED, too_long_functions, f"divide it, or say in its docstring for what it is {ARGUED!r}")


def written_twice(path: Path) -> Iterator[str]:
    """Names of functions that differ in being sync or async, and are both more than a driver."""
    by_stem: dict[str, dict[str, int]] = {}
    for node in functions(path):
        if line_count(node) > LONGEST_DRIVER:
            stem = re.sub(r"^a(?=[a-z])|_sync$|_async$", "", node.name)
            by_stem.setdefault(stem, {}).setdefault(node.name, node.lineno)
    for places in by_stem.values():
        if len(places) > 1:
            yield f"{shown(path)}:{max(places.values())}: {' and '.join(sorted(places))} are both long"


def test_no_logic_is_written_twice_for_sync_and_async() -> None:
    """Of a pair like `send` and `send_sync`, at most one is more than a thin driver."""
    check_each(PACKAGED, written_twice, f"share their logic, so that one has at most {LONGEST_DRIVER} lines")


if __name__ == "__main__":
    print(report())
