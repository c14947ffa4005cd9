"""Writes llms.txt into the site: for each page its title, its link and its first sentence, in the order of the menu."""

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text("\n".join(lines(app)) + "\n", "utf-8")


def lines(app: Sphinx) -> Iterator[str]:
    """The file that https://llmstxt.org describes: a title, a quotation, sections of links."""
    root = app.config.root_doc
    yield f"# {app.config.project}"
    yield ""
    yield f"> {first_sentence(app, root)}"
    for section in app.env.toctree_includes.get(root, []):
        yield from ["", f"## {title(app, section)}", ""]
        for name in walk(app, section):
            sentence = first_sentence(app, name)
            link = app.builder.get_target_uri(name)
            yield f"- [{title(app, name)}]({link})" + (f": {sentence}" if sentence else "")


def walk(app: Sphinx, name: str) -> Iterator[str]:
    """A page and all pages below it."""
    yield name
    for child in app.env.toctree_includes.get(name, []):
        yield from walk(app, child)


def title(app: Sphinx, name: str) -> str:
    return app.env.titles[name].astext()


def first_sentence(app: Sphinx, name: str) -> str:
    """The first sentence of the first paragraph, in one line; "" for a page without a paragraph."""
    paragraphs = app.env.get_doctree(name).findall(nodes.paragraph)
    texts = (" ".join(each.astext().split()) for each in paragraphs)
    text = next((each for each in texts if each and not each.startswith("Needs ")), "")
    return re.split(r"(?<=[.!?:]) (?=[A-Z`])", text, maxsplit=1)[0]
