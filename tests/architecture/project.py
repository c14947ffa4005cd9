"""The project as its tests see it: its packages, its files, and the syntax trees of its modules."""

import ast
import functools
import subprocess
import tokenize
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
UNSAID = {tokenize.COMMENT, tokenize.NL}
"""Tokens that may stand before a docstring."""


@dataclass(frozen=True)
class Package:
    folder: Path

    def __str__(self) -> str:
        return self.folder.name

    @functools.cached_property
    def metadata(self) -> dict[str, Any]:
        table: dict[str, Any] = read_toml(self.folder / "pyproject.toml")["project"]
        return table

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.module

    @property
    def providers(self) -> dict[str, str]:
        """Its entry points of the group sabir.providers."""
        return dict(self.metadata.get("entry-points", {}).get("sabir.providers", {}))

    def modules(self) -> list[Path]:
        return sorted(self.source.rglob("*.py"))

    def own_modules(self) -> list[Path]:
        """Return the modules without those of the projects that `sabir new-plugin` copies, which cannot be imported."""
        folders = {path: path.relative_to(self.source).parent.parts for path in self.modules()}
        return [path for path, parts in folders.items() if not any(part.endswith("template") for part in parts)]


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Every file that belongs to the project: what git holds, or would hold at the next `git add`."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """The project's Python files below those top-level folders."""
    return [path for path in project_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@functools.cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def docstring(path: Path) -> str | None:
    """The module's docstring; what comes after its first statement is not read."""
    with path.open(encoding="utf-8") as file:
        lines = file.readlines()
    tokens = (token for token in tokenize.generate_tokens(iter(lines).__next__) if token.type not in UNSAID)
    if next(tokens).type != tokenize.STRING:
        return None
    last = next(token.end[0] for token in tokens if token.type == tokenize.NEWLINE)
    return ast.get_docstring(ast.parse("".join(lines[:last]), str(path)))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(syntax_tree(path)))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of the module, nested ones included."""
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


CORE = Package(ROOT / "core")
PLUGINS = [Package(path.parent) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
PACKAGES = [CORE, *PLUGINS]
PROVIDERS = [package for package in PLUGINS if package.providers]
