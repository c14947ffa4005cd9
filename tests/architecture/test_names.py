"""What the packages export, and what their modules say of themselves."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.project import CORE, PACKAGES, ROOT, Package, docstring, python_files, shown
from tests.rules import check_each

VENDORS = "anthropic|azure|bedrock|claude|deepseek|gemini|google|gpt|groq|llama|mistral|openai|smollm|vertex"


def test_core_exports_a_public_surface() -> None:
    """Without `__all__` the checks of exports below would hold of nothing."""
    assert len(importlib.import_module("sabir").__all__) > 20


def absent_exports(package: Package) -> Iterator[str]:
    """Exported names that the package does not have."""
    module = importlib.import_module(package.module)
    for name in getattr(module, "__all__", ()):
        if not hasattr(module, name):
            yield f"{shown(package.source)}/__init__.py: exports {name}, which it does not have"


def test_every_exported_name_exists() -> None:
    """`from sabir import *` must not fail."""
    check_each(PACKAGES, absent_exports, "import it there, or take it out of __all__")


def without_docstring(path: Path) -> Iterator[str]:
    """The module, where it says nothing of itself."""
    is_marker = path.name == "__init__.py" and path.is_relative_to(ROOT / "tests") and not path.read_bytes()
    if not is_marker and not docstring(path):
        yield f"{shown(path)}:1: has no docstring"


def test_every_module_opens_with_a_docstring() -> None:
    """The law that it keeps, or the picture of what it does; an empty marker among tests has none."""
    modules = [*python_files("core", "plugins", "tests"), ROOT / "noxfile.py"]
    check_each(modules, without_docstring, "open it with what it does")


def vendors_named(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        for name in re.findall(rf"(?i){VENDORS}", line):
            yield f"{shown(path)}:{number}: names {name}"


def test_core_names_no_provider() -> None:
    """PJ-55, CD-04: not in an import, not in a string, not in a comment."""
    check_each(CORE.modules(), vendors_named, "say what every provider has, or move it into a plugin")
