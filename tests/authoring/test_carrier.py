"""Ready bytes go through an SDK that has no method for bytes: with a real HTTP client, to a real server.

The SDK is a function that posts what nobody is to read, with a header of its own, and reads the answer.
"""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import httpx2
import pytest
from sabir.authoring.carrier import Parcel, carriers
from sabir_testing.loopback import PATIENCE, Server, head

HTTPClient, AsyncHTTPClient = carriers(httpx2.Client, httpx2.AsyncClient, httpx2.Response)
BODY = '{"said" :[ "été" ]}'.encode()
ANSWER = b'{"ok" : true}'


def ask(client: httpx2.Client, url: str) -> Any:
    """A method of an SDK: what it gives is read from the answer."""
    return client.post(f"{url}/v1/chat", json={"dummy": 1}, headers={"authorization": "Bearer k"}, timeout=7).json()


async def ask_async(client: httpx2.AsyncClient, url: str, body: bytes) -> bytes:
    """The same of an async SDK, and the ready bytes instead."""
    with Parcel() as parcel:
        assert (await client.post(f"{url}/v1/chat", json={"dummy": 1})).json() == {}
    answer = await parcel.send(body)
    return bytes(await answer.aread())


def test_the_ready_bytes_go_where_the_sdk_goes_and_the_answer_is_not_read() -> None:
    """Its URL, its headers, its timeout; the length is that of the bytes; the SDK gets an empty answer."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as parcel:
            given = ask(client, server.url)
        answer = parcel.send(BODY)
        was_read, found = answer.is_stream_consumed, answer.read()

    (asked,) = server.asked
    assert (given, was_read, found) == ({}, False, ANSWER)
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat", BODY)
    assert asked.headers["authorization"] == "Bearer k"
    assert asked.headers["content-length"] == str(len(BODY))
    assert answer.request.extensions["timeout"]["read"] == 7


def test_nothing_is_sent_before_the_parcel_is() -> None:
    """So that a call may only look whether a client of the user's carries parcels."""
    with Server([head(), ANSWER]) as server:
        with HTTPClient() as client, Parcel() as carried:
            ask(client, server.url)
        with Parcel() as unseen:
            pass
        assert server.asked == []

    assert str(carried.made.url) == f"{server.url}/v1/chat"
    assert unseen.made is None


def test_a_parcel_may_go_elsewhere() -> None:
    """To another method of the same address."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as parcel:
            ask(client, server.url)
        parcel.send(BODY, f"{server.url}/v1/count").close()

    assert server.asked[0].path == "/v1/count"


def test_without_a_parcel_a_client_does_what_it_always_does() -> None:
    """A user's own calls; after a parcel, and within one that is over."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel(), Parcel():
            ask(client, server.url)
        found = ask(client, server.url)

    assert found == {"ok": True}
    assert [asked.body for asked in server.asked] == [b'{"dummy":1}']


async def test_an_async_client_without_a_parcel_does_what_it_always_does() -> None:
    """As the waiting one."""
    with Server([head(), ANSWER]) as server:
        async with AsyncHTTPClient() as client:
            found = await client.post(server.url, json={"dummy": 1})

    assert found.json() == {"ok": True}


def test_a_parcel_within_another_takes_nothing_from_it() -> None:
    """What is sent after the inner one is the outer one's."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as outer:
            with Parcel():
                pass
            ask(client, server.url)

        assert (outer.made.method, server.asked) == ("POST", [])


def test_an_error_in_the_sdk_ends_the_parcel() -> None:
    """The next call is not caught by it."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with pytest.raises(ValueError, match="of the SDK"), Parcel():
            raise ValueError("of the SDK")
        assert ask(client, server.url) == {"ok": True}


def test_parcels_in_many_threads_do_not_mix() -> None:
    """Each thread has its own."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        every = threading.Barrier(8)

        def send(number: int) -> None:
            with Parcel() as parcel:
                every.wait(PATIENCE)
                client.post(f"{server.url}/{number}")
                every.wait(PATIENCE)
            parcel.send(b"%d" % number).close()

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    assert sorted((asked.path, asked.body) for asked in server.asked) == [(f"/{at}", b"%d" % at) for at in range(8)]


async def test_parcels_in_many_tasks_do_not_mix() -> None:
    """Each task has its own."""
    with Server([head(), ANSWER]) as server:
        async with AsyncHTTPClient() as client:
            bodies = [b"%d" % number for number in range(8)]
            found = await asyncio.gather(*(ask_async(client, f"{server.url}/{body.decode()}", body) for body in bodies))

    assert found == [ANSWER] * 8
    assert sorted((asked.path, asked.body) for asked in server.asked) == [
        (f"/{body.decode()}/v1/chat", body) for body in bodies
    ]


def test_no_http_client_is_imported() -> None:
    """The plugin says which it is, at its first send."""
    code = "import sys, sabir.authoring.carrier; print([each for each in ('httpx', 'httpx2') if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
