"""What a user calls: its signature names every argument, and a traceback through it is short.

    @surface                        above a function; above a class, each of its public methods: of what a user
    def adapter(…): …               holds and closes, the base does it (SyncClosing, AsyncClosing)

    **how: Unpack[CallArguments]    ──▶ help(): options, settings and strict, their types and what they mean
    a call ▸ fifteen frames ▸ raise ──▶ traceback: the call, the function called, where the error was raised

Frames of other code stay: an option's function, a hook, a function that gives the key. An error that is no SabirError
keeps its whole traceback, and the logger `sabir` has every other at the level DEBUG.
"""

import inspect
import logging
from collections.abc import Callable, Iterator
from functools import wraps
from traceback import format_tb
from types import FunctionType, TracebackType
from typing import Any, Never, TypeVar, Unpack, get_args, get_origin

from sabir.base.errors import SabirError

Surface = TypeVar("Surface", bound=Callable[..., Any])
_OURS = frozenset((
    "sabir", "sabir_session", "sabir_runtime", "sabir_durable", "sabir_distributed", "sabir_actors", "sabir_roles",
    "sabir_media", "sabir_mcp", "sabir_testing",
))  # fmt: skip
"""The packages whose frames tell a user nothing; a plugin's author wants to see the plugin's."""
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_SPECIAL = ("__init__", "__next__", "__anext__")
"""The special methods that do a user's work: making an object, and reading a stream."""
logger = logging.getLogger("sabir")


class _LeftOut:
    """The default of an argument that has none of its own."""

    def __repr__(self) -> str:
        return "…"


LEFT_OUT = _LeftOut()


def surface(called: Surface) -> Surface:
    """A function, or a class with its public methods, as a user calls it; a Protocol's methods are described alone."""
    if not isinstance(called, type):
        return _surface(called)
    is_described_alone = getattr(called, "_is_protocol", False)
    for name, method in list(vars(called).items()):
        if (
            not isinstance(method, FunctionType)
            or inspect.isgeneratorfunction(method)
            or inspect.isasyncgenfunction(method)
        ):
            continue
        if name in _SPECIAL or not name.startswith("_"):
            setattr(called, name, (described if is_described_alone else _surface)(method))
    return called


def _surface(function: Surface) -> Surface:
    return _ending_here(described(function))


def described(function: Surface) -> Surface:
    """The function, with the fields of a TypedDict that it takes as `**named: Unpack[…]` in its signature and words."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[-1].annotation is Never:  # it is there for the error, which names the right word
        function.__signature__ = signature.replace(parameters=parameters[:-1])  # type: ignore[attr-defined]
    elif parameters and get_origin(parameters[-1].annotation) is Unpack:
        given = get_args(parameters.pop().annotation)[0]
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=None if type(None) in get_args(kind) else LEFT_OUT,
            )
            for name, kind in given.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=[*parameters, *keywords])  # type: ignore[attr-defined]
        if function.__doc__ and given.__doc__:  # neither is there where Python leaves out docstrings
            meaning = inspect.cleandoc(given.__doc__).partition("\n\n")[2]
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{meaning}"
    return function


def _ending_here(function: Surface) -> Surface:
    """The function; a traceback of a SabirError that it raises is short."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*given, **named)
        except SabirError as error:
            _shorten(error)
            raise

    @wraps(function)
    async def call_async(*given: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            return await function(*given, **named)
        except SabirError as error:
            _shorten(error)
            raise

    return call_async if inspect.iscoroutinefunction(function) else call  # type: ignore[return-value]


def _shorten(error: SabirError) -> None:
    """Leave of our frames the first, which is the function called, and the last; the caller's own is left out."""
    if logger.isEnabledFor(logging.DEBUG):  # without the error's causes, in whose words a vendor may repeat a secret
        logger.debug("%s: %s\n%s", type(error).__name__, error, "".join(format_tb(error.__traceback__)).rstrip())
    frames = list(_frames(error.__traceback__))[1:]
    short: TracebackType | None = None
    for number, each in reversed(list(enumerate(frames))):
        is_ours = each.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
        if is_ours and number not in (0, len(frames) - 1):
            continue
        short = TracebackType(short, each.tb_frame, each.tb_lasti, each.tb_lineno)
        if is_ours:
            each.tb_frame.f_globals.setdefault("__tracebackhide__", _is_told)
    error.__traceback__ = short


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_told(caught: Any) -> bool:
    """Whether pytest, which asks each frame's module, leaves the frame out: of an error that says all it has to say."""
    return caught is None or isinstance(caught.value, SabirError)
