"""A connection to a function of this process: asked at each open, with nothing to close."""

import asyncio

import pytest
from sabir.authoring.inprocess import InProcessConnection, Served
from sabir.contract.provider import Connection, WireRequest

REQUEST = WireRequest("/echo", b"hello")


def serve(request: WireRequest) -> Served:
    if not request.body:
        raise ValueError("nothing to say")
    return Served(200, [request.body, b"!"], {"x-request-id": "7"})


def test_the_functions_answer_is_the_response() -> None:
    """Status, headers and chunks as they were given; waiting and in a loop."""
    connection: Connection = InProcessConnection(serve)
    response = connection.open_sync(REQUEST)

    async def read() -> tuple[int, list[bytes]]:
        answer = await connection.open(REQUEST)
        chunks = [chunk async for chunk in answer.chunks()]
        await answer.aclose()
        return answer.status, chunks

    assert (response.status, dict(response.headers)) == (200, {"x-request-id": "7"})
    assert list(response.chunks()) == [b"hello", b"!"]
    assert asyncio.run(read()) == (200, [b"hello", b"!"])


def test_it_can_be_closed_any_number_of_times() -> None:
    """It holds nothing; a call after it is answered too."""
    connection = InProcessConnection(serve)
    for _ in range(2):
        connection.close()
        asyncio.run(connection.aclose())
        connection.open_sync(REQUEST).close()

    assert connection.open_sync(REQUEST).status == 200


def test_what_the_function_raises_is_its_own() -> None:
    """No error of it is the wire's, so that none is repeated or renamed."""
    connection = InProcessConnection(serve)

    with pytest.raises(ValueError, match="nothing to say") as caught:
        connection.open_sync(WireRequest("/echo", b""))
    assert connection.translate(caught.value) is None
