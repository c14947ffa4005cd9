"""Answering: a call becomes exactly one result, whatever its option does."""

import asyncio
import contextvars
import json
import logging
import pickle
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from sabir.base.failures import Loss
from sabir.errors import (
    AllFailed,
    MediaRefused,
    OptionFailed,
    OptionInvalid,
    OutputInvalid,
    RateLimited,
    RenderingRefused,
    SabirError,
    StreamBroken,
    WrongWord,
)
from sabir.hooks.builders import OptionResultBuilder
from sabir.options.option import Option, answer, answer_sync, option, unanswered
from sabir.vocabulary.constructors import audio, image, user
from sabir.vocabulary.messages import RUNTIME, Message, OptionResultPayload, Origin
from sabir.vocabulary.parts import MediaPart, ReasoningPart, TextPart
from sabir.vocabulary.reply import Reply

from tests.core.support import option_call as call

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def answered(function: Callable[..., Any], **arguments: Any) -> OptionResultPayload:
    """What a function's option answers, asked synchronously and in a loop: both must say the same."""
    made = Option.from_function(function, name="it")
    asked = call("it", arguments)
    waiting, awaited = made.answer_sync(asked), asyncio.run(made.answer(asked))
    assert waiting.same_content(awaited)
    assert waiting.result is not None
    return waiting.result


class Unsure(Exception):
    @property
    def retryable(self) -> bool:
        raise LookupError("unknown")


