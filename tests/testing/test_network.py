"""A test that must not use the network fails at the first address it asks for, by whatever way it asks."""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sabir
from sabir_testing.loopback import Server
from sabir_testing.network import NetworkForbidden, is_allowed, network_forbidden

ELSEWHERE = "192.0.2.1"
"""An address for documentation, which nobody has (RFC 5737)."""
NAME = "api.example.org"


def connect(host: str, port: int = 443) -> None:
    with socket.socket() as client:
        client.connect((host, port))


def connect_6() -> None:
    with socket.socket(socket.AF_INET6) as client:
        client.connect_ex(("2001:db8::1", 443))


def in_a_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(connect, ELSEWHERE).result()


def datagram(send: Callable[[socket.socket], object]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        send(client)


WAYS: dict[str, tuple[Callable[[], object], str]] = {
    "connect": (lambda: connect(ELSEWHERE), f"{ELSEWHERE}:443"),
    "a thread": (in_a_thread, f"{ELSEWHERE}:443"),
    "connect_ex, IPv6": (connect_6, "2001:db8::1:443"),
    "sendto": (lambda: datagram(lambda client: client.sendto(b"?", (ELSEWHERE, 53))), f"{ELSEWHERE}:53"),
    "sendmsg": (lambda: datagram(lambda client: client.sendmsg([b"?"], [], 0, (ELSEWHERE, 53))), f"{ELSEWHERE}:53"),
    "create_connection": (lambda: socket.create_connection((NAME, 443)), f"{NAME}:443"),
    "getaddrinfo": (lambda: socket.getaddrinfo(NAME, 443), f"{NAME}:443"),
    "getaddrinfo by names": (lambda: socket.getaddrinfo(host=NAME.encode(), port=443), f"{NAME}:443"),
    "gethostbyname": (lambda: socket.gethostbyname(NAME), NAME),
    "gethostbyname_ex": (lambda: socket.gethostbyname_ex(NAME), NAME),
    "gethostbyaddr": (lambda: socket.gethostbyaddr(ELSEWHERE), ELSEWHERE),
    "asyncio, by name": (lambda: asyncio.run(asyncio.open_connection(NAME, 443)), f"{NAME}:443"),
    "asyncio, by address": (lambda: asyncio.run(asyncio.open_connection(ELSEWHERE, 443)), f"{ELSEWHERE}:443"),
    "an SDK": (lambda: sabir.adapter("openai:gpt-5", api_key="test").complete_sync("Hi"), "api.openai.com:443"),
    "an SDK in a loop": (lambda: asyncio.run(in_a_loop()), "api.anthropic.com:443"),
}


async def in_a_loop() -> None:
    async with sabir.adapter("anthropic:claude-sonnet-5", api_key="test") as llm:
        await llm.complete("Hi")


@pytest.mark.parametrize(("way", "address"), WAYS.values(), ids=WAYS)
def test_every_way_out_is_forbidden_and_named(way: Callable[[], object], address: str) -> None:
    """One line: the address, and what to do. No SDK takes it for a network that is down, and none tries again."""
    with pytest.raises(NetworkForbidden) as caught, network_forbidden():
        way()

    assert str(caught.value) == f"this test connects to {address}, but the network is forbidden; use a scripted adapter"


def test_this_machine_is_reached() -> None:
    async def in_a_loop() -> None:
        _, writer = await asyncio.open_connection("localhost", port, family=socket.AF_INET)
        writer.close()
        await writer.wait_closed()

    one, other = socket.socketpair()
    with network_forbidden(), one, other, Server([]) as server:
        port = int(server.url.rpartition(":")[2])
        connect("127.0.0.1", port)
        connect("localhost", port)
        asyncio.run(in_a_loop())
        one.sendall(b"hello")
        assert other.recv(100) == b"hello"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "", "::1"])
def test_this_machine_can_be_forbidden_too(host: str) -> None:
    one, other = socket.socketpair()
    with one, other, pytest.raises(NetworkForbidden, match="forbidden, including addresses of this machine;"):
        with network_forbidden(loopback=False):
            one.sendall(b"hello")
            assert other.recv(100) == b"hello"
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as client:
                client.connect((host, 9))


