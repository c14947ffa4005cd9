"""A remark of a plugin's log for the person who waits: which model is loaded, how large, and from where.

    log "sabir.local", level INFO ──▶ one dim line on standard error; with --json nothing

A library writes nothing to the terminal; its command shows what its log says.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.text import Text
from sabir.authoring import printable

from sabir_cli.output import Output

LOGS = ("sabir.local",)


class _Notes(logging.Handler):
    """Shows each record as a note."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.INFO)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """One line, on standard error: written as text, which a spinner that is shown there moves out of the way."""
        console = self._output.err
        with console.capture() as shown:
            console.print(Text(printable(record.getMessage()), style="dim"), soft_wrap=True)
        sys.stderr.write(shown.get())


@contextmanager
def telling(output: Output, tokens: Sequence[str]) -> Iterator[None]:
    """Show what those logs say while a command runs."""
    if "--json" in tokens:
        yield
        return
    notes = _Notes(output)
    levels = {log: log.level for log in map(logging.getLogger, LOGS)}
    for log in levels:
        log.addHandler(notes)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.removeHandler(notes)
            log.setLevel(level)
