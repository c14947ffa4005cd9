"""Parameters that a model is not told of: their types know where a value is to be had while an option runs.

    def pay(amount: int, context: ToolContext) -> str      amount is the model's to give, the context is not

A type is such a one by its class method `__sabir_provide__`, which gives the value of the run that it is called in, and
raises LookupError where there is none. Core knows no such type.
"""

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from sabir.arguments import Binder, Bound
from sabir.errors import OptionInvalid
from sabir.values import JSONText


class Provided(NamedTuple):
    """One such parameter, of the function of that name."""

    function: str
    name: str
    kind: Any  # a class with `__sabir_provide__`
    has_default: bool


def read_provided(function: str, parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any]) -> list[Provided]:
    """Those of a function's parameters that are provided, `X | None` and `Annotated[X, …]` included."""
    found = [(each, _provider_of(hints.get(each.name))) for each in parameters]
    return [
        Provided(function, each.name, kind, each.default is not each.empty)
        for each, kind in found
        if kind is not None and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]


def values_of(provided: Iterable[Provided]) -> dict[str, Any]:
    """What is provided now, by parameter; OptionInvalid where nothing is, and the parameter has no default."""
    values = {}
    for each in provided:
        try:
            values[each.name] = each.kind.__sabir_provide__()
        except LookupError as error:
            if not each.has_default:
                takes = f"{each.function!r} takes {each.name!r}, a {each.kind.__name__}"
                raise OptionInvalid(f"{takes}, which nobody provides here: {error}") from None
    return values


def providing(binder: Binder, provided: Iterable[Provided]) -> Binder:
    """A binder that adds what is provided when it binds."""
    return partial(_bind, binder, tuple(provided))


def _bind(binder: Binder, provided: tuple[Provided, ...], arguments: JSONText) -> Bound:
    bound = binder(arguments)
    return Bound(bound.positional, {**bound.named, **values_of(provided)})


def _provider_of(annotation: Any) -> Any:
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return next(filter(None, map(_provider_of, get_args(annotation))), None)
    return annotation if isinstance(annotation, type) and hasattr(annotation, "__sabir_provide__") else None
