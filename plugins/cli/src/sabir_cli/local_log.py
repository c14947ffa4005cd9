"""Show the local model's log to the waiting user: which model is loaded, its size, and its source.

    logger "sabir.local", level INFO ──▶ one dim line on standard error for each record; with --json nothing

The library logs these facts and prints nothing.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.text import Text
from sabir.authoring import printable

from sabir_cli.output import Output

LOGS = ("sabir.local",)


class _LogPrinter(logging.Handler):
    """A log handler that prints each record in one line on standard error."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.INFO)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record in one line on standard error.

        The line is written to `sys.stderr`, which rich redirects while it shows a spinner, so that the line appears
        above the spinner.
        """
        console = self._output.err
        with console.capture() as captured:
            console.print(Text(printable(record.getMessage()), style="dim"), soft_wrap=True)
        sys.stderr.write(captured.get())


@contextmanager
def printing_local_log(output: Output, tokens: Sequence[str]) -> Iterator[None]:
    """Print the log records of LOGS in the `with` block, unless the command line has --json."""
    if "--json" in tokens:
        yield
        return
    printer = _LogPrinter(output)
    levels = {log: log.level for log in map(logging.getLogger, LOGS)}
    for log in levels:
        log.addHandler(printer)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.removeHandler(printer)
            log.setLevel(level)
