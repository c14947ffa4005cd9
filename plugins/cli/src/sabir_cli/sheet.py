"""Rows of facts, as wide as the console: a table where it fits, else a record for each row; nothing is cut off.

provider  state      key                       openai
openai    installed  no OPENAI_API_KEY           installed · no OPENAI_API_KEY
"""

from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 2
"""Columns between two columns of a table, and before a record's facts."""
NARROWEST = 20
"""Columns that the last column of a table keeps; it alone is folded."""


class Sheet:
    """A renderable of rows under titles, the first of which names the row.

    In a record a fact is led by its title unless that is in `plain`: "installed" and "no OPENAI_API_KEY" say what they
    are, "4,096" does not. Facts that are empty are left out there.
    """

    def __init__(self, *titles: str, plain: Collection[str] = (), right: Collection[str] = ()) -> None:
        self._titles = titles
        self._plain = frozenset(plain)
        self._right = frozenset(right)
        self._rows: list[tuple[Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        """One more row, a cell for each title."""
        self._rows.append(tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or the records."""
        if self._narrowest() <= options.max_width:
            yield self._table()
        else:
            for name, *facts in self._rows:
                yield Text(name.plain, style="bold", overflow="fold")
                for line in self._lines(console, facts, max(1, options.max_width - GAP)):
                    yield Padding(line, (0, 0, 0, GAP), expand=False)

    def _narrowest(self) -> int:
        """The columns that the table takes where only its last column is folded, between words."""
        *widths, last = (max(map(cell_len, column)) for column in self._columns())
        word = max(cell_len(word) for cell in self._columns()[-1] for word in (*cell.split(), ""))
        return sum(widths) + GAP * len(widths) + min(last, max(word, NARROWEST))

    def _columns(self) -> Sequence[Sequence[str]]:
        return [[title, *(row[number].plain for row in self._rows)] for number, title in enumerate(self._titles)]

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold underline")
        for number, title in enumerate(self._titles):
            is_last = number == len(self._titles) - 1
            table.add_column(title, no_wrap=not is_last, overflow="fold", style="" if number else "bold")
            table.columns[-1].justify = "right" if title in self._right else "left"
        for row in self._rows:
            table.add_row(*row)
        return table

    def _lines(self, console: Console, facts: Sequence[Text], width: int) -> Iterator[Text]:
        """The facts of one record, as many to a line as fit; one that fits in no line has lines of its own."""
        line = Text()
        for title, fact in zip(self._titles[1:], facts, strict=True):
            if not fact.plain:
                continue
            said = fact if title in self._plain else Text.assemble((f"{title} ", "dim"), fact)
            joined = Text.assemble(line, " · ", said) if line else said
            if joined.cell_len <= width:
                line = joined
                continue
            if line:
                yield line
            line = said
            if said.cell_len > width:
                line = Text()
                for number, part in enumerate(said.wrap(console, max(1, width - GAP), overflow="fold")):
                    part.rstrip()
                    yield Text.assemble(" " * GAP * bool(number), part)
        if line:
            yield line
