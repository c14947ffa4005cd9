"""The minimal core, and SDKs that stay out until they are needed, proved by what importing loads."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.project import CORE, PROVIDERS, Package, nodes, shown
from tests.rules import check_each

CORE_MAY_LOAD = {
    "annotated_types",
    "pluggy",
    "pydantic",
    "pydantic_core",
    "sabir",
    "typing_extensions",
    "typing_inspection",
}
"""Core itself, its two requirements, and what those require."""

LOADED_BY = """
import json, sys
before = set(sys.modules)
import {module}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted(name for name in loaded - set(sys.stdlib_module_names) if "_sysconfigdata" not in name)))
"""


def loaded_by(module: str) -> set[str]:
    """Top-level modules outside the standard library that a fresh interpreter loads for `import module`."""
    command = [sys.executable, "-I", "-W", "error", "-c", LOADED_BY.format(module=module)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stdout))


def test_importing_core_loads_pydantic_and_pluggy_and_theirs_alone() -> None:
    """CD-02, PJ-55: the proof looks at what was loaded, not at what the sources say."""
    assert loaded_by("sabir") <= CORE_MAY_LOAD


AT_FIRST_USE = """
import json, sys
import sabir
first = list(sys.modules)
sabir.user("hi")
print(json.dumps([first, list(sys.modules)]))
"""
CALLING = ("sabir.calling.adapter", "sabir.discovery", "sabir.hooks.plugins", "pluggy", "asyncio", "tomllib")
"""What calling and discovery need; importlib.metadata is not among it, as pydantic loads that."""


def test_importing_core_loads_none_of_its_modules() -> None:
    """A program pays for the names that it uses: neither pydantic before the first, nor discovery for a message."""
    command = [sys.executable, "-I", "-c", AT_FIRST_USE]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)

    assert finished.returncode == 0, finished.stderr
    imported, said = (set(names) for names in json.loads(finished.stdout))
    assert not [name for name in imported if name.startswith(("sabir.", "pydantic"))]
    assert "sabir.vocabulary.messages" in said
    assert not said & set(CALLING)


def foreign_imports(path: Path) -> Iterator[str]:
    """Imports of a module of core that a user with core alone could not run."""
    for node in nodes(path):
        for name in imported_names(node) - CORE_MAY_LOAD - sys.stdlib_module_names:
            yield f"{shown(path)}:{getattr(node, 'lineno', 0)}: imports {name}"


def test_no_line_of_core_imports_anything_else() -> None:
    """PJ-55: imports inside functions, which importing core does not run, are read from the sources."""
    check_each(CORE.modules(), foreign_imports, "move what needs it into a plugin")


def imported_names(node: ast.AST) -> set[str]:
    """Top-level names that one import statement asks for; relative imports stay inside the package."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return {str(node.module).partition(".")[0]}
    return set()


def loaded_too_early(package: Package, *stems: str) -> Iterator[str]:
    """What importing these modules of a provider loads beside core, what core brings, and providers."""
    siblings = {candidate.module for candidate in PROVIDERS}
    modules = ", ".join(f"{package.module}.{stem}" for stem in stems)
    for name in sorted(loaded_by(modules) - CORE_MAY_LOAD - siblings):
        yield f"{shown(package.source)}: importing {modules} loads {name}"


def test_importing_a_provider_loads_no_sdk() -> None:
    """CD-04: discovery imports `plugin` modules; what a provider needs at its first send is loaded then."""
    check_each(PROVIDERS, lambda package: loaded_too_early(package, "plugin"), "import it where it is first used")


def test_importing_a_providers_wire_code_loads_no_sdk() -> None:
    """Rendering and decoding are pure: no module but `provider` and what it loads may name an SDK."""

    def faults(package: Package) -> Iterator[str]:
        pure = [path.stem for path in package.modules() if not path.stem.endswith(("__init__", "provider"))]
        return loaded_too_early(package, *pure)

    check_each(PROVIDERS, faults, "import it in provider.py, where it is first used")


PROGRAM = """
import json, sys
import sabir
chat = []
for number in range(500):
    chat += [sabir.user(f"question {number}"), sabir.assistant(f"answer {number}")]
rendering = sabir.adapter(sys.argv[1]).render([*chat, sabir.user("last")])
sabir.dialect("openai.chat").decode('{"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]}')
loaded = sorted(name for name in ("openai", "httpx2", "anyio", "sqlite3", "vcr", "xllamacpp") if name in sys.modules)
print(json.dumps({"messages": len(chat) + 1, "bytes": len(rendering.body_bytes), "loaded": loaded}))
"""


@pytest.mark.parametrize("model", ["openai:gpt-5", "openai.chat:gpt-5", "groq:any", "local:smollm2"])
def test_rendering_a_thousand_messages_imports_no_sdk(model: str) -> None:
    """Discovery, rendering and decoding stay free of every SDK (design: packages)."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, model], capture_output=True, text=True, check=True)

    said = json.loads(ran.stdout)
    assert said["messages"] == 1001
    assert said["bytes"] > 20_000
    assert said["loaded"] == []
