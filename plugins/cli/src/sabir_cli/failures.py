"""Errors of the command: an exit code, and one line that names flags instead of Python arguments.

    error ──exit_of──▶ code
    error ──explain──▶ one line ──in_flags──▶ "raise --max-output-tokens" in place of "raise max_output_tokens"

The library's errors name arguments of Python functions, which the user of a command does not know.
"""

import re
from collections.abc import Mapping
from functools import partial

from cyclopts import CycloptsError, UnusedCliTokensError
from cyclopts.completion import ShellDetectionError
from pydantic import ValidationError
from sabir import CallError, RenderingRefused, SabirError
from sabir.authoring import describe_validation_error
from sabir.errors import OutputError, PluginError

from sabir_cli.exits import DEBUG_VARIABLE, Exit
from sabir_cli.output import UsageError

ERRORS: Mapping[Exit, tuple[type[BaseException], ...]] = {
    Exit.FAILED: (RenderingRefused, OutputError),
    Exit.PLUGIN: (PluginError,),
    Exit.CALL: (CallError,),
    Exit.USAGE: (CycloptsError, ShellDetectionError, SabirError, ValidationError, OSError),
    Exit.INTERRUPTED: (KeyboardInterrupt,),
    Exit.PIPE: (BrokenPipeError,),
    Exit.BUG: (Exception,),
}
"""Exit code → the error classes with this code. The most specific class of an error decides."""

FLAGS: Mapping[str, str] = {
    "max_output_tokens": "--max-output-tokens",
    "reasoning_effort": "--reasoning-effort",
    "temperature": "--temperature",
    "base_url": "--base-url",
    "vendor": "--vendor",
    "options": "--option",
    "output": "--output",
    "model": "--model",
    "name": "--name",
    "strict": "--strict",
}
"""Argument of a function or field of `sabir.Settings` → the flag that sets it."""

_UNQUOTED = r"(?<![\w.'\"`(-])"
_NAMES = "|".join(sorted(FLAGS, key=lambda name: -len(name)))
_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"; the received part is in `partial`"), ""),  # an attribute of the error
    (re.compile(r",? or pass api_key=(\{[^{}]*\})?( or api_key=(\{[^{}]*\})?)*"), ""),  # no flag takes a key
    (
        re.compile(r"another package that provides ('[^']*'), or call sabir\.register"),
        r"another package that provides \1",
    ),
    (re.compile(r"a URL, a path or bytes"), "a URL or a path"),
    (
        re.compile(r"pass model_facts=\{'(\w+)': (\[[^\]]*\])\}"),
        r'set \1 = \2 in a table [model_facts."provider:model"] of the settings file (`sabir config path`)',
    ),
    (re.compile(rf"\bsettings\.({_NAMES})\b"), "{flag}"),
    (re.compile(rf"{_UNQUOTED}({_NAMES})=(?=[\w\d'\"[])"), "{flag} "),
    (re.compile(rf"{_UNQUOTED}({_NAMES})="), "{flag}"),
    (
        re.compile(rf"{_UNQUOTED}(temperature)(?=:)|(?<=leave out )(temperature)\b|(?<=change )(temperature)\b"),
        "{flag}",
    ),
    (re.compile(rf"{_UNQUOTED}({'|'.join(name for name in FLAGS if '_' in name)})(?![\w'\"`])"), "{flag}"),
)
"""Patterns in the library's texts, and their replacements. `{flag}` is the flag of the matched name."""


def in_flags(text: str) -> str:
    """Return a text of the library with flags in place of the names of Python arguments.

    A name directly after a quote or a backtick is not changed, because it repeats a text of a server or the user.
    """
    for pattern, replacement in _REWRITES:
        text = pattern.sub(partial(_expand, replacement), text)
    return text


def _expand(replacement: str, match: re.Match[str]) -> str:
    name = next(filter(None, match.groups()), "")
    return match.expand(replacement.replace("{flag}", FLAGS.get(name, "")))


def exit_of(error: BaseException) -> Exit:
    """Return the exit code of an error: the code of its most specific class in ERRORS, otherwise `Exit.BUG`."""
    for kind in type(error).__mro__:
        for code, kinds in ERRORS.items():
            if kind in kinds:
                return code
    return Exit.BUG


def explain(error: BaseException) -> str:
    """Return an error's text for the user in one line: what is wrong, and the remedy if there is one."""
    if isinstance(error, CycloptsError):
        command = " ".join(("sabir", *(error.command_chain or ())))
        if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
            extra = error.unused_tokens[0]
            return f"unexpected argument {extra!r}; put a text of several words in quotes (see `{command} --help`)"
        return f"{str(error).rstrip('., ')} (see `{command} --help`)"
    if isinstance(error, ValidationError):
        return in_flags(f"{error.title}: {describe_validation_error(error)}")
    if isinstance(error, SabirError):
        return str(error) if isinstance(error, UsageError) else in_flags(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename!r}: {error.strerror}" if error.filename else error.strerror
    if exit_of(error) is Exit.BUG:
        return f"unexpected {type(error).__name__}: {error}; set {DEBUG_VARIABLE}=1 to see where"
    return str(error)
