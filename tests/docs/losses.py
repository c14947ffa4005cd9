"""Every loss that core itself reports, read from its source: the kind, and the words of the reason.

log.add("dropped", f"{target} refuses it")  ──▶  ("dropped", "… refuses it")
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sabir.base.failures import KINDS

from tests.docs.pages import ROOT

CORE = ROOT / "core" / "src" / "sabir"
HOLE = "…"
"""What stands for the parts of a reason that differ from case to case."""


def modules_of_core() -> list[Path]:
    """The modules that report losses themselves; what dialects are given and share reports those of the dialects."""
    return [path for path in sorted(CORE.rglob("*.py")) if not {"authoring", "contract"} & {*path.parts}]


def core_losses() -> set[tuple[str, str]]:
    """Kind and reason of each loss that a module of core writes down."""
    return {loss for path in modules_of_core() for loss in _losses_of(path)}


def _losses_of(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_text("utf-8"))
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for block in _blocks(function):
            for index, statement in enumerate(block):
                places = block[:index][::-1], list(ast.walk(function)), module.body
                for kind, reason in _written_down(statement):
                    yield from ((kind, _words(each)) for each in _meanings(reason, places))


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every sequence of statements in a function."""
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def _written_down(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Kind and reason of each loss that a plain statement writes down."""
    for call in ast.walk(statement) if not hasattr(statement, "body") else ():
        if not isinstance(call, ast.Call):
            continue
        named: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("add", "_lose") and len(call.args) > 1:
            named |= {"kind": call.args[0], "reason": call.args[1]}
        if isinstance(call.func, ast.Name) and call.func.id == "lose":  # of vendor hints: a path and a reason
            named |= {"kind": ast.Constant("dropped"), "reason": call.args[1]}
        kind, reason = named.get("kind"), named.get("reason")
        if isinstance(kind, ast.Constant) and kind.value in KINDS and reason is not None:
            yield kind.value, reason


def _meanings(reason: ast.expr, places: tuple[list[ast.stmt], list[ast.AST], list[ast.stmt]]) -> list[ast.expr]:
    """What a reason may be: itself, or what its name was given just before, in the function, or in the module."""
    if not isinstance(reason, ast.Name):
        return [reason]
    before, within, module = ([node.value for node in place if _assigns(node, reason.id)] for place in places)
    found = before[:1] or within or module or [reason]
    arms = ([each.body, each.orelse] if isinstance(each, ast.IfExp) else [each] for each in found)
    return [arm for each in arms for arm in each]


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def _words(reason: ast.expr) -> str:
    if isinstance(reason, ast.Constant):
        return str(reason.value)
    if isinstance(reason, ast.JoinedStr):
        return "".join(_words(each) for each in reason.values)
    named = reason.value if isinstance(reason, ast.FormattedValue) else reason
    return _constants().get(named.id, HOLE) if isinstance(named, ast.Name) else HOLE


@cache
def _constants() -> dict[str, str]:
    """The texts that modules of core give a name in capitals: a reason may be made of one."""
    modules = [ast.parse(path.read_text("utf-8")) for path in modules_of_core()]
    assigned = (node for module in modules for node in module.body if isinstance(node, ast.Assign))
    return {
        target.id: node.value.value
        for node in assigned
        for target in node.targets
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if isinstance(target, ast.Name) and target.id.isupper()
    }
