"""How much work a function does, counted and not timed: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

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
