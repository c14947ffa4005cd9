"""Links between pages lead somewhere."""

import functools
import re
from collections.abc import Iterator

from tests.docs.pages import ROOT, Page, pages
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


def wrong_titles(page: Page) -> Iterator[str]:
    """A first line that is no title, or another title below it."""
    plain = re.sub(r"^```.*?^```", "", page.text, flags=re.DOTALL | re.MULTILINE)
    if not page.text.startswith("# "):
        yield f"{page}:1: does not begin with a title"
    if (titles := len(re.findall(r"^# ", plain, re.MULTILINE))) != 1:
        yield f"{page}: has {titles} titles"


def test_a_page_has_one_title() -> None:
    check_each(pages(), wrong_titles, "begin with its one title, and its parts with ##")
