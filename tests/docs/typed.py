"""A page's examples as one program, for a type checker: in order, in one namespace, each line where the page has it.

    page ──▶ how_to_stream.py      its blocks; where one awaits, all stand in a coroutine, as at a prompt that awaits
         └─▶ desk.py, …            what its blocks write before anything else happens, and import later

Examples that are not run for want of a key are among them; what is quoted from a file is not: it is checked there.
"""

import ast
import contextlib
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, Page

OPENS = "async def page() -> None:"


def write_program(page: Page, folder: Path) -> None:
    """Put a page's program into a folder, and the files that it writes."""
    blocks = [block for block in page.examples if block.language == "python"]
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
    """A file's name that says which page it is."""
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
