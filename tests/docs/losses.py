"""Every loss that core itself reports, read from its source: the kind, and the words of the reason.

log.add("dropped", f"{target} refuses it")  ──▶  ("dropped", "… refuses it")
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from sabir.losses import KINDS

from tests.docs.pages import ROOT

CORE = ROOT / "core" / "src" / "sabir"
HOLE = "…"
"""What stands for the parts of a reason that differ from case to case."""


def core_losses() -> set[tuple[str, str]]:
    """Kind and reason of each loss that a module of core writes down."""
    return {loss for path in sorted(CORE.glob("*.py")) for loss in _losses_of(path)}


def _losses_of(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_text("utf-8"))
    constants = _assignments(module.body)
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        local = _assignments(list(ast.walk(function)))
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and (found := _written_down(node)):
                kind, reason = found
                for expression in _values(reason, local) or _values(reason, constants) or [reason]:
                    yield kind, _words(expression)


def _written_down(call: ast.Call) -> tuple[str, ast.expr] | None:
    """Kind and reason of a loss, where a call writes one down."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if isinstance(call.func, ast.Name) and call.func.id == "Loss":
        kind, reason = named.get("kind"), named.get("reason")
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "add" and len(call.args) > 1:
        kind, reason = call.args[0], call.args[1]
    else:
        return None
    if isinstance(kind, ast.Constant) and kind.value in KINDS and reason is not None:
        return kind.value, reason
    return None


def _assignments(nodes: list[ast.stmt] | list[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def _values(reason: ast.expr, assigned: dict[str, list[ast.expr]]) -> list[ast.expr]:
    return assigned.get(reason.id, []) if isinstance(reason, ast.Name) else []


def _words(reason: ast.expr) -> str:
    if isinstance(reason, ast.Constant):
        return str(reason.value)
    if isinstance(reason, ast.JoinedStr):
        return "".join(_words(each) for each in reason.values)
    return HOLE
