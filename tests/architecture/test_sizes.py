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
    PROVIDERS,
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
LARGER: Mapping[str, int] = {"core": 7640, "anthropic": 1470, "google": 1620, "openai": 2545}
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
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


@functools.cache
def package_lines(package: Package) -> int:
    """Lines of code of a whole package, the stubs that type checkers read among them."""
    return sum(map(code_lines, [*package.modules(), *package.source.rglob("*.pyi")]))


def too_large(package: Package) -> Iterator[str]:
    """The package, where it has more lines than its bound."""
    bound = LARGER.get(str(package), MOST_OF_CORE if package is CORE else MOST_OF_A_PROVIDER)
    if (lines := package_lines(package)) > bound:
        yield f"{shown(package.source)}: has {lines} lines of code, its bound is {bound}"


def test_a_package_can_be_read_in_an_afternoon_or_says_why_not() -> None:
    """Core has at most 3,500 lines of code and a provider 1,200; what has more has a bound of its own, and a reason."""
    check_each([CORE, *PROVIDERS], too_large, "make it smaller, or raise its bound in LARGER with a reason")


def test_every_larger_bound_is_needed_and_has_its_reason() -> None:
    """A bound that is no longer needed would let a package grow back; one without a reason would argue nothing."""
    reasons = (ROOT / "docs" / "explanation" / "decisions" / "0013-sizes.md").read_text("utf-8")

    def unneeded(package: Package) -> Iterator[str]:
        bound = MOST_OF_CORE if package is CORE else MOST_OF_A_PROVIDER
        if (lines := package_lines(package)) <= bound:
            yield f"{shown(package.source)}: has {lines} lines of code and needs no bound beyond {bound}"
        if f"| `{package.name}` |" not in reasons:
            yield f"{shown(package.source)}: 0013-sizes.md gives no reason for its bound"

    larger = [package for package in (CORE, *PROVIDERS) if str(package) in LARGER]
    check_each(larger, unneeded, "take it out of LARGER, or give its reason")


def too_long_a_file(path: Path) -> Iterator[str]:
    """The file, where it is long and does not say why."""
    lines = path.read_text("utf-8").count("\n") + 1
    if lines > LONGEST_FILE and not is_argued(syntax_tree(path)):
        yield f"{shown(path)}:1: has {lines} lines, more than {LONGEST_FILE}"


def test_a_file_is_short_or_says_why_not() -> None:
    """No file has more than 400 lines."""
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
