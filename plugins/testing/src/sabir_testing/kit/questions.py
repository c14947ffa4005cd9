"""What a provider's wire can carry, in grades; and the questions for every provider, of the same names and words.

capabilities = {"image.url": FULL, "audio.bytes": REFUSED}        what is not named is UNKNOWN

FULL         it is in the request, as it was                      no loss
DOWNGRADED   it is in the request, in another form                a loss says so
REFUSED      it is not in the request                             a loss says so, and `strict=True` raises
UNKNOWN      nobody declared it; only silence is a fault

    QUESTIONS[name] ── the suite's prompts, settings, refused_body ──▶ the question as this service is asked it
                    └─ check(asked) ──▶ what any service's answer must hold, or ConformanceFailure

    <name>.yaml              the answer that came at once
    <name>_streamed.yaml     the answer that came as a stream

Each is asked once whole and once as a stream, and for as little as it can: temperature 0, few tokens, no repetition.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Literal, TypeAlias

import sabir
from pydantic import BaseModel, ValidationError
from sabir import Message, Option, Reply, RetryPolicy, Settings
from sabir.authoring import WIRE_SETTINGS
from sabir.errors import CallError

from sabir_testing.histories.samples import called
from sabir_testing.kit.broken import ConformanceFailure, expect


class Grade(StrEnum):
    """How completely a provider supports a capability: FULL, DOWNGRADED (in a poorer form, with a loss), REFUSED (left
    out with a loss) or UNKNOWN (not declared). For `capabilities` of a suite.
    """

    FULL = "full"
    DOWNGRADED = "downgraded"
    REFUSED = "refused"
    UNKNOWN = "unknown"


FULL, DOWNGRADED, REFUSED, UNKNOWN = Grade.FULL, Grade.DOWNGRADED, Grade.REFUSED, Grade.UNKNOWN

MODALITIES = ("image", "audio", "video", "document")
FORMS = {"url": "by a web URL", "bytes": "as bytes", "file": "as a file that is stored at the provider"}
CHOICES = {
    "auto": "the model may call an option",
    "none": "the model must not call an option",
    "required": "the model must call an option",
    "named": "the model must call the named option",
}

CAPABILITIES: Mapping[str, str] = {
    "system": "instructions at the start",
    "later_system": "instructions in the middle of a conversation",
    **{f"{each}.{form}": f"{each} {how} in a user's message" for each in MODALITIES for form, how in FORMS.items()},
    **{f"results.{each}": f"{each} as bytes in an option's result" for each in MODALITIES},
    "options": "options are offered, called and answered",
    "parallel_calls": "several calls in one answer",
    "reasoning": "reasoning is requested, returned and sent back",
    **{f"settings.{name}": f"the setting {name}" for name in WIRE_SETTINGS if name != "option_choice"},
    **{f"option_choice.{name}": what for name, what in CHOICES.items()},
    "streaming": "answers as a stream",
    "count_tokens": "the vendor counts the tokens of a request",
    "stored_requests": "a stored request is converted to a history",
}
"""Capability → its description. The keys that a suite's `capabilities` may have."""


Replies: TypeAlias = Sequence[Reply]
"""What came back, in order: one reply, or several where calls were answered between them."""
Fault: TypeAlias = Literal["", "wrong_key", "missing_model", "refused_body"]
"""What is wrong with a question on purpose; the suite says how it is spelt for its service."""

MOST_ROUNDS = 4
"""How often calls are answered before a loop counts as endless."""


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"18 °C, rain in {city}"


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


def _answers(replies: Replies) -> None:
    """A text, with the finish reason "stop" or "length"."""
    reply = replies[-1]
    expect(reply.text.strip(), "the answer holds no text", shown={"what it holds": kinds(reply)})
    ended = reply.finish_reason
    expect(ended in ("stop", "length"), f"the answer to a plain question ended with {ended!r}, not with 'stop'")


