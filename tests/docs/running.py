"""Running a page's examples as a reader would: in order, in one namespace, in a folder that was empty.

    block ──compile──▶ code ──▶ run;  a block of shell with an output is run by a shell
          └─ <!-- output --> is compared with what was printed

The folder is on the import path, as for a file in it. What a page leaves in this process goes when it ends.

The surface that was specified, `<!-- example: surface -->`, has examples that are no whole programs: those may await at
the top, find `sky.jpg`, and without OPENAI_API_KEY their "openai:gpt-5" runs as "local:smollm2".
"""

import ast
import asyncio
import inspect
import io
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import CodeType
from typing import Any

import sabir
from sabir import ModelAdapter

from tests.docs.pages import Block, Page

KEYED = '"openai:gpt-5"'
KEYLESS = '"local:smollm2"'
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb0043001b12141714111b1716171e1c1b2028422b28252528513a3d304260"
    "5565645f555d5b6a7899816a7190735b5d85b586909ea3abadab6780bcc9baa6c799a8aba4ffc0000b080008000801011100ffc4"
    "0014000100000000000000000000000000000003ffc40014100100000000000000000000000000000000ffda0008010100003f00"
    "77ffd9"
)
"""A grey picture of eight by eight pixels."""


def source_of(block: Block) -> str:
    """The code that is run for a block: its own, but for the name of a model that needs a key in the surface."""
    is_own = not block.is_surface or os.environ.get("OPENAI_API_KEY")
    return block.code if is_own else block.code.replace(KEYED, KEYLESS)


def compiled(block: Block) -> CodeType:
    """A block's code; a traceback names the page and the line in it."""
    tree = ast.parse(source_of(block), str(block.page))
    ast.increment_lineno(tree, block.line - 1)
    return compile(tree, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if block.is_surface else 0)


def run_page(page: Page) -> list[str]:
    """Run a page's examples in the current folder; returns the places of those that were run. Raises what they raise.

    AssertionError where an example prints something else than the page shows. Adapters are closed at the end, as a
    program's own end would.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    done = []
    printed = ""
    if any(block.is_surface for block in page.examples):
        Path("sky.jpg").write_bytes(JPEG)
    with at_a_prompt(), asyncio.Runner() as runner:
        try:
            for block in page.examples:
                if block.is_output:
                    assert printed == block.code, f"{block.place} shows something else than was printed:\n{printed}"
                elif block.skip_reason is None:
                    printed = _printed(block, namespace, runner)
                    done.append(block.place)
        finally:
            for value in list(namespace.values()):
                if isinstance(value, ModelAdapter):
                    runner.run(value.aclose())
    return done


@contextmanager
def at_a_prompt() -> Iterator[None]:
    """The current folder on the import path, and this environment's commands on the other.

    Afterwards what was imported from that folder, registered, or put among the environment variables, is gone.
    """
    folder, before, known, variables = os.getcwd(), set(sys.modules), _registered(), dict(os.environ)
    sys.path.insert(0, folder)
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    try:
        yield
    finally:
        sys.path.remove(folder)
        os.environ.clear()
        os.environ.update(variables)
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
                del sys.modules[name]
        for name in _registered() - known:
            sabir.unregister(name)


def _registered() -> set[str]:
    return {status.name for status in sabir.providers() if status.state == "registered"}


def _printed(block: Block, namespace: dict[str, Any], runner: asyncio.Runner) -> str:
    if block.language != "python":
        return _by_a_shell(block)
    code = compiled(block)
    with redirect_stdout(io.StringIO()) as output:
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, namespace))
        else:
            exec(code, namespace)
    return output.getvalue()


def _by_a_shell(block: Block) -> str:
    """What the commands print, on both streams as a terminal shows them."""
    ended = subprocess.run(
        ["sh", "-e", "-c", block.code], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert ended.returncode == 0, f"{block.place} ends with {ended.returncode}:\n{ended.stdout}"
    return ended.stdout