class Full(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize(
    ("raised", "error_type", "message", "retryable"),
    [
        (OptionFailed("quota", "try\ntomorrow", retryable=True), "quota", "try tomorrow", True),
        (OptionFailed("quota", "try tomorrow", retryable=False), "quota", "try tomorrow", False),
        (OptionFailed("", "half \ud83d of it"), "OptionFailed", "half \\ud83d of it", False),
        (RateLimited("slow down", provider="acme"), "RateLimited", "slow down", True),
        (Unsure("slow down"), "Unsure", "slow down", False),
        (ValueError("no\nsuch city \ud800"), "ValueError", "no such city \\ud800", False),
        (TimeoutError(), "TimeoutError", "TimeoutError", False),
        (Full(), "Full", "Full", False),
        (StopIteration(3), "StopIteration", "3", False),
        (SystemExit("bye"), "SystemExit", "bye", False),
        (type("CallsTooDeep", (Exception,), {})("my own"), "CallsTooDeep", "my own", False),  # not core's own
        (asyncio.CancelledError(), "CancelledError", "the option waited for something that was cancelled", False),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_failure_is_an_error_result_of_its_name(
    raised: BaseException, error_type: str, message: str, retryable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """UP-05, UP-29, PJ-32: one line, never a traceback; the type that the function names, or the exception's own."""
    caplog.set_level(logging.CRITICAL, "sabir")  # pytest-xdist cannot report a captured log with half a character

    def fail() -> None:
        raise raised

    failed = answered(fail)

    assert (failed.is_error, failed.error_type, failed.error_message) == (True, error_type, message)
    assert failed.retryable is retryable


REPLY = Reply(messages=(), finish_reason="stop", origin=Origin(provider="p", dialect="p.d"))


class Late(SabirError, TimeoutError):
    """As plugins have them: caught as a TimeoutError too."""


@pytest.mark.parametrize(
    "error",
    [
        Late("no answer"),
        OptionFailed("quota", "try tomorrow", retryable=True),
        RateLimited("slow down", provider="p", status=429, retry_after=2.0),
        RenderingRefused("lost", [Loss(kind="dropped", reason="r")]),
        OutputInvalid("no Weather", REPLY),
        StreamBroken("cut off", partial=REPLY, cause=RateLimited("slow down", status=429)),
        AllFailed("none", failed_members=[], errors=[RateLimited("slow down", retry_after=2.0)]),
        MediaRefused("too large"),
    ],
)
def test_an_error_crosses_processes_with_what_it_holds(error: SabirError) -> None:
    """An executor pickles what its workers raise."""
    arrived = pickle.loads(pickle.dumps(error))

    assert (type(arrived), str(arrived)) == (type(error), str(error))
    assert {name: repr(held) for name, held in vars(arrived).items()} == {
        name: repr(held) for name, held in vars(error).items()
    }


def test_a_result_carries_the_calls_ids_and_the_options_name() -> None:
    """PJ-05, PJ-31, UP-04: invocation id, option name and step are the call's; the policy is the option's."""

    @option
    def weather(city: str) -> str:
        return f"rain in {city}"

    answering = weather.answer_sync(call("weather", {"city": "Oslo"}))

    assert (answering.policy, answering.step_num, answering.origin) == ("weather", 3, None)
    assert answering.result == OptionResultPayload(invocation_id="call-1", option_name="weather", result="rain in Oslo")


class Place(BaseModel):
    city: str


@dataclass
class Point:
    x: int


SERVED = {"kind": "media", "modality": "image", "url": "https://example.org/a.png"}
"""A service's answer, which cannot make the model's vendor fetch a URL."""
PICTURE, END = image(PIXEL, hint="the sky"), TextPart(text="end")


@pytest.mark.parametrize(
    ("value", "result", "parts"),
    [
        *((value, value, ()) for value in (None, 0, "", [], {}, False, 1.5, {"a": [1, None]}, "x")),
        (SERVED, SERVED, ()),
        (
            (Place(city="Oslo"), Point(1), date(2026, 11, 21), {"x"}),
            [{"city": "Oslo"}, {"x": 1}, "2026-11-21", ["x"]],
            (),
        ),
        (PICTURE, None, (PICTURE,)),
        (["look:", PICTURE, END], None, (TextPart(text="look:"), PICTURE, END)),
        (user("look:", PICTURE), None, (TextPart(text="look:"), PICTURE)),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_an_option_returns_is_its_result(value: Any, result: Any, parts: Any) -> None:
    """PJ-44: falsy values too; what pydantic can write is JSON, and what a model shall see is parts."""
    found = answered(lambda: value)

    assert (found.result, found.is_error, found.parts) == (result, False, parts)


@dataclass
class Shot:
    shot: MediaPart
    taken: date = date(2026, 11, 21)


class Album(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    cover: MediaPart = Field(serialization_alias="Cover")
    place: Place = Place(city="Oslo")


ATTACHED, BOTH = "attached image 1", ("attached image 1", "attached image 2")


@pytest.mark.parametrize(
    ("value", "text", "attached"),
    [
        ({"caption": "a", "shot": PICTURE}, {"caption": "a", "shot": ATTACHED}, 1),
        ({"shots": [PICTURE, PICTURE]}, {"shots": [*BOTH]}, 2),
        ([["a", PICTURE]], [["a", ATTACHED]], 1),
        ({"t": ("a", PICTURE)}, {"t": ["a", ATTACHED]}, 1),
        ({"s": {PICTURE}}, {"s": [ATTACHED]}, 1),
        (Shot(PICTURE), {"shot": ATTACHED, "taken": "2026-11-21"}, 1),
        ([[Shot(PICTURE)], {"b": Shot(PICTURE)}], [
            [{"shot": BOTH[0], "taken": "2026-11-21"}], {"b": {"shot": BOTH[1], "taken": "2026-11-21"}}], 2),
        (Album(cover=PICTURE), {"Cover": ATTACHED, "place": {"city": "Oslo"}}, 1),
        ({"spoken": audio(b"ID3", name="a")}, {"spoken": "attached audio 1"}, 1),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_media_within_a_value_are_attached_and_replaced_by_a_reference(value: Any, text: Any, attached: int) -> None:
    result = answered(lambda: value)
    first, *media = result.parts

    assert (json.loads(first.text), [part.kind for part in media]) == (text, ["media"] * attached)
    assert OptionResultBuilder.response_to(call("it")).success(value).parts == result.parts


def test_a_message_within_a_value_keeps_all_but_the_bytes_of_its_media() -> None:
    value = {"said": user("look", PICTURE)}
    result = answered(lambda: value)
    first, medium = result.parts

    text, reference = json.loads(first.text)["said"]["payload"]["parts"]
    assert (text["text"], reference) == ("look", ATTACHED)
    assert medium == PICTURE


@pytest.mark.parametrize(
    "value",
    [
        object(), float("nan"), {"a": [float("inf")]}, "\ud800", b"\xff", [TextPart(text="x"), 3], call("other"),
        [TextPart(text="x"), ReasoningPart(text="hm")], user(TextPart(text="a"), ReasoningPart(text="b")),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_no_result_can_hold_is_an_error_result(value: Any) -> None:
    result = answered(lambda: value)

    assert (result.is_error, result.error_type, result.retryable) == (True, "result_invalid", False)
    assert "\n" not in (result.error_message or "\n")


def test_arguments_that_do_not_fit_keep_the_option_from_running() -> None:
    """PJ-34, PJ-06: wrong types, missing and unknown names, and text that was no JSON object; it had no part in it."""
    ran = []

    @option
    def weather(city: str, days: int = 1) -> None:
        ran.append(city)

    broken = call("weather", raw_arguments='{"city": "Os', invalid_arguments=True)
    asked = [call("weather", {"days": "many"}), call("weather", {"city": "Oslo", "town": 1}), broken]
    answers = [weather.answer_sync(each) for each in asked]
    results = [answer.result for answer in answers]

    assert {answer.policy for answer in answers} == {RUNTIME}
    assert [(result.error_type, result.error_message) for result in results if result] == [
        (
            "invalid_arguments",
            "city: Field required; days: Input should be a valid integer, unable to parse string as an integer",
        ),
        ("invalid_arguments", "town: Extra inputs are not permitted"),
        ("invalid_arguments", 'the arguments are not a JSON object: \'{"city": "Os\''),
    ]
    assert ran == []


async def test_an_option_that_ends_the_program_ends_itself_and_an_interrupt_is_the_callers() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    def interrupted() -> None:
        raise KeyboardInterrupt

    result = (await Option.from_function(leave).answer(call("leave"))).result
    assert result is not None and (result.error_type, result.error_message) == ("SystemExit", "3")
    with pytest.raises(KeyboardInterrupt):
        Option.from_function(interrupted).answer_sync(call("interrupted"))


async def test_cancelling_an_answer_cancels_its_option() -> None:
    """A coroutine does not outlive the call that awaits it; what others cancelled is its own failure (UP-05)."""
    ended = asyncio.Event()

    @option
    async def wait(for_other: bool = False) -> None:
        other = asyncio.ensure_future(asyncio.Event().wait())
        if for_other:
            asyncio.get_running_loop().call_soon(other.cancel)
        try:
            await other
        finally:
            ended.set()

    task = asyncio.create_task(wait.answer(call("wait")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    result = (await wait.answer(call("wait", {"for_other": True}))).result
    assert result is not None
    assert (result.error_type, result.is_error) == ("CancelledError", True)
    assert result.error_message == "the option waited for something that was cancelled"


async def test_coroutine_functions_are_awaited_in_the_loop() -> None:
    class Later:
        async def __call__(self, city: str) -> str:
            return f"{city} {threading.current_thread() is threading.main_thread()}"

    later = Later()

    def forwards(city: str) -> Awaitable[str]:
        return later(city)

    for function in (later, later.__call__, forwards):
        made = Option.from_function(function, name="it")
        result = (await made.answer(call("it", {"city": "Oslo"}))).result
        assert result is not None
        assert result.result == "Oslo True"


async def test_functions_that_block_run_in_a_thread_with_the_callers_context() -> None:
    user_id = contextvars.ContextVar("user_id", default="nobody")
    went_on = threading.Event()

    @option
    def slow() -> str:
        assert went_on.wait(10)
        return user_id.get()

    user_id.set("ada")
    task = asyncio.create_task(slow.answer(call("slow")))
    await asyncio.sleep(0)
    went_on.set()

    assert (await task).result.result == "ada"  # type: ignore[union-attr]


def test_an_asynchronous_option_is_refused_where_nobody_awaits() -> None:
    ran = []

    @option
    async def later() -> None:
        ran.append(1)

    @option
    def now() -> None:
        ran.append(2)

    @option
    def hidden() -> Any:
        return later.function()  # type: ignore[misc]

    with pytest.raises(OptionInvalid, match=r"'later' is asynchronous; use `await option.answer\(call\)`"):
        later.answer_sync(call("later"))
    with pytest.raises(OptionInvalid, match="'later' is asynchronous"):
        answer_sync([call("now"), call("later", invocation_id="call-2")], [now, later])
    with pytest.raises(OptionInvalid, match="'hidden' is asynchronous"):
        hidden.answer_sync(call("hidden"))
    assert ran == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (user("hi"), "'it' answers option calls, not a message of kind 'parts'"),
        ("it", "'it' answers option calls, not a value of type str"),
        (call("other"), "'it' received a call of 'other'; use sabir.answer"),
    ],
)
def test_an_option_answers_its_own_calls_alone_and_none_without_a_function(asked: Any, words: str) -> None:
    made, bare = Option.from_schema("it", "", {}, lambda: 1), Option(name="bare")

    with pytest.raises(OptionInvalid, match=words):
        made.answer_sync(asked)
    for ask in (lambda: bare.answer_sync(call("bare")), lambda: answer_sync([call("bare")], [bare])):
        with pytest.raises(OptionInvalid, match=r"'bare' has no function to run; .*OptionResultBuilder"):
            ask()
    with pytest.raises(OptionInvalid, match="'bare' has no function to call"):
        bare()
    assert answer_sync([], [bare]) == []


def reply(*messages: Message) -> Reply:
    return Reply(messages=messages, finish_reason="option_calls", origin=Origin(provider="p", dialect="p.d"))


@option
def double(number: int) -> int:
    if number == 13:
        raise ValueError("unlucky")
    return 2 * number


def test_all_calls_of_a_reply_are_answered_in_their_order() -> None:
    """UP-05: one failure loses none of its siblings; what was not offered is refused, never run (D-08, PJ-06)."""
    asked = reply(
        user("thinking aloud"),
        call("double", {"number": 1}, "a"),
        call("double", {"number": 13}, "b"),
        call("triple", {"number": 3}, "c"),
        call("double", {}, "d"),
        call("double", {"number": 2}, "e"),
    )
    results = answer_sync(asked, [double])

    assert [message.result and message.result.invocation_id for message in results] == ["a", "b", "c", "d", "e"]
    assert [message.policy for message in results] == ["double", "double", RUNTIME, RUNTIME, "double"]
    assert [message.result and (message.result.error_type or message.result.result) for message in results] == [
        2, "ValueError", "option_not_offered", "invalid_arguments", 4,
    ]  # fmt: skip
    assert results[2].result is not None
    assert results[2].result.error_message == "option 'triple' was not offered; the offered options are: double"
    assert all(message.step_num == 3 for message in results)
    again = asyncio.run(answer(asked, [double]))
    assert [message.same_content(other) for message, other in zip(results, again, strict=True)] == [True] * 5


def test_only_unanswered_calls_are_answered() -> None:
    """RN-08, UP-13: a result answers the first call of its id in the nearest earlier run; ids may be used again."""
    first, second = call("double", {"number": 1}), call("double", {"number": 2})
    other = call("double", {"number": 3}, "call-2")
    answering = OptionResultBuilder.response_to(first).success(2)

    assert unanswered([first, answering, second, other]) == [second, other]
    assert unanswered([first, second, answering]) == [second]
    assert unanswered([first, user("and?"), second, answering]) == [first]
    assert unanswered([answering, first]) == [first]
    answers = answer_sync([first, answering, second, other], [double])
    assert [message.result and message.result.result for message in answers] == [4, 6]
    assert len(answer_sync(first, [double])) == 1
    with pytest.raises(WrongWord, match=r"messages\[0\]"):
        answer_sync(["x"], [double])  # type: ignore[list-item]


def _raises() -> None:
    raise ValueError("no such city")


async def _raises_later() -> None:
    raise ValueError("no such city")


def _exits() -> None:
    raise SystemExit("no such city")


def _says_how() -> None:
    raise OptionFailed("fully_booked", "no table")


def _wants(city: str) -> str:
    return city


LOGGED = {_raises: "ValueError", _raises_later: "ValueError", _exits: "SystemExit", _says_how: None, _wants: None}


@pytest.mark.parametrize("function", LOGGED)
def test_an_exception_of_an_option_is_logged_once_with_its_traceback(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The model reads one line of it. OptionFailed is intended, and wrong arguments never reach the option."""
    it = Option.from_function(function, name="it")
    with caplog.at_level(logging.DEBUG, "sabir"):
        result = asyncio.run(it.answer(call("it"))).result

    assert result is not None and result.is_error
    expected = [f"option 'it' raised {LOGGED[function]}"] if LOGGED[function] else []
    records = [record for record in caplog.records if record.name == "sabir"]
    assert [record.getMessage() for record in records if record.levelno == logging.WARNING] == expected
    assert all(f"in {function.__name__}" in caplog.text and "no such city" in caplog.text for _ in expected)
