"""The reference of messages with roles: names, kinds, the words of `add_message`, what a template sees.

    the classes of sabir_roles ──▶ one list or table a section

Read from the source, as the reference of core is.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from sabir_roles import (
    ActionRequest,
    ActionResponse,
    AssistantResponse,
    Instruction,
    MessageManager,
    RoledMessage,
    System,
    creation,
    instruction,
    message,
)
from sabir_roles.collection import Collection
from sabir_roles.templated_message import TemplatedMessage

from tests.docs.packages import name_table
from tests.docs.sources import Entry, annotation, class_node, describe_class, describe_constant
from tests.docs.surface import lines_of

PACKAGE = "sabir_roles"
KINDS = (System, Instruction, AssistantResponse, ActionRequest, ActionResponse)
"""In the order in which a conversation meets them."""
WORDS = {"InstructionArguments": instruction, "ImageDetail": instruction, "CommonArguments": creation, "Entry": message}
"""Names that signatures use without being exported, and where they are defined."""
_CALLED_BY_OTHERS = {"model_post_init", "changed", "make", "answers"}
"""Methods that the package calls itself."""


def base_list() -> str:
    return _listed([_whole(RoledMessage, TemplatedMessage)])


def kind_list() -> str:
    return _listed(describe_class(kind) for kind in KINDS)


def manager_list() -> str:
    """The manager: what it holds, what makes messages of it, and its turns; each member once."""
    return _listed([_whole(MessageManager, Collection, creation.CreateMethods)])


def _whole(of: type, *bases: type) -> Entry:
    """A class with the members of its bases before its own, each once; its constructor is the first that there is."""
    found = [describe_class(each) for each in (*bases, of)]
    members = {member.heading: member for entry in found for member in entry.members}
    heading = max((each.heading for each in found), key=len)
    return replace(found[-1], heading=f"{of.__name__}({heading.partition('(')[2]}", members=tuple(members.values()))


def word_table() -> str:
    """The keywords of `add_message`: which kind each makes, and what it takes."""
    takes = {**dict(_fields(instruction.InstructionArguments)), **dict(_fields(creation.MessageArguments))}
    makes = {word: kind for kind, words in creation._KIND_ARGUMENTS.items() for word in sorted(words)}
    makes |= dict.fromkeys(sorted(creation.SHARED), "every kind")
    rows = (f"| `{word}` | {_class_name(kind)} | `{takes[word]}` |" for word, kind in makes.items())
    return "\n".join(["| keyword | creates | value |", "|---|---|---|", *rows])


def word_list() -> str:
    found = (describe_constant(name, module) for name, module in WORDS.items())
    return _listed(found)


def template_table() -> str:
    """The named templates, and the names that they may use."""
    rows = (
        f"| `{kind.__name__}` | `{kind.own_template}` | {', '.join(f'`{name}`' for name in kind.keys)} |"
        for kind in KINDS
    )
    return "\n".join(["| kind | template | names |", "|---|---|---|", *rows])


def _fields(model: type) -> Iterator[tuple[str, str]]:
    """The fields of a typed dictionary, each with its type as a cell of a table."""
    for node in class_node(model).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, annotation(node.annotation).removesuffix(" | None").replace("|", "\\|")


def _class_name(kind: str) -> str:
    return kind if " " in kind else f"`{''.join(map(str.capitalize, kind.split('_')))}`"


def _listed(entries: Iterable[Entry]) -> str:
    return "\n".join(line for entry in entries for line in lines_of(_shown(entry)))


def _shown(entry: Entry) -> Entry:
    members = (each for each in entry.members if each.heading.partition("(")[0] not in _CALLED_BY_OTHERS)
    return replace(entry, members=tuple(members))


SECTIONS: dict[str, Callable[[], str]] = {
    f"names of {PACKAGE}": partial(name_table, PACKAGE),
    "roled message": base_list,
    "role kinds": kind_list,
    "manager": manager_list,
    "role words": word_list,
    "words of add message": word_table,
    "role templates": template_table,
}
"""The sections of the page, for generate.py."""
