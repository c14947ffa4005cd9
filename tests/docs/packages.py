"""The reference of the packages beside core: public names, tables, envelopes, and all that actors say to each other.

`__all__` ──▶ where a name is defined ──▶ one row: the name, and the first paragraph of what it says of itself

Read from the source, as the reference of core is.
"""

import ast
import importlib
import inspect
import sqlite3
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import ModuleType

from pydantic import BaseModel
from sabir.vocabulary import fields
from sabir_actors import (
    TYPES,
    ErrorCode,
    ErrorResponse,
    Message,
    Response,
    ThreadQueue,
    data,
    durable,
    protocol,
    queues,
    state,
)
from sabir_actors.durable import DurableQueue
from sabir_runtime.distributed import access, envelopes, settings, subjects
from sabir_runtime.durable import tables
from sabir_session.stores import layouts

from tests.docs.sources import (
    Entry,
    annotation,
    assigned,
    class_node,
    describe_class,
    describe_constant,
    documented_attributes,
    paragraph,
    tree_of,
    whole_text,
)
from tests.docs.surface import lines_of

PACKAGES = ("sabir_session", "sabir_runtime", "sabir_runtime.durable", "sabir_runtime.distributed", "sabir_mcp")
"""Those whose names the page lists, in the order in which a reader meets them."""

CALLERS = (envelopes.Request, envelopes.Cancelled, envelopes.Sought)
WORKERS = (
    envelopes.Answered, envelopes.Failed, envelopes.Fault, envelopes.Accepted, envelopes.Busy, envelopes.Released,
    envelopes.Alive, envelopes.Willing,
)  # fmt: skip


def names_of(package: str) -> list[str]:
    return list(importlib.import_module(package).__all__)


def name_table(package: str) -> str:
    """One row a name, in the order of the alphabet."""
    names = sorted(names_of(package), key=str.casefold)
    return table(("name", "what it is"), ((f"`{name}`", summary_of(package, name)) for name in names))


def summary_of(package: str, name: str) -> str:
    """What a name says of itself; of an alias that says nothing, what it stands for."""
    module = _home_of(package, name)
    body = tree_of(module).body
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return paragraph(ast.get_docstring(node))
        if name in assigned(node) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            return paragraph(ast.literal_eval(following.value)) if is_text else f"`{annotation(node.value)}`"  # type: ignore[attr-defined]
    raise LookupError(f"{module.__name__} does not define {name}")


def _home_of(package: str, name: str) -> ModuleType:
    """The module in which a public name of a package is defined."""
    for node in ast.walk(tree_of(importlib.import_module(package))):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return importlib.import_module(node.module or "")
    raise LookupError(f"{package} does not import {name}")


def journal_tables() -> str:
    """The tables and views of a store of journals, as SQLite has them."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in layouts.SQLITE_TABLES:
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
    rows = (
        (subjects.requests_of("<context>", "<policy>"), f"requests; the queue group is `{subjects.QUEUE}`"),
        (subjects.all_of("<context>"), "`Cancelled` and `Sought`, for all workers of a context"),
        (
            subjects.requests_for("<worker>", "<context>", "<policy>"),
            "requests for the worker that offered to accept them",
        ),
        ("<inbox>.<request>.<sending>", "answers and acceptances of one attempt of a request"),
        (subjects.beats_for("<inbox>.<request>.<sending>"), "heartbeats of a worker, for all requests of one caller"),
    )
    return table(("subject", "content"), ((_code(subject), text) for subject, text in rows))


def envelope_table() -> str:
    """Every envelope with its fields; those with a default have a `=`."""
    rows = (
        (_code(model.__name__), sender, _codes(_envelope_fields(model)), paragraph(model.__doc__))
        for sender, models in (("caller", CALLERS), ("worker", WORKERS))
        for model in models
    )
    return table(("envelope", "from", "fields", "meaning"), rows)


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


def _envelope_fields(model: type[BaseModel]) -> list[str]:
    return [(info.alias or name) + ("" if info.is_required() else "=") for name, info in model.model_fields.items()]


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])


def _code(name: str) -> str:
    return f"`{name}`"


def _codes(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names))


PACKAGE_SECTIONS: dict[str, Callable[[], str]] = {
    **{f"names of {package}": partial(name_table, package) for package in PACKAGES},
    "journal tables": journal_tables,
    "ledger tables": ledger_tables,
    "subjects": subject_table,
    "envelopes": envelope_table,
    "waiting": waiting_tables,
}
"""The sections of the page, for generate.py."""


ACTORS = "sabir_actors"
ENVELOPES = (Message, Response, ErrorResponse)
INNER = (
    data.PhaseOutput,
    data.AgentConfig,
    data.AgentChange,
    data.Turn,
    data.PreparedContext,
    data.AgentResult,
    data.ToolCall,
)
"""What stands within the data of messages."""
WORDS: Mapping[str, ModuleType] = {
    "Name": data,
    "Text": fields,
    "DataObject": protocol,
    "Time": data,
    "Seconds": data,
    "JSONObject": data,
    "ThreadState": data,
}
"""Names that fields use, and where they are defined."""
DEFAULTS = ("AT_ONCE", "APPLICATION")
"""What parameters of the queue are by default."""


def envelope_list() -> str:
    """The three classes of messages with their fields."""
    return _models(ENVELOPES)


def type_list() -> str:
    """Every type: what it asks, its data, what answers it, and that one's data."""
    return "\n\n".join("\n".join(_described(name)) for name in TYPES)


