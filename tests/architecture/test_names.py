"""What the packages export, and what their modules say of themselves."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from tests.architecture.project import CORE, PACKAGES, ROOT, Package, python_files, shown, syntax_tree

VENDORS = "anthropic|azure|bedrock|claude|deepseek|gemini|google|gpt|groq|llama|mistral|openai|smollm|vertex"


def test_core_exports_a_public_surface() -> None:
    """Without `__all__` the checks of exports below would hold of nothing."""
    assert len(importlib.import_module("sabir").__all__) > 20


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_every_exported_name_exists(package: Package) -> None:
    """`from sabir import *` must not fail."""
    module = importlib.import_module(package.module)

    assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_exported_names_are_sorted(package: Package) -> None:
    """Constants, then classes, then functions, each by the alphabet: the order that ruff keeps (RUF022)."""
    exported = list(getattr(importlib.import_module(package.module), "__all__", ()))

    def rank(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name.lstrip("_")[0].isupper() else 2, name)

    assert exported == sorted(exported, key=rank)
    assert len(set(exported)) == len(exported)


def test_every_exported_class_and_function_of_core_says_what_it_is() -> None:
    """`help(sabir.X)` is the first place where users look."""
    module = importlib.import_module("sabir")
    exported = {name: getattr(module, name) for name in module.__all__}
    ours = {name: value for name, value in exported.items() if inspect.isclass(value) or inspect.isfunction(value)}

    assert [name for name, value in ours.items() if not value.__doc__] == []


@pytest.mark.parametrize("path", [*python_files("core", "plugins", "tests"), ROOT / "noxfile.py"], ids=shown)
def test_every_module_opens_with_a_docstring(path: Path) -> None:
    """The law that it keeps, or the picture of what it does; an empty marker among tests has none."""
    is_marker = path.name == "__init__.py" and path.is_relative_to(ROOT / "tests") and not path.read_bytes()

    assert is_marker or ast.get_docstring(syntax_tree(path))


@pytest.mark.parametrize("path", CORE.modules(), ids=shown)
def test_core_names_no_provider(path: Path) -> None:
    """PJ-55, CD-04: not in an import, not in a string, not in a comment."""
    named = re.findall(rf"(?i){VENDORS}", path.read_text("utf-8"))

    assert named == []
