"""The table of stored names: each class of this project whose stored name does not depend on where the class is.

import every module of the packages ──▶ classes that assign `stored_as` ──▶ one row each
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

import sabir_actors
import sabir_roles
import sabir_runtime
import sabir_session
from sabir.authoring import StoredNames
from sabir_roles.message import kind_names

from tests.docs.packages import table

SINCE: Mapping[str, str] = {
    "sabir.message": "0.1.0",
    "sabir.thread_event": "0.1.0",
    "Threads": "0.1.0",
    "ActionRequest": "0.1.0",
    "ActionResponse": "0.1.0",
    "AssistantResponse": "0.1.0",
    "Instruction": "0.1.0",
    "RoledMessage": "0.1.0",
    "System": "0.1.0",
}
"""Stored name → the version that began to write it. A name is never removed and never given to another type."""
WHERE: Mapping[str, str] = {
    "sabir_session": "kind of a row in a store, slice of a snapshot",
    "sabir_actors": "kind of a row in a thread's journal",
    "sabir_actors.durable": "context of a durable run",
    "sabir_roles": "`kind` of a message's dictionary",
}
"""Package or module → what refers to its types by their names."""


def named_types() -> dict[str, type]:
    """Stored name → its type, for all types of the packages that store something."""
    types: dict[str, type] = {}
    for package in (sabir_session, sabir_runtime, sabir_actors, sabir_roles):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            classes = [each for each in vars(module).values() if isinstance(each, type)]
            for each in classes:
                if each.__module__ == info.name and isinstance(vars(each).get("stored_as"), str):
                    types[names_of(each).name] = each
    return types


def names_of(named: type) -> StoredNames:
    """The names of a type, with its earlier ones."""
    is_role = named.__module__.startswith("sabir_roles")
    return kind_names(named) if is_role else StoredNames.of(named, "")


def stored_table() -> str:
    """One row for each type."""
    return table(("name", "type", "where", "since", "also read"), _rows())


def _rows() -> Iterator[tuple[str, ...]]:
    for name, named in sorted(named_types().items(), key=lambda item: (item[1].__module__.split(".")[0], item[0])):
        package = named.__module__.partition(".")[0]
        earlier = ", ".join(f"`{each}`" for each in names_of(named).earlier if each)
        where = WHERE.get(named.__module__, WHERE[package])
        yield f"`{name}`", f"`{package}.{named.__name__}`", where, SINCE[name], earlier


SECTIONS = {"stored names": stored_table}
