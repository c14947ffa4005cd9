"""Counts the words of the project's Markdown prose: `nox -s words`, or `python -m tests.docs.words`.

    every *.md that git holds ──▶ without code, generated parts and comments ──▶ words per folder, and their total

A row of a table that a person wrote is prose. Code in fences, and what tests.docs.generate writes, is not.
"""

import re
from collections import Counter
from pathlib import Path

from tests.architecture.project import ROOT, project_files

GENERATED = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->.*?<!-- end of (?P=name) -->", re.DOTALL)
FENCED = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}).*?^ *(?P=fence) *$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TARGET = re.compile(r"\]\([^)\s]+\)")
WORD = re.compile(r"[^\W_][\w’'-]*")

FROZEN = ("tests", "frozen")
"""The folder of data that earlier versions wrote; nobody edits the pages in it."""


def prose(text: str) -> str:
    """Return the text of a page without code blocks, generated parts, comments and the targets of links."""
    for pattern in (GENERATED, FENCED, COMMENT):
        text = pattern.sub("", text)
    return TARGET.sub("]", text)


def count(text: str) -> int:
    """Return the number of words of prose in the text of a page. A name in backticks is one word or more."""
    return len(WORD.findall(prose(text)))


def words_by_folder() -> Counter[str]:
    """Return the words of all pages by folder; packages count as core and plugins."""
    words: Counter[str] = Counter()
    for path in project_files():
        place = path.relative_to(ROOT)
        if path.suffix == ".md" and place.parts[:2] != FROZEN:
            words[folder_of(place)] += count(path.read_text("utf-8"))
    return words


def folder_of(place: Path) -> str:
    """Return the folder under which a page is counted: two levels for docs, one for all others."""
    return "/".join(place.parent.parts[: 2 if place.parts[0] == "docs" else 1]) or "."


def main() -> None:
    """Print one line for each folder, and the total."""
    words = words_by_folder()
    for folder, number in sorted(words.items()):
        print(f"{number:8,}  {folder}")
    print(f"{words.total():8,}  total")


if __name__ == "__main__":
    main()