def inner_list() -> str:
    return _models(INNER)


def word_list() -> str:
    return "\n".join(f"- `{name}`: {describe_constant(name, module).summary}" for name, module in WORDS.items())


def move_table() -> str:
    """What happens to a thread, from which states, and the state after it."""
    rows = (
        (f"`{what}`", ", ".join(f"`{each}`" for each in sorted(before)), f"`{after}`")
        for what, (before, after) in state.MOVES.items()
    )
    return table(("what happens", "allowed in", "state after it"), rows)


def picture() -> str:
    blocks = (inspect.getdoc(state) or "").split("\n\n")
    drawn = next("\n\n".join(blocks[at:]) for at, block in enumerate(blocks) if block.startswith("    "))
    lines = [line for line in drawn.splitlines() if line.startswith("    ") or not line]
    return f"```text\n{textwrap.dedent(chr(10).join(lines)).strip(chr(10))}\n```"


def queue_list() -> str:
    """What a queue of threads does, and how the one that comes with the package is made."""
    made = Entry(describe_class(DurableQueue).heading, whole_text(DurableQueue), ())
    parts = [("IsAssigned", queues), ("Perform", queues), *((name, durable) for name in DEFAULTS)]
    named = [describe_constant(name, module) for name, module in parts]
    return "\n".join(line for entry in (describe_class(ThreadQueue), made, *named) for line in lines_of(entry))


def code_table() -> str:
    return table(("code", "meaning"), ((f"`{name}`", text) for name, text in code_texts().items()))


def code_texts() -> dict[str, str]:
    body = class_node(ErrorCode).body
    return {
        node.targets[0].id: paragraph(ast.literal_eval(text.value))
        for node, text in pairwise(body)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _described(name: str) -> Iterator[str]:
    found = TYPES[name]
    yield f"### {name}"
    yield f"{paragraph(found.data.__doc__)}"
    yield ""
    yield f"- data: {_cells(found.data)}"
    if found.response:
        yield f"- answered by `{found.response}`: {_cells(found.response_data)}"
    else:
        yield "- answered by what answers the original"


def _models(models: Sequence[type[BaseModel]]) -> str:
    return "\n".join(f"- `{each.__name__}`: {paragraph(each.__doc__)}\n  {_cells(each)}" for each in models)


def _cells(model: type[BaseModel]) -> str:
    """Each field with its type, as the source has it, and its default."""
    kinds: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.startswith(ACTORS):
            kinds |= dict(entry.heading.split(": ", 1) for entry in documented_attributes(base))
    defaults = {
        name: "" if info.is_required() else " = …" if info.default_factory else f" = {info.default!r}"
        for name, info in model.model_fields.items()
    }
    fields = (f"`{name}: {kinds[name].replace('typed.', '')}{default}`" for name, default in defaults.items())
    return ", ".join(fields) or "nothing"


ACTOR_SECTIONS: dict[str, Callable[[], str]] = {
    f"names of {ACTORS}": partial(name_table, ACTORS),
    "actor envelopes": envelope_list,
    "actor messages": type_list,
    "actor data": inner_list,
    "actor words": word_list,
    "thread picture": picture,
    "thread moves": move_table,
    "thread queues": queue_list,
    "actor error codes": code_table,
}
"""The sections of the page, for generate.py."""
