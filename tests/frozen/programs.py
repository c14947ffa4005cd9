"""This module keeps its name, and each class and function its own, forever: rows of frozen stores refer to them.

    run      main ─▶ llm ─▶ pack, book in parallel ─▶ llm ─▶ "Ready for Rome."
             branches ─▶ three tasks at once, two steps each
             ask ─▶ approve, a person ─▶ "allowed"
             fail ─▶ an error
    chat     the options weather and book_room, the output type Trip
    session  the slices Plan (state) and Note (log)
    thread   the chain "review": draft, then final

A run is repeated from its records, so a policy here must go on making the same calls in the same order. To freeze other
programs, add a module.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import sabir
from pydantic import BaseModel
from sabir_actors import Chain, Phase
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy, human_policy, loop_policy
from sabir_runtime.durable import decision
from sabir_session import Prompt
from sabir_testing import ScriptedAdapter, Sent, always, calls, reply

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""


class Trip(BaseModel):
    """The output of conversations and evaluations."""

    city: str
    days: int


@dataclass(frozen=True)
class Plan:
    """An item of a state slice."""

    goal: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """An item of a log slice."""

    text: str


class Town:
    """The options of conversations and evaluations. `ran` lists their calls; `before` is called before each of them."""

    def __init__(self, before: Callable[[str], None] = lambda call: None) -> None:
        self.ran: list[str] = []
        self._before = before

    def weather(self, city: str) -> str:
        """Current weather in a city."""
        self._run(f"weather {city}")
        return f"rain in {city}"

    def book_room(self, city: str, nights: int = 1) -> dict[str, object]:
        """Book a room."""
        self._run(f"book_room {city}")
        return {"city": city, "nights": nights, "number": 12}

    def _run(self, call: str) -> None:
        self._before(call)
        self.ran.append(call)

    @property
    def options(self) -> Sequence[Callable[..., object]]:
        return (self.weather, self.book_room)


WEATHER: Prompt[None] = Prompt(ns="trips", key="weather", system="Be brief.", messages=[sabir.user("Umbrella today?")])
TRIP: Prompt[Trip] = Prompt(ns="trips", key="plan", messages=[sabir.user("Plan a trip.")], output=Trip)

REVIEW = Chain(
    "review",
    (
        Phase("draft", "You are the draft phase. Write a draft."),
        Phase("final", "You are the final phase. Improve the draft.", ask="Finish it."),
    ),
)


async def go_on(place: str) -> None:
    """The default of `Journey.reach`: stop nowhere."""


def traveller() -> ScriptedAdapter:
    """The model of runs: asks for both options once, then answers from their results."""

    def answer(sent: Sent) -> object:
        journey, _, city = sent.messages[0].text.partition(" to ")
        if not sent.results:
            return reply(
                sabir.ReasoningPart(text=f"{city} needs luggage.", state={"signature": "c2lnbmVk"}),
                calls(pack={"journey": journey, "city": city}, book={"journey": journey, "city": city}),
            )
        return f"Ready for {city}."

    return ScriptedAdapter(always(answer), model="anthropic:claude-sonnet-4-5")  # type: ignore[arg-type]


@dataclass
class Places:
    """The places that a run reached, and those at which it stops for good."""

    stops: frozenset[str] = frozenset()
    reached: list[str] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)

    async def __call__(self, place: str) -> None:
        self.reached.append(place)
        if place in self.stops:
            self.stopped.add(place)
            await asyncio.Event().wait()


class Journey(BaseContext):
    """The context of all frozen runs; its policies await `reach` before each effect, with the run and the effect."""

    main: BoundPolicy
    llm: BoundPolicy
    pack: BoundPolicy
    book: BoundPolicy
    branches: BoundPolicy
    step: BoundPolicy
    ask: BoundPolicy
    approve: BoundPolicy
    fail: BoundPolicy

    def __init__(self, runner: BaseRunner, reach: Callable[[str], Awaitable[None]] = go_on) -> None:
        super().__init__(runner)
        self.reach, self.model = reach, traveller()
        self.main = self._bind(loop_policy("llm"))
        self.llm = self._bind(llm)
        self.pack = self._bind(pack)
        self.book = self._bind(book)
        self.branches = self._bind(branches)
        self.step = self._bind(step)
        self.ask = self._bind(ask)
        self.approve = self._bind(human_policy(decision))
        self.fail = self._bind(fail)


Names = list[str] | None
OPTIONS = ["pack", "book"]


def journey_of(observations: Batch) -> str:
    """The name of a journey: its question is `NAME to CITY`."""
    return observations[0].text.partition(" to ")[0]


async def llm(ctx: Journey, observations: Batch, options: Names = None) -> Batch:
    """Ask the model."""
    turn = sum(message.kind == "option_result" for message in observations) // len(OPTIONS)
    await ctx.reach(f"{journey_of(observations)}: model {turn}")
    answered = await ctx.model.complete(observations, options=ctx.offer(options))
    return list(answered.messages)


async def pack(ctx: Journey, observations: Batch, options: Names = None, *, journey: str, city: str) -> Batch:
    """Pack for a city.

    Args:
        journey: Its name.
        city: Where it goes.
    """
    await ctx.reach(f"{journey}: pack")
    return [sabir.assistant(f"packed for {city}", policy="pack")]


async def book(ctx: Journey, observations: Batch, options: Names = None, *, journey: str, city: str) -> Batch:
    """Book a room.

    Args:
        journey: Its name.
        city: Where.
    """
    await ctx.reach(f"{journey}: book")
    if city == "Nowhere":
        raise LookupError("there is no such city")
    return [sabir.assistant(f"booked in {city}", policy="book")]


async def branches(ctx: Journey, observations: Batch, options: Names = None) -> Batch:
    """Three branches at once, of two steps each."""

    async def branch(name: str) -> Batch:
        return [message for index in range(2) for message in await ctx.step(observations, name=f"{name}{index}")]

    together = await asyncio.gather(branch("a"), branch("b"), branch("c"))
    return [message for part in together for message in part]


async def step(ctx: Journey, observations: Batch, options: Names = None, *, name: str) -> Batch:
    """One step of a branch."""
    await ctx.reach(f"{journey_of(observations)}: step {name}")
    return [sabir.assistant(name, policy="step")]


async def ask(ctx: Journey, observations: Batch, options: Names = None) -> Batch:
    """Ask a person, then act."""
    (decided,) = await ctx.approve(observations)
    await ctx.reach(f"{journey_of(observations)}: {decided.text}")
    return [decided, sabir.assistant(f"as you wish: {decided.text}", policy="ask")]


async def fail(ctx: Journey, observations: Batch, options: Names = None) -> Batch:
    """Fail after a step."""
    await ctx.step(observations, name="first")
    raise ValueError("the flight was cancelled")
