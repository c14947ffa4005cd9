"""What `repr` and rich show of the library's values: short, by the names that the documentation uses, no secrets."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sabir.base.shown import LONGEST_REPR, brief
from sabir.vocabulary.messages import Message
from sabir_testing.histories.samples import call_message

from tests.core.samples import EVERY_KIND, json_values, messages

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 5_000_000


@sabir.option
def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"fair in {city} for {days}"


def a_call(**arguments: Any) -> Message:
    return call_message("c1", arguments, "weather")


def a_reply(*content: Message, **further: Any) -> sabir.Reply:
    usage = sabir.Usage(input_tokens=9, output_tokens=4, details={"prompt_tokens": 9})
    origin = sabir.Origin(provider="tiny", dialect="tiny.talk")
    return sabir.Reply(messages=content, finish_reason="stop", usage=usage, origin=origin, **further)


LOSSES = [sabir.Loss(kind="dropped", path=f"parts[{number}]", reason="it takes no sound") for number in range(40)]
LONG = sabir.assistant("Take an umbrella. " * 500)
SEEN = sabir.user("What is this?", sabir.image(PNG))
LARGE = {
    "an image": SEEN,
    "a thousand parts": sabir.user(*map(str, range(1000))),
    "a long text": LONG,
    "a text that no terminal shows": sabir.user("\x00\u202e\U000e0001" * 1000),
    "long arguments": a_call(city="Rome", days=list(range(1000)), note="x" * 5000),
    "a whole reply": a_reply(LONG, *[a_call(city="Rome")] * 30, losses=tuple(LOSSES), alternatives=(
        sabir.Alternative(messages=(LONG,), finish_reason="stop"),) * 3),
    "a deep value": a_call(deep=[[[[[[[[[[{"a": [["b" * 100] * 20] * 20}]]]]]]]]]] * 5),
    "options": sabir.Option.from_schema("f", "It is long. " * 90, {"type": "object", "properties": {
        f"field{number}": {"type": "string"} for number in range(200)}}),
    "settings": sabir.Settings(stop=["stop"] * 100, seed=1, temperature=0.5, vendor={"tiny": {"a": "b" * 900}}),
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_three_lines_hold_any_value(what: str) -> None:
    shown = repr(LARGE[what])

    assert len(shown) <= LONGEST_REPR and "\n" not in shown and shown.endswith(")")
    assert "_json" not in shown and "payload=" not in shown
    assert str(LARGE[what]) == shown


@given(messages | st.sampled_from(EVERY_KIND) | json_values)
def test_the_room_is_kept(value: Any) -> None:
    assert len(brief(value)) <= LONGEST_REPR and brief(value).isprintable()


class Huge(Mapping[int, int]):
    """A mapping of which nobody reads more than the first thousand keys."""

    def __len__(self) -> int:
        return 10**9

    def __iter__(self) -> Iterator[int]:
        yield from range(1000)
        raise AssertionError("the thousandth key was read")

    def __getitem__(self, key: int) -> int:
        return key


def test_a_huge_value_is_not_read_whole() -> None:
    shown = brief([Huge()] * 1000)

    assert len(shown) <= LONGEST_REPR and shown.startswith("[{0: 0, 1: 1, ") and shown.endswith(", …]")
    assert brief("x" * 10**7).endswith("…' (10000000 characters)")


def test_a_value_is_read_by_the_names_that_programs_use() -> None:
    said, called = sabir.user("Umbrella?", step_num=2), a_call(city="Rome")
    reply = a_reply(sabir.assistant("Yes."), called)

    assert repr(said) == f"Message(policy='user', text='Umbrella?', id={said.id!r}, step_num=2)"
    assert repr(called) == (
        "Message(policy='llm', call=OptionCallPayload(option_name='weather', arguments={'city': 'Rome'}, "
        f"invocation_id='c1'), id={called.id!r})"
    )
    assert repr(reply.model_copy(update={"messages": reply.messages[:1], "losses": tuple(LOSSES)})) == (
        "Reply(text='Yes.', finish_reason='stop', usage=Usage(input_tokens=9, output_tokens=4), losses=<40: dropped>)"
    )
    assert repr(reply).startswith("Reply(text='Yes.', option_calls=(Message(policy='llm', call=OptionCallPayload(")
    assert repr(sabir.Settings()) == "Settings()"
    assert repr(sabir.Settings(seed=3, retries=1)) == "Settings(seed=3, retries=RetryPolicy(attempts=2))"
    assert repr(LOSSES[0]) == "Loss(kind='dropped', path='parts[0]', reason='it takes no sound')"
    assert repr(weather).startswith("Option(name='weather', description='The weather of a city.', parameters={")


def test_a_message_of_several_parts_shows_them() -> None:
    shown = repr(SEEN)

    assert (
        "parts=(TextPart(text='What is this?'), MediaPart(modality='image', url='data:image/png;base64,iVBOR" in shown
    )
    assert "…' (6666702 characters))" in shown


def test_rich_shows_all_but_the_bytes_of_a_medium() -> None:
    file = io.StringIO()
    reply = a_reply(LONG, SEEN, a_call(city="Rome"), losses=tuple(LOSSES), details={"tier": "low"})
    Console(file=file, width=100).print(reply)
    shown = file.getvalue()

    assert "parts[39]" in shown and "'prompt_tokens': 9" in shown and "'tier': 'low'" in shown
    assert shown.count("Take an") > 400 and "dialect='tiny.talk'" in shown and "arguments={'city': 'Rome'}" in shown
    assert "(6666702 characters)" in shown and len(shown) < 20_000


def test_no_view_holds_a_header_or_a_key() -> None:
    settings = sabir.Settings(extra_headers={"x-key": "sesame-open"}, extra_body={"a": 1})
    llm = sabir.adapter("echo:m", api_key="sesame-open")
    rendering = llm.render("hi", settings=settings)
    file = io.StringIO()
    Console(file=file, width=200).print(settings, rendering, llm)

    assert "body={" in file.getvalue() and f"body_bytes=<{len(rendering.body_bytes)} bytes>" in repr(rendering)
    assert "sesame" not in f"{file.getvalue()} {settings!r} {rendering!r} {llm!r}"
