"""The pages about the kit say what the kit is: cases, rows, attributes, grades, and failures in words."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from sabir_openai import Row
from sabir_testing import Grade, ProviderConformance
from sabir_testing.kit.suite import Suite, case_names
from sabir_testing.plugin import PAGE

from tests.docs import conformance as tutorial
from tests.docs.conformance import cases_of, families, rows_of
from tests.docs.pages import ROOT, page
from tests.docs.sources import documented_attributes
from tests.docs.test_links import anchors
from tests.docs.test_reference import rows, section
from tests.rules import check_each

REFERENCE = page("reference/conformance.md")
CASES = case_names(ProviderConformance)
SUITE = """
import sabir
from sabir_testing import ProviderConformance


class TestAny(ProviderConformance):
    adapter = sabir.adapter("echo:small")
"""


def test_the_page_that_a_failure_names_is_this_one() -> None:
    """The kit prints its path."""
    assert REFERENCE.path == ROOT / PAGE


def test_the_address_that_a_failure_prints_is_there() -> None:
    """`#<method name>` is the anchor of a heading."""

    def without_heading(case: str) -> Iterator[str]:
        if case not in anchors(REFERENCE.text):
            yield f"{REFERENCE}: has no heading {case}"

    check_each(CASES, without_heading, "python -m tests.docs.generate writes the page anew")


def test_every_case_belongs_to_a_family_and_to_one_alone() -> None:
    """The page lists families: a case outside them would be missing there."""
    listed = [name for family in families().values() for name in cases_of(family)]

    assert sorted(listed) == sorted(CASES)


def test_every_case_gives_its_rule() -> None:
    """It is the text below its heading."""

    def without_rule(case: str) -> Iterator[str]:
        if not inspect.getdoc(method := getattr(ProviderConformance, case)):
            yield f"{method.__module__}:{method.__code__.co_firstlineno}: {case} has no docstring"

    check_each(CASES, without_rule, "write its rule there")


def test_rows_are_named_as_pytest_names_them(tmp_path: Path) -> None:
    """What stands under `xfail` is copied from the page or from a failure: both must be the same."""
    (tmp_path / "test_any.py").write_text(SUITE, "utf-8")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test_any.py"]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    collected = {line.split("::", 2)[2] for line in listed if "::" in line}

    assert collected == {name for case in CASES for name in _with_rows(case)}


def _with_rows(case: str) -> list[str]:
    made = rows_of(case)
    return [f"{case}[{'-'.join(row)}]" for row in product(*made)] if made else [case]


def test_every_attribute_of_a_suite_has_a_row() -> None:
    """And every method that it may override is named."""
    text = section(REFERENCE.text, "## What a suite says")
    table = [name.strip("` ") for row in rows(text) for name in row[0].split(",")]
    attributes = [entry.heading.partition(":")[0] for entry in documented_attributes(Suite)]

    assert sorted(table) == sorted(set(attributes) - {"family"})
    assert [name for name in ("check_request", "client", "live", "provenance") if f"`{name}(" not in text] == []


def test_every_grade_has_a_row() -> None:
    """In their order."""
    table = list(rows(section(page("how-to/write-a-provider.md").text, "## Declare capabilities")))

    assert [row[0].strip("`") for row in table] == [grade.name for grade in Grade]


def test_every_field_of_a_gateways_row_is_explained() -> None:
    """What a compatible endpoint may be told to be."""
    table = list(rows(section(page("how-to/write-a-provider.md").text, "## Add a compatible gateway")))

    assert [name.strip("` ") for row in table for name in row[0].split(",")] == _fields_in_order()


def _fields_in_order() -> list[str]:
    early = ["name", "url", "docs", "dialects", "key_variables", "url_variables"]
    return early + [field.alias or name for name, field in Row.model_fields.items() if name not in early]


def test_the_copy_of_the_tutorial_holds_every_case() -> None:
    """Whoever follows the page ends with a provider that the kit passes."""
    said = tutorial.run_whole()

    assert " failed" not in said.splitlines()[-1], said
    assert "TestParrot: " in said


def test_the_broken_line_of_the_tutorial_fails_as_the_page_shows() -> None:
    """The page names the line before and after, and the kit the case."""
    text = page(tutorial.PAGE).text

    assert f"replace `{tutorial.WHOLE}` by `{tutorial.BROKEN}`" in text
    assert "1 failed" in tutorial.run_broken()
    assert f"{PAGE}#{tutorial.CASE}" in tutorial.failure()
