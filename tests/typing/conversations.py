"""What a typed program writes, in the types that its own literals have; checked by mypy and pyright, never run."""

from typing import assert_type

import sabir
from pydantic import BaseModel
from sabir.vocabulary.reply import Reply


class Trip(BaseModel):
    """What a reply is parsed into, and an option."""

    city: str


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return city


@sabir.option(name="forecast")
async def foretell(city: str, days: int = 1) -> list[str]:
    """The weather of some days."""
    return [city] * days


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
OPTIONS = [weather, foretell]
SETTINGS = [
    sabir.Settings(response_format=Trip),
    sabir.Settings(response_format={"type": "object", "properties": {"city": {"type": "string"}}}),
    sabir.Settings(response_format=SCHEMA),
    sabir.Settings(response_format=sabir.ResponseFormat(name="trip", schema=SCHEMA)),
    sabir.Settings(stop="END"),
    sabir.Settings(stop=["END", "STOP"]),
    sabir.Settings(stop=("END",)),
    sabir.Settings(retries=0, timeout=3, idle=1.5),
    sabir.Settings(retries=sabir.RetryPolicy(attempts=2, first_delay=1)),
    sabir.Settings(vendor={"acme": {"store": True}}, extra_body={"n": 1}, extra_headers={"x-team": "sky"}),
]
RAW = [
    sabir.Option.from_schema("find", "Find.", {"type": "object", "properties": {"what": {"type": "string"}}}),
    sabir.Option(name="find", description="Find.", parameters=SCHEMA),
    sabir.Option.from_model(Trip, lambda trip: trip.city),
]

sabir.Settings(temprature=0)  # type: ignore[call-arg]
sabir.Settings(stop=3)  # type: ignore[arg-type]
sabir.Settings(response_format=str)  # type: ignore[arg-type]


async def talk() -> str:
    """A conversation with options, and a typed end."""
    llm = sabir.adapter("echo:m", settings=sabir.Settings(retries=2))
    chat = [sabir.system("Be brief."), sabir.user("Umbrella?", sabir.image("sky.jpg"))]
    while True:
        reply = llm.complete_sync(chat, options=OPTIONS)
        chat += reply.messages
        for call in reply.option_calls:
            print(call.call.option_name, call.call.arguments["city"])
        if not reply.option_calls:
            break
        chat += sabir.answer_sync(reply, OPTIONS)
        chat += await sabir.answer(reply, [weather, foretell, Trip, print, *RAW])
    calls: tuple[sabir.Message, ...] = reply.option_calls
    assert_type(llm.complete_sync(chat, options=[weather, *OPTIONS]), Reply)
    return f"{len(calls)} {reply.parse(Trip).city}"


def build(anchor: sabir.Message) -> list[sabir.Message]:
    """A call and its result, by the builders."""
    builder = sabir.MessageBuilder.continue_step(anchor)
    call = builder.add_option_call("weather", {"city": "Rome"})
    assert_type(builder.last_option_call.call.option_name, str)
    return [call, sabir.OptionResultBuilder.response_to(call).success("rain")]
