"""Ends blocking I/O on time: one thread shuts down the socket on which a late call waits.

    caller's thread      with Guard(clock): connection.open_sync(request)      blocked in recv
                              │ clock.until                                       ▲
    watchdog's thread         └─▶ sleeps until the first `until` ─── shutdown ────┘

A socket's own timeout starts again with every byte, so it does not end a call to a server that sends a byte now and
then. Before the headers of a response arrive, HTTP clients do not tell which connection sends the request. So the
watchdog looks for the socket in the frames of the blocked thread, up to the driver's own frame. This works for every
client written in Python, and the frames are read only when a call is late.

A blocking step without a Python socket is not ended: the lookup of a host name, and HTTP clients written in C. On an
HTTP/2 connection, all requests of the connection fail.
"""

import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from threading import Condition, RLock, Thread, get_ident
from time import monotonic
from types import FrameType
from typing import TypeAlias

from sabir.calling.clock import Clock

RETRY = 0.01
"""Seconds until the watchdog looks again at a late thread, which may have no socket yet, or open another socket."""
LONGEST_SLEEP = 3600.0
"""Seconds after which the watchdog looks again although no guard is late."""
_DRIVER = "sabir.calling.drive"
"""The module of the driver, whose frame calls the HTTP client."""
_Socket: TypeAlias = socket.socket | socket.SocketIO


class Guard:
    """A context manager around each blocking step of a call, in the thread of the call.

    If the clock's time ends inside the block, the watchdog shuts down the socket on which the thread waits, and leaving
    the block raises CallTimedOut. If the watchdog finds no socket, the block is not ended.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.thread = 0
        self.has_hung_up = False

    def __enter__(self) -> None:
        """Register this thread with the watchdog, unless the clock has no limit."""
        until, self.has_hung_up = self.clock.until, False
        if until < inf:
            self.thread = get_ident()
            _watchdog.guards.add(self)
            if until < _watchdog.wakes:
                _watchdog.wake(until)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Unregister this thread. Raises CallTimedOut if the watchdog shut a socket down."""
        if self.thread:
            with _watchdog.lock:  # after this, the watchdog ends nothing in this thread
                _watchdog.guards.discard(self)
            self.thread = 0
            if self.has_hung_up and (error is None or isinstance(error, Exception)):
                raise self.clock.late() from error


class Watchdog:
    """The thread that shuts down the sockets of late guards. It starts with the first guard and ends with the process.

    Adding a guard takes no lock. The thread sets `wakes` to infinity before it reads `guards`. So a guard that the
    thread did not see calls `wake`, which waits until the thread sleeps.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start without guards and without a thread. Called at import, and in a forked child, where no thread runs."""
        self.lock = RLock()  # reentrant: the garbage collector may run a call while the lock is held
        self.guards: set[Guard] = set()
        self.wakes = inf
        self._changed = Condition(self.lock)
        self._thread: Thread | None = None

    def wake(self, until: float) -> None:
        """Wake the thread if it would sleep beyond `until`, a moment of `time.monotonic`. Start it if there is none."""
        with self.lock:
            if until < self.wakes:
                self.wakes = until
                self._changed.notify()
            if self._thread is None:
                with suppress(RuntimeError):  # no thread starts while the interpreter shuts down
                    thread = Thread(target=self._watch, name="sabir-watchdog", daemon=True)
                    thread.start()
                    self._thread = thread

    def _watch(self) -> None:
        """Shut down the sockets of late guards, again and again, and sleep until the next guard is late."""
        with self.lock:
            while True:
                self.wakes, now = inf, monotonic()
                guards = list(self.guards)
                late = [guard for guard in guards if guard.clock.until <= now]
                for guard in late:
                    guard.has_hung_up = _hang_up(guard.thread) or guard.has_hung_up
                first = min((guard.clock.until for guard in guards), default=inf)
                self.wakes = now + RETRY if late else min(first, now + LONGEST_SLEEP)
                self._changed.wait(self.wakes - now)


def _hang_up(thread: int) -> bool:
    """Shut down the sockets in the innermost frame that has sockets, below the driver's frame in this thread.

    Return False if there is no such frame.
    """
    sockets: list[_Socket] = []
    frame = innermost = _frame_of(thread)
    while frame is not None and frame.f_globals.get("__name__") != _DRIVER:
        if not sockets:
            values = list(frame.f_locals.values())
            sockets = [each for value in values for each in _sockets_of(value, looks_inside=frame is innermost)]
        frame = frame.f_back
    if frame is None:
        return False
    for each in sockets:
        with suppress(OSError):  # the connection may be closed already
            if isinstance(each, socket.socket):
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # TLS's own method would make it read plain bytes
            else:
                with socket.fromfd(each.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
                    same.shutdown(socket.SHUT_RDWR)
    return bool(sockets)


def _frame_of(thread: int) -> FrameType | None:
    """Return the innermost frame of a thread. Disables the garbage collector meanwhile: a collection inside of
    `sys._current_frames` blocks the interpreter before Python 3.11.9: https://github.com/python/cpython/issues/106883.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)  # a documented function, despite its name
    finally:
        if is_enabled:
            gc.enable()


def _sockets_of(value: object, *, looks_inside: bool) -> Iterator[_Socket]:
    """Yield the sockets, or files of sockets, of a local variable's value: the value itself, or the socket that the
    value returns from `get_extra_info("socket")`, as network streams do.

    With `looks_inside`, also yield sockets that are attributes of the value.
    """
    if isinstance(value, socket.socket | socket.SocketIO):
        yield value
        return
    with suppress(Exception):  # an object of another library may raise anything
        if get := getattr(type(value), "get_extra_info", None):
            yield from _sockets_of(get(value, "socket"), looks_inside=False)
        elif looks_inside:
            yield from (each for each in vars(value).values() if isinstance(each, socket.socket | socket.SocketIO))


_watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watchdog.begin)