def _calls_once(replies: Replies) -> None:
    """One call of the offered option."""
    calls = _calls(replies[-1])
    what = f"the answer holds {len(calls)} calls, where one was asked for and the choice was 'required'"
    expect(len(calls) == 1, what)


def _calls_twice(replies: Replies) -> None:
    """Two calls in one reply."""
    calls = _calls(replies[-1])
    expect(len(calls) >= 2, f"the answer holds {len(calls)} calls, where two cities were asked about")
    ids = [message.call.invocation_id for message in calls if message.call]
    expect(len(set(ids)) == len(ids), f"calls of one answer share an id: {', '.join(ids)}")


def _calls(reply: Reply) -> tuple[Message, ...]:
    """Return the calls of a reply, after checking that each names an offered option and has valid arguments."""
    for message in reply.option_calls:
        call = message.call
        assert call is not None
        offered = f"the option offered is {weather.name!r}"
        expect(call.option_name == weather.name, f"the answer calls {call.option_name!r}; {offered}")
        result = weather.answer_sync(message).result
        said = call.raw_arguments if call.raw_arguments is not None else call.arguments_json
        shown = {"the arguments": said}
        why = result.error_message if result else ""
        expect(result and not result.is_error, f"the call's arguments are none of {weather.name!r}: {why}", shown=shown)
    if reply.option_calls:
        ended = reply.finish_reason
        expect(ended == "option_calls", f"the answer ends with a call, but its finish reason is {ended!r}")
    return reply.option_calls


def _uses_result(replies: Replies) -> None:
    """A text that contains what the option returned."""
    _answers(replies)
    text = replies[-1].text
    expect("18" in text, f"the answer does not use the option's result, 18 °C: {text!r}")


def _is_a_city(replies: Replies) -> None:
    """JSON of the schema that was sent."""
    reply = replies[-1]
    try:
        City.model_validate_json(reply.text)
    except ValidationError:
        raise ConformanceFailure(
            "the answer is no JSON of the schema that was sent", shown={"its text": reply.text}
        ) from None
    ended = reply.finish_reason
    expect(ended == "stop", f"the answer is whole, but its finish reason is {ended!r}")


def _is_cut_short(replies: Replies) -> None:
    """It ended at the limit."""
    ended = replies[-1].finish_reason
    expect(ended == "length", f"the answer was cut off at max_output_tokens, but its finish reason is {ended!r}")


def _reasons(replies: Replies) -> None:
    """Reasoning, separate from the text."""
    reply = replies[-1]
    expect("reasoning" in kinds(reply), "the answer holds no reasoning", shown={"what it holds": kinds(reply)})
    expect(reply.text.strip(), "the answer holds no text beside its reasoning", shown={"what it holds": kinds(reply)})
    thought = reply.reasoning.strip()
    apart = not thought or thought not in reply.text
    expect(apart, "the reasoning stands in the answer's text too", shown={"its text": reply.text})


def _reasons_and_calls(replies: Replies) -> None:
    """Reasoning and a call, and a text after the result."""
    expect("reasoning" in kinds(replies[0]), "the first answer of the loop holds no reasoning before its call")
    expect(_calls(replies[0]), "the first answer of the loop calls no option", shown={"its text": replies[0].text})
    _answers(replies)


def kinds(reply: Reply) -> tuple[str, ...]:
    """Return the kinds of a reply's parts and calls. Neighbours of one kind count once."""
    held = [kind for message in reply.messages for kind in [str(part.kind) for part in message.parts] or [message.kind]]
    return tuple(kind for kind, _ in groupby(held))


@dataclass(frozen=True)
class Question:
    """One question and how it is asked.

    `needs`: capabilities without which it is not asked; where one is declared REFUSED, that refusal is checked
    instead. `answers_calls`: the options are run, and the model asked again. `expects`: the error of a question that
    fails, `fault` what is wrong with it on purpose. `check`: what any answer to it holds.
    """

    messages: Sequence[Message]
    settings: Settings
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    answers_calls: bool = False
    expects: type[CallError] | None = None
    fault: Fault = ""
    check: Callable[[Replies], None] = _answers


