"""Laws that are tested on many examples, and the detection of impure calls.

@law(histories, first=directed)        a test case that runs on the examples of `directed`, then on random ones.
def test_…(self, subject, history)     ConformanceFailure for the smallest example that fails or raises
with impurities() as seen:             the calls of this thread for time, random numbers, the network and the disk
    renderer.render(history)           (law 6), however the functions were imported
"""

import gc
import random
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeAlias, TypeVar
from unittest import mock

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy
from sabir import Message
from sabir.authoring import Dialect

from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.suite import AdapterUnderTest

Example = TypeVar("Example")
Case: TypeAlias = Callable[[Any, AdapterUnderTest], None]

MOST_TRIES = 400
"""The maximum number of smaller examples that are tried after a failure, to find the smallest that fails. A limit in
seconds would let the result depend on the machine.
"""


class _ExampleFailed(Exception):
    """Raised for a failed example, always on the same line, so that hypothesis treats all failures as the same."""


class _SearchEnded(BaseException):
    """Raised to end the search for a smaller example."""


def law(
    *examples: Callable[[AdapterUnderTest], SearchStrategy[Any]],
    first: Callable[[AdapterUnderTest], Iterable[Any]] = lambda subject: (),
) -> Callable[[Callable[..., None]], Case]:
    """Return a decorator for a test case that must pass for every example.

    Each of `examples` returns the strategy of one argument, after the adapter under test, of the decorated method.
    `first` returns examples that are always tried, before the random ones: arguments, or tuples of several arguments.
    """

    def decorate(check: Callable[..., None]) -> Case:
        def case(self: Any, subject: AdapterUnderTest) -> None:
            drawn = st.tuples(*(each(subject) for each in examples))
            directed = first(subject) if len(examples) > 1 else ((each,) for each in first(subject))

            def check_copy(example: tuple[Any, ...]) -> None:  # other checks get the same lists
                check(self, subject, *map(copy, example))

            for_all(subject, drawn, check_copy, directed, shared=examples)

        case.__name__, case.__qualname__, case.__doc__ = check.__name__, check.__qualname__, check.__doc__
        return case

    return decorate


def for_all(
    subject: AdapterUnderTest,
    strategy: SearchStrategy[Example],
    check: Callable[[Example], None],
    first: Iterable[Example] = (),
    *,
    shared: object = None,
) -> None:
    """Run a check on the examples of `first`, and then on up to `subject.suite.examples` random ones. Raises
    ConformanceFailure for the smallest failed example that was found.

    Other exceptions of the check become a ConformanceFailure that names the dialect's function, if one raised them. The
    random examples, and the smallest one, depend only on `subject.seed`. The search ends after 400 tries. Checks with
    an equal `shared`, unless it is None, get the same random examples, which are drawn once in a suite: drawing takes
    longer than most checks.
    """
    for example in first:
        if error := _error_of(check, example):
            failure = _to_failure(subject, *_drop_unneeded_messages(check, example, error))
            raise failure from failure.__cause__
    with _no_constants_of_modules():
        if shared is None:
            _search(subject, strategy, check)
            return
        key = "examples", shared, subject.seed, subject.suite.examples
        drawn = subject.once(key, lambda: _draw_examples(subject, strategy))
        for example in drawn:
            if error := _error_of(check, example):
                _search(subject, strategy, check)  # draws the same examples again, and finds a smaller one that fails
                failure = _to_failure(subject, error, example)  # the check passes if it is repeated
                failure.seed = subject.seed
                raise failure from failure.__cause__


def _draw_examples(subject: AdapterUnderTest, strategy: SearchStrategy[Example]) -> list[Example]:
    drawn: list[Example] = []
    _search(subject, strategy, drawn.append)
    return drawn


