"""Signatures as help() shows them: the signature of a public function names every argument.

    **how: Unpack[CallArguments]    ──▶ help(): options, settings and strict, their types and what they mean
    **misnamed: Never               ──▶ help(): nothing; the argument exists for an error that names the right word
    sabir.vocabulary.reply.Reply    ──▶ help(): Reply

Only the signature and the docstring of the functions change, not what they do.
"""

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, Never, TypeVar, Unpack, get_args, get_origin

from sabir.base.shown import Plain

Surface = TypeVar("Surface", bound=Callable[..., Any])
_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=\w)")
"""Matches the module names before the name of a class."""


LEFT_OUT = Plain("…")
"""Shown in help() as the default of an argument that may be left out and has no default value."""


def show_arguments(called: Surface) -> Surface:
    """Decorate a function, or the methods that a class defines, so that `help()` shows every keyword argument. Returns
    `called`.

    Instead of a last parameter `**how: Unpack[Fields]`, the signature shows the fields of the TypedDict `Fields` as
    keyword arguments. The docstring of `Fields`, without its first paragraph, is added to the function's docstring,
    before an example. A last parameter `**name: Never` is hidden.
    """
    for member in vars(called).values() if isinstance(called, type) else (called,):
        function = getattr(member, "__func__", member)  # of a class method or a static method
        if isinstance(function, FunctionType):
            _show_arguments(function)
    return called


def without_modules(annotation: object) -> object:
    """Return an annotation as a text for help(), in which classes have no module names."""
    if annotation is inspect.Parameter.empty:
        return annotation
    return Plain(_MODULES.sub("", inspect.formatannotation(annotation)).strip("'"))


def _show_arguments(function: FunctionType) -> None:
    """Set the signature that help() shows, and add the meaning of the keyword arguments to the docstring."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[-1].annotation is Never:
        parameters.pop()
    elif parameters and get_origin(parameters[-1].annotation) is Unpack:
        fields = get_args(parameters.pop().annotation)[0]
        fields = get_origin(fields) or fields
        for name, kind in fields.__annotations__.items():
            default = None if type(None) in get_args(kind) else LEFT_OUT
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default))
        if fields.__doc__:  # Python run with -OO has no docstrings
            meaning = inspect.cleandoc(fields.__doc__).partition("\n\n")[2]
            text, prompt, example = inspect.cleandoc(function.__doc__ or "").partition("\n\n>>> ")
            function.__doc__ = f"{text}\n\n{meaning}".strip() + prompt + example
    parameters = [each.replace(annotation=without_modules(each.annotation)) for each in parameters]
    result = without_modules(signature.return_annotation)
    function.__signature__ = signature.replace(parameters=parameters, return_annotation=result)  # type: ignore[attr-defined]
