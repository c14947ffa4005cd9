"""Laws tried on many examples inside a plain function; and the impure calls that an example may not make.

@law(histories)                        a case tried on many examples: ConformanceFailure, or whatever the author's
def test_…(self, subject, history)     code raises; of all examples that fail, the smallest is told
with impurities() as seen:             what this thread asked of the time, chance, the network and the disk (law 6),
    renderer.render(history)           however its function was imported
"""

import gc
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeAlias, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy
from sabir import Message
from sabir.authoring import Dialect

from sabir_testing.kit.broken import ConformanceFailure
from sabir_testing.kit.suite import AdapterUnderTest

Example = TypeVar("Example")
Case: TypeAlias = Callable[[Any, AdapterUnderTest], None]

MOST_TRIES = 400
"""How many smaller examples are tried once one failed."""
LONGEST_SEARCH = 5.0
"""Seconds after which no smaller example is looked for."""


class _Failed(Exception):
    """An example failed; raised in one place, so that hypothesis takes all failures for one."""


class _Enough(BaseException):
    """The search for a smaller example has gone on long enough."""


def law(*examples: Callable[[AdapterUnderTest], SearchStrategy[Any]]) -> Callable[[Callable[..., None]], Case]:
    """A case that holds for every example: what the decorated method takes beside the subject is drawn of these."""

    def made(check: Callable[..., None]) -> Case:
        def case(self: Any, subject: AdapterUnderTest) -> None:
            drawn = st.tuples(*(each(subject) for each in examples))
            for_all(subject, drawn, lambda example: check(self, subject, *example))

        case.__name__, case.__qualname__, case.__doc__ = check.__name__, check.__qualname__, check.__doc__
        return case

    return made


def for_all(subject: AdapterUnderTest, strategy: SearchStrategy[Example], check: Callable[[Example], None]) -> None:
    """Try a check on `subject.suite.examples` examples of a strategy; ConformanceFailure for the smallest that fails.

    An exception of the author's code becomes a ConformanceFailure that names the function. Where CI is set the
    examples are the same at every run. Smaller examples are looked for with at most 400 tries and for 5 seconds, so
    that on slow code the example told is small, but perhaps not the smallest.
    """
    failures: list[tuple[Exception, Example]] = []
    tries, until = 0, 0.0

    @settings(
        max_examples=subject.suite.examples,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def tried(example: Example) -> None:
        nonlocal tries, until
        if failures:
            tries += 1
            if tries > MOST_TRIES or time.perf_counter() > until:
                raise _Enough
        try:
            check(example)
            return
        except HypothesisException:
            raise
        except Exception as error:
            until = until or time.perf_counter() + LONGEST_SEARCH
            failures.append((error, example))
        raise _Failed

    try:
        tried()
    except (_Failed, _Enough, HypothesisException):  # the last: an example that failed once does so no more
        if not failures:
            raise
        told = _told(subject, *failures[-1])
        raise told from told.__cause__


def _told(subject: AdapterUnderTest, error: Exception, example: object) -> ConformanceFailure:
    """What is said of an example that failed: what the check says itself, or which function raised, and where."""
    if isinstance(error, ConformanceFailure):
        return error.with_traceback(None)
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)]
    last, line = frames[-1]
    held = ((each.name, getattr(subject.dialect, each.name)) for each in fields(Dialect))
    functions = {getattr(function, "__code__", None): name for name, function in held}
    named = [f"{subject.dialect.name}: {functions[frame.f_code]}" for frame, _ in frames if frame.f_code in functions]
    name = next(iter(named), "this case, and nothing of the dialect,")
    where = f"{last.f_code.co_filename}:{line}, in {last.f_code.co_name}"
    what = f"{name} raised {type(error).__name__}: {error}"
    told = ConformanceFailure(what, history=history_in(example), shown={"raised at": where})
    told.__cause__ = error
    return told


def history_in(example: object) -> Sequence[Message]:
    """The first list of messages in an example, or none."""
    if isinstance(example, list | tuple):
        if example and all(isinstance(each, Message) for each in example):
            return list(example)
        return next((found for each in example if (found := history_in(each))), ())
    return ()


BUILTINS: Mapping[str, frozenset[str]] = {
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
"""Module of the interpreter → its functions that give another answer tomorrow."""
NOW = frozenset({"now", "utcnow", "today"})
SOCKETS = {socket.socket.__init__.__code__: "socket.socket", socket.create_connection.__code__: "create_connection"}


@contextmanager
def impurities() -> Iterator[list[str]]:
    """What was asked for meanwhile in this thread, each with who asked."""
    seen: list[str] = []

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        name = _builtin(argument) if event == "c_call" else SOCKETS.get(frame.f_code) if event == "call" else None
        if name is None:
            return
        asker = frame if event == "c_call" else frame.f_back or frame
        while asker.f_back and _is_library(asker):
            asker = asker.f_back
        code = asker.f_code
        seen.append(f"{name}, called by {code.co_name} ({Path(code.co_filename).name}:{asker.f_lineno})")

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
    """Whether a frame belongs to the standard library: then its caller counts as the asker."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in sys.stdlib_module_names


def _builtin(function: Any) -> str | None:  # any function that is not written in Python
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if name in BUILTINS.get(getattr(function, "__module__", None) or "", ()):
        return f"{function.__module__.strip('_')}.{name}"
    if isinstance(owner, random.Random):
        return f"random.{name}"
    if name in NOW and isinstance(owner, type) and issubclass(owner, date | datetime):
        return f"{owner.__name__}.{name}"
    return None
