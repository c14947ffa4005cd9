"""Docstrings and signatures as Sphinx reads them.

    `Reply.parse`      ──▶  a link to sabir.Reply.parse
    `{"a": 1}`         ──▶  code
    options: the …     ──▶  an item of a list
    >>> import sabir   ──▶  unchanged: Sphinx shows it as a session
    Message | None     ──▶  in a signature of sabir_session: a link to sabir.Message

The project's docstrings are plain text with single backticks; Sphinx expects reStructuredText. Names are looked up here
and not by Sphinx, which searches all objects for each name and finds `DataURL.type` for `type`.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from public_names import home, package_of
from sabir import authoring
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w.]*")
MARKUP = re.compile(r"([\\*|]|(?<=\w)_(?=\W|$))")
"""Characters outside of code that reStructuredText would read as markup."""
CLASS = re.compile(r"(?<![\w.])([A-Z][a-z]+(?:[A-Z][a-z]+)+)(?!\w)")
"""Names of classes that docstrings write without backticks, such as RateLimited."""
ALIASES = ("Strict", "Messages", "KnownPart", "LossKind", "Modality", "RoleHint", "ReasoningEffort", "FinishReason")
ARGUMENT = re.compile(r"[a-z]\w*: ")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", shorten)
    app.connect("doctree-read", resolve_annotations)
    return {"parallel_read_safe": True}


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place."""
    lines[:] = rewritten("\n".join(lines), package_of(name))


def rewritten(text: str, package: str) -> list[str]:
    """A docstring as reStructuredText."""
    paragraphs = [each.splitlines() for each in re.split(r"\n\s*\n", text.strip("\n")) if each.strip()]
    return [line for paragraph in paragraphs for line in [*converted(paragraph, package), ""]]


def converted(paragraph: list[str], package: str) -> Iterator[str]:
    """The lines of one paragraph as reStructuredText."""
    first = paragraph[0]
    if first.startswith(">>> "):
        yield from paragraph
    elif first.startswith("  "):
        yield from ["::", "", *(f"    {line}" for line in paragraph)]
    elif ARGUMENT.match(first) and len(paragraph) > 1:
        yield from arguments(paragraph, package)
    else:
        before = ""
        for line in paragraph:
            if line.startswith("- ") and before and not before.startswith(("- ", "  ")):
                yield ""  # a list begins after an empty line
            yield inline(line, package)
            before = line


def arguments(paragraph: list[str], package: str) -> Iterator[str]:
    """`name: meaning` lines as a list; other lines continue the item above them."""
    for line in paragraph:
        if match := ARGUMENT.match(line):
            yield f"- ``{match[0][:-2]}``: {inline(line[match.end() :], package)}"
        else:
            yield f"  {inline(line.strip(), package)}"


def inline(line: str, package: str) -> str:
    """One line with its code as literals or links, and everything else escaped."""
    pieces = CODE.split(line)
    return "".join(code(each, package) if at % 2 else plain(each, package) for at, each in enumerate(pieces))


def plain(text: str, package: str) -> str:
    """Text without code: escaped, with links from names such as RateLimited."""
    pieces = CLASS.split(text)
    return "".join(code(each, package) if at % 2 else MARKUP.sub(r"\\\1", each) for at, each in enumerate(pieces))


def code(text: str, package: str) -> str:
    """A link to the public object of that name, else a literal."""
    target = home(text, package) if NAME.fullmatch(text) else None
    return f":py:obj:`{text} <{target}>`\\ " if target else f"``{text}``\\ "


@functools.cache
def aliases() -> list[tuple[str, str]]:
    """Type aliases as Sphinx and as `help()` write them out, longest first, each with its name."""
    texts = {stringify_annotation(getattr(authoring, name), "smart"): name for name in ALIASES}
    bare = {re.sub(r"~?(?:[a-z_]\w*\.)+", "", text): name for text, name in texts.items()}
    return sorted((texts | bare).items(), key=lambda item: -len(item[0]))


def shorten(
    app: Sphinx, what: str, name: str, obj: object, options: Any, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Write the name of a type alias for its definition."""
    for text, alias in aliases():
        signature, result = (each and each.replace(text, alias) for each in (signature, result))
    return signature, result


def resolve_annotations(app: Sphinx, document: nodes.document) -> None:
    """Give each name in a signature its full name, so that Sphinx looks up exactly this name."""
    for node in document.findall(addnodes.pending_xref):
        if node.get("refdomain") == "py" and "refspecific" in node:
            package = node.get("py:module") or "sabir"
            name = node["reftarget"]
            node["reftarget"] = home(name.rpartition(".")[2], package) or name
            for attribute in ("refspecific", "py:class", "py:module"):
                node.attributes.pop(attribute, None)
    for node in list(document.findall(addnodes.desc_annotation)):
        if "Annotated[" in node.astext():  # how pydantic validates a property's value; the text says what it is
            node.parent.remove(node)
