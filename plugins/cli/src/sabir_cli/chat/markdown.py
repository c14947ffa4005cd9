"""Show Markdown as it arrives: finished blocks are printed once, and the last block is redrawn as it grows.

    text ──parse──▶ block ─ block ─ block   printed, and not changed any more
                                    block   drawn in a region of a few lines, which shows the block's end

A block is finished when the next block begins, so lines that scrolled away are never redrawn. All text is shown: HTML
unchanged, links and images with their URL, and code without a margin, so that it can be copied.
"""

import time
from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme
from sabir.authoring import printable

SECONDS = 0.05
"""Minimum time between two drawings of the region, in seconds."""
TALLEST = 20
"""Maximum height of the region in lines."""
STYLES = Theme({"markdown.code": "cyan", "markdown.h1": "bold underline", "markdown.h2": "bold"}, inherit=True)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable(["html_block", "html_inline", "reference"])


class _Heading(Heading):
    """A heading at the left margin."""

    LEVEL_ALIGN: ClassVar = {}


class _Code(CodeBlock):
    """Code in the terminal's own colours, without a background and without margins."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)


class _Item(ListItem):
    """A list item that keeps the number written in the text."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        width = len(f"{last_number}. ")
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        for at, line in enumerate(lines):
            yield Segment(("" if at else f"{number}. ").rjust(width), console.get_style("markdown.item.number"))
            yield from line
            yield Segment.line()


class _Table(TableElement):
    """A table that folds its cells if it is narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            for column in table.columns if isinstance(table, Table) else ():
                column.overflow = "fold"
            yield table


class _BlockView(Markdown):
    """A renderable for some of the blocks of a parsed text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements, "heading_open": _Heading, "fence": _Code, "code_block": _Code, "list_item_open": _Item,
        "table_open": _Table,
    }  # fmt: skip

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens


class MarkdownBlock(NamedTuple):
    """One block of the outermost level: the number of its first line (from 0), and its tokens."""

    line: int
    tokens: list[Token]


def parse_blocks(text: str) -> Iterator[MarkdownBlock]:
    """Yield the outermost Markdown blocks of a text, in order."""
    tokens: list[Token] = []
    depth = 0
    for token in _PARSER.parse(text):
        token.children = [*map(_image_as_text, token.children)] if token.children else token.children
        tokens.append(token)
        depth += token.nesting
        if depth == 0:
            yield MarkdownBlock(tokens[0].map[0] if tokens[0].map else 0, tokens)
            tokens = []


def _image_as_text(token: Token) -> Token:
    """Return an image's token as a text with its description and URL; return any other token unchanged."""
    if token.type != "image":
        return token
    return Token("text", "", 0, content=f"{token.content} ({token.attrs.get('src', '')})".lstrip())


class _TrimmedLines:
    """A renderable without blank lines at its start and end, and without blanks at the end of lines. With `height`,
    only its last `height` lines.
    """

    def __init__(self, content: RenderableType, height: int | None = None) -> None:
        self.content, self.height = content, height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [*map(_without_trailing_blanks, console.render_lines(self.content, options, pad=False))]
        filled = [number for number, line in enumerate(lines) if line]
        for line in lines[filled[0] : filled[-1] + 1][-(self.height or 0) :] if filled else ():
            yield from line
            yield Segment.line()


def _without_trailing_blanks(line: list[Segment]) -> list[Segment]:
    """Return a line without the blanks at its end."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


class MarkdownWriter:
    """Writes Markdown texts to a terminal, one after another. Call `write` for each piece of a text, then `end`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        console.push_theme(STYLES)
        self._live: Live | None = None
        self._tail = ""
        self._is_first = True
        self._next = 0.0

    def write(self, text: str) -> None:
        """Add a piece of the text. Redraw the growing block, unless it was drawn a moment ago."""
        self._tail += printable(text)
        began = time.monotonic()
        if began >= self._next:
            self._draw()
            now = time.monotonic()
            self._next = now + max(SECONDS, 3 * (now - began))  # a text that takes long to draw is drawn less often

    def end(self) -> None:
        """End the text, complete or not, and print its last block. The next `write` begins a new text."""
        tail, self._tail = self._tail, ""
        if self._live is not None:
            self._live.update("")
            self._live.stop()
            self._live = None
        self._print(parse_blocks(tail))
        self._is_first = True

    def _draw(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)
            self._live.start()
        *finished, last = [*parse_blocks(self._tail[: self._tail.rfind("\n") + 1])] or [MarkdownBlock(0, [])]
        self._print(finished)
        if finished:
            self._tail = "\n".join(self._tail.split("\n")[last.line :])
        growing = Group(*self._block_views(parse_blocks(self._tail), self._is_first))
        self._live.update(_TrimmedLines(growing, max(1, min(TALLEST, self._console.height - 2))), refresh=True)

    def _print(self, blocks: Iterable[MarkdownBlock]) -> None:
        for view in self._block_views(blocks, self._is_first):
            self._console.print(view)
            self._is_first = False

    @staticmethod
    def _block_views(blocks: Iterable[MarkdownBlock], is_first: bool) -> Iterator[RenderableType]:
        """Yield the blocks, with an empty line before each except the first."""
        for number, block in enumerate(blocks):
            view = _TrimmedLines(_BlockView(block.tokens))
            yield view if is_first and not number else Group(Text(""), view)
