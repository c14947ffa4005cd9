"""Models that the vendors' SDKs list and models.toml does not: `nox -s models`, or `python -m tests.missing_models`.

    type literals in the source of each SDK ──▶ names ──find_model──▶ a row · assumed from a newer row · unknown

The lists are read from the SDKs' files, without importing them: some modules are private, and imports are slow.
"""

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import sabir
from sabir.vocabulary.models import find_model


class SDKList(NamedTuple):
    """A provider, the package of its SDK, and the files in it that list models."""

    provider: str
    package: str
    files: tuple[str, ...]


LISTS = (
    SDKList("openai", "openai", ("types/shared/chat_model.py", "types/shared/responses_model.py")),
    SDKList("anthropic", "anthropic", ("types/model.py",)),
    SDKList("google", "google.genai", ("_gaos/types/interactions/model.py",)),
)


class Coverage(NamedTuple):
    """The names that an SDK lists, by what the table knows of them."""

    known: list[str]
    assumed: dict[str, str]
    """Name → the prefix of the row that it follows."""
    unknown: list[str]
    unlisted: list[str]
    """Prefixes of rows for which the SDK lists no model."""


def sdk_models(listed: SDKList) -> list[str]:
    """Return the names in the SDK's lists; raises FileNotFoundError if the SDK moved a file."""
    spec = find_spec(listed.package)
    assert spec is not None and spec.submodule_search_locations, f"{listed.package} is not installed"
    root = Path(next(iter(spec.submodule_search_locations)))
    names = [name for file in listed.files for name in _literals((root / file).read_text("utf-8"))]
    return list(dict.fromkeys(names))


def _literals(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            yield from (each.value for each in ast.walk(node) if _is_text(each))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def coverage(listed: SDKList) -> Coverage:
    """Compare the rows of a provider with the list of its SDK."""
    rows, names = sabir.models(listed.provider), sdk_models(listed)
    found = {name: find_model(rows, name) for name in names}
    prefixes = {info.prefix for info in found.values()}
    return Coverage(
        known=[name for name, info in found.items() if info.prefix and not info.follows],
        assumed={name: info.follows for name, info in found.items() if info.follows},
        unknown=[name for name, info in found.items() if not info.prefix],
        unlisted=[row.prefix for row in rows if row.prefix not in prefixes],
    )


def report() -> Iterator[str]:
    """Yield the lines to print: what is missing, then the rows that no SDK lists."""
    for listed in LISTS:
        each = coverage(listed)
        total = len(each.known) + len(each.assumed) + len(each.unknown)
        yield f"{listed.provider}: {len(each.known)} of the {total} models in the SDK's lists have a row"
        yield from (f"  assumed   {name}: like {row}" for name, row in each.assumed.items())
        yield from (f"  unknown   {name}" for name in each.unknown)
        yield from (f"  unlisted  {prefix}: a row for which the SDK lists no model" for prefix in each.unlisted)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
