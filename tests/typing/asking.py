"""What a program writes with a conversation that is held: outputs of any form of type; never run."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, assert_type

import sabir
from pydantic import BaseModel
from sabir_session import Answer, Conversation, Partial, Prompt, evaluate_sync


class Trip(BaseModel):
    """A journey."""

    city: str


class Hotel(BaseModel):
    """A place to sleep."""

    name: str


def book(city: str, nights: int) -> Hotel:
    """Book a hotel."""
    return Hotel(name=f"{city} {nights}")


async def reserve(city: str) -> Hotel:
    """Reserve a hotel."""
    return Hotel(name=city)


def near(trip: Trip) -> Trip:
    """Refuse what is far."""
    if trip.city == "Rome":
        raise ValueError("too far")
    return trip


def check(trip: Trip) -> None:
    """Refuse what is far."""


async def ask() -> None:
    """Each form of output has its type."""
    chat = Conversation("echo:m", instructions="Be brief.", keep="chats.db", name="umbrella")
    assert_type(chat, Conversation[None])
    assert_type(chat.ask_sync("Umbrella?", sabir.image("sky.jpg")), Answer[None])
    assert_type((await chat.ask("As a trip.", output=Trip)).output, Trip)
    assert_type((await chat.ask("Either.", output=Trip | Hotel)).output, Trip | Hotel)
    assert_type((await chat.ask("Perhaps.", output=Trip | None)).output, Trip | None)
    assert_type(chat.ask_sync("All.", output=list[Trip]).output, list[Trip])
    assert_type(chat.ask_sync("How many?", output=int).output, int)
    assert_type(chat.ask_sync("Which?", output=Literal["a", "b"]).output, Literal["a", "b"])
    assert_type(chat.ask_sync("Book.", output=book).output, Hotel)
    assert_type((await chat.ask("Reserve.", output=reserve)).output, Hotel)
    assert_type(chat.ask_sync("Near.", output=Trip, output_validator=near).output, Trip)
    assert_type(chat.ask_sync("Near.", output=Trip, output_validator=check).output, Trip)
    async with chat.stream("Grow.") as words:
        async for text in words.text:
            assert_type(text, str)
        assert_type((await words.answer()).output, None)

    typed = Conversation("echo:m", output=Trip | Hotel, output_mode="call")
    Conversation("echo:m", output=Trip, output_mode="json")  # type: ignore[call-overload]
    assert_type(typed.ask_sync("Where?").output, Trip | Hotel)
    assert_type(typed.fork("other"), Conversation[Trip | Hotel])
    assert_type(evaluate_sync(chat.adapter, Prompt(output=list[Trip])).output, list[Trip])

    chat.model = "other:m"
    chat.model = sabir.adapter("echo:m")
    chat.ask_sync(7)  # type: ignore[call-overload]


async def stream() -> None:
    """Partial outputs have the type of the output, and their fields are known."""
    chat = Conversation("echo:m")
    with chat.stream_sync("Grow.", output=list[Trip]) as growing:
        for part in growing.outputs:
            assert_type(part, Partial[list[Trip]])
            assert_type(part.get(lambda trips: trips[0].city), str | None)
            part.get(lambda trips: trips[0].town)  # type: ignore[attr-defined]
            assert_type(part.output, Any)
            assert_type(part.is_complete, bool)
        assert_type(growing.answer().output, list[Trip])
    with chat.stream_sync("Write.", output=str) as writing:
        assert_type(writing.outputs, Iterator[Partial[str]])
        assert_type(writing.answer().output, str)
    async with chat.stream("Either.", output=Trip | Hotel, output_mode="text") as either:
        assert_type(either.outputs, AsyncIterator[Partial[Trip | Hotel]])
        async for version in either.outputs:
            assert_type(version, Partial[Trip | Hotel])
        assert_type((await either.answer()).output, Trip | Hotel)
    assert_type(chat.ask_sync("Write.", output=str).output, str)
    assert_type(chat.stream_sync("?").outputs, Iterator[Partial[None]])
