"""The errors of the runtime, and a policy's exception as its caller gets it: the same under every runner.

    raised ──failure_of──▶ Failure ──▶ recorded or sent, as JSON ──▶ Failure ──error──▶ PolicyFailed

    LookupError("no disk")     PolicyFailed that is a LookupError too: "no disk"
    LoopLimit("…")             the same: the runtime's own faults are known everywhere, as Python's are
    MyError(LookupError)       the same, by its nearest class that is known everywhere: "MyError: no disk"
    MyError(Exception)         PolicyFailed: "MyError: no disk"

The in-memory runner does the same, so an `except` clause works wherever the policy runs. A group keeps its members, and
an error its `__cause__`, each converted alike, `MOST_FAILURES` of them in all. An exception of Python's own class keeps
`args` that are plain values, and the attributes that `_KEPT` names; other classes keep neither.

SabirError
└── RuntimeFault
    ├── PolicyInvalid     not a policy, or a policy that returned no batch (TypeError)
    ├── UnknownOption     an option's name that its context does not bind (ValueError)
    ├── PolicyFailed      a policy failed
    ├── LoopLimit         a policy chose options as often as its loop allows
    └── ReplayMismatch    a recorded run and its code no longer agree
"""

import asyncio
import builtins
from collections.abc import Callable, Iterator
from itertools import islice
from types import NoneType
from typing import TypeAlias, TypeGuard

from sabir import OptionFailed, SabirError
from sabir.authoring import NonEmpty, RaisedError, StoredModel, encode_json
from sabir.errors import CallsTooDeep, NotJSON


class RuntimeFault(SabirError):
    """A fault of policies, contexts or runners."""


class PolicyInvalid(RuntimeFault, TypeError):
    """A bound object is not a policy, is bound twice, or returned no batch of messages."""


class UnknownOption(RuntimeFault, ValueError):
    """An option was named that the context does not bind."""


class LoopLimit(RuntimeFault):
    """A policy chose options as often as its loop allows, and was stopped."""


class ReplayMismatch(RuntimeFault):
    """A recorded run was repeated with other code or other arguments."""


MOST_CHARACTERS = 10_000
"""The most characters kept of an exception's message; of each cause, member and argument, a tenth of it."""
MOST_CAUSES = 20
"""The most levels of causes that are kept."""
MOST_FAILURES = 100
"""The most exceptions kept of an error, its causes and members; one that is reached twice counts twice."""
_KEPT = ("errno", "strerror", "filename", "msg", "name")
"""Attributes of Python's own classes that are kept if they are plain values."""
_ALONE = (StopIteration, MemoryError, ExceptionGroup)
"""The first cannot leave a coroutine, the second cannot be subclassed, and a group is described by its members."""

_OWN: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (PolicyInvalid, UnknownOption, LoopLimit, CallsTooDeep)
}

Plain: TypeAlias = str | int | float | bool | None
"""A value that JSON writes and reads back unchanged."""


class PolicyFailed(RuntimeFault, OptionFailed):
    """A policy failed, here, in another process or in an earlier one.

    `error_type` is the class of the policy's exception, `error_message` its text, `retryable` whether asking again may
    help. An exception of Python's own class, and of one derived from it, is an instance of that class as well; so are
    PolicyInvalid, UnknownOption, LoopLimit and CallsTooDeep.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        # Not with `super()`: other bases, such as UnicodeDecodeError, take other arguments.
        BaseException.__init__(self, error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable

    @classmethod
    def from_exception(cls, error: BaseException) -> "PolicyFailed":
        """The failure for an exception of a policy."""
        return error if isinstance(error, PolicyFailed) else failure_of(error).error()

    def __str__(self) -> str:
        """One line: the message, and the class unless it is this one."""
        shown = " ".join(self.error_message.split())
        is_named = type(self).__name__ == self.error_type or shown == self.error_type
        return shown if is_named else f"{self.error_type}: {shown}"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles it with its causes, for other processes."""
        return Failure.error, (failure_of(self),)


class Failure(StoredModel):
    """A policy's exception as data."""

    type: NonEmpty
    message: str
    retryable: bool = False
    known_as: str = ""
    """The nearest class that exists everywhere; empty for Exception itself, and for a group."""
    cause: "Failure | None" = None
    members: "tuple[Failure, ...]" = ()
    """The members of a group."""
    args: tuple[Plain, ...] | None = None
    """The arguments of an exception of Python's own class, if all are plain."""
    attributes: tuple[tuple[str, Plain], ...] = ()
    """The plain attributes in `_KEPT` of an exception of Python's own class."""

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
        """An uninitialised instance of the matching class: exception classes differ in how they are initialised."""
        if self.members:
            make: Callable[..., PolicyFailed] = _failed_as(ExceptionGroup).__new__
            return make(_failed_as(ExceptionGroup), self.message, [each.error() for each in self.members])
        found: object = _OWN.get(self.known_as) or getattr(builtins, self.known_as, None)
        kind = _failed_as(found) if _is_known(found) else PolicyFailed
        return kind.__new__(kind)


def failure_of(error: BaseException) -> Failure:
    """The data of an exception, its causes and its members: `MOST_CAUSES` levels, `MOST_FAILURES` in all."""
    return _told(error, MOST_CAUSES, iter(range(1, MOST_FAILURES)), MOST_CHARACTERS)


def _told(error: BaseException, depth: int, places: Iterator[int], most: int) -> Failure:
    """One of them, with at most `most` characters of its text; each cause and member takes a place."""

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
    """Whether a value is unchanged in JSON and not long."""
    try:
        return type(value) in (str, int, float, bool, NoneType) and len(encode_json(value)) <= MOST_CHARACTERS // 10
    except NotJSON:
        return False


def is_cancelled() -> bool:
    """Whether the current task itself was cancelled, not something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _said_by(error: BaseException) -> tuple[str, str, bool]:
    """Type, message and whether to try again."""
    said = RaisedError.from_exception(error)
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
    """Whether an exception class exists everywhere, and is more specific than Exception."""
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is Exception:
        return False
    is_pythons = kind.__module__ == "builtins" and not issubclass(kind, _ALONE)
    return is_pythons or kind in _OWN.values()


def _failed_as(kind: type[Exception]) -> type[PolicyFailed]:
    """The subclass of PolicyFailed and a known class."""
    if kind not in _made:
        _made[kind] = type(kind.__name__, (PolicyFailed, kind), {"__module__": __name__})
    return _made[kind]


_made: dict[type[Exception], type[PolicyFailed]] = {}


def _as_text(said: object) -> str:
    """The text in a form that JSON can hold: a lone surrogate becomes its number."""
    return str(said)[:MOST_CHARACTERS].encode(errors="backslashreplace").decode()
