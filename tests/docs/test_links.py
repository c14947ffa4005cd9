"""Links between pages lead somewhere."""

import re

import pytest

from tests.docs.pages import DOCS, ROOT, Page, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*pages(), Page(ROOT / "ARCHITECTURE.md")], ids=str)
def test_links_within_the_project_resolve(page: Page) -> None:
    """The file is there, and so is the heading."""
    broken = []
    for target in LINK.findall(page.text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.path.parent / name).resolve() if name else page.path
        if not path.is_file() or (anchor and anchor not in anchors(path.read_text("utf-8"))):
            broken.append(target)

    assert broken == []


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


@pytest.mark.parametrize("page", pages(), ids=str)
def test_a_page_has_one_title(page: Page) -> None:
    """Its first line; headings below it start a level deeper."""
    plain = re.sub(r"^```.*?^```", "", page.text, flags=re.DOTALL | re.MULTILINE)

    assert page.text.startswith("# ")
    assert len(re.findall(r"^# ", plain, re.MULTILINE)) == 1
