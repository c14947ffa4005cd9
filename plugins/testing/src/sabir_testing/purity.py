"""What rendering must not ask for: the time, chance, the network, the disk (law 6).

with impurities() as seen:      every call in this thread is watched, however its function was imported
    renderer.render(history)
seen ─▶ ["time.time, called by encode_turn (encode.py:41)"]
"""

import gc
import random
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from types import FrameType
from typing import Any

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
    gc.disable()  # others' callbacks at a collection ask for the time
    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _is_library(frame: FrameType) -> bool:
    """Whether a frame is of the standard library: who asked is whoever called into it."""
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