def _search(subject: AdapterUnderTest, strategy: SearchStrategy[Example], check: Callable[[Example], None]) -> None:
    """Run a check on random examples. Raises ConformanceFailure, with the seed, for the smallest failed example."""
    failures: list[tuple[Exception, Example]] = []
    tries = 0

    @seed(subject.seed)
    @settings(
        max_examples=subject.suite.examples,
        deadline=None,
        derandomize=False,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def check_example(example: Example) -> None:
        nonlocal tries
        if failures:
            tries += 1
            if tries > MOST_TRIES:
                raise _SearchEnded
        if error := _error_of(check, example):
            failures.append((error, example))
            raise _ExampleFailed

    try:
        check_example()
    except (_ExampleFailed, _SearchEnded, HypothesisException):  # the last: a failed example passes if repeated
        if not failures:
            raise
        failure = _to_failure(subject, *failures[-1])
        failure.seed = subject.seed
        raise failure from failure.__cause__


def _error_of(check: Callable[[Example], None], example: Example) -> Exception | None:
    """Return the exception that a check raises for an example; None if it passes."""
    try:
        check(example)
    except HypothesisException:
        raise
    except Exception as error:
        return error
    return None


def _drop_unneeded_messages(
    check: Callable[[Example], None], example: Example, error: Exception
) -> tuple[Exception, Example]:
    """Return a failed example without the members of its lists that the failure does not need, and its exception."""
    tries, was_shortened = 0, True
    while was_shortened:
        was_shortened = False
        for shorter in _shorter_examples(example):
            tries += 1
            if tries > MOST_TRIES:
                return error, example
            if shorter_error := _error_of(check, shorter):
                error, example, was_shortened = shorter_error, shorter, True
                break
    return error, example


def _shorter_examples(example: Any) -> Iterator[Any]:
    """Yield an example without half of a list, and without one member of a list, the last one first."""
    if isinstance(example, tuple):
        for at, part in enumerate(example):
            yield from ((*example[:at], shorter, *example[at + 1 :]) for shorter in _shorter_examples(part))
    elif isinstance(example, list) and len(example) > 1:
        half = len(example) // 2
        yield from (example[:half], example[half:]) if half > 1 else ()
        yield from (example[:at] + example[at + 1 :] for at in reversed(range(len(example))))


def _no_constants_of_modules() -> Any:  # mock's type has no public name
    """Return a context manager in which hypothesis does not mix constants from the source of the loaded modules into
    the examples: they would differ between a test that runs alone and one that runs after others.
    """
    return mock.patch.object(HypothesisProvider, "_maybe_draw_constant", _draw_no_constant, create=True)


def _draw_no_constant(provider: object, *arguments: object, **options: object) -> None:
    """Replace the method of hypothesis that draws constants."""


def _to_failure(subject: AdapterUnderTest, error: Exception, example: object) -> ConformanceFailure:
    """Return the ConformanceFailure of a failed example. For another exception, it names the function that raised."""
    if isinstance(error, ConformanceFailure):
        return error.with_traceback(None)
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)]
    last, line = frames[-1]
    members = ((each.name, getattr(subject.dialect, each.name)) for each in fields(Dialect))
    functions = {getattr(function, "__code__", None): name for name, function in members}
    names = [f"{functions[frame.f_code]} of {subject.dialect.name}" for frame, _ in frames if frame.f_code in functions]
    name = next(iter(names), f"code outside the functions of the dialect {subject.dialect.name}")
    where = f"{last.f_code.co_filename}:{line}, in {last.f_code.co_name}"
    what = f"{name} raises {type(error).__name__}: {error}"
    failure = ConformanceFailure(what, history=history_in(example), details={"raised at": where})
    failure.__cause__ = error
    return failure


def history_in(example: object) -> Sequence[Message]:
    """Return the first list of messages in an example that is not empty; () if there is none."""
    if isinstance(example, list | tuple):
        if example and all(isinstance(each, Message) for each in example):
            return list(example)
        return next((history for each in example if (history := history_in(each))), ())
    return ()


IMPURE_BUILTINS: Mapping[str, frozenset[str]] = {
    "time": frozenset({
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
        "localtime", "gmtime", "ctime", "sleep",
    }),
    "posix": frozenset({"urandom", "getrandom", "open"}),
    "nt": frozenset({"urandom", "open"}),
    "_io": frozenset({"open"}),
    "io": frozenset({"open"}),
    "_socket": frozenset({"getaddrinfo", "gethostbyname"}),
    "_uuid": frozenset({"generate_time_safe"}),
}  # fmt: skip
"""Built-in module → its functions whose results depend on the time, chance, the network or the disk."""
CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
SOCKETS = {socket.socket.__init__.__code__: "socket.socket", socket.create_connection.__code__: "create_connection"}


@contextmanager
def impurities() -> Iterator[list[str]]:
    """Return a context manager with a list of the impure calls of this thread, each with its caller."""
    seen: list[str] = []

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        name = _impure_name(argument) if event == "c_call" else SOCKETS.get(frame.f_code) if event == "call" else None
        if name is None:
            return
        caller = frame if event == "c_call" else frame.f_back or frame
        while caller.f_back and _is_library(caller):
            caller = caller.f_back
        code = caller.f_code
        seen.append(f"{name}, called by {code.co_name} ({Path(code.co_filename).name}:{caller.f_lineno})")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # other code's callbacks at a collection read the time
    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _is_library(frame: FrameType) -> bool:
    """Return whether a frame belongs to the standard library. Then its caller is reported."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in sys.stdlib_module_names


def _impure_name(function: Any) -> str | None:  # any function that is not written in Python
    """Return the name of an impure built-in function; None for other functions."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if name in IMPURE_BUILTINS.get(getattr(function, "__module__", None) or "", ()):
        return f"{function.__module__.strip('_')}.{name}"
    if isinstance(owner, random.Random):
        return f"random.{name}"
    if name in CLOCK_METHODS and isinstance(owner, type) and issubclass(owner, date | datetime):
        return f"{owner.__name__}.{name}"
    return None
