"""The network guard: a connection to an address outside this machine fails the test, with a remedy in the message.

    test ── socket.connect, getaddrinfo, sendto … ──▶ guard ── this machine ──▶ allowed
                                                        └──── elsewhere ─────▶ NetworkForbidden

    [tool.pytest.ini_options]
    sabir_no_network = true                     forbidden in every test and its fixtures
    @pytest.mark.network                        allowed in this test
    @pytest.mark.no_network(loopback=False)     forbidden in this test, also for addresses of this machine
    def test_it(no_network): …                  forbidden in this test, after the fixture was created

The guard receives the audit events of Python's `socket` in all threads. asyncio and the vendors' SDKs use that module.
Other processes, and libraries that open sockets in C, are not checked. The event loop of Windows needs `loopback`,
because it connects to itself. This module is a pytest plugin: a fixture, hooks and markers.
"""

import ipaddress
import socket
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

INI = "sabir_no_network"
"""The ini option that forbids the network in every test."""
MARKERS = (
    "network: allow the network in this test, although sabir_no_network forbids it",
    "no_network(loopback=True): forbid the network in this test; loopback=False also forbids addresses of this machine",
)

_SOCKET_EVENTS = ("socket.connect", "socket.sendto", "socket.sendmsg")
"""Audit events whose arguments are a socket and an address."""
_LOOKUP_EVENTS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
"""Audit events whose first argument is a host, and whose second may be a port."""
_INTERNET = (socket.AF_INET, socket.AF_INET6)

_guards: list[Callable[..., None]] = []
"""The checks of a host and a port, one for each open `network_forbidden` block, the innermost last."""


class NetworkForbidden(BaseException):
    """Raised in a test that connects to, sends to or looks up a forbidden address. The message names the address and
    the remedy.

    It is not an Exception, so that programs and SDKs do not treat it as a network failure, and the test ends.
    """


@contextmanager
def network_forbidden(*, loopback: bool = True, remedy: str = "use a scripted adapter") -> Iterator[None]:
    """Return a context manager that forbids the network to all threads in its `with` block. Python's `socket` raises
    NetworkForbidden for forbidden addresses.

    Loopback and unspecified addresses and this machine's name are allowed unless `loopback` is False. Unix sockets are
    always allowed. `remedy` is the advice at the end of the error.
    """

    scope = "" if loopback else ", including addresses of this machine"

    def check(host: object, port: object = None) -> None:
        if not is_allowed(host, loopback=loopback):
            name = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else host
            address = f"{name}" if port is None else f"{name}:{port}"
            what = f"this test connects to {address}, but the network is forbidden{scope}"
            raise NetworkForbidden(f"{what}; {remedy}")

    _listen()
    _guards.append(check)
    try:
        yield
    finally:
        _guards.remove(check)


@cache
def _listen() -> None:
    """Start to receive audit events. Python cannot remove an audit hook."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Check the address of an audit event of `socket`."""
    if not _guards:
        return
    if event in _LOOKUP_EVENTS:
        address = arguments[:2]
    elif event in _SOCKET_EVENTS and arguments[0].family in _INTERNET and isinstance(arguments[1], tuple):
        host, *port = arguments[1][:2]
        address = (host or "0.0.0.0", *port)
    else:
        return
    for check in reversed(_guards):
        check(*address)


def is_allowed(host: object, *, loopback: bool) -> bool:
    """Return whether a host may be reached. With `loopback`, localhost, this machine's name, and loopback and
    unspecified addresses are allowed. None and "" as the host are always allowed.
    """
    name = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else host
    if name is None or name == "":
        return True
    if not loopback or not isinstance(name, str):
        return False
    if name.lower().rstrip(".") in ("localhost", socket.gethostname().lower()):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


@pytest.fixture
def no_network() -> Iterator[None]:
    """Forbid the network until the fixture ends, after the test, except addresses of this machine."""
    with network_forbidden(remedy="use a scripted adapter, or remove the fixture no_network"):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option `sabir_no_network`."""
    parser.addini(INI, "forbid the network in every test that is not marked `network`", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forbid the network during a test and its fixtures, if the ini option or the marker requires it. With
    --sabir-record, the ini option has no effect.
    """
    marker = item.get_closest_marker("no_network")
    if marker is not None:
        remedy = "use a scripted adapter, or remove the marker no_network"
        guard = network_forbidden(loopback=marker.kwargs.get("loopback", True), remedy=remedy)
    elif item.config.getini(INI) and not (
        item.get_closest_marker("network")
        or item.config.getoption("sabir_record", False)  # recording needs the services
    ):
        guard = network_forbidden(remedy="use a scripted adapter, or mark the test with @pytest.mark.network")
    else:
        return (yield)
    with guard:
        return (yield)
