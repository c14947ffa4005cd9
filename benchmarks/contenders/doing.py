"""What contenders do alike, written once, with the standard library alone: calls, loops, calls at once, processes.

Caller ─ history, connect, ask, … of one library ─▶ call · loop · decode · stream · loopback ─▶ Contender
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import answers, work
from benchmarks.work import Entry, Given

ROOT = Path(__file__).parents[2]
Task = Callable[[Given], Callable[[], Any]]
MOST_TURNS = 100
"""Of a loop of those who call by an SDK that is measured itself: it takes a minute and more where it is long."""
CALLS_EACH = 4
"""So many calls, one after the other, are made by each of the concurrent ones in one run."""
SENT = 50
"""So many requests are sent in one run."""
CREATED = 1000
"""So many messages are created in one run."""
AWAITED = 1000
"""So many calls of a policy are one run."""
OPTIONS_OFFERED: dict[str, list[str] | None] = {"no options": None, "three options": ["search", "weather", "ask"]}
FUNCTIONS = [{"type": "function", "function": option} for option in work.OPTIONS]
"""The options as Chat Completions takes them, and libraries that take its dictionaries for every vendor."""


class Contender(NamedTuple):
    """What one contender does; what its package's parent says of tasks and evidence holds."""

    tasks: Mapping[str, Task]
    evidence: Mapping[str, Callable[[Given, Any], object]] = {}
    imports: Callable[[Given], tuple[str, str]] | None = None
    """Source that makes the provider ready, and source that goes on to the first answer of the stub at given.url; both
    run in a fresh process."""
    imported: str = ""
    """Source that imports it, before anything is made ready."""


class InProcess:
    """Answers a client's requests in the process, in turn, and keeps what came last; `http` is the client's library."""

    def __init__(self, http: Any, *answers: bytes) -> None:
        self.body, self.http = b"", http
        self.begin(answers)

    def begin(self, answers: Iterable[bytes]) -> None:
        self.answers = cycle(answers)

    def __call__(self, request: Any) -> Any:
        self.body = request.read()
        return self.http.Response(200, content=next(self.answers), headers={"content-type": "application/json"})

    def client(self, **how: Any) -> Any:
        return self.http.Client(transport=self.http.MockTransport(self), **how)

    def async_client(self, **how: Any) -> Any:
        return self.http.AsyncClient(transport=self.http.MockTransport(self), **how)


class Caller:
    """Who calls a wire of `given`; a subclass is one library, or one SDK, and says what is its own.

    `item(entry)`             an entry of the conversation as one of its messages
    `connect(transport)`      what calls: through the transport, at the stub where `given` has a URL or without one
    `ask(client, messages)`   a whole reply; `ask_async` the same by an async client
    `append(messages, reply, text)`     the reply, and the text that came of its last call
    `text(reply)`, `calls(reply)`       what it says; (id, name, arguments) of each call
    `decoder()`               what makes a reply of a body's bytes
    `streamed(client, messages)`        the reply of a whole stream
    `imports()`               as Contender has it
    """

    wires: tuple[str, ...] = work.WIRES
    http: Any = None
    """The HTTP library of its client."""
    hoists = False
    """Whether the system's message stands elsewhere than in the history."""
    has_agents_loop = False
    """Whether it has loops of agents and long ones too."""

    def __init__(self, given: Given) -> None:
        if given.wire not in self.wires:
            raise ValueError(f"{given.wire} is not spoken")
        self.given, self.wire = given, given.wire

    def history(self, entries: list[Entry]) -> list[Any]:
        return [self.item(entry) for entry in entries[self.hoists :]]

    def entries(self) -> list[Entry]:
        return work.entries_of(self.given)

    def in_process(self, *answers: bytes) -> InProcess:
        return InProcess(self.http, *answers)

    def connect_async(self) -> Any:
        """An async client at the stub, made within the event loop."""
        return self.connect()

    def call(self) -> Callable[[], tuple[bytes, Any]]:
        transport = self.in_process(answers.reply(self.wire))
        client, messages, ask, text_of = self.connect(transport), self.history(self.entries()), self.ask, self.text

        def run() -> tuple[bytes, Any]:
            text = text_of(ask(client, messages))
            return transport.body, text

        return run

    def loop(self) -> Callable[[], object]:
        """As the documentation of the library has it: the reply is appended, then what came of its call."""
        given, clock = self.given, time.process_time_ns
        if not self.has_agents_loop and (given.talk == work.AGENTS or given.size > MOST_TURNS):
            raise ValueError("it has the short plain loop alone")
        transport = self.in_process()
        client = self.connect(transport)
        replies = [answers.reply_that_says(self.wire, call) for call, *_ in work.turns(given)]
        turns = [(came["text"], [self.item(each) for each in more]) for _, came, *more in work.turns(given)]

        def run() -> object:
            transport.begin(replies)
            messages, taken = self.history(work.start()), []
            for text, more in turns:
                begun = clock()
                self.append(messages, self.ask(client, messages), text)
                taken.append(clock() - begun)
                messages.extend(more)
            return {"messages": self.hoists + len(messages), "body": transport.body, "turns": taken}

        return run

    def fresh(self) -> Callable[[], tuple[bytes, Any]]:
        """A call at the stub with messages that were never sent before."""
        return self.call()

    def stub_loop(self) -> Callable[[], object]:
        """The loop at the stub, which answers with one call after the other."""
        self.given = self.given._replace(url=self.given.url + "/loop")
        return self.loop()

    def decode(self) -> Callable[[], object]:
        return partial(self.decoder(), answers.reply_with_calls(self.wire))

    def stream(self) -> Callable[[], object]:
        client, messages = self.connect(), self.history(work.conversation(10))
        return counted(lambda: self.streamed(client, messages), self.given.size)

    def loopback(self) -> Callable[[], object]:
        """One call after the other, or so many at once."""
        if self.given.concurrency == 1:
            one = self.call()
            return lambda: one()[1]
        runner, messages = asyncio.Runner(), self.history(self.entries())

        async def connected() -> Any:
            return self.connect_async()

        client = runner.run(connected())

        async def some() -> list[str]:
            return [self.text(await self.ask_async(client, messages)) for _ in range(CALLS_EACH)]

        async def all_at_once() -> list[str]:
            found = await asyncio.gather(*(some() for _ in range(self.given.concurrency)))
            return [text for texts in found for text in texts]

        return counted(lambda: runner.run(all_at_once()), self.given.concurrency * CALLS_EACH)

    def found(self, reply: Any) -> object:
        return answers.found(self.wire, self.text(reply), self.calls(reply))

    @classmethod
    def contender(cls, *names: str, imported: str = "", **further: Task) -> Contender:
        """The contender that does the tasks of those names by its methods, and further ones."""

        def task(name: str) -> Task:
            return lambda given: getattr(cls(given), name)()

        evidence = {name: lambda given, reply: cls(given).found(reply) for name in ("decode", "stream")}
        if "render" in names and hasattr(cls, "rendered"):
            evidence["render"] = lambda given, returned: cls(given).rendered(returned)
        tasks = {name: task(name) for name in names}
        return Contender({**tasks, **further}, evidence, lambda given: cls(given).imports(), imported)


