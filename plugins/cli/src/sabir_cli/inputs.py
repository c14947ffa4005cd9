"""Finds the arguments of command lines: the model, the options, the media, the piped text.

-m, SABIR_MODEL, the settings file, or the embedded one ──▶ provider:model          module:function ──▶ option
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

if TYPE_CHECKING:  # `sabir chat --help` imports this module, and not the library
    from sabir import Option

MODEL_VARIABLE = "SABIR_MODEL"
EMBEDDED = "local"
"""The provider that needs no key and no network, where it is installed."""


def refuse_misspelt(kind: object, value: str | None) -> None:
    """Raise ValueError for a value that looks like a nonexistent option, not like a text or a file name."""
    if value is not None and re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", value):
        raise ValueError("There is no such option")


STDIN_TOO = Parameter(allow_leading_hyphen=True, validator=refuse_misspelt)
"""An argument for which - stands for standard input; such an argument would take a misspelt option too."""

PATIENCE = 2.0
"""Seconds until a pipe on which nothing comes is told."""

JSONFlag: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative="", help="One JSON document on standard output.")
]
ModelFlag: TypeAlias = Annotated[
    str | None,
    Parameter(name=["-m", "--model"], help="provider:model; else $SABIR_MODEL, `sabir config`, the embedded one."),
]
OptionFlags: TypeAlias = Annotated[
    list[str] | None,
    Parameter(name="--option", negative="", help="module:function that the model may choose; repeatable."),
]


def choose_model(given: str | None) -> str:
    """The model for a command: the flag's, the environment's, the settings file's, else the embedded one.

    Raises ProviderMissing if none is named and none is embedded, and UsageError for a settings file that is wrong.
    """
    from sabir_cli.config import Defaults

    return given or Defaults.load().model or embedded_model()


def embedded_model() -> str:
    """The embedded provider's first model."""
    try:
        names = known_models(EMBEDDED)
    except sabir.errors.PluginError as error:
        remedy = f"name a model with -m provider:model, or set {MODEL_VARIABLE}"
        raise type(error)(f"no model was named, and the embedded one is missing: {error}; {remedy}") from None
    return f"{EMBEDDED}:{names[0] if names else 'default'}"


def split_place(name: str) -> tuple[str, str | None]:
    """Return the provider of `provider[.dialect][:model]`, and the dialect or None."""
    provider, _, dialect = name.partition(":")[0].partition(".")
    return provider, dialect or None


def model_rows(name: str) -> "tuple[sabir.ModelInfo, ...]":
    """Return the known facts of the models of `provider` or `provider.dialect`."""
    return sabir.models(*split_place(name))


def known_models(name: str) -> list[str]:
    """Return the models of `provider` or `provider.dialect` that its plugin knows by whole names.

    Those with the longest context come first. Rows that only hold the beginning of a name are left out.
    """
    named = (info for info in model_rows(name) if info.prefix and info.prefix[-1].isalnum())
    return [info.prefix for info in sorted(named, key=lambda info: (-(info.context_tokens or 0), len(info.prefix)))]


def load_options(specs: Iterable[str] | None) -> "tuple[Option, ...]":
    """The options that `module:function` specifications name; OptionInvalid says which one is wrong, and how."""
    return sabir.Option.all_of([_load_option(spec) for spec in specs or ()])


def read_pipe(what: str) -> bytes:
    """All of standard input."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"standard input is a terminal; give {what}, or pipe it")
    return sys.stdin.buffer.read()


def read_bytes(file: str, what: str) -> bytes:
    """All of a file, or of standard input where the file is -; UsageError where it cannot be read."""
    if file == "-":
        return read_pipe(what)
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{file!r} cannot be read: {reason}; give {what} that is there") from None


def read_said(prompt: str | None) -> list[str]:
    """What a command line says: what is piped, and the PROMPT after it; UsageError for an empty or unreadable one.

    Beside a PROMPT only a pipe and a file are read: another standard input may never end.
    """
    if prompt is not None and not prompt.strip():
        raise UsageError("there is nothing to say: give a PROMPT, or pipe one")
    if prompt not in (None, "-"):
        return ["\n\n".join([*(_piped() if _is_piped() else []), prompt])]
    is_silent = prompt is None and (sys.stdin is None or sys.stdin.isatty())
    return [] if is_silent else _piped()


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file; a pipe on which nothing comes is told."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):  # there is none, or it is closed
        return False
    if stat.S_ISFIFO(mode) and os.name != "nt" and not select.select([descriptor], [], [], PATIENCE)[0]:
        sys.stderr.write("sabir: waiting for what is piped; < /dev/null where nothing is\n")
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _piped() -> list[str]:
    data = read_pipe("a PROMPT")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        remedy = "pipe UTF-8 text, and give a medium by --image, --audio or --document"
        raise UsageError(f"byte {error.start} of standard input is no UTF-8; {remedy}") from None
    return [text] if text else []


def _load_option(spec: str) -> "Option":
    found = load_named(spec, "--option", "function", sabir.errors.OptionInvalid)
    try:
        (option,) = sabir.Option.all_of([found])
    except sabir.errors.OptionInvalid as error:
        raise sabir.errors.OptionInvalid(f"--option {spec!r}: {error}") from None
    return option


def load_named(spec: str, flag: str, what: str, refused: type[SabirError] = UsageError) -> Any:  # it may be anything
    """What `module:name` names; `refused`, in the flag's name, for what cannot be found."""
    module_name, colon, path = spec.partition(":")
    if not (colon and module_name and path):
        raise refused(f"{flag} {spec!r} names no {what}; write module:{what}")
    found = _import_from_here(module_name, f"{flag} {spec!r}", refused)
    for name in path.split("."):
        if not hasattr(found, name):
            known = ", ".join(name for name in getattr(found, "__dict__", ()) if not name.startswith("_"))
            reason = f"{module_name!r} has no {path!r}; it has {known or 'nothing'}"
            raise refused(one_line(f"{flag} {spec!r}: {reason}", 300))
        found = getattr(found, name)
    return found


def _import_from_here(module_name: str, given: str, refused: type[SabirError]) -> Any:  # it holds anything
    """The module, from the working folder before all others; afterwards that folder is where it was.

    Left on the path, a file in it would take the place of a library's module that is imported later.
    """
    here = os.getcwd()
    is_new = here not in sys.path  # a console script's own folder stands there, not the user's
    if is_new:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = f"{module_name!r} cannot be imported from {here!r} or the environment"
        raise refused(f"{given}: {where}: {one_line(error, 200)}") from error
    finally:
        if is_new and here in sys.path:
            sys.path.remove(here)
