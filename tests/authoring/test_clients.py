"""Endpoints without secrets, one async client for each event loop (UP-25)."""

import asyncio
import gc
import os
import threading
import weakref
from fractions import Fraction

import pytest
from sabir.authoring.credentials import Clients, check_client, url_of_client
from sabir.contract.provider import Access
from sabir.errors import SettingsInvalid
from sabir_testing.loopback import PATIENCE


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://acme.example/v1/", "https://acme.example/v1"),
        ("https://me:secret@acme.example:8443/v1?key=secret#x", "https://acme.example:8443/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_endpoint_is_its_url_without_secrets(url: str, endpoint: str) -> None:
    """It is recorded in the origin of every message."""
    assert Access().read_endpoint("acme", url) == endpoint


class Client:
    """A client of either kind that says whether it was closed, and in which event loop."""

    def __init__(self) -> None:
        self.closed_in: list[object] = []

    def close(self) -> None:
        self.closed_in.append(None)

    async def aclose(self) -> None:
        self.closed_in.append(asyncio.get_running_loop())


@pytest.fixture
def clients() -> Clients[Client, Client]:
    return Clients()


def test_every_event_loop_has_its_own_client_and_all_threads_one(clients: Clients[Client, Client]) -> None:
    async def twice() -> tuple[Client, Client]:
        return await clients.here(Client), await clients.here(Client)

    (one, same), (other, _) = asyncio.run(twice()), asyncio.run(twice())
    assert one is same
    assert one is not other
    waiting = clients.sync(Client)
    assert clients.sync(Client) is waiting
    clients.close()
    clients.close()
    assert waiting.closed_in == [None]
    assert clients.sync(Client) is not waiting


def test_a_loops_end_closes_its_client_in_it(clients: Clients[Client, Client]) -> None:
    async def made() -> tuple[Client, object]:
        return await clients.here(Client), asyncio.get_running_loop()

    client, loop = asyncio.run(made())
    assert client.closed_in == [loop]


def test_a_client_whose_loop_was_closed_without_its_end_is_dropped(clients: Clients[Client, Client]) -> None:
    loop = asyncio.new_event_loop()
    dropped = weakref.ref(loop.run_until_complete(clients.here(Client)))
    loop.close()
    del loop
    asyncio.run(clients.here(Client))
    gc.collect()

    assert dropped() is None


def test_closing_leaves_the_clients_of_other_loops(clients: Clients[Client, Client]) -> None:
    here = Client()
    other = asyncio.new_event_loop()
    there = other.run_until_complete(clients.here(Client))

    async def close() -> None:
        assert await clients.here(lambda: here) is here
        await clients.aclose()
        assert (len(here.closed_in), there.closed_in) == (1, [])
        assert await clients.here(Client) is not here

    asyncio.run(close())
    assert other.run_until_complete(clients.here(Client)) is there
    other.run_until_complete(clients.aclose())
    other.close()
    assert there.closed_in == [other]


async def test_a_loops_client_that_nobody_has_any_more_is_closed() -> None:
    clients: Clients[Client, Client] = Clients()
    client = await clients.here(Client)
    del clients
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert client.closed_in == [asyncio.get_running_loop()]


def test_a_forked_child_begins_with_no_client_and_no_lock(clients: Clients[Client, Client]) -> None:
    before, is_making, may_go_on = clients.sync(Client), threading.Event(), threading.Event()
    clients.close()

    def make() -> Client:
        is_making.set()
        may_go_on.wait(PATIENCE)
        return before

    thread = threading.Thread(target=clients.sync, args=(make,))
    thread.start()
    is_making.wait(PATIENCE)
    if (child := os.fork()) == 0:
        os._exit(0 if clients.sync(Client) is not before else 1)
    may_go_on.set()
    thread.join(PATIENCE)

    assert os.waitpid(child, 0)[1] == 0
    assert clients.sync(Client) is before


def test_a_client_of_another_class_is_refused_with_the_remedy() -> None:
    """A waiting client given to `await` would block the loop, or fail later and less clearly."""
    check_client(Fraction(1), "fractions.Fraction", "acme", "give a number")
    check_client(True, "builtins.int", "acme", "give a number")
    for other in ("decimal.Fraction", "fractions.Decimal", "fraction.Fraction"):
        with pytest.raises(SettingsInvalid, match=r"^client= of acme is of type Fraction; give a number$"):
            check_client(Fraction(1), other, "acme", "give a number")


def test_what_says_no_url_is_no_client() -> None:
    with pytest.raises(SettingsInvalid, match=r"^client= of acme is of type int; pass a client of its SDK$"):
        url_of_client("acme", 3)
