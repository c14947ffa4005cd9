"""What pages say of the code and quote from the project's files is what the code says."""

from collections.abc import Iterator

import pytest

from tests.docs.generate import SECTIONS, filled, names_in
from tests.docs.includes import MARK, included, includes_in, with_includes
from tests.docs.pages import Page, page, pages, stale
from tests.docs.sizes import MOST_OF_A_STRANGERS, PROVIDERS, lines_of_logic
from tests.docs.terminal import PICTURE, picture
from tests.rules import check_each

GENERATED = [page for page in pages() if names_in(page.text)]


def test_every_section_stands_on_one_page() -> None:
    """A section that no page holds would be checked nowhere."""
    found = [name for page in pages() for name in names_in(page.text)]

    assert sorted(found) == sorted(SECTIONS)


def test_a_page_is_current() -> None:
    """What the code gives for its sections is what stands there."""
    check_each(GENERATED, lambda page: stale(page, filled(page.text)), "write it anew: python -m tests.docs.generate")


def unpaired_marks(page: Page) -> Iterator[str]:
    """The numbers of a page's marks, where they are not equal."""
    counts = page.text.count("<!-- generated: "), page.text.count("<!-- end of "), len(names_in(page.text))
    if len(set(counts)) > 1:
        yield f"{page}: has {counts[0]} marks of a beginning, {counts[1]} of an end and {counts[2]} pairs of one name"


def test_every_mark_of_a_section_has_its_end() -> None:
    """A misspelt mark would leave its section as it is for ever."""
    check_each(pages(), unpaired_marks, "mark both ends of each section with its name")


def test_the_picture_of_a_terminal_is_current() -> None:
    """What the command shows now, and nothing that would be loaded from elsewhere."""
    text = PICTURE.read_text("utf-8")

    assert text == picture()
    assert "url(http" not in text


def test_a_stale_section_is_noticed() -> None:
    """One changed word in a generated part is a difference."""
    page = next(page for page in GENERATED if page.path.name == "errors.md")
    text = page.text.replace("├── PluginError", "├── PluginErrors")

    assert text != page.text
    assert filled(text) == page.text
    (difference,) = stale(page, text)
    assert difference.startswith("docs/reference/errors.md:")
    assert difference.endswith("├── PluginErrors\\n'")


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


def test_each_provider_that_authors_read_fits_into_one_sitting() -> None:
    """At most 200 lines of logic each, tables and signatures aside; counted, and none of them empty."""
    counted = {name: sum(lines_of_logic(folder).values()) for name, (folder, _) in PROVIDERS.items()}

    assert {name: lines for name, lines in counted.items() if not 50 <= lines <= MOST_OF_A_STRANGERS} == {}