class ChatCaller(Caller):
    """Who has messages and replies in the shape of Chat Completions, for every vendor."""

    def append(self, messages: list[Any], reply: Any, text: str) -> None:
        said = reply.choices[0].message
        messages.extend((said, came(said.tool_calls[0].id, text)))

    def text(self, reply: Any) -> str:
        return reply.choices[0].message.content or ""

    def calls(self, reply: Any) -> list[Any]:
        made = reply.choices[0].message.tool_calls or ()
        return [(each.id, each.function.name, json.loads(each.function.arguments)) for each in made]


CALLED = ("call", "loop", "decode", "stream", "loopback")
"""What every caller does, by its own methods."""


def role_dictionary(entry: Entry) -> dict[str, Any]:
    """The entry as the dictionary that Chat Completions takes, and libraries that take it for every vendor."""
    match entry["kind"]:
        case "user" if "image" in entry:
            shown = {"type": "image_url", "image_url": {"url": entry["image"]}}
            return {"role": "user", "content": [{"type": "text", "text": entry["text"]}, shown]}
        case "system" | "user" as role:
            return {"role": role, "content": entry["text"]}
        case "call":
            function = {"name": entry["name"], "arguments": json.dumps(entry["arguments"])}
            called = {"id": entry["id"], "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [called]}
        case "result":
            return came(entry["id"], entry["text"])
        case _:
            return {"role": "assistant", "content": entry["text"]}


def picture(entry: Entry) -> tuple[str, str]:
    """The image beside an entry: its type, and its bytes in base64."""
    mime, _, data = entry["image"].removeprefix("data:").partition(";base64,")
    return mime, data


def came(identifier: str, text: str) -> dict[str, Any]:
    """What came of the call with that id, by name too: Google's calls have no ids but those that a library gives."""
    return {"role": "tool", "tool_call_id": identifier, "name": work.OPTIONS[0]["name"], "content": text}


def counted(run: Callable[[], Any], units: int) -> Callable[[], Any]:
    """What is timed, whose one run is so many operations."""
    run.units = units
    return run


def held_by(create: Callable[[], Any]) -> Callable[[], Any]:
    """Makes messages, and says how many bytes are held meanwhile that were not before, by tracemalloc."""

    def run() -> dict[str, int]:
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        messages = create()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return {"held": held, "json": len(messages)}

    return run


def timed(call: Callable[[Any], Any], each: Iterable[Any]) -> tuple[float, Any]:
    """Nanoseconds of the processor that a call takes of each, and what the last gave."""
    given, last = list(each), None
    begun = time.process_time_ns()
    for one in given:
        last = call(one)
    return (time.process_time_ns() - begun) / len(given), last


class Growing:
    """What adds one to what it holds, each run; after fifty it begins again."""

    def __init__(self, begin: Callable[[], Any], add: Callable[[Any], Any]) -> None:
        self.begin, self.add, self.count = begin, add, 50
        self.renew()

    def renew(self) -> None:
        if self.count == 50:
            self.held, self.count = self.begin(), 0

    def __call__(self) -> Any:
        self.count += 1
        return self.add(self.held)


async def choose(ctx: Any, observations: list[Any], options: list[str] | None = None) -> list[Any]:
    """The least that a policy can do: choose what its context holds."""
    batch: list[Any] = ctx.batch
    return batch


def awaiting(call: Callable[[], Awaitable[Any]]) -> Callable[[], Any]:
    """Awaits what a call gives, so many times in one task; the last is what came of it."""
    runner = asyncio.Runner()

    async def many() -> Any:
        found: Any = None
        for _ in range(AWAITED):
            found = await call()
        return found

    def run() -> Any:
        return runner.run(many())

    run.close = runner.close
    return counted(run, AWAITED)


def processes_of(module: str, count: int, *arguments: str) -> list[subprocess.Popen[str]]:
    """So many processes of a contender's module, each ready to serve, and gone when its stdin closes."""
    command = [sys.executable, "-m", f"benchmarks.contenders.{module}", *arguments]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for process in started:
        if not process.stdout.readline():
            raise RuntimeError(f"a process of {module} ended")
    return started


def until_stdin_closes() -> asyncio.Future[str]:
    """Ready, and done when whoever started this process has gone."""
    print("ready", flush=True)
    return asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
