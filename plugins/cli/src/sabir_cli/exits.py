"""The exit codes of the command. This module imports no other module of the project, because every start imports it.

error ──failures.exit_of──▶ Exit ──MEANINGS──▶ the help page
"""

from collections.abc import Mapping
from enum import IntEnum

DEBUG_VARIABLE = "SABIR_DEBUG"
"""The environment variable that, if it is not empty, makes the command print the traceback of an error."""


class Exit(IntEnum):
    """The exit codes of the command. MEANINGS explains each of them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PLUGIN = 3
    CALL = 4
    BUG = 70
    INTERRUPTED = 130
    PIPE = 141


MEANINGS: Mapping[Exit, str] = {
    Exit.OK: "success",
    Exit.FAILED: "no usable reply, a refused conversation, losses or differences",
    Exit.USAGE: "wrong arguments or input: a file, a history, an option, a setting",
    Exit.PLUGIN: "a provider or a plugin is missing or broken",
    Exit.CALL: "a call to a provider failed",
    Exit.BUG: f"a bug in sabir or in a plugin; {DEBUG_VARIABLE}=1 shows where",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
    Exit.PIPE: "the program that reads the output has closed it",
}
"""Exit code → its meaning, as the help page shows it."""


def help_text() -> str:
    """Return the table of exit codes as the help page shows it."""
    return "Exit codes:\n" + "\n".join(f"{code.value:>5}  {meaning}" for code, meaning in MEANINGS.items())
