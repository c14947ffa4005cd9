"""What the reference says of signatures, errors, settings and commands is what the code says."""

import pytest

from tests.docs.generate import SECTIONS, filled, names_in
from tests.docs.pages import Page, pages
from tests.docs.terminal import PICTURE, picture

GENERATED = [page for page in pages() if names_in(page.text)]


def test_every_section_stands_on_one_page() -> None:
    """A section that no page holds would be checked nowhere."""
    found = [name for page in pages() for name in names_in(page.text)]

    assert sorted(found) == sorted(SECTIONS)


@pytest.mark.parametrize("page", GENERATED, ids=str)
def test_a_page_is_current(page: Page) -> None:
    """Where this fails, `python -m tests.docs.generate` writes the page anew."""
    assert page.text == filled(page.text)


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_mark_of_a_section_has_its_end(page: Page) -> None:
    """A misspelt mark would leave its section as it is for ever."""
    assert page.text.count("<!-- generated: ") == page.text.count("<!-- end of ") == len(names_in(page.text))


def test_the_picture_of_a_terminal_is_current() -> None:
    """What the command shows now, and nothing that would be loaded from elsewhere."""
    text = PICTURE.read_text("utf-8")

    assert text == picture()
    assert "url(http" not in text


def test_a_stale_section_is_noticed() -> None:
    """One changed word in a generated part is a difference."""
    page = next(page for page in GENERATED if page.path.name == "errors.md")
    stale = page.text.replace("├── PluginError", "├── PluginErrors")

    assert stale != page.text
    assert filled(stale) == page.text
