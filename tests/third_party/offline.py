"""A pytest plugin for an environment that must reach nothing beyond this machine: whatever tries is stopped by name.

It imports nothing of this repository, for it is used where none of it is.
"""

import sys


class Offline(BaseException):
    """Something tried to reach the network; it is no Exception, so that no client takes it for a failure of its own."""


LOOPBACK = ("127.", "::1")


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: Offline for a connection, or a look-up, beyond the loopback."""
    if event not in ("socket.connect", "socket.getaddrinfo"):
        return
    where = arguments[1] if event == "socket.connect" else (arguments[0],)
    host = where[0] if isinstance(where, tuple) else None
    if isinstance(host, bytes):
        host = host.decode()
    if isinstance(host, str) and host and host != "localhost" and not host.startswith(LOOPBACK):
        raise Offline(f"{host} was to be reached; these tests may reach only this machine")


sys.addaudithook(refuse)
