"""Code that a page shows as it stands in the project: written by `python -m tests.docs.generate`.

<!-- include: plugins/echo/src/sabir_echo/dialect.py#PlainDecoder.feed, encode_turn -->
```python
…                          replaced by those definitions, in that order, without the indent of their class
```
Of a TOML file, tables by their heads, `[project]`; of any other file, `all`.

Such a block is a quotation: the file is tested where it stands, and the block is not run.
"""

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from tests.docs.pages import ROOT

MARK = "<!-- include: "
_INCLUDE = re.compile(
    r"(?P<head><!-- include: (?P<path>[^#\n]+)#(?P<names>[^\n]+?) -->\n```(?:python|toml|yaml)\n)(?P<code>.*?)```\n",
    re.DOTALL,
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def includes_in(text: str) -> list[str]:
    """What a page shows of the project's files, as its marks name it."""
    return [f"{found['path']}#{found['names']}" for found in _INCLUDE.finditer(text)]


def with_includes(text: str) -> str:
    """A page's text with every included block as its file has it now."""
    return _INCLUDE.sub(lambda found: f"{found['head']}{included(found['path'], found['names'])}```\n", text)


def included(path: str, names: str) -> str:
    """Parts of a file by their names; LookupError for one that it does not have."""
    source = (ROOT / path).read_text("utf-8")
    part = PARTS.get(Path(path).suffix, _whole)
    pieces = [part(source, name.strip()) for name in names.split(",")]
    code = pieces[0]
    for before, piece in pairwise(pieces):
        code += piece if "\n" not in before.rstrip("\n") and "\n" not in piece.rstrip("\n") else f"\n{piece}"
    return code


@cache
def _definition(source: str, name: str) -> str:
    """The lines of one definition, its decorators among them."""
    node: ast.AST = ast.parse(source)
    for step in name.split("."):
        node = _member(node, step, name)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    lines = source.splitlines()[first - 1 : node.end_lineno]  # type: ignore[attr-defined]
    return dedent("\n".join(lines)) + "\n"


def _table(source: str, head: str) -> str:
    """A table of a TOML file, from its head to the next."""
    found = re.search(rf"^{re.escape(head)}\n(?:(?!\[).*\n)*", source, re.MULTILINE)
    if found is None:
        raise LookupError(f"there is no table {head}")
    return found[0].rstrip("\n") + "\n"


def _whole(source: str, name: str) -> str:
    if name != "all":
        raise LookupError(f"there is no {name!r}; of such a file only `all` can be shown")
    return source


def _member(node: ast.AST, step: str, name: str) -> ast.AST:
    """What a module or a class defines under one name."""
    for each in getattr(node, "body", ()):
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        )
        if step in {target.id for target in targets if isinstance(target, ast.Name)}:
            return each  # type: ignore[no-any-return]
        if isinstance(each, Definition) and each.name == step:
            return each
    raise LookupError(f"there is no {step!r} of {name!r}")


PARTS: Mapping[str, Callable[[str, str], str]] = {".py": _definition, ".toml": _table}
"""A file's suffix → what finds a part of it by name."""
