"""The questions that the kit asks every provider.

    QUESTIONS[name] ── the suite's prompts, settings, refused_body ──▶ the question for this service
                    └─ check(replies) ──▶ ConformanceFailure for a wrong reply

    <name>.yaml              the recorded complete response
    <name>_streamed.yaml     the recorded streamed response

The kit sends each question twice, for a complete and for a streamed response. Most questions cost little: temperature 0
and few tokens. None is retried, unless the suite's `settings` say so.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Literal, TypeAlias

import sabir
from pydantic import BaseModel, ValidationError
from sabir import Message, Option, Reply, RetryPolicy, Settings
from sabir.errors import CallError

from sabir_testing.histories.samples import call_message
from sabir_testing.kit.failures import ConformanceFailure, expect

Replies: TypeAlias = Sequence[Reply]
"""The replies to a question in order: one, or several if option calls were answered between them."""
Fault: TypeAlias = Literal["", "wrong_key", "missing_model", "refused_body"]
"""The intended fault of a question; "" for none. The suite's attributes of these names define it for the service."""

MOST_ROUNDS = 4
"""The largest number of requests for one question with `answers_calls`."""


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C, rain in {city}"


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


def _check_text(replies: Replies) -> None:
    """A text, with the finish reason "stop" or "length"."""
    reply = replies[-1]
    expect(reply.text.strip(), "the decoded reply contains no text", details={"kinds of its parts": kinds(reply)})
    reason = reply.finish_reason
    expect(
        reason in ("stop", "length"),
        f"the finish reason of the decoded reply is {reason!r}; expected 'stop' or 'length'",
    )


def _check_one_call(replies: Replies) -> None:
    """One call of the offered option."""
    calls = _checked_calls(replies[-1])
    what = f"the decoded reply contains {len(calls)} option calls; expected 1, because option_choice was 'required'"
    expect(len(calls) == 1, what)


def _check_two_calls(replies: Replies) -> None:
    """At least two calls in one reply, with different ids."""
    calls = _checked_calls(replies[-1])
    what = f"the decoded reply contains {len(calls)} option calls; expected at least 2, for the two cities"
    expect(len(calls) >= 2, what)
    ids = [message.call.invocation_id for message in calls if message.call]
    what = f"option calls of one decoded reply have the same id: {', '.join(ids)}; expected different ids"
    expect(len(set(ids)) == len(ids), what)


def _checked_calls(reply: Reply) -> tuple[Message, ...]:
    """Return the calls of a reply, after checking that each names an offered option and has valid arguments."""
    for message in reply.option_calls:
        call = message.call
        assert call is not None
        what = f"the decoder returns a call of {call.option_name!r}, which was not offered; expected {weather.name!r}"
        expect(call.option_name == weather.name, what)
        result = weather.answer_sync(message).result
        arguments = call.raw_arguments if call.raw_arguments is not None else call.arguments_json
        reason = result.error_message if result else ""
        what = f"the arguments of the decoded call do not fit the option {weather.name!r}: {reason}"
        expect(result and not result.is_error, what, details={"the arguments": arguments})
    if reply.option_calls:
        reason = reply.finish_reason
        what = f"the finish reason of a decoded reply with an option call is {reason!r}; expected 'option_calls'"
        expect(reason == "option_calls", what)
    return reply.option_calls


def _check_result_used(replies: Replies) -> None:
    """A text that contains "18", from the option's result."""
    _check_text(replies)
    text = replies[-1].text
    expect("18" in text, f"the decoded reply does not use the option's result, 18 °C: {text!r}")


def _check_city(replies: Replies) -> None:
    """JSON of the schema that was sent."""
    reply = replies[-1]
    try:
        City.model_validate_json(reply.text)
    except ValidationError:
        what = "the text of the decoded reply is not JSON of the requested schema"
        raise ConformanceFailure(what, details={"the reply's text": reply.text}) from None
    reason = reply.finish_reason
    expect(reason == "stop", f"the finish reason of a complete reply is {reason!r}; expected 'stop'")


def _check_length_limit(replies: Replies) -> None:
    """The finish reason "length"."""
    reason = replies[-1].finish_reason
    what = f"the finish reason of a reply that was cut off at max_output_tokens is {reason!r}; expected 'length'"
    expect(reason == "length", what)


def _check_reasoning(replies: Replies) -> None:
    """Reasoning, and a text that does not contain it."""
    reply = replies[-1]
    details = {"kinds of its parts": kinds(reply)}
    expect("reasoning" in kinds(reply), "the decoded reply contains no reasoning part", details=details)
    expect(reply.text.strip(), "the decoded reply contains reasoning, but no text; expected both", details=details)
    reasoning = reply.reasoning.strip()
    what = "the text of the decoded reply contains the reasoning; return the reasoning only in a ReasoningPart"
    expect(not reasoning or reasoning not in reply.text, what, details={"the reply's text": reply.text})


def _check_reasoned_call(replies: Replies) -> None:
    """Reasoning and a call in the first reply, and a text in the last reply."""
    what = "the first of the decoded replies contains no reasoning; expected reasoning and an option call"
    expect("reasoning" in kinds(replies[0]), what)
    what = "the first of the decoded replies contains no option call; expected reasoning and an option call"
    expect(_checked_calls(replies[0]), what, details={"the reply's text": replies[0].text})
    _check_text(replies)


def kinds(reply: Reply) -> tuple[str, ...]:
    """Return the kinds of a reply's parts and calls. Neighbours of one kind count once."""
    every = ([str(part.kind) for part in message.parts] or [message.kind] for message in reply.messages)
    return tuple(kind for kind, _ in groupby(chain.from_iterable(every)))