HOSTS = {
    "127.0.0.1": True, "127.8.8.8": True, "::1": True, "::ffff:127.0.0.1": True, "0.0.0.0": True, "LOCALHOST.": True,
    b"localhost": True, None: True, socket.gethostname(): True,
    "10.0.0.1": False, "::ffff:10.0.0.1": False, "fe80::1%eth0": False, "localhost.example.org": False,
    "<broadcast>": False, "169.254.169.254": False, 3: False,
}  # fmt: skip


@pytest.mark.parametrize(("host", "is_here"), HOSTS.items(), ids=str)
def test_which_hosts_are_this_machine(host: object, is_here: bool) -> None:
    """Neighbours in the local network and a cloud's metadata are elsewhere."""
    assert is_allowed(host, loopback=True) is is_here
    assert is_allowed(host, loopback=False) is (host is None)


def test_it_ends_with_its_block() -> None:
    def is_free() -> bool:
        try:
            return socket.gethostbyname("127.0.0.1") == "127.0.0.1"
        except NetworkForbidden:
            return False

    with network_forbidden():
        with network_forbidden(loopback=False):
            assert not is_free()
        assert is_free()
    with pytest.raises(KeyError), network_forbidden(loopback=False):
        raise KeyError
    assert is_free()


TESTS = f"""
    import pytest, socket, threading
    from sabir_testing.network import NetworkForbidden

    def reach(host="{ELSEWHERE}"):
        with socket.socket() as client:
            client.settimeout(0)
            try:
                client.connect((host, 9))
            except OSError:
                pass

    def guarded(host="{ELSEWHERE}"):
        try:
            reach(host)
        except NetworkForbidden:
            return True
        return False

    @pytest.fixture(scope="module")
    def earlier():
        return guarded()
"""


FIXTURE = """
    def test_guarded(no_network):
        assert guarded() and not guarded("127.0.0.1")

    def test_caught(no_network):
        try:
            reach()
        except Exception:
            pass

    def test_free():
        assert not guarded()
"""
OPTION = """
    def test_fixture(earlier):
        assert earlier and guarded() and not guarded("127.0.0.1")

    @pytest.mark.network
    def test_meant():
        assert not guarded()

    @pytest.mark.network
    def test_both(no_network):
        assert guarded()

    def test_named():
        reach()
"""
MARKER = """
    @pytest.mark.no_network
    def test_outside(earlier):
        assert earlier and guarded() and not guarded("127.0.0.1")

    @pytest.mark.no_network(loopback=False)
    def test_inside():
        assert guarded() and guarded("127.0.0.1")

    @pytest.mark.no_network(loopback=False)
    def test_named():
        reach("127.0.0.1")

    def test_free():
        assert not guarded()
"""
USE = "use a scripted adapter"


@pytest.mark.parametrize(
    ("tests", "ini", "passed", "says"),
    [
        (FIXTURE, "", 2, f"this test connects to {ELSEWHERE}:9, but *; {USE}, or remove the fixture no_network"),
        (OPTION, "sabir_no_network = true", 3, f"*; {USE}, or mark the test with @pytest.mark.network"),
        (MARKER, "", 3, f"*127.0.0.1:9*this machine; {USE}, or remove the marker no_network"),
    ],
    ids=["fixture", "option", "marker"],
)
def test_it_is_forbidden_where_it_is_said(
    pytester: pytest.Pytester, tests: str, ini: str, passed: int, says: str
) -> None:
    pytester.makeini(f"[pytest]\naddopts = --strict-markers\n{ini}\n")
    pytester.makepyfile(TESTS + tests)
    result = pytester.runpytest("-p", "sabir_testing.network", "-p", "no:asyncio", "-rN")

    result.assert_outcomes(passed=passed, failed=1)
    result.stdout.fnmatch_lines([f"E*NetworkForbidden: {says}"])
