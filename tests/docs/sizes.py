"""How much an author writes: the logic of the smallest provider, of the worked one, and of a stranger's.

A line of logic is a statement within a function, its docstring aside: tables, imports and signatures are none.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.docs.pages import ROOT

TEMPLATE = ROOT / "plugins" / "cli" / "src" / "sabir_cli" / "template" / "src" / "sabir_acme"
PROVIDERS: Mapping[str, tuple[Path, str]] = {
    "sabir-echo": (ROOT / "plugins" / "echo" / "src" / "sabir_echo", "a function of its own process"),
    "what `sabir new-plugin` writes": (TEMPLATE, "a made-up wire that has everything, stored requests too"),
    "sabir-cohere": (
        ROOT / "tests" / "third_party" / "sabir-cohere" / "src" / "sabir_cohere",
        "Cohere's v2 chat through its SDK; a package of its own, outside this workspace",
    ),
}
MOST_OF_A_STRANGERS = 200


def lines_of_logic(folder: Path) -> dict[str, int]:
    return {
        path.name: sum(1 for _ in _statements(ast.parse(path.read_text("utf-8"))))
        for path in sorted(folder.rglob("*.py"))
    }


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inner = {node for function in functions for each in function.body for node in ast.walk(each)}
    yield from (node for node in inner if isinstance(node, ast.stmt) and not _is_text(node))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def size_table() -> str:
    rows = []
    for name, (folder, what) in PROVIDERS.items():
        counted = {file: lines for file, lines in lines_of_logic(folder).items() if lines}
        by_file = ", ".join(f"{file.removesuffix('.py')} {lines}" for file, lines in counted.items())
        rows.append(f"| {name} | {sum(counted.values())} | {by_file} | {what} |")
    return "\n".join(["| provider | lines of logic | by file | its wire |", "|---|---|---|---|", *rows])
