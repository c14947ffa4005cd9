"""Functions that create the answers of a script, and the request that a script's function gets.

"Hello!"                                      a text
calls(weather={"city": "Paris"})              option calls; several are parallel calls of one reply
reply("Let me look.", calls(…), usage=…)      several contents in one reply
sabir.RateLimited("…")                        an error, after which the RetryPolicy may request the next answer
delayed("late", gate)                         an answer that waits for the test
cut_off("half a sen")                         a stream that breaks
lambda sent: f"You said {sent.user_text}"     an answer that depends on the request
always("…")                                   at the end of a script: for this and all later requests
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

import sabir
from pydantic import BaseModel
from sabir.authoring import FinishReason, Frozen, JSONValue, KnownPart, encode_json, one_line
from sabir.errors import CallError, ConnectionFailed, SettingsInvalid

from sabir_testing.scripted.gate import Gate, Wait

SHOWN_CHARACTERS = 80
"""The largest number of characters of a request's text in an error message."""


@dataclass(frozen=True, slots=True, repr=False)
class ScriptedRequest:
    """One request that a ScriptedAdapter received. In `ScriptedAdapter.sent`, and the argument of functions in a
    script.

    A request that the RetryPolicy repeats counts again.
    """

    number: int
    """The number of the request, beginning with 1."""
    messages: tuple[sabir.Message, ...]
    """The messages of the conversation."""
    options: tuple[sabir.Option, ...]
    """The options that were offered."""
    settings: sabir.Settings
    """The settings of the call, merged over the adapter's settings. For a rendering that the adapter did not create:
    the settings that it contains.
    """
    rendering: sabir.Rendering
    """The rendered request, with its losses."""
    streaming: bool
    """Whether the program requested a stream."""
    speaks_as: str = "llm"
    """The policy of the adapter."""

    @property
    def user_text(self) -> str:
        """The text of the last message of parts that is neither from the model nor a system message; "" if there is
        none.
        """
        others = (each for each in reversed(self.messages) if each.kind == "parts")
        return next((each.text for each in others if each.policy not in ("system", self.speaks_as)), "")

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options that were offered."""
        return tuple(option.name for option in self.options)

    @property
    def results(self) -> tuple[sabir.OptionResultPayload, ...]:
        """The option results at the end of the conversation, in order."""
        payloads = [message.result for message in takewhile(lambda each: each.result, reversed(self.messages))]
        return tuple(result for result in reversed(payloads) if result)

    def __repr__(self) -> str:
        """Return the request in one line."""
        return f"<ScriptedRequest {self}>"

    def __str__(self) -> str:
        """Return the request in one line: its text, the number of messages, and the offered options."""
        count = count_of(len(self.messages), "message")
        offered = f", options {', '.join(self.option_names)}" if self.options else ""
        answered = f", results of {', '.join(each.option_name for each in self.results)}" if self.results else ""
        return f"request {self.number}: {one_line(self.user_text, SHOWN_CHARACTERS)!r} ({count}{answered}{offered})"


def count_of(number: int, what: str) -> str:
    """Return a number with a noun, in the plural if needed."""
    return f"{number} {what}{'s'[: number != 1]}"


def list_requests(sent: Sequence[ScriptedRequest]) -> str:
    """Return requests as a failure lists them."""
    return "; ".join(map(str, sent)) or "none"


Arguments: TypeAlias = Mapping[str, JSONValue] | str
"""The arguments of a scripted call: a mapping, or the text that the model writes, which may be invalid JSON."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """An option call of a script. The id "" is replaced by "call-1", "call-2" and so on."""

    name: str
    arguments: str
    id: str = ""

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces in which the arguments are streamed."""
        return _split_words(self.arguments)


@dataclass(frozen=True, slots=True)
class StreamedPart:
    """A part, and the pieces in which its text is streamed."""

    part: KnownPart
    pieces: tuple[str, ...]


Step: TypeAlias = ScriptedCall | StreamedPart | Wait | CallError


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """One answer of a script. Created by `reply`, `call`, `calls`, `pieces`, `delayed` and `cut_off`.

    `steps` are the contents, delays and errors, in order. `usage` and `finish_reason` belong to the reply; None means
    the defaults of `reply`.
    """

    steps: tuple[Step, ...]
    usage: sabir.Usage | None = None
    finish_reason: FinishReason | None = None

    def __repr__(self) -> str:
        """Return the contents in one line."""
        return " + ".join(map(_describe_step, self.steps)) or "an empty reply"


class Always(NamedTuple):
    """The answer to every further request. Created by `always`."""

    answer: "Answer | Function"

    def __repr__(self) -> str:
        """Return the answer in one line."""
        return f"always {describe_answer(self.answer)}"


ReplyContent: TypeAlias = str | KnownPart | BaseModel | Answer | Gate
"""What a reply can contain: text, a part, option calls, a pydantic model (its JSON text), or a Gate, which delays the
rest.
"""
Scriptable: TypeAlias = "ReplyContent | CallError | Function | Always"
"""What a script can contain: text, a part, a pydantic model, an Answer, a CallError, a function of the ScriptedRequest,
or `always(…)` at the end.
"""
Function: TypeAlias = Callable[[ScriptedRequest], "str | KnownPart | BaseModel | Answer | CallError"]
"""A plain function that gets the ScriptedRequest and returns the answer or a CallError."""

_EXPECTED: Final = "use a str, a part, calls(…), reply(…), an error such as sabir.RateLimited('…'), or a function"


