"""The changes that a mutant may have, each at one place of a file.

    drop        a statement becomes `pass`; an entry of a table, or an argument with a default, is left out
    swap        `==` ↔ `!=`, `<` ↔ `<=`, `and` ↔ `or`, `in` ↔ `not in`; the arms of a conditional; two arguments
    zero        a number becomes 0 (and 0 becomes 1), a text "", True ↔ False
    reorder     the items of a list or tuple (unless it is the right side of `in`, or makes a dict or set), or two
                neighbouring statements (unless they are `if`s of which only one can apply), change places
    merge       an entry of a table gets its neighbour's value
    default     `a or b` becomes `a`; a condition is always true, or always false
    truncate    a returned or iterated sequence loses its end; a slice its bounds

Law: the text outside the changed place is unchanged, and the result compiles. Nothing that only people read is changed:
docstrings, texts of errors and losses, `repr`s, annotations, imports.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

OPERATORS = ("drop", "swap", "zero", "reorder", "merge", "default", "truncate")
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_FOR_PEOPLE = {"__repr__", "__str__", "__repr_args__", "__rich_repr__", "__all__"}


class Mutant(NamedTuple):
    """One change of one file."""

    path: Path
    line: int
    operator: str
    start: int
    """The offset of the first changed byte of the file."""
    end: int
    replacement: str

    def text(self) -> str:
        """Return the file's text with the change."""
        source = self.path.read_bytes()
        return (source[: self.start] + self.replacement.encode() + source[self.end :]).decode()

    def is_unchanged(self) -> bool:
        """Return whether the replacement is the text itself, as if two equal items change places."""
        return self.path.read_bytes()[self.start : self.end] == self.replacement.encode()

    def describe(self, root: Path) -> str:
        """Return the place, the operator and the change in one line."""
        before = " ".join(self.path.read_bytes()[self.start : self.end].decode().split())
        after = " ".join(self.replacement.split())
        return f"{self.path.relative_to(root)}:{self.line} {self.operator}: {before[:70]!r} -> {after[:70]!r}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file that compile, in the order of their places."""
    mutants = sorted(set(_Places(path).all()), key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))
    return [mutant for mutant in mutants if not mutant.is_unchanged() and _compiles(mutant)]


def _compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.text(), str(mutant.path), "exec")
    except SyntaxError:
        return False
    return True


class _Places:
    """The places of one file at which an operator applies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = path.read_bytes()
        self._line_starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._tree = ast.parse(self._source)

        comparisons = [node for node in ast.walk(self._tree) if isinstance(node, ast.Compare)]
        tested = [(each.ops[-1], each.comparators[-1]) for each in comparisons]
        self._unordered = {id(node) for operator, node in tested if isinstance(operator, ast.In | ast.NotIn)}
        made = [node for node in ast.walk(self._tree) if isinstance(node, ast.DictComp | ast.SetComp)]
        self._unordered |= {id(generator.iter) for node in made for generator in node.generators}
        subscripts = [node for node in ast.walk(self._tree) if isinstance(node, ast.Subscript)]
        self._unordered |= {id(node.slice) for node in subscripts}
        self._tables = dict(_constant_tables(self._tree))

    def is_unordered(self, node: ast.AST) -> bool:
        """Return whether the order of a sequence has no effect: it is the right side of `in`, makes a dict or set, or
        has the arguments of a type.
        """
        return id(node) in self._unordered

    def exclude_each_other(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Return whether at most one of two `if`s can apply, so that their order has no effect: their tests compare one
        name, to which they assign nothing, with different constants.
        """
        if not isinstance(first, ast.If) or not isinstance(second, ast.If) or first.orelse or second.orelse:
            return False
        names = [node for each in (first, second) for node in ast.walk(each) if isinstance(node, ast.Name)]
        assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        one, other = (dict(_accepted_constants(each.test, self._tables)) for each in (first, second))
        return any(one[name].isdisjoint(other[name]) for name in (one.keys() & other.keys()) - assigned)

    def all(self) -> Iterator[Mutant]:
        for node in _walk_code(self._tree):
            for find in _FINDERS.get(type(node), ()):
                yield from find(self, node)

    def change(self, operator: str, node: ast.AST, replacement: str) -> Mutant:
        start, end = self.span(node)
        return Mutant(self._path, node.lineno, operator, start, end, replacement)  # type: ignore[attr-defined]

    def between(self, operator: str, line: int, start: int, end: int, replacement: str) -> Mutant:
        return Mutant(self._path, line, operator, start, end, replacement)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the offsets of a node's first byte and of the byte after its last."""
        line, column, last, last_column = (
            getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
        )
        return self._line_starts[line - 1] + column, self._line_starts[last - 1] + last_column

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self._source[start:end].decode()

    def exchanged(self, operator: str, first: ast.AST, second: ast.AST) -> Mutant:
        """Return the mutant in which two nodes have changed places."""
        (start, first_end), (second_start, end) = self.span(first), self.span(second)
        gap = self._source[first_end:second_start].decode()
        replacement = self.text(second) + gap + self.text(first)
        return self.between(operator, first.lineno, start, end, replacement)  # type: ignore[attr-defined]


