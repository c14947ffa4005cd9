"""A how-to says at its top what has to be installed, and its blocks use that and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.docs.needs import EXTRAS, MOST, WEIGHTS, brought, is_local, named, says_weights, used
from tests.docs.pages import DOCS, Page, pages
from tests.rules import check_each

HOW_TOS = [
    page for page in pages() if page.path.parent == DOCS / "how-to" and page.path.stem not in ("install", "index")
]
"""All but the page that says how to install and the list of the how-tos."""
TOLD = [page for page in pages() if named(page) is not None]
"""Pages that say what they need: how-tos have to, others may."""


def silent(page: Page) -> Iterator[str]:
    """A how-to without its line, or with a long one."""
    if named(page) is None or len(page.text.splitlines()[2]) > MOST:
        yield f"{page}:3: does not say in one line what it needs"


def test_a_how_to_says_at_its_top_what_it_needs() -> None:
    line = "**Needs** ([install](install.md)) `sabir …`"
    check_each(HOW_TOS, silent, f"write {line}, and {WEIGHTS!r} if that model is asked")


def unequal(page: Page) -> Iterator[str]:
    """What a page's blocks use and its line does not bring, and the reverse."""
    wanted, uses = named(page) or [], used(page)
    brings = {name for requirement in wanted for name in brought(requirement)}
    yield from (f"{page}: {word!r} needs {name}" for name, word in uses.items() if name not in brings)
    names = {canonicalize_name(requirement.name) for requirement in wanted} - {"sabir"}
    extras = {f"{each.name}[{extra}]" for each in wanted for extra in each.extras}
    names |= extras & {*EXTRAS.values()}
    yield from (f"{page}: nothing in it needs {name}" for name in sorted(names - uses.keys()))
    if is_local(page) != says_weights(page):
        yield f"{page}: {WEIGHTS!r} stands there, or the embedded model is asked, but not both"


def test_a_page_needs_what_it_says_and_no_more() -> None:
    check_each(TOLD, unequal, "name what the blocks use")


def words_of(folder: Path, line: str, block: str) -> list[str]:
    """What is found at fault in a page of one block, without the page's name."""
    path = folder / "page.md"
    path.write_text(f"# A page\n\n{line}\n\n```python\n{block}```\n", "utf-8")
    return [fault.partition(": ")[2] for fault in unequal(Page(path))]


def test_what_blocks_use_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "__str__", lambda page: page.path.name)  # it is not below the project
    core, echo = "**Needs** ([install](install.md)) `sabir`.", "**Needs** ([install](install.md)) `sabir sabir-echo`."

    assert words_of(tmp_path, core, "import json, sabir, pydantic\n") == []
    assert words_of(tmp_path, core, "import jinja2\n") == ["'jinja2' needs jinja2"]
    assert words_of(tmp_path, core, 'sabir.adapter("groq:small")\n') == ["'groq:small' needs sabir-openai"]
    assert words_of(tmp_path, core, "Path('a.py').write_text('import sabir_mcp')\n") == ["'sabir_mcp' needs sabir-mcp"]
    assert words_of(tmp_path, echo, "import sabir\n") == ["nothing in it needs sabir-echo"]
    durable = "from sabir_runtime.durable import Runs\n"
    both = "**Needs** ([install](install.md)) `sabir sabir-runtime[distributed,durable]`."
    assert words_of(tmp_path, both.replace("distributed,", ""), durable) == []
    assert words_of(tmp_path, both, durable) == ["nothing in it needs sabir-runtime[distributed]"]
    assert words_of(tmp_path, "**Needs** ([install](install.md)) `sabir sabir-runtime`.", durable) == [
        "'sabir_runtime.durable' needs sabir-runtime[durable]"
    ]
    assert named(Page(tmp_path / "page.md"))
    assert words_of(tmp_path, "Needs sabir.", "import sabir\n") == ["'sabir' needs sabir"]
