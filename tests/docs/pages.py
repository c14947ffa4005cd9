"""The pages of the documentation, and the fenced blocks that they hold.

    README.md, docs/**/*.md, */README.md ──▶ Page ──▶ Block(language, code, line, marker)

A marker is a comment on the line above a block: `<!-- example: … -->` says how the block is run, `<!-- output -->` that
it is what the example before it prints, `<!-- include: … -->` that it is quoted from a file (see includes.py).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SKILL = ROOT / "core" / "src" / "sabir" / "skill" / "SKILL.md"
"""What the wheel of core says to coding agents: its examples run, but it begins with fields and not with a title."""

SURFACE = "surface"
SHELLS = ("sh", "bash", "shell", "console")
SKIPPED = "skip because "
"""How the marker of an example begins that is not run; what follows is the reason."""

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)\s*")
_MARKER = re.compile(r"\s*<!-- (?P<kind>example|output|include)(?:: (?P<text>.+?))? -->\s*")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line of code, counted from 1."""

    page: Path
    language: str
    code: str
    line: int
    marker: str = ""
    """What the comment above it says of an example."""
    is_output: bool = False
    """Whether it shows what the example before it prints."""
    is_include: bool = False
    """Whether it is quoted from a file, and tested there."""

    @property
    def is_surface(self) -> bool:
        """Whether it shows the surface as it was specified, in pieces that are no whole programs."""
        return self.marker == SURFACE

    @property
    def is_shell(self) -> bool:
        """Whether it is what a reader types into a shell."""
        return self.language in SHELLS

    @property
    def skip_reason(self) -> str | None:
        """Why an example is not run, or None where it is."""
        return self.marker.removeprefix(SKIPPED) if self.marker.startswith(SKIPPED) else None

    @property
    def place(self) -> str:
        """Page and line, as a failing test names them."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(_blocks(self.path, self.text.splitlines()))

    @property
    def programs(self) -> list[Block]:
        """Its blocks of Python but for quotations."""
        return [block for block in self.blocks if block.language == "python" and not block.is_include]

    @property
    def examples(self) -> list[Block]:
        """Its blocks of Python but for quotations, those of shell that show what they print, and what is printed."""
        shell = [block for block, shown in pairwise(self.blocks) if block.is_shell and shown.is_output]
        return [block for block in self.blocks if block in self.programs or block in shell or block.is_output]


def pages() -> list[Page]:
    """Every page: the README first, then the documentation, then the packages' own READMEs."""
    packages = [ROOT / "core" / "README.md", *sorted(ROOT.glob("plugins/*/README.md"))]
    return [Page(ROOT / "README.md"), *map(Page, [*sorted(DOCS.rglob("*.md")), *packages])]


def page(name: str) -> Page:
    """The page below docs/ of that name, for example `reference/errors.md`."""
    return Page(DOCS / name)


def stale(page: Page, wanted: str) -> Iterator[str]:
    """The first line of a page that is not as wanted."""
    lines = zip_longest(page.text.splitlines(keepends=True), wanted.splitlines(keepends=True))
    for number, (said, line) in enumerate(lines, start=1):
        if said != line:
            yield f"{page}:{number}: says {said!r}, not {line!r}"
            return


def _blocks(path: Path, lines: list[str]) -> Iterator[Block]:
    opened: re.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines, start=1):
        if opened is None:
            opened, start = _FENCE.fullmatch(line), number
        elif line.strip() == opened["fence"]:
            marker = _MARKER.fullmatch(lines[start - 2]) if start > 1 else None
            code = dedent("\n".join(lines[start : number - 1])) + "\n"
            kind, text = (marker["kind"], marker["text"] or "") if marker else ("", "")
            is_output, is_include = kind == "output", kind == "include"
            yield Block(path, opened["language"], code, start + 1, text, is_output=is_output, is_include=is_include)
            opened = None
    assert opened is None, f"{path}:{start}: the block is not closed"
