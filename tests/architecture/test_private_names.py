"""Names say what they contain: few hide it, and no two things of the source share one.

`python -m tests.architecture.test_private_names` prints the figures.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.architecture.project import PACKAGES, nodes, shown

HIDING = frozenset({"found", "said", "told", "given", "made", "held", "kept", "shown", "asked"})
"""Participles that say that something happened to a value, and not what the value is."""
MOST_HIDING = 10
VAGUE = frozenset({"data", "value", "result", "item", "info", "obj", "tmp"})
"""Nouns that fit every value."""
MOST_VAGUE = 704
MOST_MODULES = 2
"""The number of modules that may define a private function of one name, overrides apart."""

SHARED_TYPES = {
    "Access": "public in two packages: of a provider, of a NATS server",
    "Answer": "public in two packages: of a conversation, of the scripted model",
    "Message": "the actor protocol names its messages so",
    "Turn": "the actor protocol names an entry of a conversation so",
}
"""Type that two modules define → the reason."""
OVERRIDES = {"_core_content", "_read_content"}
"""Private methods that many modules define, because kinds of roled messages override them."""

SOURCES = [path for package in PACKAGES for path in package.own_modules()]


@cache
def defined_names() -> Counter[str]:
    """Return how often the source defines each name: assigned, as a parameter, a function or a class. Leading
    underscores and capitals do not count.
    """
    return Counter(name.strip("_").lower() for path in SOURCES for node in nodes(path) for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def test_few_names_hide_what_they_are() -> None:
    hiding = {name: defined_names()[name] for name in HIDING}
    assert sum(hiding.values()) <= MOST_HIDING, f"{hiding}: name a variable after its content, a function after its act"


def test_vague_names_do_not_grow() -> None:
    vague = {name: defined_names()[name] for name in VAGUE}
    assert sum(vague.values()) <= MOST_VAGUE, f"{vague}: name the new ones after their content"


@cache
def classes() -> Mapping[str, list[Path]]:
    """Return the modules that define a class of each name."""
    return _modules_by_name(ast.ClassDef)


@cache
def private_functions() -> Mapping[str, list[Path]]:
    """Return the modules that define a private function or method of each name."""
    by_name = _modules_by_name(ast.FunctionDef, ast.AsyncFunctionDef)
    return {name: paths for name, paths in by_name.items() if name.startswith("_") and not name.endswith("__")}


def _modules_by_name(*kinds: type[ast.AST]) -> Mapping[str, list[Path]]:
    modules: dict[str, list[Path]] = defaultdict(list)
    for path in SOURCES:
        for name in dict.fromkeys(node.name for node in nodes(path) if isinstance(node, kinds)):  # type: ignore[attr-defined]
            modules[name].append(path)
    return modules


def shared(modules: Mapping[str, list[Path]], most: int) -> list[str]:
    return [f"{name}: {', '.join(map(shown, paths))}" for name, paths in sorted(modules.items()) if len(paths) > most]


def test_no_two_types_share_a_name() -> None:
    assert [line for line in shared(classes(), 1) if line.partition(":")[0] not in SHARED_TYPES] == []


def test_a_private_function_is_defined_in_few_modules() -> None:
    """A reader who searches for its name finds one meaning."""
    assert [line for line in shared(private_functions(), MOST_MODULES) if line.partition(":")[0] not in OVERRIDES] == []


if __name__ == "__main__":
    hiding, vague = (sum(defined_names()[name] for name in names) for names in (HIDING, VAGUE))
    types, functions = shared(classes(), 1), shared(private_functions(), MOST_MODULES)
    print(f"{hiding} names hide what they are, {vague} are vague")
    print(f"{len(types)} types share a name", *types, sep="\n    ")
    print(f"{len(functions)} private functions are defined in more than two modules", *functions, sep="\n    ")
