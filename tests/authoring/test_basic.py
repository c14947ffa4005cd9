"""The basic names for authors suffice for an ordinary provider, and `help(sabir.authoring)` lists them."""

import ast
import re
from collections.abc import Iterator

import pytest
from sabir import authoring

from tests.docs.pages import ROOT, page
from tests.docs.surface import BASIC, BASIC_NAMES

SOURCES = {
    "sabir-echo": ROOT / "plugins" / "echo" / "src",
    "the project of `sabir new`": ROOT / "plugins" / "cli" / "src" / "sabir_cli" / "template" / "src",
}
ADVANCED = frozenset({"batches.py", "embeddings.py"})
"""Files of operations, which an ordinary provider need not have."""
TUTORIAL = page("tutorials/your-first-provider.md")


def imported(code: str) -> Iterator[str]:
    """The names that a program imports from `sabir.authoring`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module == "sabir.authoring":
            yield from (alias.name for alias in node.names)


def used_by(source: str) -> set[str]:
    if source == "the tutorial":
        return {name for block in TUTORIAL.blocks if block.language == "python" for name in imported(block.code)}
    files = [path for path in SOURCES[source].rglob("*.py") if path.name not in ADVANCED]
    return {name for path in files for name in imported(path.read_text("utf-8"))}


@pytest.mark.parametrize("source", [*SOURCES, "the tutorial"])
def test_an_ordinary_provider_uses_only_basic_names(source: str) -> None:
    assert used_by(source) - BASIC_NAMES == set()


def test_every_basic_name_is_used_by_echo_or_the_project_of_sabir_new() -> None:
    assert set.union(*map(used_by, SOURCES)) == BASIC_NAMES


def test_every_basic_name_exists_and_is_listed_once() -> None:
    listed = [name for names in BASIC.values() for name in names]

    assert len(listed) == len(BASIC_NAMES)
    assert set(authoring.__all__) >= BASIC_NAMES


def test_a_third_of_the_names_is_basic() -> None:
    assert len(BASIC_NAMES) - len(BASIC["types"]) <= 30
    assert 3 * len(BASIC_NAMES) <= len(authoring.__all__)


def test_the_reference_lists_the_basic_names_before_the_advanced_ones() -> None:
    before, after = page("reference/authoring.md").text.split("\n## Advanced names\n")
    basic, advanced = (set(re.findall(r"^- \[?`(?:async )?(\w+)", part, re.MULTILINE)) for part in (before, after))

    assert basic == BASIC_NAMES
    assert advanced & BASIC_NAMES == set()
    assert len(advanced) >= len(authoring.__all__) - len(BASIC_NAMES)
