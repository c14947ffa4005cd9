"""Rows of facts, printed as a table if the console is wide enough, otherwise each row as a record of several lines.
Nothing is cut off.

provider  state      key                       openai
openai    installed  no OPENAI_API_KEY           installed · no OPENAI_API_KEY
"""

from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

GAP = 2
"""The number of blanks between two columns of a table, and before a record's facts."""
NARROWEST = 20
"""Minimum width of a table's last column, which is the only one that is folded."""


class RecordTable:
    """A renderable of rows under titles, for rich's console. The first cell of a row is the row's name.

    In a record, each fact follows its title, unless the title is in `plain`: "installed" and "no OPENAI_API_KEY" are
    clear without a title, "4,096" is not. Empty facts are left out. Columns in `right` are aligned to the right.
    """

    def __init__(self, *titles: str, plain: Collection[str] = (), right: Collection[str] = ()) -> None:
        self._titles = titles
        self._plain = frozenset(plain)
        self._right = frozenset(right)
        self._rows: list[tuple[str | Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        """Add a row with one cell for each title."""
        self._rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or the records if the table does not fit."""
        widths = [max(map(_width, column)) for column in self._columns()]
        if self._fits(widths, options.max_width):
            others = sum(widths[:-1]) + GAP * (len(widths) - 1)
            yield from self._table_lines(console, [*widths[:-1], min(widths[-1], options.max_width - others)])
        else:
            for name, *facts in (tuple(map(_text_cell, row)) for row in self._rows):
                yield Text(name.plain, style="bold", overflow="fold")
                for line in self._fact_lines(console, facts, max(1, options.max_width - GAP)):
                    yield Padding(line, (0, 0, 0, GAP), expand=False)

    def _fits(self, widths: Sequence[int], width: int) -> bool:
        """Return whether a table fits into `width` columns if only its last column is folded, between words."""
        *others, last = widths
        last_width = width - sum(others) - GAP * len(others)
        if last <= last_width:
            return True
        words = (word for cell in self._columns()[-1] for word in cell.split())
        return max(NARROWEST, *map(_width, words)) <= last_width

    def _cells(self) -> Sequence[Sequence[str | Text]]:
        return [*zip(*self._rows, strict=True)] or [()] * len(self._titles)

    def _columns(self) -> Sequence[Sequence[str]]:
        return [[title, *(map(_plain_cell, column))] for title, column in zip(self._titles, self._cells(), strict=True)]

    def _table_lines(self, console: Console, widths: Sequence[int]) -> Iterator[Text | Segment]:
        """Yield the lines of the table. rich's own tables are not used, because they need seconds for thousands of
        rows.
        """
        bold = console.get_style("bold")
        is_right = [title in self._right for title in self._titles]
        yield from self._row_lines(console, [Text(title, "bold underline") for title in self._titles], widths)
        for row in self._rows:
            texts = [cell for cell in row if isinstance(cell, str)]
            if len(texts) == len(row) and _width(texts[-1]) <= widths[-1]:
                name, *others = map(_aligned, texts, widths, is_right)
                yield Segment(name, bold)
                yield Segment(f"{' ' * GAP}{(' ' * GAP).join(others)}".rstrip() + "\n")
            else:
                cells = [Text.assemble(row[0], style="bold"), *map(_text_cell, row[1:])]
                yield from self._row_lines(console, cells, widths)

    def _row_lines(self, console: Console, cells: Sequence[Text], widths: Sequence[int]) -> Iterator[Text]:
        """Yield the lines of one row. Only its last cell is folded."""
        *begun, last = cells
        folded = last.wrap(console, max(1, widths[-1]), overflow="fold") or [Text()]
        for number, part in enumerate(folded):
            part.rstrip()
            line = Text()
            for column, cell in enumerate(begun):
                aligned = Text(" " * widths[column]) if number else cell.copy()
                aligned.align("right" if self._titles[column] in self._right else "left", widths[column])
                line.append_text(aligned).append(" " * GAP)
            yield line.append_text(part)

    def _fact_lines(self, console: Console, facts: Sequence[Text], width: int) -> Iterator[Text]:
        """Yield the lines with the facts of one record, as many facts per line as fit. A longer fact is folded."""
        line = Text()
        for title, fact in zip(self._titles[1:], facts, strict=True):
            if not fact.plain:
                continue
            titled = fact if title in self._plain else Text.assemble((f"{title} ", "dim"), fact)
            joined = Text.assemble(line, " · ", titled) if line else titled
            if joined.cell_len <= width:
                line = joined
                continue
            if line:
                yield line
            line = titled
            if titled.cell_len > width:
                line = Text()
                for number, part in enumerate(titled.wrap(console, max(1, width - GAP), overflow="fold")):
                    part.rstrip()
                    yield Text.assemble(" " * GAP * bool(number), part)
        if line:
            yield line


def _width(text: str) -> int:
    """Return the number of terminal columns that a text needs. Most characters need one."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def _text_cell(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _plain_cell(cell: str | Text) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _aligned(text: str, width: int, is_right: bool) -> str:
    blank = " " * (width - _width(text))
    return blank + text if is_right else text + blank