@dataclass(frozen=True)
class ServiceQuestion:
    """One question that the kit sends to every service that does not refuse it.

    `needs`: the capabilities that the question needs. If the suite declares one of them REFUSED, the refusal is tested
    instead. `answers_calls`: whether the options are run and their results sent. `expects`: the error class of a
    question that must fail, and `fault` the reason. `check`: raises ConformanceFailure for wrong replies.
    """

    messages: Sequence[Message]
    settings: Settings
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    answers_calls: bool = False
    expects: type[CallError] | None = None
    fault: Fault = ""
    check: Callable[[Replies], None] = _check_text


RED = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAABlBMVEX/AAAAAABBoxIDAAAADElEQVR42mNgGNwAAACgAAGO+7G0AAAAAElFTkSuQmCC"
)
"""A PNG image of 32 × 32 red pixels."""
WEATHER_QUESTION = "What is the weather in Paris?"
CHAT = (sabir.system("Be brief."), sabir.user(WEATHER_QUESTION))
CALL = call_message("call_1", {"city": "Paris"}, "weather")
ANSWER = sabir.OptionResultBuilder.response_to(CALL)
RESULT = ANSWER.success("18 °C, rain in Paris")
FAILURE = sabir.OptionResultBuilder.response_to(CALL).error("unreachable", "the weather station does not answer")
PICTURE = sabir.OptionResultBuilder.response_to(CALL).success(["The sky over Paris:", sabir.image(RED)])
TOO_LONG = "word " * 4_500

NEVER = RetryPolicy(attempts=1)
FIXED = Settings(temperature=0, max_output_tokens=32, retries=NEVER)
CALLING = FIXED.model_copy(update={"max_output_tokens": 96, "option_choice": "required", "parallel_options": False})
CALLING_TWICE = CALLING.model_copy(update={"max_output_tokens": 192, "parallel_options": True})
ROOMY = Settings(max_output_tokens=4096, retries=NEVER)
"""Settings with a high token limit, for models that reason before they answer."""
REASONING = ROOMY.model_copy(update={"reasoning_effort": "low"})

QUESTIONS: Mapping[str, ServiceQuestion] = {
    "text": ServiceQuestion(CHAT, FIXED),
    "multi_turn": ServiceQuestion(
        (sabir.user("My name is Ada."), sabir.assistant("Hello, Ada."), sabir.user("What is my name?")), FIXED
    ),
    "system": ServiceQuestion(
        (sabir.system("You are a lighthouse keeper."), sabir.user("What do you do at night?")), FIXED, needs=("system",)
    ),
    "option_call": ServiceQuestion(CHAT, CALLING, (weather,), ("options",), check=_check_one_call),
    "parallel_calls": ServiceQuestion(
        (sabir.user("What is the weather in Paris and in Rome? Ask for both at once."),),
        CALLING_TWICE,
        (weather,),
        ("options", "parallel_calls"),
        check=_check_two_calls,
    ),
    "option_result": ServiceQuestion((*CHAT, CALL, RESULT), FIXED, (weather,), ("options",), check=_check_result_used),
    "option_error": ServiceQuestion((*CHAT, CALL, FAILURE), FIXED, (weather,), ("options",)),
    "option_picture": ServiceQuestion((*CHAT, CALL, PICTURE), FIXED, (weather,), ("options", "results.image")),
    "image": ServiceQuestion((sabir.user("Which colour is this?", sabir.image(RED)),), FIXED, needs=("image.bytes",)),
    "reasoning": ServiceQuestion(
        (sabir.user("Is 91 a prime number?"),), REASONING, needs=("reasoning",), check=_check_reasoning
    ),
    "reasoning_loop": ServiceQuestion(
        (sabir.user("Think first: do I need an umbrella in Paris?"),),
        REASONING,
        (weather,),
        ("reasoning", "options"),
        answers_calls=True,
        check=_check_reasoned_call,
    ),
    "structured_output": ServiceQuestion(
        (sabir.user("Where is the Eiffel Tower? Reply with JSON."),),
        FIXED.model_copy(update={"response_format": City, "max_output_tokens": 64}),
        needs=("settings.response_format",),
        check=_check_city,
    ),
    "max_tokens": ServiceQuestion(
        CHAT,
        FIXED.model_copy(update={"max_output_tokens": 3}),
        needs=("settings.max_output_tokens",),
        check=_check_length_limit,
    ),
    "bad_key": ServiceQuestion(CHAT, FIXED, expects=sabir.errors.AuthenticationFailed, fault="wrong_key"),
    "missing_model": ServiceQuestion(CHAT, FIXED, expects=sabir.errors.ModelNotFound, fault="missing_model"),
    "bad_request": ServiceQuestion(CHAT, FIXED, expects=sabir.errors.InvalidRequest, fault="refused_body"),
    "context_overflow": ServiceQuestion((sabir.user(TOO_LONG),), FIXED, expects=sabir.errors.ContextTooLong),
    "rate_limited": ServiceQuestion((sabir.user("How many requests are left?"),), ROOMY, expects=sabir.RateLimited),
    "overloaded": ServiceQuestion((sabir.user("Is there room for one more?"),), ROOMY, expects=sabir.errors.Overloaded),
}
"""Name → question. The names of the cassettes begin with these names."""

ANSWERED = tuple(name for name, question in QUESTIONS.items() if question.expects is None)
"""Names of the questions that must succeed."""
FAILING = tuple(name for name, question in QUESTIONS.items() if question.expects is not None)
"""Names of the questions that must fail."""
