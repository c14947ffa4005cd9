"""Links between pages lead somewhere."""

import functools
import re
from collections.abc import Iterator

from tests.docs.pages import DOCS, ROOT, Page, pages
from tests.rules import check_each

OTHER_PAGES = [path for path in sorted(ROOT.glob("*.md")) if path.name != "README.md"]
"""Pages of the first folder whose examples are not run."""

LINK = re.compile(r"\]\(([^)\s]+)\)")


@functools.cache
def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Page) -> Iterator[str]:
    """Links of a page to files or headings that are not there."""
    for number, line in enumerate(page.text.split("\n"), start=1):
        for target in LINK.findall(line):
            if target.startswith(("http://", "https://")):
                continue
            name, _, anchor = target.partition("#")
            path = (page.path.parent / name).resolve() if name else page.path
            if not path.is_file() or (anchor and anchor not in anchors(path.read_text("utf-8"))):
                yield f"{page}:{number}: {target} leads nowhere"


def test_links_within_the_project_resolve() -> None:
    """The file is there, and so is the heading."""
    check_each([*pages(), *map(Page, OTHER_PAGES)], broken_links, "name a file, and a heading of it")


TESTS = re.compile(r"`([a-z_]+/[a-z_/]+\.py)(?:::(\w+))?`")


def test_every_test_that_a_page_names_is_there() -> None:
    """The page of attacks says which test holds each promise."""
    named = TESTS.findall((DOCS / "explanation" / "what-was-attacked.md").read_text("utf-8"))
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (file := ROOT / "tests" / path).is_file() or (name and f"def {name}(" not in file.read_text("utf-8"))
    ]

    assert len(named) > 40
    assert missing == []


def test_every_page_can_be_reached_from_the_first() -> None:
    """From docs/README.md, link by link."""
    waiting, reached = [DOCS / "README.md"], set()
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md" or not path.is_file():
            continue
        reached.add(path)
        names = (target.partition("#")[0] for target in LINK.findall(path.read_text("utf-8")))
        waiting += [(path.parent / name).resolve() for name in names if name and not name.startswith("http")]

    assert {page.path for page in pages() if page.path.is_relative_to(DOCS)} <= reached


def wrong_titles(page: Page) -> Iterator[str]:
    """A first line that is no title, or another title below it."""
    plain = re.sub(r"^```.*?^```", "", page.text, flags=re.DOTALL | re.MULTILINE)
    if not page.text.startswith("# "):
        yield f"{page}:1: does not begin with a title"
    if (titles := len(re.findall(r"^# ", plain, re.MULTILINE))) != 1:
        yield f"{page}: has {titles} titles"


def test_a_page_has_one_title() -> None:
    """Its first line; headings below it start a level deeper."""
    check_each(pages(), wrong_titles, "begin with its one title, and its parts with ##")
