"""Child processes that several threads of a test start and wait for at once, each exit code read by one thread.

Starting a process polls every child that is not yet joined. Two threads that poll the same child of a fork server both
read its exit code from one pipe: the first reads it, the second reads the end of the pipe, which multiprocessing
reports as 255 (`multiprocessing.popen_forkserver.Popen.poll`). So starting and polling happen under one lock, and
waiting, which reads nothing, does not.
"""

from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from threading import Lock

_POLLING = Lock()


def start(process: BaseProcess) -> None:
    """Start a child."""
    with _POLLING:
        process.start()


def exit_code_of(process: BaseProcess, seconds: float) -> int | None:
    """The exit code of a child once it has ended; None if it has not after so many seconds."""
    if not wait([process.sentinel], seconds):
        return None
    with _POLLING:
        process.join()
        return process.exitcode


def kill(process: BaseProcess) -> int | None:
    """Kill a child and wait until it has ended; its exit code."""
    process.kill()
    return exit_code_of(process, 60)
