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
from sabir.contract.provider import WireRequest
from sabir.vocabulary.messages import Message

from tests.benchmarks import work
from tests.benchmarks.contenders.agents import agents_messages, messages_of
from tests.benchmarks.contenders.doing import SENT, at_once, counted, looping, timed
from tests.benchmarks.contenders.messages import message_of
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{openai}", "{anthropic}", "{google}")

ADAPTERS = {
    "openai.chat": ("openai.chat", "/v1"),
    "openai.responses": ("openai.responses", "/v1"),
    "anthropic.messages": ("anthropic", ""),
    "google.generate_content": ("google", ""),
}
"""What the adapter's name begins with, and what its base URL ends with."""
SETTINGS = {"anthropic.messages": sabir.Settings(max_output_tokens=work.MAX_TOKENS)}
IMPORTED = "import sabir"
"""What is imported before anything is made ready."""
IN_PROCESS = "http://in.process"


@cache
def in_process() -> Transport:
    """What answers requests to the host `in.process`; others go out as ever."""
    transport, own = Transport(), httpx2.HTTPTransport.handle_request

    def handle_request(self: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        return transport.handle_request(request) if request.url.host == "in.process" else own(self, request)

    httpx2.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
    return transport


def adapter_of(given: Given) -> sabir.ModelAdapter:
    """The adapter of a wire's model at the stub, or in the process."""
    name, ending = ADAPTERS[given.wire]
    url = (given.url or IN_PROCESS) + ending
    return sabir.adapter(f"{name}:{given.model}", api_key="none", base_url=url, settings=SETTINGS.get(given.wire))


def option(function: Callable[..., Any] | None = None) -> sabir.Option:
    """The option, by its JSON schema."""
    (entry,) = work.OPTIONS
    return sabir.Option.from_schema(entry["name"], entry["description"], entry["parameters"], function)


class Afresh:
    """Renders messages that were never rendered, by a renderer that was in use before: it met other messages."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.adapter, self.options = adapter_of(given), [option()]
        self.settings = SETTINGS.get(given.wire)
        self.renew()

    def messages(self, size: int) -> list[Message]:
        """So many new ones."""
        return messages_of(self.given._replace(size=size), self.adapter.target)

    def renew(self) -> None:
        """New messages, and a renderer that rendered short conversations of others, each of another end."""
        self.history, self.renderer = self.messages(self.given.size), self.adapter.new_renderer()
        for size in (8, 9, 10):
            self.renderer.render(self.messages(size), self.options, self.settings)

    def __call__(self) -> bytes:
        """The request."""
        return self.renderer.render(self.history, self.options, self.settings).body_bytes


class Appending:
    """A history that grows by one turn a run, by one adapter; after fifty turns another begins."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.adapter, self.options = adapter_of(given), [option()]
        self.count = 50
        self.history: list[Message] = []

    def renew(self) -> None:
        """Append a turn of new messages."""
        if self.count == 50:
            given, target = self.given, self.adapter.target
            entries = work.entries_of(given._replace(size=given.size + 100))
            each = [list(agents_messages(given, target, entry)) for entry in entries]
            self.count, self.more = 0, each[given.size :]
            self.history = [message for messages in each[: given.size] for message in messages]
            self.adapter.render(self.history, options=self.options)
        for messages in self.more[2 * self.count : 2 * self.count + 2]:
            self.history += messages
        self.count += 1

    def __call__(self) -> bytes:
        """The request for the history as it is now."""
        return self.adapter.render(self.history, options=self.options).body_bytes


class Sharing:
    """Many callers, one history that was rendered before, one adapter: each has a last message of its own."""

    units = work.CALLERS

    def __init__(self, given: Given) -> None:
        self.given = given
        self.adapter, self.options = adapter_of(given), [option()]
        self.renew()

    def renew(self) -> None:
        """Another history, rendered once, and the callers' own."""
        history = messages_of(self.given, self.adapter.target)
        self.adapter.render(history, options=self.options)
        self.histories = [[*history, message_of(entry)] for entry in work.last_messages()]

    def __call__(self) -> list[bytes]:
        """The requests."""
        return [self.adapter.render(history, options=self.options).body_bytes for history in self.histories]


class Calling:
    """One whole call with messages that were never rendered, as the first one of a loaded conversation."""

    def __init__(self, given: Given) -> None:
        self.given, self.options = given, [option()]
        self.transport = in_process()
        self.answers = [work.reply(given.wire)]
        self.adapter = adapter_of(given)
        self.renew()

    def renew(self) -> None:
        """New messages: nothing is kept of them."""
        self.messages = messages_of(self.given, self.adapter.target)
        self.transport.begin(self.answers)

    def __call__(self) -> tuple[bytes, str]:
        """Render, send, decode."""
        reply = self.adapter.complete_sync(self.messages, options=self.options)
        return self.transport.body, reply.text


class Sending:
    """A rendering that is ready, sent to the stub: by the adapter, and by the plugin's own connection alone."""

    units = SENT

    def __init__(self, given: Given) -> None:
        self.adapter = adapter_of(given)
        self.decode = sabir.dialect(given.wire).decode
        self.rendering = self.adapter.render(messages_of(given, self.adapter.target), options=[option()])
        self.connection = self.adapter.provider.connect(self.adapter.access)
        made = self.rendering
        self.request = WireRequest(made.path, made.body_bytes, made.headers, made.timeout)

    def post(self, _: object) -> bytes:
        """Send the bytes; those of the answer."""
        response = self.connection.open_sync(self.request)
        body = b"".join(response.chunks())
        response.close()
        return body

    def __call__(self) -> dict[str, Any]:
        """Replies, then bytes, then bytes that are decoded as they come: code that waited for a server runs slower."""
        beyond, reply = timed(lambda _: self.adapter.send_sync(self.rendering), range(SENT))
        posting, _ = timed(self.post, range(SENT))
        read, _ = timed(lambda _: self.decode(self.post(_)), range(SENT))
        figures = {"beyond": beyond, "sending": beyond - (read - posting), "posting": posting}
        return {"text": reply.text, "figures": figures}


def loop(given: Given) -> Callable[[], object]:
    """An agent loop as the documentation writes it."""
    adapter = adapter_of(given)

    texts: list[str] = []
    options = [option(lambda city, unit: texts.pop())]

    def begin() -> list[Message]:
        return [message_of(entry) for entry in work.start()]

    def take_turn(history: list[Message], text: str) -> None:
        texts.append(text)
        reply = adapter.complete_sync(history, options=options)
        history.extend(reply.messages)
        history.extend(sabir.answer_sync(reply, options))

    def message(entry: work.Entry) -> Message:
        (made,) = agents_messages(given, adapter.target, entry)
        return made

    return looping(given, in_process(), begin, take_turn, message=message)


def decode(given: Given) -> Callable[[], sabir.Reply]:
    """The public, pure half: a body to a whole reply."""
    dialect, body = sabir.dialect(given.wire), work.reply_with_calls(given.wire)
    return lambda: dialect.decode(body)


def stream(given: Given) -> Callable[[], sabir.Reply]:
    """The stub's stream, every event made, to the whole reply."""
    adapter, options = adapter_of(given), [option()]
    messages = messages_of(given._replace(size=10), adapter.target)

    def run() -> sabir.Reply:
        return adapter.stream_sync(messages, options=options).reply()

    return counted(run, given.size)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub: one after the other, or so many at once."""
    adapter, options = adapter_of(given), [option()]
    messages = messages_of(given, adapter.target)

    async def one(adapter: sabir.ModelAdapter) -> str:
        return (await adapter.complete(messages, options=options)).text

    return at_once(given, Calling, lambda: adapter, one)


def memory(given: Given) -> Callable[[], object]:
    """What three adapters and their renderings of one conversation hold, beside the messages themselves."""
    wires = [wire for wire in work.WIRES if wire != "openai.responses"]

    def run() -> object:
        options = [option()]
        adapters = [adapter_of(Given(wire)) for wire in wires]
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
    """A stored conversation, read."""
    text = work.stored(given.size)
    return lambda: len(sabir.loads(text))


def imports(given: Given) -> tuple[str, str]:
    """An adapter; then one call."""
    name, ending = ADAPTERS[given.wire]
    ready = (
        f"import sabir\nllm = sabir.adapter('{name}:{given.model}', api_key='none', base_url={given.url + ending!r})"
    )
    return ready, "assert llm.complete_sync([sabir.system('Be brief.'), sabir.user('Umbrella?')]).text"


def _evidence(given: Given, reply: sabir.Reply) -> object:
    made = [message.call for message in reply.option_calls if message.call]
    calls = [(each.invocation_id, each.option_name, each.arguments) for each in made]
    return work.found(given.wire, reply.text, calls)


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {
    "render": Afresh, "render_warm": Appending, "shared": Sharing, "send": Sending, "call": Calling,
    "loop": loop, "decode": decode, "stream": stream, "loopback": loopback, "memory": memory, "history": history,
}  # fmt: skip
EVIDENCE = {"decode": _evidence, "stream": _evidence}
