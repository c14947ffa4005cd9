"""`option` is the word: where a page says tool, it means a vendor's own, or says what vendors call an option."""

import importlib
import re
from collections.abc import Iterator

from tests.architecture.project import PACKAGES
from tests.docs.pages import Page, page, pages
from tests.rules import check_each

MEANT = (
    "its own tools",  # declarations of a vendor's, which are no options
    "tools of their own",
    "become tools, calls and results",  # on a vendor's wire
    "Context, Tools, Response schema",  # headings that a model reads
    "tool-call rules",
    "vendors call a tool",
    "libraries call it a tool",
    "has tools, as it calls them",
    "own tools",  # of a vendor
    "own tool",
    "the tool did",
    "no such tool",
)
"""What pages say of tools that are not options of ours, and what leads from their word to ours."""
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
FIRST = ("", "docs", "docs/how-to", "docs/tutorials")
"""The folders of the pages that a newcomer reads."""
PROSE = [each for each in pages() if str(each).rpartition("/")[0] in FIRST]


def misnamed(page: Page) -> Iterator[str]:
    """Lines of a page's prose that say tool for an option; code has its own names."""
    prose = FENCED.sub(lambda code: "\n" * code[0].count("\n"), page.text)
    for number, line in enumerate(prose.splitlines(), start=1):
        said = re.sub(r"`[^`]*`", "", line)
        for phrase in MEANT:
            said = said.replace(phrase, "")
        if re.search(r"\btools?\b", said, re.IGNORECASE):
            yield f"{page}:{number}: says tool"


def test_pages_say_option() -> None:
    check_each(PROSE, misnamed, f"say option, or, of a vendor's, one of {', '.join(MEANT)}")


def with_the_vendors_word() -> set[str]:
    """Public names, and fields of public classes, that have the vendors' word in them."""
    found = set()
    for package in PACKAGES:
        module = importlib.import_module(package.module)
        for name in getattr(module, "__all__", ()):
            found |= {name, *getattr(getattr(module, name), "__annotations__", {})}
    return {name for name in found if re.search("[Tt]ool", name) and not name.startswith("_")}


def test_a_name_with_the_vendors_word_says_why() -> None:
    """Each stands on the page of messages, where the word is explained."""
    explained = page("reference/messages.md").text.split("An **option** is", 1)[1].split("\n\n", 1)[0]

    assert with_the_vendors_word() >= {"ToolContext", "ToolCallRecord"}
    assert [name for name in sorted(with_the_vendors_word()) if f"`{name}`" not in explained] == []
