"""Limits of time and memory for templates, because a stored template may be hostile or careless.

    source ──parse──▶ tree, with a charge in each loop, macro, block and template ──render──▶ text, or TemplateTooCostly

A charge adds to the costs of the render, and raises TemplateTooCostly if they exceed a limit. Operations that could
create a large value are charged before they run: operators, methods of texts, filters, printed values. Other operations
are charged for the size of their result. Each charge also checks the thread's CPU time. So a render ends soon after
SECONDS of work, and creates at most LARGEST characters and items in total.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from string import Formatter
from time import thread_time
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

SECONDS = 5.0
"""The most CPU time of one render, in seconds. Other threads and programs do not count."""
LARGEST = 32_000_000
"""The largest number of characters and items that one render may create, including intermediate values."""
MOST_PASSES = 1_000_000
"""The largest number of loop passes and macro calls in one render."""
MOST_BITS = 100_000
"""The largest size, in bits, of an integer that the operators `*` and `**` may compute."""
LARGEST_ARGUMENT = 1_000_000
"""The largest integer argument of a method or filter, such as a width."""

_LARGE_WIDTH = re.compile(r"\d{7,}|[*{]")
"""Pattern of a width in a format that is too large, or that comes from an argument: `*`, or a field in a field."""
_PERCENT_WIDTH = re.compile(r"[#0\- +]*(?:\*|\d*)(?:\.(?:\*|\d*))?")
"""Pattern of the flags, the width and the precision of a field that begins with "%"."""


class TemplateTooCostly(Exception):
    """Raised while a template is rendered that needs too much time or memory. Users get a TemplateFailed instead."""


class _RenderCosts:
    """The costs of one render so far. `add` raises TemplateTooCostly above a limit."""

    def __init__(self) -> None:
        self.deadline = thread_time() + SECONDS
        self.size = self.passes = 0

    def add(self, size: int, passes: int = 0) -> None:
        self.size += size
        self.passes += passes
        if self.size > LARGEST:
            raise TemplateTooCostly(f"the template creates more than {LARGEST:,} characters and items in total")
        if self.passes > MOST_PASSES:
            raise TemplateTooCostly(f"the template makes more than {MOST_PASSES:,} loop passes and macro calls")
        if thread_time() > self.deadline:
            raise TemplateTooCostly(f"rendering the template takes more than {SECONDS:g} s of CPU time")


_COSTS: ContextVar[_RenderCosts | None] = ContextVar("sabir_roles.template_costs", default=None)


@contextmanager
def limit_costs() -> Iterator[None]:
    """Apply the limits in the `with` block, to all its renders together."""
    token = _COSTS.set(_RenderCosts())
    try:
        yield
    finally:
        _COSTS.reset(token)


def charge(size: int, passes: int = 0) -> None:
    """Add characters and items (`size`) and loop passes to the render's costs. Raises TemplateTooCostly above a limit.

    Outside of `limit_costs`, for example for constants that are computed at compile time, each charge is counted alone.
    """
    (_COSTS.get() or _RenderCosts()).add(size, passes)


def charge_value(created: object) -> Any:  # of the type of the argument
    """Add the size of a new value to the costs of the render, and return the value. Raises TemplateTooCostly above a
    limit.
    """
    charge(len(created) if isinstance(created, Sized) else 0)
    return created


@pass_context  # so that the compiler does not compute it once
def _charge_pass(context: Context, size: int) -> None:
    charge(size, passes=1)


def text_size(content: object) -> int:
    """Return about how many characters the text of a value has, without creating the text. Counting stops above
    LARGEST.
    """
    size, pending = 0, [content]
    while pending and size <= LARGEST:
        each = pending.pop()
        if isinstance(each, str | bytes):
            size += len(each)
        elif isinstance(each, Collection):
            size += 2 * len(each)
            pending += [*each, *each.values()] if isinstance(each, Mapping) else each
        else:
            size += 1
    return size


@pass_context
def _concatenate(context: Context, values: list[object]) -> str:
    charge(text_size(values))
    return "".join(map(str, values))


class _Charging(NodeTransformer):
    """Adds charges to the tree of a template: to each template, loop, macro and block. Replaces the operator `~` with a
    filter that charges before it joins.
    """

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        values = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(values, "concatenated", [], [], None, None, lineno=node.lineno)

    def charge_body(self, node: Any) -> nodes.Node:  # each of these nodes has a body
        """Insert the charge at the start of the node's body."""
        self.generic_visit(node)
        size = sum(len(text.data) for text in node.find_all(nodes.TemplateData))
        cost = nodes.Filter(nodes.Const(size), "charge_pass", [], [], None, None)
        node.body.insert(0, nodes.ExprStmt(cost).set_lineno(node.lineno or 1))
        return node  # type: ignore[no-any-return]

    visit_Template = visit_For = visit_Macro = visit_CallBlock = visit_Block = charge_body


