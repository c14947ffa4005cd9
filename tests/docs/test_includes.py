"""What pages quote from the project's files is what stands there."""

from collections.abc import Iterator

import pytest

from tests.docs.includes import MARK, included, includes_in, with_includes
from tests.docs.pages import Page, page, pages, stale
from tests.rules import check_each

QUOTING = [page for page in pages() if MARK in page.text]
DIALECT = "plugins/echo/src/sabir_echo/dialect.py"


def test_a_quotation_is_current() -> None:
    """What stands in the file is what stands on the page."""
    remedy = "write the page anew: python -m tests.docs.generate"
    check_each(QUOTING, lambda page: stale(page, with_includes(page.text)), remedy)


def lost_marks(page: Page) -> Iterator[str]:
    """The numbers of a page's marks, where some stand above no block."""
    counts = page.text.count(MARK), len(includes_in(page.text)), sum(block.is_include for block in page.blocks)
    if len(set(counts)) > 1:
        yield f"{page}: has {counts[0]} marks, {counts[1]} that are read and {counts[2]} above a block"


def test_every_mark_stands_above_a_block() -> None:
    """One that does not would leave its block as it is for ever."""
    check_each(QUOTING, lost_marks, "write each mark on the line above its block")


def test_a_stale_quotation_is_noticed() -> None:
    """One changed word is a difference."""
    tutorial = page("tutorials/your-first-provider.md")
    text = tutorial.text.replace("One item a message.", "One item for each message.")

    assert text != tutorial.text
    assert with_includes(text) == tutorial.text


def test_a_quotation_is_no_example() -> None:
    """It is tested in its file; a method of a class would not run alone."""
    tutorial = page("tutorials/your-first-provider.md")

    assert [block for block in tutorial.blocks if block.is_include]
    assert not [block for block in tutorial.examples if block.is_include]


def test_a_method_stands_without_the_indent_of_its_class() -> None:
    """As it is read on a page."""
    assert included(DIALECT, "PlainDecoder.feed").startswith("def feed(self")


def test_attributes_stand_close_and_functions_apart() -> None:
    """Several names make one block."""
    code = included(DIALECT, "NAME, KNOWN_FIELDS, encode_turn")

    assert code.startswith(
        'NAME = "echo.plain"\nKNOWN_FIELDS = {"model", "options", "settings", "messages"}\n\ndef encode_turn('
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [(DIALECT, "PlainDecoder.nothing"), ("plugins/echo/pyproject.toml", "[nothing]"), ("README.md", "nothing")],
)
def test_what_a_file_does_not_have_is_an_error(path: str, name: str) -> None:
    """A renamed function must not leave an empty block."""
    with pytest.raises(LookupError, match="nothing"):
        included(path, name)
