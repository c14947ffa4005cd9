"""The reference of the kit: its cases by family with the rule of each, and what the reader of its tutorial sees.

    the page's own block ──▶ sabir_parrot/        Echo's suite in tests/conformance ──▶ test_parrot.py
    pytest ──▶ the end of a run;  one line broken ──▶ a failure in words

A failing case prints the address of its own heading: docs/reference/conformance.md#<method name>. The tutorial's copy
is run in a folder of its own, by a Python of its own, as the reader does it.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sabir_testing import CAPABILITIES, DOWNGRADED, REFUSED, Grade, OfflineConformance, ProviderConformance
from sabir_testing.kit.service_questions import QUESTIONS, ServiceQuestion
from sabir_testing.kit.suite import Suite, case_names

from tests.conformance.suites import SUITES
from tests.docs.pages import page
from tests.docs.sources import paragraph, whole_text

LONGEST_SHOWN = 80
"""Characters of a question that the table shows."""


def families() -> dict[str, tuple[type[Suite], ...]]:
    """The classes of each family by its name, in the order in which the kit lists them."""
    classes = [each for each in ProviderConformance.__mro__ if vars(each).get("family")]
    names = dict.fromkeys(each.family for each in classes)
    return {name: tuple(each for each in classes if each.family == name) for name in names}


def cases_of(family: Sequence[type[Suite]]) -> tuple[str, ...]:
    names = {name for each in family for name in case_names(each)}
    return tuple(name for name in case_names(ProviderConformance) if name in names)


def case_list() -> str:
    """One section a family, one heading a case: its docstring, and its rows."""
    return "\n\n".join("\n\n".join(_family(name, family)) for name, family in families().items())


def capability_names() -> str:
    return "\n".join(
        ["| capability | what it is |", "|---|---|", *(f"| `{n}` | {w} |" for n, w in CAPABILITIES.items())]
    )


def question_table() -> str:
    """One row a question that the kit asks every service: its words, what it needs, and what any answer holds."""
    rows = (f"| `{name}` | {_said(each)} | {_needed(each)} | {_held(each)} |" for name, each in QUESTIONS.items())
    return "\n".join(["| question | the user says | needs | the answer |", "|---|---|---|---|", *rows])


def _said(question: ServiceQuestion) -> str:
    text = next(message.text for message in reversed(question.messages) if message.policy == "user")
    return text if len(text) <= LONGEST_SHOWN else f"{len(text):,} characters"


def _needed(question: ServiceQuestion) -> str:
    return ", ".join(f"`{name}`" for name in question.needs)


def _held(question: ServiceQuestion) -> str:
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
    return next(each for each in ProviderConformance.__mro__ if name in vars(each))


def _family(name: str, family: Sequence[type[Suite]]) -> Iterator[str]:
    what = paragraph(importlib.import_module(family[0].__module__).__doc__).removeprefix(f"{name.capitalize()}: ")
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


PAGE = "tutorials/your-first-provider.md"
COPIES = 'folder = Path("sabir_parrot")'
"""A line of the page's block that writes the copy."""
WHOLE, BROKEN = '"description": each.description', '"description": ""'
"""What the page has its reader break, before and after."""
CASE = "test_an_option_is_offered"
"""The case that notices."""
COLUMNS = 100


def suite_file() -> str:
    """The reader's test file, as a block of the page."""
    return f"```python\n{suite()}```"


def failure() -> str:
    """What the kit says of the broken line, as a block of the page: from the case's name to the page's."""
    found = re.search(rf"^_+ TestParrot\.{CASE}\S* _+$\n.*?^see \S+$", run_broken(), re.DOTALL | re.MULTILINE)
    assert found, run_broken()
    return f"```text\n{found[0]}\n```"


def summary() -> str:
    """How a run of the whole kit ends, as a block of the page."""
    found = re.search(r"^=+ sabir conformance =+$\n.*?(?=^=|^\d+ |\Z)", run_whole(), re.DOTALL | re.MULTILINE)
    assert found, run_whole()
    return f"```text\n{found[0].rstrip()}\n```"


@cache
def run_whole() -> str:
    return _run(WHOLE)


@cache
def run_broken() -> str:
    """The kit's words on the copy with the broken line, from the case that notices."""
    return _run(BROKEN, "-k", CASE)


@cache
def suite() -> str:
    """Echo's suite, for the copy: what it cannot carry and what else it says of itself; what it can is seen anyway."""
    held = {name: value for name, value in vars(SUITES["echo"]).items() if not name.startswith("__")}
    lines = [
        "import sabir",
        "from sabir_parrot.plugin import parrot",
        f"from sabir_testing import {', '.join(each.name for each in _grades())}, OfflineConformance",
        "",
        'sabir.register("parrot", parrot)',
        "",
        "class TestParrot(OfflineConformance):",
        '    adapter = sabir.adapter("parrot:small")',
        "    examples = 10",
        *(line for each in _grades() for line in _names(each)),
    ]
    for name, value in held.items():
        if name not in ("adapter", "capabilities", "examples") and value:
            lines += _attribute(name, value)
    grades = " | ".join(f"dict.fromkeys({each}.split(), {each.name})" for each in _grades())
    text = "\n".join([*lines, f"    capabilities = {grades}"]) + "\n"
    return text.replace("echo", "parrot")


def _grades() -> list[Grade]:
    declared = set(SUITES["echo"].capabilities.values())
    return [each for each in (DOWNGRADED, REFUSED) if each in declared]


def _names(grade: Grade) -> Iterator[str]:
    names = [name for name, each in SUITES["echo"].capabilities.items() if each is grade]
    yield f'    {grade} = """'
    yield from textwrap.wrap(" ".join(names), COLUMNS, initial_indent=" " * 8, subsequent_indent=" " * 8)
    yield '    """'


def _attribute(name: str, value: object) -> Iterator[str]:
    """An assignment in the class: a mapping with one row a line."""
    assert ast.literal_eval(repr(value)) == value, f"{name} of echo's suite is no literal that a page could show"
    if not isinstance(value, Mapping):
        yield f"    {name} = {_literal(value)}"
        return
    yield f"    {name} = {{"
    yield from (f"        {_literal(key)}: {_literal(each)}," for key, each in value.items())
    yield "    }"


def _literal(value: object) -> str:
    """A value as this project writes it: texts in double quotes where they hold none."""
    return repr(value) if not isinstance(value, str) or '"' in value else json.dumps(value, ensure_ascii=False)


def _run(line: str, *arguments: str) -> str:
    """What pytest prints in a folder that holds the copy, with one line in the place of another."""
    (copying,) = (block.code for block in page(PAGE).blocks if COPIES in block.code)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-c", copying], cwd=folder, check=True)
        dialect = folder / "sabir_parrot" / "dialect.py"
        text = dialect.read_text("utf-8")
        assert text.count(WHOLE) == 1, f"{PAGE} has its reader change {WHOLE}, which {dialect.name} does not hold once"
        dialect.write_text(text.replace(WHOLE, line), "utf-8")
        (folder / "test_parrot.py").write_text(suite(), "utf-8")
        command = [sys.executable, "-m", "pytest", "test_parrot.py", "-q", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
