"""Bounds that keep every part readable in one sitting, and logic that is written once."""

import ast
import functools
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
LONGEST_DRIVER = 15
ARGUED = "Longer than"
"""A docstring that holds these words says why its file or function is longer than the bound."""

AUTHORING = CORE.source / "authoring"
FEWER, MORE = 0.97, 1.02
"""How far a figure may be from what NOT_MET has for it: below, above when it is set."""
MODULES_OF_A_FOLDER = "modules in one folder of core"
TESTS = "tests/"
"""Lines of its files, blank ones and docstrings among them; of packages, lines of code are counted."""
PARTS: Mapping[str, Sequence[str]] = {
    "core without authoring": ["core"],
    "authoring": [],
    "anthropic": ["anthropic"],
    "google": ["google"],
    "openai": ["openai"],
    "testing": ["testing"],
    "the eleven others together": [
        "cli", "distributed", "durable", "echo", "local", "mcp", "media", "otel", "prices", "runtime", "session",
    ],
}  # fmt: skip
"""Part → its packages."""
UNBOUNDED = ("actors", "roles")
"""Packages that are in no part."""
BOUNDS: Mapping[str, int] = {
    "core without authoring": 5300,
    "authoring": 1100,
    "anthropic": 1050,
    "google": 1050,
    "openai": 1850,
    "testing": 4800,
    "the eleven others together": 9800,
    MODULES_OF_A_FOLDER: 12,
    TESTS: 52000,
}
"""Lines of code that a part may have; what a change adds may raise one, argued in 0013-sizes.md by the same commit."""
NOT_MET: Mapping[str, int] = {
    "core without authoring": 6707,
    "authoring": 1308,
    "google": 1382,
    "openai": 1899,
    "testing": 5898,
    "the eleven others together": 13880,
    "tests/": 72100,
}
"""The parts that are larger than their bounds → what they may have until they are made smaller.

A figure that is larger fails, and one that is 3 % smaller fails too, so that this table follows.
`python -m tests.architecture.test_sizes` prints it anew.
"""
REASONS = ROOT / "docs" / "explanation" / "decisions" / "0013-sizes.md"

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
    lines = {str(package): package_lines(package) for package in PACKAGES}
    authoring = sum(map(code_lines, [*AUTHORING.rglob("*.py"), *AUTHORING.rglob("*.pyi")]))
    found = {part: sum(lines[name] for name in names) for part, names in PARTS.items()}
    found |= {"core without authoring": lines["core"] - authoring, "authoring": authoring}
    found[MODULES_OF_A_FOLDER] = max(Counter(path.parent for path in CORE.modules()).values())
    found[TESTS] = sum(path.read_text("utf-8").count("\n") for path in python_files("tests"))
    return found


def table_of(bounds: Mapping[str, int], not_met: Mapping[str, int]) -> str:
    rows = [
        f"| {part} | {bound:,} | {f'{not_met[part]:,}' if part in not_met else 'met'} |"
        for part, bound in bounds.items()
    ]
    return "\n".join(["| part | bound | not met: at most, until it is smaller |", "|---|--:|--:|", *rows])


def beside_bounds(found: Mapping[str, int]) -> str:
    """Each figure beside its bound, for who runs this."""
    rows = (f"{part:32}{figure:>8,} of {BOUNDS[part]:>6,}" for part, figure in found.items())
    return "\n".join(
        f"{row}{', NOT MET' if found[part] > BOUNDS[part] else ''}" for part, row in zip(found, rows, strict=True)
    )


def beyond(part: str) -> Iterator[str]:
    figure, bound, allowed = figures()[part], BOUNDS[part], NOT_MET.get(part)
    if allowed is None and figure > bound:
        yield f"{part}: {figure:,}, its bound is {bound:,}"
    elif allowed is not None and figure <= bound:
        yield f"{part}: {figure:,}, its bound of {bound:,} is met: take it out of NOT_MET"
    elif allowed is not None and not FEWER * allowed <= figure <= allowed:
        yield f"{part}: {figure:,}, NOT_MET has {allowed:,}, its bound is {bound:,}"


def test_each_part_keeps_its_bound_or_stands_in_the_table_of_those_that_do_not() -> None:
    """A part may grow to what NOT_MET has for it, which is beyond its bound, and no further."""
    print(f"\n{beside_bounds(figures())}")

    check_each(
        BOUNDS, beyond, "make it smaller; what stands in NOT_MET is set by `python -m tests.architecture.test_sizes`"
    )


def test_each_package_is_in_one_part() -> None:
    """None is left out unsaid."""
    assert sorted([*UNBOUNDED, *(name for names in PARTS.values() for name in names)]) == sorted(map(str, PACKAGES))
    assert NOT_MET.keys() <= BOUNDS.keys() == figures().keys()


def test_the_decision_about_sizes_has_the_same_table() -> None:
    """Who reads it sees which bounds are not met."""
    assert table_of(BOUNDS, NOT_MET) in REASONS.read_text("utf-8")


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


def main() -> None:
    """Print each figure beside its bound, and both tables as they are to be."""
    found = figures()
    not_met = {part: int(figure * (1 + MORE) / 2) for part, figure in found.items() if figure > BOUNDS[part]}
    lines = [f'    "{part}": {allowed},' for part, allowed in not_met.items()]
    print(beside_bounds(found), "\n".join(["NOT_MET = {", *lines, "}"]), table_of(BOUNDS, not_met), sep="\n\n")


if __name__ == "__main__":
    main()