def _charge_format(text: str, mark: str, values: object) -> None:
    """Charge the result of formatting `text`, whose fields begin with `mark` ("%" or "{"). Each field may contain all
    values. Raises TemplateTooCostly for a width that is too large or comes from an argument.
    """
    if any(map(_LARGE_WIDTH.search, _percent_widths(text) if mark == "%" else _brace_widths(text))):
        raise TemplateTooCostly("a width in a format has 7 digits or more, or comes from an argument")
    charge(len(text) + text.count(mark) * text_size(values))


def _percent_widths(text: str) -> Iterator[str]:
    """Yield the flags, width and precision of each field for the operator "%". A field's name may contain parentheses.

    https://docs.python.org/3/library/stdtypes.html#printf-style-string-formatting
    """
    end = 0
    while (start := text.find("%", end)) >= 0:
        end, depth = start + 1, 0
        while text[end : end + 1] == "(" or depth:
            depth += {"(": 1, ")": -1, "": -depth}.get(text[end : end + 1], 0)
            end += 1
        width = _PERCENT_WIDTH.match(text, end)
        assert width  # it matches an empty text
        yield width[0]
        end = width.end() + 1  # after the conversion type, which is "%" in an escaped "%%"


def _brace_widths(text: str) -> Iterator[str]:
    """Yield the format specification of each field for `str.format`, up to the first invalid field."""
    with suppress(ValueError):
        for _, _, specification, _ in Formatter().parse(text):
            yield specification or ""


def _check_arguments(arguments: tuple[object, ...]) -> None:
    if any(isinstance(each, int) and abs(each) > LARGEST_ARGUMENT for each in arguments):
        raise TemplateTooCostly(f"an argument of a method or filter is larger than {LARGEST_ARGUMENT:,}")


def _size_of_replace(text: Any, old: Any = "", new: Any = "", *_: object) -> int:
    text, old, new = str(text), str(old), str(new)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _size_of_join(values: Any, separator: Any = "", *_: object) -> int:
    if not isinstance(values, Collection):
        return 0
    return text_size(values) + len(values) * len(str(separator))


def _size_of_indent(text: Any, width: Any = 4, *_: object) -> int:
    return len(str(text)) + (len(width) if isinstance(width, str) else int(width)) * (str(text).count("\n") + 1)


def _size_of_pad(text: Any, width: Any = 80, *_: object) -> int:
    return max(len(str(text)), int(width))


def _size_of_expandtabs(text: Any, size: Any = 8, *_: object) -> int:
    return len(text) + int(size) * str(text).count("\t")


def _size_of_translate(text: Any, table: Any = None, *_: object) -> int:
    longest = max((len(str(each)) for each in table.values()), default=1) if isinstance(table, Mapping) else 1
    return len(text) * max(longest, 1)


def _size_of_wordwrap(text: Any, *others: Any) -> int:
    return len(str(text)) * (1 + sum(len(each) for each in others if isinstance(each, str)))


def _size_of_batch(values: Any, count: Any = 1, *_: object) -> int:
    return max(int(count), len(values) if isinstance(values, Sized) else 0)


def _size_of_round(number: Any, precision: Any = 0, *_: object) -> int:
    return LARGEST + 1 if abs(int(precision)) > 300 else 0


