"""The reference of the door of authors: every group with its law, and its names with signature and meaning."""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from sabir import authoring

from tests.docs.contracts import PROTOCOLS, VALUES
from tests.docs.sources import Entry, Function, describe_class, describe_constant, signature, tree_of, whole_text
from tests.docs.surface import lines_of

GROUPS: Mapping[str, tuple[str, Mapping[str, str]]] = vars(authoring)["_GROUPS"]
LAWS = {heading: law for heading, (law, _) in GROUPS.items()}
HOMES = {name: module for _, modules in GROUPS.values() for module, names in modules.items() for name in names.split()}
NAMES = {heading: tuple(" ".join(modules.values()).split()) for heading, (_, modules) in GROUPS.items()}


def group(heading: str) -> str:
    """A group's part of docs/reference/authoring.md."""
    return "\n".join([f"## {heading}", LAWS[heading], "", *(line for name in NAMES[heading] for line in _lines(name))])


def _lines(name: str) -> Iterator[str]:
    if name in (*PROTOCOLS, *VALUES):  # those two have its members
        meaning = whole_text(getattr(authoring, name)).partition(". ")[0].removesuffix(".")
        yield f"- [`{name}`](contracts.md): {meaning}."
    else:
        yield from lines_of(_entry(name))


def _entry(name: str) -> Entry:
    value = getattr(authoring, name)
    module = importlib.import_module(f"sabir.{HOMES[name]}")
    if inspect.isclass(value) and value.__module__ == module.__name__:
        return describe_class(value)
    functions = [node for node in tree_of(module).body if isinstance(node, Function)]
    nodes = {node.name: node for node in functions}
    if name in nodes:
        return Entry(signature(nodes[name]), whole_text(value))
    return describe_constant(name, module)


SECTIONS: Mapping[str, Callable[[], str]] = {
    f"authors {heading.lower()}": partial(group, heading) for heading in GROUPS
}
