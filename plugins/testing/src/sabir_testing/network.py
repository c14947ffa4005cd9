"""No network in a test: a request for an address outside this machine fails the test, with a remedy in the text.

    test ── socket.connect, getaddrinfo, sendto … ──▶ guard ── this machine ──▶ the real one
                                                        └──── elsewhere ─────▶ NetworkForbidden

    [tool.pytest.ini_options]
    sabir_no_network = true                     every test, its fixtures included
    @pytest.mark.network                        but this one
    @pytest.mark.no_network(loopback=False)     this one, and not even addresses of this machine
    def test_it(no_network): …                  this one, from here on

The guard patches Python's own `socket`, which asyncio and the vendors' SDKs use, for all threads at once; it does not
see other processes, nor libraries that open sockets in C. Where an event loop talks to itself over a socket of this
machine, as on Windows, it needs `loopback`. A pytest plugin of its own: fixture, hooks and markers.
"""

import ipaddress
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NoReturn
from unittest import mock

import pytest

INI = "sabir_no_network"
"""The ini option that forbids the network in every test."""
MARKERS = (
    "network: this test may use the network, although sabir_no_network forbids it",
    "no_network(loopback=True): this test must not use the network, and without loopback not even this machine's own",
)

_OF_SOCKETS = ("connect", "connect_ex", "sendto", "sendmsg")
"""Methods of a socket that name an address."""
_BY_NAME = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")
"""Functions of the module `socket` whose first argument is a host."""
_INTERNET = (socket.AF_INET, socket.AF_INET6)


class NetworkForbidden(BaseException):
    """A test asked for an address that it must not reach.

    It is no Exception, so that no program and no SDK takes it for a network that is down, tries again, or goes on
    without: it ends the test.
    """


@contextmanager
def network_forbidden(*, loopback: bool = True, remedy: str = "let it use a scripted adapter") -> Iterator[None]:
    """Forbid the network within a `with` block: NetworkForbidden names the address asked for, and the remedy.

    Addresses of this machine are reached unless `loopback` is False; sockets of other kinds, such as Unix's, always.
    """

    def check(host: object, port: object = None) -> None:
        if not is_allowed(host, loopback=loopback):
            _refuse(host, port, remedy, loopback=loopback)

    with ExitStack() as patches:
        for name in _BY_NAME:
            patches.enter_context(mock.patch.object(socket, name, _guarded_name(getattr(socket, name), check)))
        for name in _OF_SOCKETS:
            if hasattr(socket.socket, name):  # not every system has every one
                guarded = _guarded_method(getattr(socket.socket, name), check)
                patches.enter_context(mock.patch.object(socket.socket, name, guarded))
        yield


def is_allowed(host: object, *, loopback: bool) -> bool:
    """Whether a host may be asked for where only this machine may; no host at all is this machine."""
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


def _refuse(host: object, port: object, remedy: str, *, loopback: bool) -> NoReturn:
    shown = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else host
    address = f"{shown}:{port}" if port is not None else f"{shown}"
    what = "the network is" if loopback else "every network, this machine's own included, is"
    raise NetworkForbidden(f"{what} forbidden in this test, which asked for {address}; {remedy}")


def _guarded_name(function: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Any]:
    """A function whose first argument is a host, and whose second may be a port."""

    @wraps(function)
    def guarded(host: object, *arguments: Any, **named: Any) -> Any:
        check(host, *arguments[:1])
        return function(host, *arguments, **named)

    return guarded


def _guarded_method(method: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Any]:
    """A method of a socket whose last argument is an address, where one is given."""

    @wraps(method)
    def guarded(self: socket.socket, *arguments: Any) -> Any:
        at = 3 if method.__name__ == "sendmsg" else len(arguments) - 1
        address = arguments[at] if 0 <= at < len(arguments) else None
        if self.family in _INTERNET and isinstance(address, tuple):
            check(address[0] or "0.0.0.0", *address[1:2])
        return method(self, *arguments)

    return guarded


@pytest.fixture
def no_network() -> Iterator[None]:
    """Forbids the network until the test ends, but for addresses of this machine."""
    with network_forbidden(remedy="let it use a scripted adapter, or leave out the fixture no_network"):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini option."""
    parser.addini(INI, "forbid the network in every test that is not marked `network`", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """The markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def _is_recording(config: pytest.Config) -> bool:
    """Whether this run asks the services themselves."""
    return bool(config.getoption("sabir_record", False))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forbid the network while a test and its fixtures run, where the ini option or the marker says so."""
    marker = item.get_closest_marker("no_network")
    if marker is not None:
        remedy = "let it use a scripted adapter, or take off its marker no_network"
        guard = network_forbidden(loopback=marker.kwargs.get("loopback", True), remedy=remedy)
    elif item.config.getini(INI) and not (item.get_closest_marker("network") or _is_recording(item.config)):
        guard = network_forbidden(remedy="let it use a scripted adapter, or mark it with @pytest.mark.network")
    else:
        return (yield)
    with guard:
        return (yield)
