"""What pages quote from the project's files is what stands there."""

import pytest

from tests.docs.includes import MARK, included, includes_in, with_includes
from tests.docs.pages import Page, page, pages

QUOTING = [page for page in pages() if MARK in page.text]
DIALECT = "plugins/echo/src/sabir_echo/dialect.py"


@pytest.mark.parametrize("page", QUOTING, ids=str)
def test_a_quotation_is_current(page: Page) -> None:
    """Where this fails, `python -m tests.docs.generate` writes the page anew."""
    assert page.text == with_includes(page.text)


@pytest.mark.parametrize("page", QUOTING, ids=str)
def test_every_mark_stands_above_a_block(page: Page) -> None:
    """One that does not would leave its block as it is for ever."""
    assert page.text.count(MARK) == len(includes_in(page.text)) == sum(block.is_include for block in page.blocks)


def test_a_stale_quotation_is_noticed() -> None:
    """One changed word is a difference."""
    tutorial = page("tutorials/your-first-provider.md")
    stale = tutorial.text.replace("One item a message.", "One item for each message.")

    assert stale != tutorial.text
    assert with_includes(stale) == tutorial.text


def test_a_quotation_is_no_example() -> None:
    """It is tested in its file; a method of a class would not run alone."""
    tutorial = page("tutorials/your-first-provider.md")

    assert [block for block in tutorial.blocks if block.is_include]
    assert not [block for block in tutorial.examples if block.is_include]


def test_a_method_stands_without_the_indent_of_its_class() -> None:
    """As it is read on a page."""
    assert included(DIALECT, "PlainDialect.encode_turn").startswith("def encode_turn(self")


def test_attributes_stand_close_and_functions_apart() -> None:
    """Several names make one block."""
    code = included(DIALECT, "PlainDialect.name, PlainDialect.messages_field, PlainDialect.decoder")

    assert code.startswith('name = "echo.plain"\nmessages_field = "messages"\n\ndef decoder(')


@pytest.mark.parametrize(
    ("path", "name"),
    [(DIALECT, "PlainDialect.nothing"), ("plugins/echo/pyproject.toml", "[nothing]"), ("README.md", "nothing")],
)
def test_what_a_file_does_not_have_is_an_error(path: str, name: str) -> None:
    """A renamed function must not leave an empty block."""
    with pytest.raises(LookupError, match="nothing"):
        included(path, name)
