"""What the source says of a public name: its signature, its members, and the first paragraph of its docstring.

    sabir.X ──▶ the syntax tree of its definition ──▶ Entry(heading, summary, members)

Read from the source rather than by inspection, so that every version of Python shows the same words.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import sabir
import sabir.errors
from sabir.base import errors, failures
from sabir.vocabulary import reply

Function = ast.FunctionDef | ast.AsyncFunctionDef

MADE_BY_OTHERS = {"ModelAdapter", "PureDialect", "ReplyStream", "SyncReplyStream"}
"""Classes that no user constructs: a function or a method hands them out."""

_REQUIREMENTS = re.compile(r" \((?:[A-Z]{1,2}-\d\d[^)]*|wire-rules[^)]*)\)")
"""Ids of requirements at the end of a sentence: of no use to readers of the pages."""
_HIDDEN_DECORATORS = {"model_validator", "field_validator", "model_serializer", "overload", "setter"}


@dataclass(frozen=True)
class Entry:
    heading: str
    """The name with its signature or fields."""
    summary: str
    members: tuple["Entry", ...] = field(default=())


ERRORS = (errors, failures, reply)
"""Where the errors are defined that name `sabir.errors` as their module."""


@cache
def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


@cache
def home_of(name: str) -> ModuleType:
    """The module in which a public name of core is defined."""
    if name not in sabir._MODULE_OF:
        raise LookupError(f"sabir has no public name {name}")
    return importlib.import_module(f"sabir.{sabir._MODULE_OF[name]}")


def describe(name: str) -> Entry:
    value = getattr(sabir.errors if name in sabir.errors.__all__ else sabir, name)
    if inspect.isclass(value):
        return describe_class(value)
    if inspect.isroutine(value):
        return _describe_function(value, name)
    return describe_constant(name, home_of(name))


def describe_class(cls: type) -> Entry:
    """A class with its fields and public members; those of its private bases are its own."""
    node = class_node(cls)
    fields = list(_fields(cls))
    functions = [each for base in reversed(_own_bases(cls)) for each in _functions(class_node(base).body)]
    members = [] if fields else list(documented_attributes(cls))
    members += [_member(each) for each in functions if each.name not in {name.rstrip("=") for name in fields}]
    heading = f"{cls.__name__}({', '.join(fields)})" if fields else cls.__name__
    constructors = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    if constructors and not fields and cls.__name__ not in MADE_BY_OTHERS:
        heading = signature(constructors[0], cls.__name__).partition(" -> ")[0]
    return Entry(heading, paragraph(ast.get_docstring(node)), tuple(members))


def describe_constant(name: str, module: ModuleType) -> Entry:
    """A constant, a type alias or a typed dictionary, with its definition and the text below it."""
    body = tree_of(module).body
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if name in assigned(node) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            text = ast.literal_eval(following.value) if _is_text(following) else ""
            value = ast.unparse(node.value) if isinstance(node.value, ast.Constant) else annotation(node.value)
            return Entry(f"{name} = {value}", paragraph(text))
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields = (f"{each.target.id}: {annotation(each.annotation)}" for each in node.body if _is_field(each))
            return Entry(f"{name}({', '.join(fields)})", paragraph(ast.get_docstring(node)))
    raise LookupError(f"{module.__name__} does not define {name}")


def class_node(cls: type) -> ast.ClassDef:
    module = inspect.getmodule(cls)
    assert module is not None
    bodies = [tree_of(each).body for each in (ERRORS if module is sabir.errors else [module])]
    nodes = (node for body in bodies for node in body)
    return next(node for node in nodes if isinstance(node, ast.ClassDef) and node.name == cls.__name__)


def assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def documented_attributes(cls: type) -> Iterator[Entry]:
    """The annotated attributes of a class, each with the text below it, in order."""
    body = class_node(cls).body
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            text = ast.literal_eval(following.value) if _is_text(following) else ""
            yield Entry(f"{node.target.id}: {annotation(node.annotation)}", paragraph(text))


def signature(node: Function, name: str | None = None) -> str:
    """A definition's name, parameters and result; `self` and `cls` are left out."""
    arguments = node.args
    shown: list[str] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if argument.arg not in ("self", "cls"):
            shown.append(_parameter(argument, default))
        if index + 1 == len(arguments.posonlyargs) and shown:
            shown.append("/")
    if arguments.vararg:
        shown.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    shown += map(_parameter, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg and not _is_never(arguments.kwarg.annotation):
        shown.append(f"**{_parameter(arguments.kwarg, None)}")
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {annotation(node.returns)}" if node.returns else ""
    return f"{prefix}{name or node.name}({', '.join(shown)}){result}"


def annotation(node: ast.expr) -> str:
    """An annotation as it is read, without the quotes of forward references."""
    return ast.unparse(_Unquoted().visit(ast.parse(ast.unparse(node), mode="eval").body))


def paragraph(docstring: str | None) -> str:
    """The first paragraph of a docstring in one line, without ids of requirements."""
    first = (docstring or "").strip().split("\n\n")[0]
    return _REQUIREMENTS.sub("", " ".join(first.split()))


def whole_text(value: object) -> str:
    """All paragraphs of a docstring in one line, without ids of requirements and without the example at its end."""
    text = (inspect.getdoc(value) or "").partition("\n>>> ")[0]
    return _REQUIREMENTS.sub("", " ".join(text.split()))


def words(entries: Iterable[Entry]) -> set[str]:
    """Every capitalised name that headings mention, members' included."""
    found: set[str] = set()
    for entry in entries:
        found |= set(re.findall(r"\b[A-Z]\w+", re.sub(r"(['\"]).*?\1", "", entry.heading))) | words(entry.members)
    return found


class _Unquoted(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        is_literal = isinstance(node.value, ast.Name) and node.value.id == "Literal"
        return node if is_literal else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _describe_function(value: Any, name: str) -> Entry:
    code = inspect.unwrap(value).__code__
    module = inspect.getmodule(value)
    assert module is not None
    named = [node for node in ast.walk(tree_of(module)) if isinstance(node, Function) and node.name == value.__name__]
    node = next(node for node in named if _first_line(node) == code.co_firstlineno)
    shapes = [each for each in named if "overload" in _decorators(each)] or [node]
    return Entry("\n".join(signature(each, name) for each in shapes), paragraph(value.__doc__))


def _first_line(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _own_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base is cls or (base.__name__[0] == "_" and "sabir" in base.__module__)]


def _fields(cls: type) -> Iterator[str]:
    yield from getattr(cls, "_fields", ())  # those of a named tuple
    for name, info in getattr(cls, "model_fields", {}).items():
        yield (info.alias or name) + ("" if info.is_required() else "=")


def _functions(body: Iterable[ast.stmt]) -> Iterator[Function]:
    for node in body:
        if isinstance(node, Function) and node.name[0] != "_" and not _decorators(node) & _HIDDEN_DECORATORS:
            yield node


def _member(node: Function) -> Entry:
    is_property = _decorators(node) & {"property", "cached_property"}
    heading = f"{node.name}: {annotation(node.returns)}" if is_property and node.returns else signature(node)
    return Entry(heading, paragraph(ast.get_docstring(node)))


def _decorators(node: Function) -> set[str]:
    plain = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return {ast.unparse(each).rpartition(".")[2] for each in plain}


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    shown = f"{argument.arg}: {annotation(argument.annotation)}" if argument.annotation else argument.arg
    if default is None:
        return shown
    return f"{shown}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def _is_never(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) and node.id == "Never"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
