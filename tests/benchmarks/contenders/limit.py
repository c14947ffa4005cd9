"""The limit: the hand-written loops of `hand`, and httpx2."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import orjson
from pydantic import TypeAdapter

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import OPTIONS_OFFERED, answered, at_once, awaiting, choose, counted, looping
from tests.benchmarks.contenders.hand import events_of, wire_of
from tests.benchmarks.contenders.hand_messages import Reply, Result, Text, message_of, messages_of
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Given

REQUIREMENTS = ("pydantic>=2.14", "orjson>=3", "httpx2>=2")

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer none"}


def connected(given: Given) -> tuple[httpx2.Client, Transport, str]:
    """A client on an in-process transport, or on a socket to the stub; the transport; where to post."""
    transport = Transport(work.reply(given.wire))
    client = httpx2.Client(headers=HEADERS, transport=None if given.url else transport)
    return client, transport, (given.url or "http://in.process") + work.PATHS[given.wire]


def render(given: Given) -> Callable[[], bytes]:
    """Every message, every time."""
    wire, messages = wire_of(given), messages_of(given)
    return lambda: wire.request(messages)


def shared(given: Given) -> Callable[[], list[bytes]]:
    """Every message of every caller's."""
    wire, messages = wire_of(given), messages_of(given)
    histories = [[*messages, message_of(entry)] for entry in work.last_messages()]

    def run() -> list[bytes]:
        return [wire.request(history) for history in histories]

    return counted(run, len(histories))


class Appending:
    """A history that grows by one turn a run, and begins again after fifty."""

    def __init__(self, given: Given, make: Callable[[list[Any]], Callable[[], bytes]]) -> None:
        size = given.size
        entries = messages_of(given._replace(size=size + 100))
        self.base, self.more, self.make = entries[:size], entries[size:], make
        self.count = 50
        self.history: list[Any] = []

    def renew(self) -> None:
        """Append a turn; after fifty, begin again with what renders."""
        if self.count == 50:
            self.count = 0
            self.history = list(self.base)
            self.render = self.make(self.history)
        self.history += self.more[2 * self.count : 2 * self.count + 2]
        self.count += 1

    def __call__(self) -> bytes:
        """The request for the history as it is now."""
        return self.render()


def render_warm(given: Given) -> Appending:
    """The same loop over all messages: it keeps nothing."""
    wire = wire_of(given)
    return Appending(given, lambda history: lambda: wire.request(history))


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """Render, post, decode."""
    wire, messages = wire_of(given), messages_of(given)
    client, transport, url = connected(given)

    return answered(transport, lambda: wire.decode(client.post(url, content=wire.request(messages)).content).text)


def appending(given: Given, renders: Callable[[list[Any]], Callable[[], bytes]]) -> Callable[[], object]:
    """An agent loop over what renders a growing history."""
    wire = wire_of(given)
    client, transport, url = connected(given)

    requests: list[Callable[[], bytes]] = []

    def begin() -> list[Any]:
        history: list[Any] = [message_of(entry) for entry in work.start()]
        requests[:] = [renders(history)]
        return history

    def take_turn(history: list[Any], text: str) -> None:
        reply = wire.decode(client.post(url, content=requests[0]()).content)
        history.extend(reply.messages)
        made = reply.calls[-1]
        history.append(Result(id=made.id, name=made.name, text=text))

    return looping(given, transport, begin, take_turn, message=message_of)


def loop(given: Given) -> Callable[[], object]:
    """Every turn renders everything."""
    wire = wire_of(given)
    return appending(given, lambda history: lambda: wire.request(history))


def decode(given: Given) -> Callable[[], Reply]:
    """An answer to a whole reply, validated once."""
    wire, body = wire_of(given), work.reply_with_calls(given.wire)
    return lambda: wire.decode(body)


def stream(given: Given) -> Callable[[], Reply]:
    """The events of the stub's stream, folded."""
    wire = wire_of(given)
    body = wire.request(messages_of(given._replace(size=10)), streaming=True)
    client, url = httpx2.Client(headers=HEADERS), given.url + work.STREAM_PATHS[given.wire]

    def run() -> Reply:
        with client.stream("POST", url, content=body) as response:
            return wire.fold(events_of(response.iter_bytes()))

    return counted(run, given.size)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub: one after the other, or so many at once."""
    wire, messages, url = wire_of(given), messages_of(given), given.url + work.PATHS[given.wire]
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)

    async def one(client: httpx2.AsyncClient) -> str:
        response = await client.post(url, content=wire.request(messages))
        return wire.decode(response.content).text

    return at_once(given, call, lambda: httpx2.AsyncClient(headers=HEADERS, limits=limits), one)


def history(given: Given) -> Callable[[], int]:
    """One pydantic validation of a stored conversation, by models of its own shape."""
    from tests.benchmarks.contenders.shape import StoredMessage

    adapter, text = TypeAdapter(list[StoredMessage]), work.stored(given.size)
    return lambda: len(adapter.validate_json(text))


def policy(given: Given) -> Callable[[], Any]:
    """The coroutine function that is a policy, awaited as it is."""
    ctx = SimpleNamespace(batch=[Text(role="assistant", text=work.reply_text())])
    observations = messages_of(Given(next(iter(work.WIRES)), given.size))
    options = OPTIONS_OFFERED[given.wire]
    return awaiting(lambda: choose(ctx, observations, options))


def imports(given: Given) -> tuple[str, str]:
    """The loops and the HTTP client; then one call."""
    ready = (
        "from tests.benchmarks.contenders.hand import HAND\n"
        "from tests.benchmarks.contenders.hand_messages import Text\n"
        "import httpx2"
    )
    url = given.url + work.PATHS[given.wire]
    answer = (
        f"wire = HAND[{given.wire!r}]\n"
        "client = httpx2.Client()\n"
        "messages = [Text(role='system', text='Be brief.'), Text(role='user', text='Umbrella?')]\n"
        f"response = client.post({url!r}, content=wire.request(messages), headers={HEADERS!r})\n"
        "assert wire.decode(response.content).text"
    )
    return ready, answer


def _evidence(given: Given, reply: Reply) -> object:
    calls = [(made.id, made.name, orjson.loads(made.arguments)) for made in reply.calls]
    return work.found(given.wire, reply.text, calls)


TASKS = {
    "render": render, "render_warm": render_warm, "shared": shared, "call": call, "loop": loop,
    "decode": decode, "stream": stream, "loopback": loopback, "history": history, "policy": policy,
}  # fmt: skip
EVIDENCE = {"decode": _evidence, "stream": _evidence, "policy": lambda given, batch: batch[-1].text}
