"""What a policy raised, as its caller gets it: alike under every runner.

    raised ──failure_of──▶ Failure ──▶ recorded or sent, as JSON ──▶ Failure ──error──▶ PolicyFailed

    LookupError("no disk")     PolicyFailed that is a LookupError too: "no disk"
    LoopLimit("…")             the same: the runtime's own faults are known everywhere, as Python's are
    MyError(LookupError)       the same, by its nearest class that is known everywhere: "MyError: no disk"
    MyError(Exception)         PolicyFailed: "MyError: no disk"

A runner in memory goes the same way: whoever catches an error catches it wherever the policy runs. A group keeps its
members, and an error its `__cause__`, each made so, `MOST_FAILURES` of them in all. One of Python's own keeps `args`
that are plain values, and the attributes that `_KEPT` names; those of another class are not kept.
"""

import asyncio
import builtins
from collections.abc import Callable, Iterator
from itertools import islice
from types import NoneType
from typing import TypeAlias, TypeGuard

from sabir import OptionFailed
from sabir.authoring import AtRest, NonEmpty, RaisedError, encode_json
from sabir.errors import CallsTooDeep, NotJSON

from sabir_runtime.errors import LoopLimit, PolicyInvalid, RuntimeFault, UnknownOption

MOST_CHARACTERS = 10_000
"""Of an exception's message; a tenth of it of each cause's and member's, and of an argument."""
MOST_CAUSES = 20
"""So many causes of causes are kept."""
MOST_FAILURES = 100
"""So many of an error's causes and members are kept, itself included; one that is reached twice counts twice."""
_KEPT = ("errno", "strerror", "filename", "msg", "name")
"""Attributes of Python's own classes that are kept where they are plain values."""
_ALONE = (StopIteration, MemoryError, ExceptionGroup)
"""The first cannot leave a coroutine, of the second nothing can be derived, and a group is known by its members."""

_OWN: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (PolicyInvalid, UnknownOption, LoopLimit, CallsTooDeep)
}

Plain: TypeAlias = str | int | float | bool | None
"""What is itself again once it was written as JSON."""


class PolicyFailed(RuntimeFault, OptionFailed):
    """A policy failed, here, in another process or in an earlier one.

    `error_type` is the class of what it raised, `error_message` what that said, `retryable` whether asking again may
    help. An exception of Python's own class, and of one derived from it, is an instance of that class as well; so are
    PolicyInvalid, UnknownOption, LoopLimit and CallsTooDeep.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        # Not by way of `super()`: other bases, UnicodeDecodeError for one, take other arguments.
        BaseException.__init__(self, error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable

    @classmethod
    def of(cls, error: BaseException) -> "PolicyFailed":
        """The failure that an exception of a policy stands for."""
        return error if isinstance(error, PolicyFailed) else failure_of(error).error()

    def __str__(self) -> str:
        """In one line: the message, and the class unless it is this one's."""
        shown = " ".join(self.error_message.split())
        is_named = type(self).__name__ == self.error_type or shown == self.error_type
        return shown if is_named else f"{self.error_type}: {shown}"

    def __reduce__(self) -> tuple[object, ...]:
        """So that it crosses processes with its causes."""
        return Failure.error, (failure_of(self),)


class Failure(AtRest):
    """What a policy raised, as data."""

    type: NonEmpty
    message: str
    retryable: bool = False
    known_as: str = ""
    """The nearest class that is known everywhere; empty for Exception itself, and for a group."""
    cause: "Failure | None" = None
    members: "tuple[Failure, ...]" = ()
    """Of a group."""
    args: tuple[Plain, ...] | None = None
    """Of one of Python's own, where all are plain."""
    attributes: tuple[tuple[str, Plain], ...] = ()
    """Of one of Python's own: what is plain of `_KEPT`."""

    def error(self) -> PolicyFailed:
        """The exception that a caller gets; its `__cause__` and its members are such exceptions too."""
        made = self._new()
        PolicyFailed.__init__(made, self.type, self.message, retryable=self.retryable)
        if self.args is not None:
            made.args = self.args
        for name, value in self.attributes:
            if name in _KEPT and hasattr(made, name):
                setattr(made, name, value)
        if self.cause is not None:
            made.__cause__ = self.cause.error()
        return made

    def _new(self) -> PolicyFailed:
        """An instance of the class that says what this is, not initialised: classes of exceptions differ in that."""
        if self.members:
            make: Callable[..., PolicyFailed] = _failed_as(ExceptionGroup).__new__
            return make(_failed_as(ExceptionGroup), self.message, [each.error() for each in self.members])
        found: object = _OWN.get(self.known_as) or getattr(builtins, self.known_as, None)
        kind = _failed_as(found) if _is_known(found) else PolicyFailed
        return kind.__new__(kind)


