"""Read the arguments of command lines: the model, the options, files and piped text.

-m, SABIR_MODEL, the settings file or the local model ──▶ provider:model          module:function ──▶ option
"""

import importlib
import os
import re
import select
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import sabir
from cyclopts import Parameter
from sabir import SabirError
from sabir.authoring import one_line

from sabir_cli.output import UsageError

if TYPE_CHECKING:  # `sabir chat --help` imports this module, but must not load the library
    from sabir import Option

MODEL_VARIABLE = "SABIR_MODEL"
EMBEDDED = "local"
"""The provider of the local model, which needs no key and, once downloaded, no network. In the package
`sabir-local`.
"""


def refuse_misspelt(kind: object, value: str | None) -> None:
    """Check the value of an argument for cyclopts. Raises ValueError if it looks like a misspelt flag, such as
    "--modle".
    """
    if value is not None and re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", value):
        raise ValueError("There is no such flag")


STDIN_TOO = Parameter(allow_leading_hyphen=True, validator=refuse_misspelt)
"""The cyclopts Parameter of an argument that may be "-", for standard input. A misspelt flag is refused, not used as
the argument's value.
"""

PATIENCE = 2.0
"""Seconds. If a pipe has no data for this time, a line tells the user that the command waits for the pipe."""

JSONFlag: TypeAlias = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document.")]
ModelFlag: TypeAlias = Annotated[
    str | None,
    Parameter(
        name=["-m", "--model"],
        help="provider:model. Default: $SABIR_MODEL, then `sabir config`, then the local model.",
    ),
]
OptionFlags: TypeAlias = Annotated[
    list[str] | None,
    Parameter(name="--option", negative="", help="module:function that the model may call; repeatable."),
]


def choose_model(flag: str | None) -> str:
    """Return a model string: `flag` (-m), else SABIR_MODEL, else the settings file's, else the local model.

    Raises UsageError for invalid settings if there is no `flag`, and PluginError if no model is named and `sabir-local`
    is missing or broken.
    """
    from sabir_cli.config import Defaults

    return flag or Defaults.load().model or embedded_model()


def embedded_model() -> str:
    """Return the model string of the local provider's first known model. Raises PluginError if `sabir-local` is missing
    or broken.
    """
    try:
        names = known_models(EMBEDDED)
    except sabir.errors.PluginError as error:
        remedy = f"choose another model with -m provider:model or {MODEL_VARIABLE}"
        raise type(error)(f"no model was named, and the local model is not available: {error}; {remedy}") from None
    return f"{EMBEDDED}:{names[0] if names else 'default'}"


def split_provider(name: str) -> tuple[str, str | None]:
    """Return the provider, and the dialect or None, in a text of the form `provider[.dialect][:model]`."""
    provider, _, dialect = name.partition(":")[0].partition(".")
    return provider, dialect or None


def model_rows(name: str) -> "tuple[sabir.ModelInfo, ...]":
    """Return the known facts about models of `provider` or `provider.dialect`. Raises PluginError for an unknown
    name.
    """
    return sabir.models(*split_provider(name))


def known_models(name: str) -> list[str]:
    """Return the names of the known models of `provider` or `provider.dialect`.

    The models with the longest context come first. Rows whose prefix does not end with a letter or digit are left out,
    because they are only the beginning of names.
    """
    named = (info for info in model_rows(name) if info.prefix and info.prefix[-1].isalnum())
    return [info.prefix for info in sorted(named, key=lambda info: (-(info.context_tokens or 0), len(info.prefix)))]


def load_options(specs: Iterable[str] | None) -> "tuple[Option, ...]":
    """Import and return the options that texts of the form `module:function` name. Raises OptionInvalid, which names
    the wrong text.
    """
    return sabir.Option.all_of([_load_option(spec) for spec in specs or ()])


