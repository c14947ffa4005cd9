"""How much work a function does, counted and not timed: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

MOST = 5
"""Times the work that four times as many items may cost: in proportion to them it is four times."""


def lines_run(work: Callable[[], object]) -> int:
    """The lines of Python that run, each turn of a loop and of a comprehension among them."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class Entered(NamedTuple):
    """What a profiler sees of a function's work: functions of Python entered, and changes from file to file."""

    functions: list[str]
    changes: int


def entered(work: Callable[[], object]) -> Entered:
    """The functions that run, in order, and how often what runs next is in another file, returns included."""
    functions: list[str] = []
    files: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            functions.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
            files.append(frame.f_code.co_filename)
        elif event == "return" and frame.f_back:
            files.append(frame.f_back.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(before)
    return Entered(functions, sum(one != next for one, next in pairwise(files)))
