"""The reference of the actors: types of messages with their data, states of a thread, codes of errors.

    TYPES, MOVES, ErrorCode ──▶ one table a section          the docstring of `state` ──▶ the picture

Read from the source, as the reference of core is.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import ModuleType

from pydantic import BaseModel
from sabir.vocabulary import parts
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

from tests.docs.packages import name_table, table
from tests.docs.sources import (
    Entry,
    class_node,
    describe_class,
    describe_constant,
    documented_attributes,
    paragraph,
    whole_text,
)
from tests.docs.surface import lines_of

PACKAGE = "sabir_actors"
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
    "Text": parts,
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
    """What stands within the data of messages."""
    return _models(INNER)


def word_list() -> str:
    """What the types of fields mean."""
    return "\n".join(f"- `{name}`: {describe_constant(name, module).summary}" for name, module in WORDS.items())


def move_table() -> str:
    """What happens to a thread, from which states, and the state after it."""
    rows = (
        (f"`{what}`", ", ".join(f"`{each}`" for each in sorted(before)), f"`{after}`")
        for what, (before, after) in state.MOVES.items()
    )
    return table(("what happens", "allowed in", "state after it"), rows)


def picture() -> str:
    """The states and moves as a text."""
    blocks = (inspect.getdoc(state) or "").split("\n\n")
    drawn = next("\n\n".join(blocks[at:]) for at, block in enumerate(blocks) if block.startswith("    "))
    lines = [line for line in drawn.splitlines() if line.startswith("    ") or not line]
    return f"```text\n{textwrap.dedent(chr(10).join(lines)).strip(chr(10))}\n```"


def queue_list() -> str:
    """What a queue of threads does, and how the one that comes with the package is made."""
    made = Entry(describe_class(DurableQueue).heading, whole_text(DurableQueue), ())
    parts = [("IsGiven", queues), ("Perform", queues), *((name, durable) for name in DEFAULTS)]
    named = [describe_constant(name, module) for name, module in parts]
    return "\n".join(line for entry in (describe_class(ThreadQueue), made, *named) for line in lines_of(entry))


def code_table() -> str:
    """Every code, and who can mend what it says."""
    return table(("code", "meaning"), ((f"`{name}`", text) for name, text in code_texts().items()))


def code_texts() -> dict[str, str]:
    """Code → the text below it in the source."""
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
        if base.__module__.startswith(PACKAGE):
            kinds |= dict(entry.heading.split(": ", 1) for entry in documented_attributes(base))
    defaults = {
        name: "" if info.is_required() else " = …" if info.default_factory else f" = {info.default!r}"
        for name, info in model.model_fields.items()
    }
    fields = (f"`{name}: {kinds[name].replace('typed.', '')}{default}`" for name, default in defaults.items())
    return ", ".join(fields) or "nothing"


SECTIONS: dict[str, Callable[[], str]] = {
    f"names of {PACKAGE}": partial(name_table, PACKAGE),
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
