"""How every contender loops and calls at once: written once, with the standard library alone."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import cycle
from typing import Any, Generic, Protocol, TypeVar

from tests.benchmarks import work
from tests.benchmarks.work import Entry, Given

History = TypeVar("History", bound=list[Any])
Held = TypeVar("Held")
Found = TypeVar("Found")
MOST_TURNS = 100
"""Of a loop of those who call by an SDK that is measured itself: it takes a minute and more where it is long."""
CALLS_EACH = 4
"""So many calls, one after the other, are made by each of the concurrent ones in one run."""


class Answers(Protocol):
    """What answers in the process."""

    body: bytes

    def begin(self, answers: list[bytes]) -> object:
        """Answer with these, in turn."""
        ...


class InProcess:
    """Answers a client's requests in the process, in turn, and keeps what came last; `http` is the client's library."""

    def __init__(self, http: Any, *answers: bytes) -> None:
        self.body, self.http = b"", http
        self.begin(list(answers))

    def begin(self, answers: list[bytes]) -> None:
        """Answer with these from now on."""
        self.answers = cycle(answers)

    def __call__(self, request: Any) -> Any:
        """The next answer, as the library's own."""
        self.body = request.content
        return self.http.Response(200, content=next(self.answers), headers={"content-type": "application/json"})


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


def counted(run: Callable[[], Found], units: int) -> Callable[[], Found]:
    """What is timed, whose one run is so many operations."""
    run.units = units  # type: ignore[attr-defined]
    return run


def answered(transport: Answers, ask: Callable[[], Found]) -> Callable[[], tuple[bytes, Found]]:
    """What is timed: a call; the body as it reached the transport, and the text of the reply."""

    def run() -> tuple[bytes, Found]:
        text = ask()
        return transport.body, text

    return run


def looping(
    given: Given,
    transport: Answers,
    begin: Callable[[], History],
    take_turn: Callable[[History, str], object],
    hoisted: int = 0,
    message: Callable[[Entry], Any] | None = None,
) -> Callable[[], object]:
    """An agent loop of `given.size` turns.

    `begin` gives a new history. A turn calls, appends what was answered, and appends the result with the text that it
    is given. `hoisted` counts messages that stand elsewhere: the system's, where it is apart. `message` makes the
    user's; who gives none has the plain loop alone, of a hundred turns.
    """
    if message is None and (given.talk == work.AGENTS or given.size > MOST_TURNS):
        raise ValueError("it has the short plain loop alone")
    clock = time.process_time_ns
    called, came, *_ = zip(*(entries[:2] for entries in work.turns(given)), strict=True)
    answers = [work.reply_that_says(given.wire, entry) for entry in called]
    texts = [entry["text"] for entry in came]
    shown = [[message(entry) for entry in entries[2:] if message] for entries in work.turns(given)]

    def run() -> object:
        transport.begin(answers)
        history = begin()
        turns = []
        for text, more in zip(texts, shown, strict=True):
            begun = clock()
            take_turn(history, text)
            turns.append(clock() - begun)
            history.extend(more)
        return {"messages": hoisted + len(history), "body": transport.body, "turns": turns}

    return run


SENT = 50
"""So many requests are sent in one run."""


def timed(call: Callable[[Any], Any], each: Iterable[Any]) -> tuple[float, Any]:
    """Nanoseconds of the processor that a call takes of each, and what the last gave."""
    given, last = list(each), None
    begun = time.process_time_ns()
    for one in given:
        last = call(one)
    return (time.process_time_ns() - begun) / len(given), last


def at_once(
    given: Given,
    call: Callable[[Given], Callable[[], tuple[bytes, Any]]],
    connect: Callable[[], Any],
    ask: Callable[[Any], Awaitable[str]],
) -> Callable[[], Any]:
    """So many calls at once as `given.concurrency` says; `connect` makes the client within the event loop.

    One alone is the task `call`.
    """
    if given.concurrency == 1:
        one = call(given)
        return lambda: one()[1]
    runner = asyncio.Runner()

    async def connected() -> Any:
        return connect()

    client = runner.run(connected())

    async def some() -> list[str]:
        return [await ask(client) for _ in range(CALLS_EACH)]

    async def all_at_once() -> list[str]:
        found = await asyncio.gather(*(some() for _ in range(given.concurrency)))
        return [text for texts in found for text in texts]

    def run() -> list[str]:
        return runner.run(all_at_once())

    return counted(run, given.concurrency * CALLS_EACH)


class Growing(Generic[Held, Found]):
    """What adds one to what it holds, each run; after fifty it begins again."""

    def __init__(self, begin: Callable[[], Held], add: Callable[[Held], Found]) -> None:
        self.begin, self.add, self.count = begin, add, 50
        self.renew()

    def renew(self) -> None:
        """Begin again after fifty."""
        if self.count == 50:
            self.held, self.count = self.begin(), 0

    def __call__(self) -> Found:
        """One more."""
        self.count += 1
        return self.add(self.held)


AWAITED = 1000
"""So many calls of a policy are one run."""
OPTIONS_OFFERED: dict[str, list[str] | None] = {"no options": None, "three options": ["search", "weather", "ask"]}


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

    run.close = runner.close  # type: ignore[attr-defined]
    return counted(run, AWAITED)
