"""The grade of a package: declared by its author, verified by a run on this machine, declared again once it changes.

a package ──wheel──▶ environment ──pytest --sabir-grade-file──▶ sabir-grade.json ──▶ the next wheel
                                 └─pytest --sabir-grade───────▶ the user's cache
"""

import json
from pathlib import Path
from typing import Any

import pytest
from sabir_testing.kit.seeds import CI_SEED

from tests.third_party.stranger import CLI, CORE, ECHO, KIT, SESSION, Stranger, run

PROJECT = """
[project]
name = "sabir-graded"
version = "0.3"
requires-python = ">=3.11"
dependencies = ["sabir", "sabir-echo"]

[project.entry-points."sabir.providers"]
graded = "sabir_graded:graded"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""
MODULE = """
from dataclasses import replace
from sabir_echo.plugin import Echo

class Graded(Echo):
    name = "graded"

    def dialect(self, short_name):
        return replace(super().dialect(short_name), name="graded.plain")

graded = Graded()
"""
SUITE = """
import sabir
from sabir_testing import REFUSED, OfflineConformance


class TestGraded(OfflineConformance):
    adapter = sabir.adapter("graded:small")
    examples = 5
    answers_repeat = True
    capabilities = {"reasoning": REFUSED, "image.bytes": REFUSED, "results.image": REFUSED}
    prompts = {
        "option_call": 'call weather {"city": "Paris"}',
        "parallel_calls": 'call weather {"city": "Paris"}\\ncall weather {"city": "Rome"}',
        "structured_output": '{"city": "Paris", "country": "France"}',
        "missing_model": "fail 404",
        "bad_request": "fail 400",
        "rate_limited": "fail 429",
        "overloaded": "fail 529",
    }
    refused_body = {"kit": "refused"}
    xfail = {
        f"test_a_{way}_failure_is_its_error[context_overflow]": "echo reads as much as it is given"
        for way in ("recorded", "streamed")
    }
"""
PYTEST = ("-m", "pytest", "-q", "-p", "offline", "-p", "no:cacheprovider")
LIST = ("-c", "import sys; from sabir_cli.main import main; sys.exit(main(['providers', *sys.argv[1:]]))")


class Author:
    """Somebody with the package's sources, its tests, and an environment in which its wheel is installed."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "package"
        self.source = self.package / "sabir_graded"
        self.source.mkdir(parents=True)
        (self.package / "pyproject.toml").write_text(PROJECT, "utf-8")
        (self.source / "__init__.py").write_text(MODULE, "utf-8")
        self.stranger = Stranger(folder)
        self.stranger.install(CORE, KIT, ECHO, SESSION, CLI, self.package)
        (folder / "copy").mkdir()
        self.suite = folder / "copy" / "test_graded.py"
        self.suite.write_text(SUITE, "utf-8")
        self.cache = folder / "cache"

    def ask(self, *arguments: str) -> str:
        return self.stranger.ask(*arguments, XDG_CACHE_HOME=str(self.cache))

    def grade(self) -> Any:
        """The package's grade in `sabir providers --json`."""
        statuses = json.loads(self.ask(*LIST, "--json"))
        return next(status["grade"] for status in statuses if status["name"] == "graded")

    def rebuild(self) -> None:
        """Build the wheel of the sources, and install it in place of the former one."""
        folder = self.stranger.folder
        run(["uv", "build", "--quiet", "--wheel", "--out-dir", "wheels", self.package], folder)
        (wheel,) = folder.glob("wheels/sabir_graded-*.whl")
        options = ("--quiet", "--reinstall", "--no-deps", "--python", self.stranger.python)
        run(["uv", "pip", "install", *options, wheel], folder)

    @property
    def installed(self) -> Path:
        (module,) = self.stranger.folder.glob("environment/lib/python*/site-packages/sabir_graded/__init__.py")
        return module


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Author:
    return Author(tmp_path_factory.mktemp("author"))


def test_a_grade_is_declared_then_verified_and_lost_with_a_change(author: Author) -> None:
    """The steps build on each other, as those of an author and a user do."""
    assert author.grade() is None

    written = author.ask(*PYTEST, "--sabir-grade-file", str(author.source / "sabir-grade.json"))
    assert "grade of sabir-graded 0.3: " in written
    assert f"seed {CI_SEED}" in written
    assert author.grade() is None, "the grade is in the sources, not in the installed wheel"

    author.rebuild()
    declared = author.grade()
    assert (declared["state"], declared["fits"]) == ("declared", True)
    assert (declared["package"], declared["version"], declared["seed"]) == ("sabir-graded", "0.3", CI_SEED)
    assert (declared["suites"], declared["examples"], declared["expected_failures"]) == (["TestGraded"], 5, 2)
    assert declared["passed"] > 100
    assert f"sabir-graded 0.3 (declared, {declared['passed']} cases)" in _unfolded(author.ask(*LIST))

    author.ask(*PYTEST, "--sabir-grade")
    assert (author.grade()["state"], author.grade()["digest"]) == ("verified", declared["digest"])
    assert f"sabir-graded 0.3 (verified, {declared['passed']} cases)" in _unfolded(author.ask(*LIST))

    author.installed.write_text(MODULE + "\nCHANGED = True\n", "utf-8")
    assert (author.grade()["state"], author.grade()["fits"]) == ("declared", False)
    assert "sabir-graded 0.3 (declared for other files)" in _unfolded(author.ask(*LIST))

    author.rebuild()
    assert author.grade()["state"] == "verified"

    (path,) = author.cache.rglob("sabir-graded-*.json")
    path.write_text(path.read_text("utf-8").replace(declared["digest"], "sha256:0"), "utf-8")
    assert author.grade()["state"] == "declared", "the result names its digest, whatever the name of its file"


def _unfolded(text: str) -> str:
    return " ".join(text.split())


def test_a_broken_grade_is_one_line(author: Author) -> None:
    path = author.installed.with_name("sabir-grade.json")
    before = path.read_text("utf-8") if path.exists() else None
    path.write_text("{}", "utf-8")
    try:
        assert "the grade of sabir-graded: " in _unfolded(author.ask(*LIST))
        assert author.grade() is None
    finally:
        path.write_text(before, "utf-8") if before else path.unlink()


@pytest.mark.parametrize(
    ("arguments", "change", "reason"),
    [
        (("-k", "contract"), "", "--sabir-grade needs all cases of the kit; remove -k"),
        (("--sabir-record",), "", "remove --sabir-record"),
        (("test_graded.py::TestGraded::test_paths_begin_with_a_slash",), "", "cases of the kit did not run"),
        ((), "TestGraded.xfail.popitem()\n", "no grade of sabir-graded: 1 cases failed"),
    ],
)
def test_a_partial_or_failing_run_writes_no_grade(
    author: Author, arguments: tuple[str, ...], change: str, reason: str
) -> None:
    """The cache stays as it is."""
    before = sorted(author.cache.rglob("*.json"))
    author.suite.write_text(SUITE + change, "utf-8")
    try:
        printed = author.ask(*PYTEST, "--sabir-grade", *arguments)
    except AssertionError as failure:  # the exit code is not 0
        printed = str(failure)
    author.suite.write_text(SUITE, "utf-8")

    assert reason in printed
    assert sorted(author.cache.rglob("*.json")) == before
