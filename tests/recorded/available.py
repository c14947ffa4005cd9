"""The servers that recordings come from, each started when it is first needed and stopped when the process ends."""

import atexit
import os
from contextlib import AbstractContextManager, ExitStack
from functools import cache

from tests.recorded import servers
from tests.recorded.mocked import fixtures
from tests.recorded.wires import ServerName, Wire


@cache
def _stack() -> ExitStack:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack


@cache
def server_for(name: ServerName) -> servers.Server:
    """The server of that name; ServerUnavailable says why there is none."""
    return _stack().enter_context(_started(name))


def _started(name: ServerName) -> AbstractContextManager[servers.Server]:
    if name == "proxy":
        return servers.proxy(server_for("embedded"))
    return servers.mock(fixtures()) if name == "mock" else servers.embedded()


def vendor_key(wire: Wire) -> str | None:
    """The vendor's key, where one is set."""
    return next(filter(None, (os.environ.get(name) for name in wire.key_variables)), None)
