"""The public names: loaded at their first use, and for all who look the same as if they had been there before."""

import ast
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest
import sabir
import sabir.authoring


def test_every_name_is_listed_and_found() -> None:
    everything: dict[str, object] = {}
    exec("from sabir import *", everything)

    assert {name for name in dir(sabir) if not name.startswith("__")} == {*sabir.__all__, "authoring", "errors"}
    assert {name: getattr(sabir, name) for name in sabir.__all__}.items() <= everything.items()
    with pytest.raises(AttributeError, match=r"module 'sabir' has no attribute 'adaptor'$"):
        sabir.adaptor  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'adaptor'"):
        exec("from sabir import adaptor")


@pytest.mark.parametrize("door", [sabir, sabir.authoring], ids=lambda door: door.__name__)
def test_checkers_and_programs_see_the_same_names(door: types.ModuleType) -> None:
    """What the stub imports, and hands on, is what the table names, each from the same module."""
    tree = ast.parse(Path(str(door.__file__)).with_suffix(".pyi").read_text("utf-8"))
    imported = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sabir.")
    ]
    (handed_on,) = (node.value for node in tree.body if isinstance(node, ast.Assign))

    assert {
        alias.name: node.module for node in imported for alias in node.names if node.module != "collections.abc"
    } == {name: f"sabir.{module}" for name, module in door._MODULE_OF.items()}
    assert set(ast.literal_eval(handed_on)) == set(door.__all__)


def test_what_was_pickled_loads_where_nothing_was_used_yet() -> None:
    """In a process whose modules are reached by the package: `sabir.errors` needs no import of its own."""
    message = sabir.user("hi")
    program = (
        "import pickle, sys, sabir; print(sabir.dumps_lines(pickle.loads(bytes.fromhex(sys.argv[1])))); "
        "assert issubclass(sabir.errors.CallError, sabir.SabirError) and sabir.base.__name__ == 'sabir.base'"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, pickle.dumps([message]).hex()], capture_output=True, text=True, check=True
    )

    assert sabir.loads(ran.stdout) == [message]