def _constant_tables(tree: ast.Module) -> Iterator[tuple[str, frozenset[object]]]:
    """Yield the names of a module's dicts, sets and tuples whose keys are constants, each with its keys."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if (keys := _constants(value)) is not None:
                    yield name, keys


def _constants(node: ast.AST | None) -> frozenset[object] | None:
    """Return the keys of a dict, or the items of a set, list or tuple; None unless all are constants."""
    keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    if keys is None or not all(isinstance(key, ast.Constant) for key in keys):
        return None
    return frozenset(key.value for key in keys if isinstance(key, ast.Constant))


def _accepted_constants(
    test: ast.AST, tables: Mapping[str, frozenset[object]]
) -> Iterator[tuple[str, frozenset[object]]]:
    """Yield the names that a condition compares with constants, each with the constants for which it may be true."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        match part:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=constant)]):
                yield name, frozenset({constant})
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[ast.Name(id=table)]):
                if table in tables:
                    yield name, tables[table]
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[members]):
                if (constants := _constants(members)) is not None:
                    yield name, constants


def _walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes whose change alters what the code does, not what people read."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_people(child):
                yield child
                yield from _walk_code(child)


def _is_for_people(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert() | ast.arg() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in _FOR_PEOPLE
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _FOR_PEOPLE
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
            return True
    return False


def _drop_statement(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    match node:
        case ast.Assign(value=ast.Constant(value=str() as text)) if " " in text:
            return  # a text with spaces is read by people
    yield places.change("drop", node, "pass")


def _drop_arguments(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    """Leave out one keyword argument, and exchange two neighbouring positional ones."""
    assert isinstance(node, ast.Call)
    for keyword in node.keywords if node.args or len(node.keywords) > 1 else ():
        start, end = places.span(keyword)
        if keyword.arg and places._source[end : end + 2] == b", ":
            yield places.between("drop", keyword.lineno, start, end + 2, "")
    for first, second in pairwise(node.args):
        if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
            yield places.exchanged("swap", first, second)


def _swap_comparison(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    assert isinstance(node, ast.Compare)
    if len(node.ops) == 1:
        left, right = places.text(node.left), places.text(node.comparators[0])
        left = f"({left})" if isinstance(node.left, ast.NamedExpr) else left
        yield places.change("swap", node, f"{left} {_COMPARISONS[type(node.ops[0])]} {right}")


def _change_connection(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    """`a or b` becomes `a and b`, and `a`."""
    assert isinstance(node, ast.BoolOp)
    texts = [places.text(value) for value in node.values]
    is_or = isinstance(node.op, ast.Or)
    yield places.change("swap", node, (" and " if is_or else " or ").join(f"({text})" for text in texts))
    yield places.change("default", node, f"({texts[0]})")


def _swap_arms(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    assert isinstance(node, ast.IfExp)
    body, test, orelse = (places.text(part) for part in (node.body, node.test, node.orelse))
    yield places.change("swap", node, f"({orelse}) if {test} else ({body})")


def _fix_condition(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    assert isinstance(node, ast.If | ast.IfExp)
    for outcome in ("True", "False"):
        yield places.change("default", node.test, outcome)


def _zero(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        yield places.change("zero", node, str(not value))
    elif isinstance(value, int | float):
        yield places.change("zero", node, "0" if value else "1")
    elif isinstance(value, str) and value and " " not in value:  # a text with spaces is read by people
        yield places.change("zero", node, '""')


def _reorder_items(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    """Exchange two neighbours, unless their order has no effect."""
    assert isinstance(node, ast.List | ast.Tuple)
    if isinstance(node.ctx, ast.Load) and not places.is_unordered(node):
        for first, second in pairwise(node.elts):
            yield places.exchanged("reorder", first, second)


def _reorder_statements(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    for first, second in pairwise(body):
        if _has_effect(first) and _has_effect(second) and not places.exclude_each_other(first, second):
            yield places.exchanged("reorder", first, second)


def _has_effect(statement: ast.stmt) -> bool:
    """Return whether a statement sends, yields or changes something, so that its position matters."""
    if not isinstance(statement, ast.Expr | ast.AugAssign | ast.If | ast.For) or _is_for_people(statement):
        return False
    return any(isinstance(node, ast.Expr | ast.Yield | ast.AugAssign | ast.Return) for node in ast.walk(statement))


def _change_entries(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    """Leave an entry of a table out, and give it its neighbour's value."""
    assert isinstance(node, ast.Dict)
    entries = list(zip(node.keys, node.values, strict=True))
    for (key, value), (_, neighbour) in pairwise(entries):
        if key is None:
            continue
        yield places.change("merge", value, places.text(neighbour))
        (start, _), (_, end) = places.span(key), places.span(value)
        if places._source[end : end + 1] == b",":
            yield places.between("drop", key.lineno, start, end + 1, "")


def _truncate(places: _Places, node: ast.AST) -> Iterator[Mutant]:
    match node:
        case ast.For(iter=sequence) | ast.AsyncFor(iter=sequence) if isinstance(node, ast.For):
            yield places.change("truncate", sequence, f"list({places.text(sequence)})[:1]")
        case ast.Subscript(slice=ast.Slice() as bounds, value=value) if isinstance(node.ctx, ast.Load):
            if bounds.lower is not None or bounds.upper is not None:
                yield places.change("truncate", node, places.text(value))
        case ast.Return(value=ast.Tuple() | ast.List() | ast.ListComp() as sequence):
            if not isinstance(sequence, ast.Tuple):
                yield places.change("truncate", sequence, f"{places.text(sequence)}[:-1]")
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[texts]):
            yield places.change("truncate", texts, f"list({places.text(texts)})[:1]")


_Finder = Callable[[_Places, ast.AST], Iterator[Mutant]]
_FINDERS: dict[type[ast.AST], tuple[_Finder, ...]] = {
    ast.Expr: (_drop_statement,),
    ast.Assign: (_drop_statement,),
    ast.AugAssign: (_drop_statement,),
    ast.Delete: (_drop_statement,),
    ast.Continue: (_drop_statement,),
    ast.Break: (_drop_statement,),
    ast.Call: (_drop_arguments, _truncate),
    ast.Compare: (_swap_comparison,),
    ast.BoolOp: (_change_connection,),
    ast.IfExp: (_swap_arms, _fix_condition),
    ast.If: (_fix_condition, _reorder_statements),
    ast.Constant: (_zero,),
    ast.List: (_reorder_items,),
    ast.Tuple: (_reorder_items,),
    ast.FunctionDef: (_reorder_statements,),
    ast.AsyncFunctionDef: (_reorder_statements,),
    ast.For: (_truncate, _reorder_statements),
    ast.With: (_reorder_statements,),
    ast.Dict: (_change_entries,),
    ast.Subscript: (_truncate,),
    ast.Return: (_truncate,),
}
