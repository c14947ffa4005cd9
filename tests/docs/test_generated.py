"""What the reference says of signatures, errors, settings and commands is what the code says."""

from collections.abc import Iterator

from tests.docs.generate import SECTIONS, filled, names_in
from tests.docs.pages import Page, pages, stale
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