def read_pipe(argument: str) -> bytes:
    """Read all of standard input. Raises UsageError, which asks for `argument`, if it is a terminal or missing."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"standard input is a terminal; write {argument} as an argument, or pipe it into the command")
    return sys.stdin.buffer.read()


def read_bytes(file: str, argument: str) -> bytes:
    """Return the content of a file, or of standard input if `file` is "-". Raises UsageError if it cannot be read."""
    if file == "-":
        return read_pipe(argument)
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{file!r} cannot be read: {reason}; write the path of {argument} that exists") from None


def read_message(prompt: str | None) -> list[str]:
    """Return a list with the message of a command line: the piped text, if there is any, and then the PROMPT. Without a
    PROMPT and without piped text, return [].

    With a PROMPT, standard input is read only if it is a pipe or a file, because any other input may never end. Raises
    UsageError for an empty PROMPT, for "-" on a terminal, and for piped data that is not UTF-8 text.
    """
    if prompt is not None and not prompt.strip():
        raise UsageError("there is no message to send; write a PROMPT, or pipe text into the command")
    if prompt not in (None, "-"):
        return ["\n\n".join([*(_piped_text() if _is_piped() else []), prompt])]
    is_silent = prompt is None and (sys.stdin is None or sys.stdin.isatty())
    return [] if is_silent else _piped_text()


def _is_piped() -> bool:
    """Return whether standard input is a pipe or a file. Print a line if a pipe has no data within PATIENCE."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):  # there is no standard input, or it is closed
        return False
    if stat.S_ISFIFO(mode) and os.name != "nt" and not select.select([descriptor], [], [], PATIENCE)[0]:
        sys.stderr.write("sabir: waiting for text on standard input; if there is none, add < /dev/null\n")
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _piped_text() -> list[str]:
    data = read_pipe("a PROMPT")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        remedy = "pipe UTF-8 text; attach images, sounds and documents with --image, --audio and --document"
        raise UsageError(f"byte {error.start} of standard input is not UTF-8 text; {remedy}") from None
    return [text] if text else []


def _load_option(spec: str) -> "Option":
    function = load_named(spec, "--option", "function", sabir.errors.OptionInvalid)
    if function in (sabir.web_search, sabir.code_execution):
        function = function()
    try:
        (option,) = sabir.Option.all_of([function])
    except sabir.errors.OptionInvalid as error:
        raise sabir.errors.OptionInvalid(f"--option {spec!r}: {error}") from None
    return option


def load_named(spec: str, flag: str, kind: str, error_type: type[SabirError] = UsageError) -> Any:  # any object
    """Import and return the object that `spec`, of the form `module:name`, names. `kind` is the kind of object, for the
    error.

    Raises `error_type`, with the flag in its text, if the module cannot be imported or has no such object.
    """
    module_name, colon, path = spec.partition(":")
    if not (colon and module_name and path):
        raise error_type(f"{flag} {spec!r} does not name a {kind}; write module:{kind}")
    target = _import_from_here(module_name, f"{flag} {spec!r}", error_type)
    for name in path.split("."):
        if not hasattr(target, name):
            known = ", ".join(name for name in getattr(target, "__dict__", ()) if not name.startswith("_"))
            reason = f"{module_name!r} has no {path!r}; it has {known or 'nothing'}"
            raise error_type(one_line(f"{flag} {spec!r}: {reason}", 300))
        target = getattr(target, name)
    return target


def _import_from_here(module_name: str, argument: str, error_type: type[SabirError]) -> Any:  # a module
    """Import a module, with the working folder first on the path, and restore `sys.path`.

    If the folder stayed on the path, its files could replace modules that libraries import later. Raises `error_type`
    for any exception of the import except KeyboardInterrupt.
    """
    folder = os.getcwd()
    is_added = folder not in sys.path  # `sys.path` of a console script begins with the script's folder
    if is_added:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = f"{module_name!r} cannot be imported from {folder!r} or the environment"
        raise error_type(f"{argument}: {problem}: {one_line(error, 200)}") from error
    finally:
        if is_added and folder in sys.path:
            sys.path.remove(folder)
