"""The reference of the conformance kit: its cases by family with the rule of each, and the names of capabilities.

A failing case prints the address of its own heading there: docs/reference/conformance.md#<method name>.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from sabir_testing import CAPABILITIES, OfflineConformance, ProviderConformance
from sabir_testing.kit.questions import QUESTIONS, Question
from sabir_testing.kit.suite import Suite, case_names

from tests.docs.sources import paragraph, whole_text

LONGEST_SHOWN = 80
"""Characters of a question that the table shows."""


def families() -> dict[str, type[Suite]]:
    """The families by name, in the order in which the kit lists them."""
    return {each.family: each for each in ProviderConformance.__bases__ if issubclass(each, Suite)}


def cases_of(family: type[Suite]) -> tuple[str, ...]:
    """The cases of one family, in its order."""
    return tuple(name for name in case_names(ProviderConformance) if name in case_names(family))


def case_list() -> str:
    """One section a family, one heading a case: its docstring, and its rows."""
    return "\n\n".join("\n\n".join(_family(name, family)) for name, family in families().items())


def capability_names() -> str:
    """One row a capability."""
    return "\n".join(
        ["| capability | what it is |", "|---|---|", *(f"| `{n}` | {w} |" for n, w in CAPABILITIES.items())]
    )


def question_table() -> str:
    """One row a question that the kit asks every service: its words, what it needs, and what any answer holds."""
    rows = (f"| `{name}` | {_said(each)} | {_needed(each)} | {_held(each)} |" for name, each in QUESTIONS.items())
    return "\n".join(["| question | the user says | needs | the answer |", "|---|---|---|---|", *rows])


def _said(question: Question) -> str:
    text = next(message.text for message in reversed(question.messages) if message.policy == "user")
    return text if len(text) <= LONGEST_SHOWN else f"{len(text):,} characters"


def _needed(question: Question) -> str:
    return ", ".join(f"`{name}`" for name in question.needs)


def _held(question: Question) -> str:
    return f"`{question.expects.__name__}`" if question.expects else paragraph(question.check.__doc__).rstrip(".")


def rows_of(name: str) -> list[list[str]]:
    """The rows of a case: one list of names for each of its parameters, in the order of the case's id."""
    method = vars(_home(name))[name]
    marks = [mark for mark in getattr(method, "pytestmark", ()) if mark.name == "parametrize"]
    return [_row_names(*mark.args, **mark.kwargs) for mark in marks]


def _row_names(names: str, values: Sequence[Any], *, ids: Any = None, **_: object) -> list[str]:
    """The names that pytest gives the rows of one parameter."""
    given = list(ids) if ids is not None and not callable(ids) else [ids(each) if ids else each for each in values]
    plain = [each for each in given if isinstance(each, str | int)]
    assert len(plain) == len(given), f"{names}: give the rows names, by ids=…"
    return [str(each) for each in plain]


def _home(name: str) -> type[Suite]:
    """The class of cases that defines a case."""
    return next(each for each in ProviderConformance.__mro__ if name in vars(each))


def _family(name: str, family: type[Suite]) -> Iterator[str]:
    what = paragraph(importlib.import_module(family.__module__).__doc__).removeprefix(f"{name.capitalize()}: ")
    left_out = "" if issubclass(OfflineConformance, family) else " `OfflineConformance` does not have this family."
    yield f"## {name.capitalize()}\n{what[0].upper()}{what[1:]}{left_out}"
    for case in cases_of(family):
        yield "\n".join(_case(case))


def _case(name: str) -> Iterator[str]:
    yield f"### {name}"
    yield whole_text(vars(_home(name))[name])
    if rows := rows_of(name):
        yield ""
        yield "Rows: " + "; for each of them ".join(", ".join(f"`{row}`" for row in each) for each in rows) + "."