RED = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAABlBMVEX/AAAAAABBoxIDAAAADElEQVR42mNgGNwAAACgAAGO+7G0AAAAAElFTkSuQmCC"
)
"""A picture of 32 × 32 red points, as PNG."""
ASKED = "What is the weather in Paris?"
CHAT = (sabir.system("Be brief."), sabir.user(ASKED))
CALL = called("call_1", {"city": "Paris"}, "weather")
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
"""The token limit for models that think before they answer."""
REASONING = ROOMY.model_copy(update={"reasoning_effort": "low"})

QUESTIONS: Mapping[str, Question] = {
    "text": Question(CHAT, FIXED),
    "multi_turn": Question(
        (sabir.user("My name is Ada."), sabir.assistant("Hello, Ada."), sabir.user("What is my name?")), FIXED
    ),
    "system": Question(
        (sabir.system("You are a lighthouse keeper."), sabir.user("What do you do at night?")), FIXED, needs=("system",)
    ),
    "option_call": Question(CHAT, CALLING, (weather,), ("options",), check=_calls_once),
    "parallel_calls": Question(
        (sabir.user("What is the weather in Paris and in Rome? Ask for both at once."),),
        CALLING_TWICE,
        (weather,),
        ("options", "parallel_calls"),
        check=_calls_twice,
    ),
    "option_result": Question((*CHAT, CALL, RESULT), FIXED, (weather,), ("options",), check=_uses_result),
    "option_error": Question((*CHAT, CALL, FAILURE), FIXED, (weather,), ("options",)),
    "option_picture": Question((*CHAT, CALL, PICTURE), FIXED, (weather,), ("options", "results.image")),
    "image": Question((sabir.user("Which colour is this?", sabir.image(RED)),), FIXED, needs=("image.bytes",)),
    "reasoning": Question((sabir.user("Is 91 a prime number?"),), REASONING, needs=("reasoning",), check=_reasons),
    "reasoning_loop": Question(
        (sabir.user("Think first: do I need an umbrella in Paris?"),),
        REASONING,
        (weather,),
        ("reasoning", "options"),
        answers_calls=True,
        check=_reasons_and_calls,
    ),
    "structured_output": Question(
        (sabir.user("Where is the Eiffel Tower? Reply with JSON."),),
        FIXED.model_copy(update={"response_format": City, "max_output_tokens": 64}),
        needs=("settings.response_format",),
        check=_is_a_city,
    ),
    "max_tokens": Question(
        CHAT,
        FIXED.model_copy(update={"max_output_tokens": 3}),
        needs=("settings.max_output_tokens",),
        check=_is_cut_short,
    ),
    "bad_key": Question(CHAT, FIXED, expects=sabir.errors.AuthenticationFailed, fault="wrong_key"),
    "missing_model": Question(CHAT, FIXED, expects=sabir.errors.ModelNotFound, fault="missing_model"),
    "bad_request": Question(CHAT, FIXED, expects=sabir.errors.InvalidRequest, fault="refused_body"),
    "context_overflow": Question((sabir.user(TOO_LONG),), FIXED, expects=sabir.errors.ContextTooLong),
    "rate_limited": Question((sabir.user("How many requests are left?"),), ROOMY, expects=sabir.RateLimited),
    "overloaded": Question((sabir.user("Is there room for one more?"),), ROOMY, expects=sabir.errors.Overloaded),
}
"""Name → question; the names are those of the cassettes."""

ANSWERED = tuple(name for name, question in QUESTIONS.items() if question.expects is None)
"""Questions that get an answer."""
FAILING = tuple(name for name, question in QUESTIONS.items() if question.expects is not None)
"""Questions that get an error."""