def failure_of(error: BaseException) -> Failure:
    """What an exception says of itself, of its causes and its members: `MOST_CAUSES` levels, `MOST_FAILURES` in all."""
    return _told(error, MOST_CAUSES, iter(range(1, MOST_FAILURES)), MOST_CHARACTERS)


def _told(error: BaseException, depth: int, places: Iterator[int], most: int) -> Failure:
    """One of them, so many characters of what it says; each that it is made of takes a place."""

    def told(each: BaseException) -> Failure | None:
        if not depth or next(places, None) is None:
            return None
        return _told(each, depth - 1, places, MOST_CHARACTERS // 10)

    kind, message, retryable = _said_by(error)
    cause = None if error.__cause__ is None else told(error.__cause__)
    given = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    members = tuple(each for each in map(told, given) if each)
    left_out = len(given) - len(members)
    known = next(filter(_is_known, type(error).__mro__), None)
    is_pythons = known is not None and known not in _OWN.values()
    return Failure(
        type=_as_text(kind)[:most] or "Exception",
        message=_as_text(message)[:most] + (f" … and {left_out} more" if left_out else ""),
        retryable=retryable,
        known_as=known.__name__ if known is not None else "",
        cause=cause,
        members=members,
        args=_args_of(error) if is_pythons else None,
        attributes=_attributes_of(error) if is_pythons else (),
    )


def _args_of(error: BaseException) -> tuple[Plain, ...] | None:
    args: tuple[object, ...] = BaseException.args.__get__(error)  # type: ignore[attr-defined]  # whatever a class made of it
    plain = tuple(filter(_is_plain, islice(args, len(_KEPT))))
    return plain if len(plain) == len(args) else None


def _attributes_of(error: BaseException) -> tuple[tuple[str, Plain], ...]:
    found = []
    for name in _KEPT:
        try:
            value: object = getattr(error, name, None)
        except Exception:
            continue
        if value is not None and _is_plain(value):
            found.append((name, value))
    return tuple(found)


def _is_plain(value: object) -> TypeGuard[Plain]:
    """Whether JSON holds a value as it is, and it is not long."""
    try:
        return type(value) in (str, int, float, bool, NoneType) and len(encode_json(value)) <= MOST_CHARACTERS // 10
    except NotJSON:
        return False


def is_cancelled() -> bool:
    """Whether somebody cancels the task that runs here, rather than something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _said_by(error: BaseException) -> tuple[str, str, bool]:
    """Type, message and whether to try again."""
    said = RaisedError.of(error)
    if isinstance(error, OptionFailed):
        return said
    message = said.message
    if isinstance(error, BaseExceptionGroup):
        message = error.message
    elif isinstance(error, asyncio.CancelledError):
        message = "the policy waited for something that was cancelled"
    elif not isinstance(error, Exception):
        message = f"the policy raised {_shown(error)}"
    return type(error).__name__, message, said.retryable


def _shown(error: BaseException) -> str:
    try:
        return repr(error)
    except Exception:
        return type(error).__name__


def _is_known(kind: object) -> TypeGuard[type[Exception]]:
    """Whether a class of exceptions is the same everywhere, and says more than Exception does."""
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is Exception:
        return False
    is_pythons = kind.__module__ == "builtins" and not issubclass(kind, _ALONE)
    return is_pythons or kind in _OWN.values()


def _failed_as(kind: type[Exception]) -> type[PolicyFailed]:
    """The class of failures that are of a known class too."""
    if kind not in _made:
        _made[kind] = type(kind.__name__, (PolicyFailed, kind), {"__module__": __name__})
    return _made[kind]


_made: dict[type[Exception], type[PolicyFailed]] = {}


def _as_text(said: object) -> str:
    """What JSON can hold: half a character becomes its number."""
    return str(said)[:MOST_CHARACTERS].encode(errors="backslashreplace").decode()
