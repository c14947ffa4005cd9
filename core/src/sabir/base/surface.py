"""Signatures as help() shows them: the signature of a public function names every argument.

    **how: Unpack[CallArguments]    ──▶ help(): options, settings and strict, their types and what they mean
    **misnamed: Never               ──▶ help(): nothing; the argument exists for an error that names the right word

The functions themselves stay as they are: only their signature and docstring change.
"""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Never, TypeVar, Unpack, get_args, get_origin

Surface = TypeVar("Surface", bound=Callable[..., Any])


class _LeftOut:
    """The default of an argument that has none of its own."""

    def __repr__(self) -> str:
        return "…"


LEFT_OUT = _LeftOut()


def surface(called: Surface) -> Surface:
    """Describe the arguments of a function, or of each method of a class."""
    if not isinstance(called, type):
        return described(called)
    for method in vars(called).values():
        if isinstance(method, FunctionType):
            described(method)
    return called


def described(function: Surface) -> Surface:
    """Add the fields of a TypedDict, taken as `**how: Unpack[…]`, to the function's signature and docstring."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[-1].annotation is Never:
        function.__signature__ = signature.replace(parameters=parameters[:-1])  # type: ignore[attr-defined]
    elif parameters and get_origin(parameters[-1].annotation) is Unpack:
        fields = get_args(parameters.pop().annotation)[0]
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=None if type(None) in get_args(kind) else LEFT_OUT,
            )
            for name, kind in fields.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=[*parameters, *keywords])  # type: ignore[attr-defined]
        if function.__doc__ and fields.__doc__:  # Python run with -OO has no docstrings
            meaning = inspect.cleandoc(fields.__doc__).partition("\n\n")[2]
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{meaning}"
    return function
