"""The `sabir` command on a pseudo-terminal, as someone at a keyboard has it."""

import os
import re
import select
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, environment

posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")


def on_terminal(
    *arguments: str,
    typed: list[tuple[bytes, bytes]] | None = None,
    env: dict[str, str] | None = None,
    columns: int = 80,
    program: Sequence[str] = (str(SCRIPT),),
    cwd: Path | None = None,
) -> tuple[int, bytes]:
    """Run it on a terminal of 24 lines; for each pair, wait for the first, a pattern, and type the second.

    A pattern is looked for in what comes after the last typing.
    """
    import fcntl
    import pty
    import termios

    told = environment({"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})})
    del told["COLUMNS"]
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests may ignore or block it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        if cwd is not None:
            os.chdir(cwd)
        os.execve(program[0], [*program, *arguments], told)
    seen, since, waiting, deadline = b"", 0, list(typed or ()), time.monotonic() + 20
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # the other side is gone
                break
            if waiting and re.search(waiting[0][0], seen[since:], re.DOTALL):
                time.sleep(0.2)  # until the line is being read: what is typed before is thrown away
                since = len(seen)
                os.write(terminal, waiting.pop(0)[1])
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen


def lines_of(seen: bytes) -> list[str]:
    """The lines as they stand on the terminal, without colours; a line that was begun anew is as it was last."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return [line.rpartition("\r")[2] for line in plain.replace("\r\n", "\n").split("\n")]


def screen_of(written: str, height: int) -> list[str]:
    """The lines that a terminal of so many lines shows after a program wrote to it, those that scrolled away first.

    It obeys what rich writes: moving up, erasing a line, colours, the cursor's look.
    """
    gone: list[str] = []
    lines, row, column = [""], 0, 0
    for sign in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.", written, re.DOTALL):
        if sign == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
            if len(lines) > height:
                gone.append(lines.pop(0))
                row -= 1
        elif sign == "\r":
            column = 0
        elif sign.endswith("A") and len(sign) > 1:
            row = max(0, row - int(sign[2:-1] or 1))
        elif sign == "\x1b[2K":
            lines[row] = ""
        elif len(sign) == 1:
            lines[row] = lines[row][:column].ljust(column) + sign + lines[row][column + 1 :]
            column += 1
        else:
            assert sign[-1] in "mhl", f"a sign that is not known here: {sign!r}"
    shown = [line.rstrip() for line in [*gone, *lines]]
    while shown and not shown[-1]:
        shown.pop()
    return shown
