"""The errors of the runtime, and the conversion of a policy's exception to PolicyFailed, the same under every runner.

    raised ──failure_of──▶ StoredFailure ──▶ stored or sent, as JSON ──▶ StoredFailure ──error──▶ PolicyFailed

    LookupError("no disk")     PolicyFailed and LookupError: "no disk"
    LoopLimit("…")             PolicyFailed and LoopLimit
    MyError(LookupError)       PolicyFailed and LookupError, the nearest built-in class: "MyError: no disk"
    MyError(Exception)         PolicyFailed: "MyError: no disk"

The in-memory runner converts exceptions too, so an `except` clause works wherever the policy runs. The members of an
exception group and the `__cause__` of an error are converted alike, at most `MOST_FAILURES` in all. Exceptions with a
built-in base class keep their `args` if these are at most five short texts, numbers, booleans or None, and the
attributes in `_ATTRIBUTES`.

SabirError
└── RuntimeFault
    ├── PolicyInvalid     a wrong policy, wrong arguments, or a returned value that is not a batch (TypeError)
    ├── UnknownOption     the context does not bind an option's name (ValueError)
    ├── PolicyFailed      a policy raised an exception
    ├── LoopLimit         a policy called options in every turn that its loop allows
    └── ReplayMismatch    a stored run and the code that repeats it differ
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
    """The base class of the errors that sabir_runtime defines, also for its durable and its distributed runner."""


class PolicyInvalid(RuntimeFault, TypeError):
    """Raised if an object cannot be a policy, or if a policy is called with wrong arguments.

    For a durable or distributed runner, arguments that cannot be stored or sent as JSON are wrong, too. Also raised if
    one bound policy is assigned under two names or a reserved name, or if its name is needed before it is assigned to
    an attribute. If a policy returns something other than a list or tuple of messages, the caller of the policy
    receives a PolicyFailed that is also a PolicyInvalid. Also a TypeError.
    """


class UnknownOption(RuntimeFault, ValueError):
    """Raised if a name in `options` is not a policy that the context binds, or begins with `_`.

    The message lists the names that can be options. Also raised if `options` is a string instead of a list of names.
    Also a ValueError.
    """


class LoopLimit(RuntimeFault):
    """Raised if a policy of `loop_policy` reached its limit of turns, because every batch contained option calls.

    Give `loop_policy` a higher number of `turns`. The caller of the loop receives a PolicyFailed that is also a
    LoopLimit, so `except LoopLimit` catches it.
    """


class ReplayMismatch(RuntimeFault):
    """Raised if a durable run does not match its stored records, because the code or the request has changed.

    Run the code that began the run, fork the run with `Runs.fork`, or start a run with another `run_id`.
    """


MOST_CHARACTERS = 10_000
"""The maximum number of characters of an exception's message. A group's message also says how many members were
left out. The messages of causes and members have at most a tenth of it. If the JSON text of an argument is longer than
a tenth, no `args` are kept."""
MOST_CAUSES = 20
"""The maximum depth of causes and members: the cause of an error is level 1, the cause of the cause level 2."""
MOST_FAILURES = 100
"""The maximum number of exceptions that are converted for one error: the error itself, its causes and its members. An
exception that occurs several times counts each time."""
_ATTRIBUTES = ("errno", "strerror", "filename", "msg", "name")
"""Attributes of built-in exceptions that a StoredFailure contains if they are texts, numbers, booleans or None."""
_UNCOMBINED = (StopIteration, MemoryError, ExceptionGroup)
"""Built-in classes without a PolicyFailed counterpart: StopIteration cannot leave a coroutine, and MemoryError cannot
have two bases. A group is converted with its members."""

_OWN: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (PolicyInvalid, UnknownOption, LoopLimit, CallsTooDeep)
}

Plain: TypeAlias = str | int | float | bool | None
"""A value that JSON writes and reads back unchanged."""


class PolicyFailed(RuntimeFault, OptionFailed):
    """Raised to the caller of a policy that failed, in this process, at a worker, or before a restart.

    A policy fails if it raises an exception, returns something other than messages, or is nested too deeply.
    `error_type` is usually the class name of the policy's exception and `error_message` its text. `retryable` is True
    only if the exception has an attribute `retryable` that is True. If the exception has a built-in class or base class
    such as LookupError, the PolicyFailed is also an instance of the nearest one, so `except LookupError` catches it.
    The same applies to PolicyInvalid, UnknownOption, LoopLimit and CallsTooDeep, but not to StopIteration, MemoryError,
    and classes that are not derived from Exception. The `__cause__` of the exception and the members of an exception
    group are converted, too, at most 100 exceptions in all.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, InMemoryRunner, PolicyFailed
    >>> async def read(ctx, observations, options=None):
    ...     raise LookupError("no disk")
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.read = self._bind(read)
    >>> try:
    ...     asyncio.run(Desk(InMemoryRunner()).read("Read it."))
    ... except LookupError as error:
    ...     print(isinstance(error, PolicyFailed), error)
    True no disk
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        # Not with `super()`: other bases, such as UnicodeDecodeError, take other arguments.
        BaseException.__init__(self, error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable

    @classmethod
    def from_exception(cls, error: BaseException) -> "PolicyFailed":
        """Return the PolicyFailed for a policy's exception. A PolicyFailed is returned unchanged."""
        return error if isinstance(error, PolicyFailed) else failure_of(error).error()

    def __str__(self) -> str:
        """Return the message in one line, usually after `error_type` if the class of this object has another name."""
        text = " ".join(self.error_message.split())
        is_named = type(self).__name__ == self.error_type or text == self.error_type
        return text if is_named else f"{self.error_type}: {text}"

    def __reduce__(self) -> tuple[object, ...]:
        """Return how pickle restores the error with its causes and members in another process."""
        return StoredFailure.error, (failure_of(self),)


class StoredFailure(StoredModel):
    """A policy's exception as data that can be stored or sent as JSON.

    `type` is usually the exception's class name, `message` its text, and `retryable` is True only if the
    exception has an attribute `retryable` that is True.
    """

    type: NonEmpty
    message: str
    retryable: bool = False
    known_as: str = ""
    """The name of the exception's class or nearest base class that is built in or in `_OWN`; "" if there is none.

    Exception and the classes in `_UNCOMBINED` do not count.
    """
    cause: "StoredFailure | None" = None
    members: "tuple[StoredFailure, ...]" = ()
    """The members of an exception group."""
    args: tuple[Plain, ...] | None = None
    """The `args` of an exception with a built-in base class, if all are short and `Plain`, at most five; else None."""
    attributes: tuple[tuple[str, Plain], ...] = ()
    """The attributes in `_ATTRIBUTES` of an exception with a built-in base class, if short, `Plain`, and not None."""

    def error(self) -> PolicyFailed:
        """Return the exception that the caller receives. The `__cause__` and the members are converted too."""
        error = self._new_error()
        PolicyFailed.__init__(error, self.type, self.message, retryable=self.retryable)
        if self.args is not None:
            error.args = self.args
        for name, value in self.attributes:
            if name in _ATTRIBUTES and hasattr(error, name):
                setattr(error, name, value)
        if self.cause is not None:
            error.__cause__ = self.cause.error()
        return error

    def _new_error(self) -> PolicyFailed:
        """Return an uninitialised instance of the matching class: exception classes differ in their `__init__`."""
        if self.members:
            make: Callable[..., PolicyFailed] = _combined_class(ExceptionGroup).__new__
            return make(_combined_class(ExceptionGroup), self.message, [each.error() for each in self.members])
        named_class: object = _OWN.get(self.known_as) or getattr(builtins, self.known_as, None)
        kind = _combined_class(named_class) if _is_known(named_class) else PolicyFailed
        return kind.__new__(kind)


def failure_of(error: BaseException) -> StoredFailure:
    """Convert an exception with its causes and members: at most `MOST_CAUSES` levels, and `MOST_FAILURES` in all.

    Causes and members beyond these limits are left out.
    """
    return _convert(error, MOST_CAUSES, iter(range(1, MOST_FAILURES)), MOST_CHARACTERS)


def _convert(error: BaseException, depth: int, budget: Iterator[int], most: int) -> StoredFailure:
    """Convert one exception, with at most `most` characters of its text. Each cause and member takes one of `budget`;
    when nothing is left, causes and members are left out.
    """

    def convert(each: BaseException) -> StoredFailure | None:
        if not depth or next(budget, None) is None:
            return None
        return _convert(each, depth - 1, budget, MOST_CHARACTERS // 10)

    kind, message, retryable = _describe_exception(error)
    cause = None if error.__cause__ is None else convert(error.__cause__)
    exceptions = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    members = tuple(each for each in map(convert, exceptions) if each)
    left_out = len(exceptions) - len(members)
    known = next(filter(_is_known, type(error).__mro__), None)
    is_pythons = known is not None and known not in _OWN.values()
    return StoredFailure(
        type=_escape_text(kind)[:most] or "Exception",
        message=_escape_text(message)[:most] + (f" … and {left_out} more" if left_out else ""),
        retryable=retryable,
        known_as=known.__name__ if known is not None else "",
        cause=cause,
        members=members,
        args=_args_of(error) if is_pythons else None,
        attributes=_attributes_of(error) if is_pythons else (),
    )


def _args_of(error: BaseException) -> tuple[Plain, ...] | None:
    args: tuple[object, ...] = BaseException.args.__get__(error)  # type: ignore[attr-defined]  # a class may override `args`
    plain = tuple(filter(_is_plain, islice(args, len(_ATTRIBUTES))))
    return plain if len(plain) == len(args) else None


def _attributes_of(error: BaseException) -> tuple[tuple[str, Plain], ...]:
    attributes = []
    for name in _ATTRIBUTES:
        try:
            value: object = getattr(error, name, None)
        except Exception:
            continue
        if value is not None and _is_plain(value):
            attributes.append((name, value))
    return tuple(attributes)


def _is_plain(value: object) -> TypeGuard[Plain]:
    """Return whether JSON keeps a text, number, boolean or None unchanged, and the JSON text is not too long."""
    try:
        return type(value) in (str, int, float, bool, NoneType) and len(encode_json(value)) <= MOST_CHARACTERS // 10
    except NotJSON:
        return False


def is_cancelled() -> bool:
    """Return whether the current task itself was cancelled, and not only a task that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _describe_exception(error: BaseException) -> tuple[str, str, bool]:
    """Return the class name, the message, and whether another attempt may succeed."""
    raised = RaisedError.from_exception(error)
    if isinstance(error, OptionFailed):
        return raised
    message = raised.message
    if isinstance(error, BaseExceptionGroup):
        message = error.message
    elif isinstance(error, asyncio.CancelledError):
        message = "the policy awaited a task that was cancelled"
    elif not isinstance(error, Exception):
        message = f"the policy raised {_repr_of(error)}"
    return type(error).__name__, message, raised.retryable


def _repr_of(error: BaseException) -> str:
    try:
        return repr(error)
    except Exception:
        return type(error).__name__


def _is_known(kind: object) -> TypeGuard[type[Exception]]:
    """Return whether an exception class is built in or in `_OWN`, and is neither Exception nor in `_UNCOMBINED`."""
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is Exception:
        return False
    is_pythons = kind.__module__ == "builtins" and not issubclass(kind, _UNCOMBINED)
    return is_pythons or kind in _OWN.values()


def _combined_class(kind: type[Exception]) -> type[PolicyFailed]:
    """Return a class derived from PolicyFailed and `kind`, always the same class for the same `kind`."""
    if kind not in _combined_classes:
        _combined_classes[kind] = type(kind.__name__, (PolicyFailed, kind), {"__module__": __name__})
    return _combined_classes[kind]


_combined_classes: dict[type[Exception], type[PolicyFailed]] = {}


def _escape_text(source: object) -> str:
    """Return the text of an object, cut to `MOST_CHARACTERS`, with lone surrogates escaped for JSON."""
    return str(source)[:MOST_CHARACTERS].encode(errors="backslashreplace").decode()