def reply(
    *content: ReplyContent, usage: sabir.Usage | None = None, finish_reason: FinishReason | None = None
) -> Answer:
    """Return an answer with several contents, in order: texts, parts, option calls and models. A Gate delays the
    contents after it.

    Without `usage`, every word of the conversation counts as an input token and every streamed piece as an output
    token. Without `finish_reason`, it is "option_calls" if there are calls, otherwise "stop". Raises SettingsInvalid
    for other contents. `usage` and `finish_reason` of an Answer in `content` are not used.
    """
    steps = tuple(step for index, part in enumerate(content) for step in _steps(part, f"content[{index}]"))
    return Answer(steps, usage, finish_reason)


def call(name: str, arguments: Arguments | None = None, *, id: str = "") -> Answer:
    """Return an answer with one option call. `arguments` is a mapping, or text as a model writes it, which may be
    invalid JSON.

    `id` is the call's id. By default the adapter numbers such calls: "call-1", "call-2" and so on.
    """
    if isinstance(arguments, str):
        return Answer((ScriptedCall(name, arguments, id),))
    text = json.dumps(json.loads(encode_json(dict(arguments or {}))), ensure_ascii=False)
    return Answer((ScriptedCall(name, text, id),))


def calls(**by_name: Arguments | Sequence[Arguments]) -> Answer:
    """Return an answer with option calls: option name → arguments. Several calls are parallel. A list of arguments
    calls the option several times.

    Use `call` for an option whose name is not a Python identifier, and for a call with its own id.
    """
    steps: list[Step] = []
    for name, entry in by_name.items():
        argument_sets = [entry] if isinstance(entry, Mapping | str) else entry
        steps += [step for arguments in argument_sets for step in call(name, arguments).steps]
    return Answer(tuple(steps))


def pieces(*texts: str) -> Answer:
    """Return an answer with one text that is streamed in exactly these pieces. Texts without `pieces` are streamed word
    by word.
    """
    return Answer((StreamedPart(sabir.TextPart(text="".join(texts)), texts),))


def delayed(answer: ReplyContent | CallError, until: Gate | float) -> Answer:
    """Return an answer that is delayed: until the test opens a Gate, or for a number of seconds.

    Seconds pass without waiting, unless the adapter has a `sleep` that waits. If they exceed the request's
    `Settings.timeout`, the request fails with CallTimedOut, which the RetryPolicy may retry; otherwise the adapter's
    `sleep` is called with them, if it has one.
    """
    undelayed = as_answer(answer, "the delayed answer")
    if not isinstance(undelayed, Answer):
        raise SettingsInvalid("delayed(…) cannot delay a function; return delayed(…) from the function instead")
    return replace(undelayed, steps=(Wait(until), *undelayed.steps))


def cut_off(*content: ReplyContent, error: CallError | None = None) -> Answer:
    """Return an answer that breaks off after its contents. If the last one is a text, part or call, it does not end.
    `error` is by default a ConnectionFailed.

    A stream with contents raises StreamBroken, with the contents so far in `partial`. A call without a stream, and a
    stream without contents, fail with the error itself, and the RetryPolicy may retry.
    """
    broken = error or ConnectionFailed("the script cuts off this answer")
    return Answer((*reply(*content).steps, broken))


def always(answer: "ReplyContent | CallError | Function") -> Always:
    """Return the last entry of a script: the answer to this request and to every further one."""
    return Always(as_answer(answer, "always(…)"))


def as_answer(entry: object, position: str) -> "Answer | Function":
    """Convert a value of a script to an answer; return a function unchanged. Raises SettingsInvalid, which names the
    place in the script, for other values.
    """
    if isinstance(entry, CallError):
        return Answer((entry,))
    if inspect.iscoroutinefunction(entry):
        raise SettingsInvalid(f"{position} is an async function; use a plain function, or delayed('…', gate)")
    if callable(entry) and not isinstance(entry, type | Frozen):
        return entry
    return entry if isinstance(entry, Answer) else Answer(tuple(_steps(entry, position)))


def _steps(content: object, position: str) -> Iterator[Step]:
    if isinstance(content, str):
        yield StreamedPart(sabir.TextPart(text=content), _split_words(content))
    elif isinstance(content, sabir.TextPart | sabir.ReasoningPart | sabir.RefusalPart):
        yield StreamedPart(content, _split_words(content.text))
    elif isinstance(content, KnownPart):
        yield StreamedPart(content, ())
    elif isinstance(content, Gate):
        yield Wait(content)
    elif isinstance(content, Answer):
        yield from content.steps
    elif isinstance(content, BaseModel) and not isinstance(content, Frozen):
        yield from _steps(content.model_dump_json(by_alias=True), position)
    elif isinstance(content, type) and issubclass(content, CallError):
        name = content.__name__
        raise SettingsInvalid(f"{position} is the error class {name}; use an instance such as {name}('the reason')")
    else:
        raise SettingsInvalid(f"{position} has the type {type(content).__name__}; {_EXPECTED}")


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"(?<=\s)(?=\S)", text) if word)


def describe_answer(answer: "Answer | Function") -> str:
    """Return an answer in a few words, for a failure."""
    return repr(answer) if isinstance(answer, Answer) else f"the function {getattr(answer, '__name__', answer)}"


def _describe_step(step: Step) -> str:
    match step:
        case ScriptedCall():
            return f"a call of {step.name}"
        case StreamedPart(part):
            text = getattr(part, "text", None)
            return f"a part of kind {part.kind!r}" if text is None else repr(one_line(text, 40))
        case Wait():
            return "a delay"
    return f"{type(step).__name__}({one_line(str(step), 40)!r})"