METHODS: Mapping[str, Callable[..., int]] = {
    "replace": _size_of_replace, "expandtabs": _size_of_expandtabs, "translate": _size_of_translate,
    "center": _size_of_pad, "ljust": _size_of_pad, "rjust": _size_of_pad, "zfill": _size_of_pad,
    "join": lambda separator, values, *_: _size_of_join(values, separator),
}  # fmt: skip
"""Method of a text → a function that estimates the size of its result from the text and the arguments."""
FILTERS: Mapping[str, Callable[..., int]] = {
    "replace": _size_of_replace, "center": _size_of_pad, "join": _size_of_join, "indent": _size_of_indent,
    "batch": _size_of_batch, "slice": _size_of_batch, "wordwrap": _size_of_wordwrap, "round": _size_of_round,
}  # fmt: skip
"""Filter → a function that estimates the size of its result from the value and the arguments."""
TEXT_FILTERS = frozenset({
    "capitalize", "center", "e", "escape", "forceescape", "indent", "json", "lower", "pprint", "replace",
    "string", "striptags", "text", "title", "tojson", "trim", "truncate", "upper", "urlencode", "urlize",
    "wordcount", "wordwrap", "xmlattr",
})  # fmt: skip
"""Filters that first convert their value to a text."""


def _limit_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of a filter that is charged for the estimated size before it runs, and for its result."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0
    estimate = FILTERS.get(name)

    @wraps(function)  # jinja2 reads the attribute `jinja_pass_arg`, which this copies
    def charged(*args: Any, **named: Any) -> Any:
        values = (*args[first:], *named.values())
        _check_arguments(values[1:])
        if name == "format":
            _charge_format(str(values[0]), "%", values[1:])
        if name in TEXT_FILTERS and not isinstance(values[0], str):
            charge(text_size(values[0]))
        if estimate:
            charge(estimate(*values))
        return charge_value(function(*args, **named))

    return charged


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox that also limits the time and memory of templates."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:  # the arguments of jinja2.Environment
        super().__init__(**options)
        self.filters |= {"charge_pass": _charge_pass, "concatenated": _concatenate}

    def limit_filters(self) -> None:
        """Replace all filters of the environment with versions that are charged. Filters added later are not."""
        own = {"charge_pass", "concatenated"}
        self.filters |= {
            name: _limit_filter(name, function) for name, function in self.filters.items() if name not in own
        }

    def compile(
        self, source: Any, name: str | None = None, filename: str | None = None, *how: Any, **named: Any
    ) -> Any:
        """Compile a template after adding charges. The arguments are the same as in jinja2's `Environment.compile`."""
        tree = self.parse(source, name, filename) if isinstance(source, str) else source
        return super().compile(_Charging().visit(tree), name, filename, *how, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Charge a binary operation, and perform it. Raises TemplateTooCostly above a limit."""
        if operator == "%" and isinstance(left, str | bytes):
            _charge_format(str(left), "%", right)
        elif operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > MOST_BITS:
                raise TemplateTooCostly(f"the template computes a number of more than {MOST_BITS:,} bits")
        elif operator == "*":
            charge(_size_of_repeat(left, right) or _size_of_repeat(right, left))
        elif operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            charge(len(left) + len(right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, function: Any, *args: Any, **named: Any) -> Any:  # jinja2 has no types here
        """Charge a call of a function or method, and perform it. Raises TemplateTooCostly above a limit."""
        text = getattr(function, "__self__", None)
        if isinstance(text, str | bytes | int):
            values = tuple(list(each) if hasattr(each, "__next__") else each for each in args)
            _check_arguments((*values, *named.values()))
            if estimate := METHODS.get(function.__name__):
                charge(estimate(text, *values, *named.values()))
            args = values
        return charge_value(super().call(context, function, *args, **named))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a safe version of `str.format` or `str.format_map` that is charged; None for any other value."""
        safe = super().wrap_str_format(value)
        if safe is None:
            return None

        def format_limited(*args: Any, **named: Any) -> str:
            _charge_format(value.__self__, "{", (*args, named))
            return safe(*args, **named)

        return format_limited


def _size_of_repeat(sequence: Any, count: Any) -> int:
    return len(sequence) * count if isinstance(sequence, Sized) and isinstance(count, int) else 0
