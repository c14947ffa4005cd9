"""Each contender's environment, made on demand and kept: .cache/benchmarks/<first contender>-<key>/.

Contenders with the same requirements share one. What cannot be made is told by name and reason; nothing stands for it.
"""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.contenders import MODULES

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "benchmarks"
CONTENDERS = Path(__file__).parent / "contenders"
PLOTS = Path(__file__).with_name("plots.py")
"""It has an environment as contenders have."""
WORKSPACE = {
    "{core}": ROOT / "core",
    **{"{" + path.parent.name + "}": path.parent for path in ROOT.glob("plugins/*/pyproject.toml")},
}


class Absent(Exception):
    """A contender that is not here, and why."""


def requirements_of(contender: str) -> tuple[str, ...]:
    """What a contender's module says it requires; the module is read, not imported."""
    path = PLOTS if contender == PLOTS.stem else CONTENDERS / f"{MODULES[contender]}.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "REQUIREMENTS":
            return tuple(ast.literal_eval(node.value))
    raise Absent("its module names no REQUIREMENTS")


@cache
def python_of(contender: str) -> Path:
    """The interpreter of a contender's environment; Absent says why there is none."""
    if made := _made(contender):
        return made
    requirements, key = requirements_of(contender), _key(contender)
    folder = CACHE / f"{contender}-{key}"
    shutil.rmtree(folder, ignore_errors=True)
    print(f"  making the environment of {contender}", file=sys.stderr, flush=True)
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    _uv(
        "pip",
        "install",
        "--quiet",
        "--compile-bytecode",
        "--python",
        str(folder / "bin" / "python"),
        *_installable(requirements),
    )
    (folder / "made").touch()
    return folder / "bin" / "python"


def is_made(contender: str) -> bool:
    """Whether there is an environment for it already."""
    return _made(contender) is not None


def versions_of(contender: str) -> dict[str, str]:
    """What is installed in a contender's environment."""
    listed = _uv("pip", "list", "--quiet", "--format", "json", "--python", str(python_of(contender)))
    return {each["name"]: each["version"] for each in json.loads(listed)}


def variables() -> dict[str, str]:
    """A worker's environment variables: no keys, no proxies, nothing that leads a library elsewhere."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"PYTHONPATH": str(ROOT), "NO_PROXY": "*"}


def _key(contender: str) -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    return hashlib.sha256(" ".join((version, *requirements_of(contender))).encode()).hexdigest()[:10]


def _made(contender: str) -> Path | None:
    found = sorted(CACHE.glob(f"*-{_key(contender)}/made"))
    return found[0].parent / "bin" / "python" if found else None


def _installable(requirements: tuple[str, ...]) -> list[str]:
    arguments: list[str] = []
    for requirement in requirements:
        package, brace, extras = requirement.partition("}")  # {runtime}[durable]
        folder = WORKSPACE.get(package + brace)
        arguments += ["-e", f"{folder}{extras}"] if folder else [requirement]
    return arguments


def _uv(*arguments: str) -> str:
    # Away from the workspace, whose own overrides of requirements would hold here too.
    done = subprocess.run(["uv", *arguments], cwd=ROOT.anchor, capture_output=True, text=True, check=False)
    if done.returncode:
        last = " ".join(done.stderr.split())[-200:]
        raise Absent(f"its environment cannot be made: {last}")
    return done.stdout
