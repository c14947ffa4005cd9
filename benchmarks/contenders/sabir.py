"""sabir: the adapter as a user holds it, with the client that its plugin makes.

Calls without a stub are answered in the process, below the plugin's own HTTP client: for one host name, the HTTP
library's transport answers by itself. So what is measured is what a user without `client=` gets.
"""

import gc
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx2
import sabir
from sabir import Message
from sabir.authoring import WireRequest

from benchmarks import answers, work
from benchmarks.contenders.doing import CREATED, SENT, Caller, InProcess, counted, held_by, timed
from benchmarks.contenders.messages import agents_messages, message_of, messages_of
from benchmarks.work import Entry, Given

REQUIREMENTS = ("{core}", "{openai}", "{anthropic}", "{google}")
ADAPTERS = {
    "openai.chat": ("openai.chat", "/v1"),
    "openai.responses": ("openai.responses", "/v1"),
    "anthropic.messages": ("anthropic", ""),
    "google.generate_content": ("google", ""),
}
"""What the adapter's name begins with, and what its base URL ends with."""
SETTINGS = {"anthropic.messages": sabir.Settings(max_output_tokens=work.MAX_TOKENS)}


@cache
def in_process() -> InProcess:
    """What answers requests to the host `in.process`; others go out as ever."""
    answers, own = InProcess(httpx2), httpx2.HTTPTransport.handle_request
    transport = httpx2.MockTransport(answers)

    def handle_request(self: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        return transport.handle_request(request) if request.url.host == "in.process" else own(self, request)

    httpx2.HTTPTransport.handle_request = handle_request
    return answers


def option(function: Callable[..., Any] | None = None) -> sabir.Option:
    (entry,) = work.OPTIONS
    return sabir.Option.from_schema(entry["name"], entry["description"], entry["parameters"], function)


class Sabir(Caller):
    has_agents_loop = True

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.texts: list[str] = []
        self.options = [option(lambda city, unit: self.texts.pop())]
        self.settings = SETTINGS.get(given.wire)
        self.adapter = self.connect()

    def connect(self, transport: InProcess | None = None) -> sabir.ModelAdapter:
        name, ending = ADAPTERS[self.wire]
        url = (self.given.url or "http://in.process") + ending
        return sabir.adapter(f"{name}:{self.given.model}", api_key="none", base_url=url, settings=self.settings)

    def in_process(self, *answers: bytes) -> InProcess:
        transport = in_process()
        transport.begin(answers)
        return transport

    def history(self, entries: list[Entry]) -> list[Message]:
        return [message for entry in entries for message in agents_messages(self.given, self.adapter.target, entry)]

    def messages(self, size: int | None = None) -> list[Message]:
        return messages_of(self.given if size is None else self.given._replace(size=size), self.adapter.target)

    def item(self, entry: Entry) -> Message:
        (made,) = self.history([entry])
        return made

    def ask(self, client: sabir.ModelAdapter, messages: list[Message]) -> sabir.Reply:
        return client.complete_sync(messages, options=self.options)

    async def ask_async(self, client: sabir.ModelAdapter, messages: list[Message]) -> sabir.Reply:
        return await client.complete(messages, options=self.options)

    def append(self, messages: list[Message], reply: sabir.Reply, text: str) -> None:
        self.texts.append(text)
        messages.extend(reply.messages)
        messages.extend(sabir.answer_sync(reply, self.options))

    def text(self, reply: sabir.Reply) -> str:
        return reply.text

    def calls(self, reply: sabir.Reply) -> list[Any]:
        made = [message.call for message in reply.option_calls if message.call]
        return [(each.invocation_id, each.option_name, each.arguments) for each in made]

    def decoder(self) -> Callable[[bytes], sabir.Reply]:
        return sabir.dialect(self.wire).decode

    def streamed(self, client: sabir.ModelAdapter, messages: list[Message]) -> sabir.Reply:
        return client.stream_sync(messages, options=self.options).reply()

    def call(self) -> "Calling":
        return Calling(self.given)

    def imports(self) -> tuple[str, str]:
        name, ending = ADAPTERS[self.wire]
        named = f"'{name}:{self.given.model}', api_key='none', base_url={self.given.url + ending!r}"
        ready = f"import sabir\nllm = sabir.adapter({named})"
        return ready, "assert llm.complete_sync([sabir.system('Be brief.'), sabir.user('Umbrella?')]).text"


class Calling(Sabir):
    """One whole call with messages that were never rendered, as the first one of a loaded conversation."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.transport = self.in_process(answers.reply(given.wire))
        self.renew()

    def renew(self) -> None:
        self.fresh = self.messages()

    def __call__(self) -> tuple[bytes, str]:
        text = self.ask(self.adapter, self.fresh).text
        return self.transport.body, text


class Afresh(Sabir):
    """Renders messages that were never rendered, by a renderer that was in use before: it met other messages."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.renew()

    def renew(self) -> None:
        """New messages, and a renderer that rendered short conversations of others, each of another end."""
        self.fresh, self.renderer = self.messages(), self.adapter.new_renderer()
        for size in (8, 9, 10):
            self.renderer.render(self.messages(size), self.options, self.settings)

    def __call__(self) -> bytes:
        return self.renderer.render(self.fresh, self.options, self.settings).body_bytes


class Appending(Sabir):
    """A history that grows by one turn a run, by one adapter; after fifty turns another begins."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.count = 50

    def renew(self) -> None:
        if self.count == 50:
            size, entries = self.given.size, work.entries_of(self.given._replace(size=self.given.size + 100))
            self.count, self.grown = 0, self.history(entries[:size])
            self.more = [self.history([entry]) for entry in entries[size:]]
            self.adapter.render(self.grown, options=self.options)
        for messages in self.more[2 * self.count : 2 * self.count + 2]:
            self.grown += messages
        self.count += 1

    def __call__(self) -> bytes:
        return self.adapter.render(self.grown, options=self.options).body_bytes


class Sharing(Sabir):
    """Many callers, one history that was rendered before, one adapter: each has a last message of its own."""

    units = work.CALLERS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.renew()

    def renew(self) -> None:
        """Another history, rendered once, and the callers' own."""
        history = self.messages()
        self.adapter.render(history, options=self.options)
        self.histories = [[*history, message_of(entry)] for entry in work.last_messages()]

    def __call__(self) -> list[bytes]:
        return [self.adapter.render(history, options=self.options).body_bytes for history in self.histories]


class Sending(Sabir):
    """A rendering that is ready, sent to the stub: by the adapter, and by the plugin's own connection alone."""

    units = SENT

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.rendering = made = self.adapter.render(self.messages(), options=self.options)
        self.connection = self.adapter.provider.connect(self.adapter.access)
        self.request = WireRequest(made.path, made.body_bytes, made.headers, made.timeout)

    def post(self, _: object) -> bytes:
        response = self.connection.open_sync(self.request)
        body = b"".join(response.chunks())
        response.close()
        return body

    def __call__(self) -> dict[str, Any]:
        """Replies, then bytes, then bytes that are decoded as they come: code that waited for a server runs slower."""
        decode = self.decoder()
        beyond, reply = timed(lambda _: self.adapter.send_sync(self.rendering), range(SENT))
        posting, _ = timed(self.post, range(SENT))
        read, _ = timed(lambda _: decode(self.post(_)), range(SENT))
        figures = {"beyond": beyond, "sending": beyond - (read - posting), "posting": posting}
        return {"text": reply.text, "figures": figures}


def create(given: Given) -> Callable[[], object]:
    """Make a thousand messages as an application does: by a builder, or of a payload."""
    if given.wire == "text":
        text = work.said(1)
        return counted(lambda: [sabir.user(text) for _ in range(CREATED)], CREATED)
    entry = work.call(1) if given.wire == "call" else work.result(2)
    return counted(lambda: [message_of(entry) for _ in range(CREATED)], CREATED)


def message_memory(given: Given) -> Callable[[], object]:
    """Text messages that are held: bytes of each, by tracemalloc."""
    return held_by(lambda: [sabir.user(work.said(number)) for number in range(given.size)])


def memory(given: Given) -> Callable[[], object]:
    """What three adapters and their renderings of one conversation hold, beside the messages themselves."""
    wires = [wire for wire in work.WIRES if wire != "openai.responses"]

    def run() -> object:
        options, adapters = [option()], [Sabir(Given(wire)).adapter for wire in wires]
        for adapter in adapters:
            adapter.render("Ready?", options=options)
        messages = messages_of(Given(wires[0], given.size), adapters[0].target)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        renderings = [adapter.render(messages, options=options) for adapter in adapters]
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return {"held": held, "json": sum(len(rendering.body_bytes) for rendering in renderings)}

    return run


def history(given: Given) -> Callable[[], int]:
    text = work.stored(given.size)
    return lambda: len(sabir.loads(text))


CONTENDERS = {
    "sabir": Sabir.contender(
        "loop", "decode", "stream", "loopback", "fresh", "stub_loop", imported="import sabir", render=Afresh,
        render_warm=Appending, shared=Sharing, send=Sending, call=Calling, memory=memory, history=history,
        create=create, message_memory=message_memory,
    )
}  # fmt: skip
