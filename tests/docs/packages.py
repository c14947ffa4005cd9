"""The reference of the packages beside core: their public names, the tables they write, the envelopes they send.

`__all__` ──▶ where a name is defined ──▶ one row: the name, and the first paragraph of what it says of itself

Read from the source, as the reference of core is.
"""

import ast
import importlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType

from pydantic import BaseModel
from sabir_distributed import access, envelopes, settings, subjects
from sabir_durable import tables
from sabir_session.stores import store as layout

from tests.docs.sources import annotation, assigned, documented_attributes, paragraph, tree_of

PACKAGES = ("sabir_session", "sabir_runtime", "sabir_durable", "sabir_distributed", "sabir_mcp")
"""Those whose names the page lists, in the order in which a reader meets them."""

CALLERS = (envelopes.Request, envelopes.Cancelled, envelopes.Sought)
WORKERS = (
    envelopes.Answered, envelopes.Failed, envelopes.Fault, envelopes.Accepted, envelopes.Busy, envelopes.Released,
    envelopes.Alive, envelopes.Willing,
)  # fmt: skip


def names_of(package: str) -> list[str]:
    """What a package exports."""
    return list(importlib.import_module(package).__all__)


def name_table(package: str) -> str:
    """One row a name, in the order of the alphabet."""
    names = sorted(names_of(package), key=str.casefold)
    return table(("name", "what it is"), ((f"`{name}`", summary_of(package, name)) for name in names))


def summary_of(package: str, name: str) -> str:
    """What a name says of itself; of an alias that says nothing, what it stands for."""
    module = home_of(package, name)
    body = tree_of(module).body
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return paragraph(ast.get_docstring(node))
        if name in assigned(node) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            return paragraph(ast.literal_eval(following.value)) if is_text else f"`{annotation(node.value)}`"  # type: ignore[attr-defined]
    raise LookupError(f"{module.__name__} does not define {name}")


def home_of(package: str, name: str) -> ModuleType:
    """The module in which a public name of a package is defined."""
    for node in ast.walk(tree_of(importlib.import_module(package))):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return importlib.import_module(node.module or "")
    raise LookupError(f"{package} does not import {name}")


def journal_tables() -> str:
    """The tables and views of a store of journals, as SQLite has them."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in layout.SQLITE_TABLES:
            connection.execute(statement)
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid")
        names = [name for (name,) in found if not name.startswith("sqlite_")]
        columns = ([row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names)
        return table(("table", "columns"), zip(map(_code, names), map(_codes, columns), strict=True))
    finally:
        connection.close()


def ledger_tables() -> str:
    """The tables of durable runs, beside the engine's own."""
    found = tables.metadata.sorted_tables
    return table(("table", "columns"), ((_code(each.name), _codes(each.columns.keys())) for each in found))


def subject_table() -> str:
    """What is said where."""
    rows = (
        (subjects.requests_of("<context>", "<policy>"), f"requests; the queue group is `{subjects.QUEUE}`"),
        (subjects.all_of("<context>"), "what every worker of a context hears: `Cancelled`, `Sought`"),
        (
            subjects.requests_for("<worker>", "<context>", "<policy>"),
            "requests for the worker that said that it would take them",
        ),
        ("<inbox>.<request>.<sending>", "what is said about one sending of a request"),
        (subjects.beats_for("<inbox>.<request>.<sending>"), "beats of a worker, one for all that it does for a caller"),
    )
    return table(("subject", "what goes there"), ((_code(subject), what) for subject, what in rows))


def envelope_table() -> str:
    """Every envelope with its fields; those with a default have a `=`."""
    rows = (
        (_code(model.__name__), sender, _codes(_fields(model)), paragraph(model.__doc__))
        for sender, models in (("caller", CALLERS), ("worker", WORKERS))
        for model in models
    )
    return table(("envelope", "from", "fields", "what it says"), rows)


def waiting_tables() -> str:
    """The settings of a caller and of a worker, with their defaults, and their access to the server."""
    parts = (settings.CallSettings, settings.WorkerSettings, access.Access)
    return "\n\n".join(table((model.__name__, "default", "meaning"), _settings(model)) for model in parts)


def _settings(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for entry in documented_attributes(model):
        name = entry.heading.partition(":")[0]
        default = model.model_fields[name].default
        yield _code(name), f"{default:,}" if isinstance(default, int | float) else _given(default), entry.summary


def _given(default: object) -> str:
    return "" if default is None else _code(default if isinstance(default, str) else f"{type(default).__name__}()")


def _fields(model: type[BaseModel]) -> list[str]:
    return [(info.alias or name) + ("" if info.is_required() else "=") for name, info in model.model_fields.items()]


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Rows under their heads."""
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])


def _code(name: str) -> str:
    return f"`{name}`"


def _codes(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names))


SECTIONS: dict[str, Callable[[], str]] = {
    **{f"names of {package}": partial(name_table, package) for package in PACKAGES},
    "journal tables": journal_tables,
    "ledger tables": ledger_tables,
    "subjects": subject_table,
    "envelopes": envelope_table,
    "waiting": waiting_tables,
}
"""The sections of the page, for generate.py."""
