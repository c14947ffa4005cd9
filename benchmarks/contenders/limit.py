"""The limits of calls: the hand-written loops of `hand` over httpx2, the same with a kept prefix, and less than that.

limit ─ every message, every time      raw ─ ready bytes by httpx2, nothing is decoded
kept ─ what came since                 floor ─ the imports that any library on pydantic and an HTTP client has
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import httpx2
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from benchmarks import answers, work
from benchmarks.contenders.doing import (
    CALLED,
    OPTIONS_OFFERED,
    SENT,
    Caller,
    Contender,
    InProcess,
    awaiting,
    choose,
    counted,
    timed,
)
from benchmarks.contenders.hand import Reply, Result, Text, events_of, message_of, messages_of, wire_of
from benchmarks.work import Entry, Given

REQUIREMENTS = ("pydantic>=2.14", "orjson>=3", "httpx2>=2")
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer none"}


class Limit(Caller):
    http = httpx2
    has_agents_loop = True

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.hand, self.url = wire_of(given), (given.url or "http://in.process") + work.PATHS[given.wire]

    def connect(self, transport: InProcess | None = None) -> httpx2.Client:
        local = transport is not None and not self.given.url
        return transport.client(headers=HEADERS) if local else httpx2.Client(headers=HEADERS)

    def connect_async(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
        return httpx2.AsyncClient(headers=HEADERS, limits=limits)

    def history(self, entries: list[Entry]) -> list[Any]:
        return [message_of(entry, has_items=self.given.talk == work.AGENTS) for entry in entries]

    def item(self, entry: Entry) -> Any:
        return message_of(entry)

    def request(self, messages: list[Any]) -> bytes:
        return self.hand.request(messages)

    def ask(self, client: httpx2.Client, messages: list[Any]) -> Reply:
        return self.hand.decode(client.post(self.url, content=self.request(messages)).content)

    async def ask_async(self, client: httpx2.AsyncClient, messages: list[Any]) -> Reply:
        response = await client.post(self.url, content=self.request(messages))
        return self.hand.decode(response.content)

    def append(self, messages: list[Any], reply: Reply, text: str) -> None:
        messages.extend(reply.messages)
        made = reply.calls[-1]
        messages.append(Result(id=made.id, name=made.name, text=text))

    def text(self, reply: Reply) -> str:
        return reply.text

    def calls(self, reply: Reply) -> list[Any]:
        return [(made.id, made.name, orjson.loads(made.arguments)) for made in reply.calls]

    def decoder(self) -> Callable[[bytes], Reply]:
        return self.hand.decode

    def stream(self) -> Callable[[], Reply]:
        body = self.hand.request(self.history(work.conversation(10)), streaming=True)
        client, url = self.connect(), self.given.url + work.STREAM_PATHS[self.wire]

        def run() -> Reply:
            with client.stream("POST", url, content=body) as response:
                return self.hand.fold(events_of(response.iter_bytes()))

        return counted(run, self.given.size)

    def render(self) -> Callable[[], bytes]:
        wire, messages = self.hand, self.history(self.entries())
        return lambda: wire.request(messages)

    def shared(self) -> Callable[[], list[bytes]]:
        wire, messages = self.hand, self.history(self.entries())
        histories = [[*messages, message_of(entry)] for entry in work.last_messages()]
        return counted(lambda: [wire.request(history) for history in histories], len(histories))

    def render_warm(self) -> "Appending":
        return Appending(self)

    def imports(self) -> tuple[str, str]:
        """The loops and the HTTP client; then one call."""
        ready = "from benchmarks.contenders.hand import HAND, Text\nimport httpx2"
        answer = (
            f"wire = HAND[{self.wire!r}]\n"
            "client = httpx2.Client()\n"
            "messages = [Text(role='system', text='Be brief.'), Text(role='user', text='Umbrella?')]\n"
            f"response = client.post({self.url!r}, content=wire.request(messages), headers={HEADERS!r})\n"
            "assert wire.decode(response.content).text"
        )
        return ready, answer


class Kept(Limit):
    """The same, keeping the bytes of what was rendered before: what came since is encoded, and joined to them."""

    def history(self, entries: list[Entry]) -> list[Any]:
        history = super().history(entries)
        self.head = orjson.dumps(self.hand.head(history[0].text))[:-1] + b',"' + self.hand.field.encode() + b'":['
        self.kept, self.done = bytearray(), int(self.hand.hoists)
        return history

    def request(self, messages: list[Any]) -> bytes:
        fresh = orjson.dumps(self.hand.items(messages[self.done :]))[1:-1]
        if self.kept:
            self.kept.extend(b",")
        self.kept.extend(fresh)
        self.done = len(messages)
        return b"".join((self.head, self.kept, b"]}"))


class Appending:
    """A history that grows by one turn a run, and begins again after fifty, rendered once if that is kept."""

    def __init__(self, limit: Limit) -> None:
        size = limit.given.size
        self.limit, self.entries = limit, work.entries_of(limit.given._replace(size=size + 100))
        self.more, self.count = limit.history(self.entries)[size:], 50

    def renew(self) -> None:
        if self.count == 50:
            self.count = 0
            self.history = self.limit.history(self.entries[: self.limit.given.size])
            self.limit.request(self.history)
        self.history += self.more[2 * self.count : 2 * self.count + 2]
        self.count += 1

    def __call__(self) -> bytes:
        return self.limit.request(self.history)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class _TextPart(_Frozen):
    kind: Literal["text"]
    text: str


class _Parts(_Frozen):
    kind: Literal["parts"]
    parts: tuple[_TextPart, ...]


class _Call(_Frozen):
    kind: Literal["option_call"]
    invocation_id: str
    option_name: str
    arguments: dict[str, Any]


class _Result(_Frozen):
    kind: Literal["option_result"]
    invocation_id: str
    option_name: str
    result: Any


class StoredMessage(_Frozen):
    """One message at rest: what one validation of a stored conversation costs at least."""

    schema_number: int = Field(alias="schema")
    id: str
    policy: str
    payload: Annotated[_Parts | _Call | _Result, Field(discriminator="kind")]


def history(given: Given) -> Callable[[], int]:
    """One pydantic validation of a stored conversation, by models of its own shape."""
    adapter, text = TypeAdapter(list[StoredMessage]), work.stored(given.size)
    return lambda: len(adapter.validate_json(text))


def policy(given: Given) -> Callable[[], Any]:
    """The coroutine function that is a policy, awaited as it is."""
    ctx = SimpleNamespace(batch=[Text(role="assistant", text=answers.reply_text())])
    observations = messages_of(Given(work.WIRES[0], given.size))
    options = OPTIONS_OFFERED[given.wire]
    return awaiting(lambda: choose(ctx, observations, options))


_TOLD = ("lang", "package-version", "os", "arch", "runtime", "runtime-version", "async", "retry-count", "read-timeout")
SENT_HEADERS = {
    "Accept": "application/json", "Content-Type": "application/json", "Authorization": "Bearer none",
    "User-Agent": "OpenAI/Python 3.54.0", **{f"X-Stainless-{name}": "python" for name in _TOLD},
}  # fmt: skip
"""As many as an SDK sends: the request is as long."""


def send(given: Given) -> Callable[[], Any]:
    """Ready bytes go to the stub by a plain client, one after the other, and the answers' bytes are read."""
    body = wire_of(given).request(messages_of(given))
    client, url = httpx2.Client(headers=SENT_HEADERS), given.url + work.PATHS[given.wire]

    def run() -> dict[str, Any]:
        took, last = timed(lambda _: client.post(url, content=body).content, range(SENT))
        return {"text": last.decode(), "figures": dict.fromkeys(("beyond", "sending", "posting"), took)}

    return counted(run, SENT)


def floor_imports(given: Given) -> tuple[str, str]:
    """Nothing but these; then the least that is an answer."""
    url = given.url + "/v1/chat/completions"
    answer = f"assert httpx2.Client().post({url!r}, content=b'{{}}').status_code == 200"
    return "import pydantic, httpx2\npydantic.BaseModel", answer


LIMIT = Limit.contender("render", "render_warm", "shared", *CALLED, history=history, policy=policy)
CONTENDERS = {
    "limit": LIMIT._replace(evidence={**LIMIT.evidence, "policy": lambda given, batch: batch[-1].text}),
    "kept": Kept.contender("render_warm", "loop")._replace(imports=None),
    "raw": Contender({"send": send}),
    "floor": Contender({}, imports=floor_imports, imported="import pydantic\npydantic.BaseModel"),
}
