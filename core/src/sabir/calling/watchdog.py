"""Ends blocking I/O on time: one thread shuts down the socket on which a late call waits.

    caller's thread      with Guard(clock): connection.open_sync(request)      blocked in recv
                              │ clock.until                                       ▲
    watchdog's thread         └─▶ sleeps until the first `until` ─── shutdown ────┘

A socket's own timeout starts again with every byte, so a server that sends one now and then is never late. Before a
response has a head, no HTTP client tells which of its connections carries the request. So the watchdog looks for the
socket in the frames of the blocked thread, up to the driver's own frame. This needs nothing from a client but that it
is written in Python, and the frames are read only when a call is late.

A blocking step without a socket is not ended: the lookup of a host name, and HTTP clients written in C. On an HTTP/2
connection, all requests of that connection fail.
"""

import os
import socket
import sys
from contextlib import suppress
from math import inf
from threading import Condition, RLock, Thread, get_ident
from time import monotonic
from types import FrameType

from sabir.calling.clock import Clock

RETRY = 0.01
"""Seconds until the watchdog looks again at a late thread, which may have no socket yet, or opens another one."""
LONGEST_SLEEP = 3600.0
_DRIVER = "sabir.calling.drive"


class Guard:
    """Surrounds one blocking step of a call, in the thread that runs it.

    If the clock's time ends within the block, the socket is shut down, and leaving the block raises CallTimedOut.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.thread = 0
        self.has_hung_up = False

    def __enter__(self) -> None:
        """Begin to watch this thread, unless the clock has no limit."""
        if self.clock.until < inf:
            self.thread = get_ident()
            _watchdog.add(self)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Stop watching. Raises CallTimedOut instead of the error of a socket that was shut down."""
        if self.thread:
            _watchdog.remove(self)
            if self.has_hung_up and (error is None or isinstance(error, Exception)):
                raise self.clock.late() from error


class Watchdog:
    """The thread that hangs up for late guards. It starts with the first guard and lives as long as the process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin without guards and thread; also in a forked child, where the thread does not run."""
        self._lock = RLock()  # reentrant: the garbage collector may run a call while the lock is held
        self._changed = Condition(self._lock)
        self._guards: set[Guard] = set()
        self._wakes = inf
        self._thread: Thread | None = None

    def add(self, guard: Guard) -> None:
        """Watch a guard until it is removed. The thread is woken only if it would sleep for too long."""
        with self._lock:
            self._guards.add(guard)
            if guard.clock.until < self._wakes:
                self._wakes = guard.clock.until
                if self._thread is not None:
                    self._changed.notify()
                else:
                    with suppress(RuntimeError):  # no thread starts while the interpreter shuts down
                        thread = Thread(target=self._run, name="sabir-watchdog", daemon=True)
                        thread.start()
                        self._thread = thread

    def remove(self, guard: Guard) -> None:
        """Stop watching a guard; after this, its thread's sockets are not touched."""
        with self._lock:
            self._guards.discard(guard)

    def _run(self) -> None:
        with self._lock:
            while True:
                now = monotonic()
                late = [guard for guard in list(self._guards) if guard.clock.until <= now]
                for guard in late:
                    guard.has_hung_up = _hang_up(guard.thread) or guard.has_hung_up
                first = min((guard.clock.until for guard in list(self._guards)), default=inf)
                self._wakes = now + RETRY if late else first
                self._changed.wait(min(self._wakes - now, LONGEST_SLEEP))


def _hang_up(thread: int) -> bool:
    """Shut down the socket that a thread uses inside the driver; return False if it uses none at this moment."""
    frame: FrameType | None = sys._current_frames().get(thread)  # documented; its name only says that it is CPython's
    while frame is not None and frame.f_globals.get("__name__") != _DRIVER:
        for value in list(frame.f_locals.values()):
            with suppress(Exception):
                if _shut_down(value):
                    return True
        frame = frame.f_back
    return False


def _shut_down(value: object) -> bool:
    """Shut down a socket, a file of one, or the socket of a network stream; return whether `value` is one of these."""
    if isinstance(value, socket.SocketIO):
        with socket.fromfd(value.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
            same.shutdown(socket.SHUT_RDWR)
        return True
    if not isinstance(value, socket.socket):
        if (get := getattr(type(value), "get_extra_info", None)) is None:
            return False
        value = get(value, "socket")
    if isinstance(value, socket.socket):
        socket.socket.shutdown(value, socket.SHUT_RDWR)  # a TLS socket's own method would make it read plain bytes
        return True
    return False


_watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watchdog.begin)
