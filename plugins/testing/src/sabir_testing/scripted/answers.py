"""The functions for scripts: the model's answers, delays and failures; and the request that a function is given.

"Hello!"                                      a text
calls(weather={"city": "Paris"})              option calls, several of one reply in parallel
reply("Let me look.", calls(…), usage=…)      several things in one reply
sabir.RateLimited("…")                        an error, in place of an answer
delayed("late", gate)                         an answer that a test holds back
cut_off("half a sen")                         a stream that breaks
lambda sent: f"You said {sent.user_text}"     an answer that depends on the request
always("…")                                   as the last of a script: for this and all further requests
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
"""How much of a request's text is shown in one line."""


@dataclass(frozen=True, slots=True, repr=False)
class ScriptedRequest:
    """One request: what the program gave, and what it was rendered to.

    `settings` are the call's, laid over the adapter's. A call that its RetryPolicy repeats is as many requests.
    """

    number: int
    """Which request it is, counted from 1."""
    messages: tuple[sabir.Message, ...]
    options: tuple[sabir.Option, ...]
    settings: sabir.Settings
    rendering: sabir.Rendering
    streaming: bool
    speaks_as: str = "llm"

    @property
    def user_text(self) -> str:
        """The text of the last message that the model did not say itself and that is no instruction; "" without one."""
        others = (each for each in reversed(self.messages) if each.kind == "parts")
        return next((each.text for each in others if each.policy not in ("system", self.speaks_as)), "")

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options offered."""
        return tuple(option.name for option in self.options)

    @property
    def results(self) -> tuple[sabir.OptionResultPayload, ...]:
        """The option results at the end of the conversation: the answers to the calls of the reply before."""
        found = [message.result for message in takewhile(lambda each: each.result, reversed(self.messages))]
        return tuple(result for result in reversed(found) if result)

    def __repr__(self) -> str:
        """The request in one line."""
        return f"<ScriptedRequest {self}>"

    def __str__(self) -> str:
        """The request in one line: its text, how many messages it has, and what was offered."""
        count = counted(len(self.messages), "message")
        offered = f", options {', '.join(self.option_names)}" if self.options else ""
        answered = f", results of {', '.join(each.option_name for each in self.results)}" if self.results else ""
        return f"request {self.number}: {one_line(self.user_text, SHOWN_CHARACTERS)!r} ({count}{answered}{offered})"


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number} {what}{'s'[: number != 1]}"


def listed(sent: Sequence[ScriptedRequest]) -> str:
    """Requests, as a failure lists them."""
    return "; ".join(map(str, sent)) or "none"


Arguments: TypeAlias = Mapping[str, JSONValue] | str
"""The arguments of a scripted call: a mapping, or the text as a model wrote it, which may be no JSON at all."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """An option call of a script; "" stands for an id that is counted: `call-1`, `call-2` …"""

    name: str
    arguments: str
    id: str = ""

    @property
    def pieces(self) -> tuple[str, ...]:
        """As they are streamed."""
        return _words(self.arguments)


@dataclass(frozen=True, slots=True)
class Pieced:
    """A part, and the pieces in which its text is streamed."""

    part: KnownPart
    pieces: tuple[str, ...]


Step: TypeAlias = Chosen | Pieced | Wait | CallError


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """One answer of a script; made by `reply` and its siblings."""

    steps: tuple[Step, ...]
    usage: sabir.Usage | None = None
    finish_reason: FinishReason | None = None

    def __repr__(self) -> str:
        """What it says, in one line."""
        return " + ".join(map(_described, self.steps)) or "an empty reply"


class Always(NamedTuple):
    """The answer to every further request; made by `always`."""

    answer: "Answer | Function"

    def __repr__(self) -> str:
        """What it says, in one line."""
        return f"always {described(self.answer)}"


Said: TypeAlias = str | KnownPart | BaseModel | Answer | Gate
"""What a reply is made of: texts, parts, option calls; a pydantic model is its JSON text, a gate a delay."""
Scriptable: TypeAlias = "Said | CallError | Function | Always"
"""What an adapter can be told to answer."""
Function: TypeAlias = Callable[[ScriptedRequest], "str | KnownPart | BaseModel | Answer | CallError"]
"""A plain function that is asked for the answer to a request."""

_EXPECTED: Final = "give a str, a part, calls(…), reply(…), an error such as sabir.RateLimited('…'), or a function"


def reply(*content: Said, usage: sabir.Usage | None = None, finish_reason: FinishReason | None = None) -> Answer:
    """One answer of several things, in their order; a gate among them holds back what follows it.

    Without `usage`, a word of the conversation is one input token, a streamed piece one output token. Without
    `finish_reason`, it is "option_calls" for an answer with calls and "stop" for others. SettingsInvalid for what is
    no content.
    """
    steps = tuple(step for index, said in enumerate(content) for step in _steps(said, f"content[{index}]"))
    return Answer(steps, usage, finish_reason)


def call(name: str, arguments: Arguments | None = None, *, id: str = "") -> Answer:
    """One option call; without `id` it gets one that is counted, `call-1` being an adapter's first."""
    if isinstance(arguments, str):
        return Answer((Chosen(name, arguments, id),))
    return Answer((Chosen(name, json.dumps(json.loads(encode_json(dict(arguments or {}))), ensure_ascii=False), id),))


def calls(**by_name: Arguments | Sequence[Arguments]) -> Answer:
    """Option calls by their names, in parallel where there are several; a list of arguments calls one several times.

    An option whose name is no identifier is called by `call`, as is one with an id of its own.
    """
    steps: list[Step] = []
    for name, given in by_name.items():
        each = [given] if isinstance(given, Mapping | str) else given
        steps += [step for arguments in each for step in call(name, arguments).steps]
    return Answer(tuple(steps))


def pieces(*texts: str) -> Answer:
    """A text that is streamed in these pieces; by default a text is streamed word by word."""
    return Answer((Pieced(sabir.TextPart(text="".join(texts)), texts),))


def delayed(answer: Said | CallError, until: Gate | float) -> Answer:
    """An answer that is held back: until the test opens a gate, or for seconds.

    Seconds are not waited but counted: where they exceed the request's `Settings.timeout`, the call times out as with
    a vendor's client; else they are given to the adapter's `sleep`, if it has one.
    """
    made = as_answer(answer, "the delayed answer")
    if not isinstance(made, Answer):
        raise SettingsInvalid("a function cannot be delayed; let it return delayed(…)")
    return replace(made, steps=(Wait(until), *made.steps))


def cut_off(*content: Said, error: CallError | None = None) -> Answer:
    """An answer that breaks off after its content, in the midst of the last text or call.

    The error is by default that of a broken connection. A stream raises StreamBroken with what came in `partial`; a
    call that is no stream raises the error itself, which its RetryPolicy may try again. Without content the stream
    breaks before its first event, and raises the error too.
    """
    broken = error or ConnectionFailed("the connection broke, as the script says")
    return Answer((*reply(*content).steps, broken))


def always(answer: "Said | CallError | Function") -> Always:
    """As the last of a script: the answer to this and to every further request."""
    return Always(as_answer(answer, "always(…)"))


def as_answer(given: object, place: str) -> "Answer | Function":
    """The answer that something stands for; SettingsInvalid for what is none, naming its place in the script."""
    if isinstance(given, CallError):
        return Answer((given,))
    if inspect.iscoroutinefunction(given):
        raise SettingsInvalid(f"{place} is a coroutine function; give a plain one, or delayed('…', gate)")
    if callable(given) and not isinstance(given, type | Frozen):
        return given
    return given if isinstance(given, Answer) else Answer(tuple(_steps(given, place)))


def _steps(given: object, place: str) -> Iterator[Step]:
    if isinstance(given, str):
        yield Pieced(sabir.TextPart(text=given), _words(given))
    elif isinstance(given, sabir.TextPart | sabir.ReasoningPart | sabir.RefusalPart):
        yield Pieced(given, _words(given.text))
    elif isinstance(given, KnownPart):
        yield Pieced(given, ())
    elif isinstance(given, Gate):
        yield Wait(given)
    elif isinstance(given, Answer):
        yield from given.steps
    elif isinstance(given, BaseModel) and not isinstance(given, Frozen):
        yield from _steps(given.model_dump_json(by_alias=True), place)
    elif isinstance(given, type) and issubclass(given, CallError):
        raise SettingsInvalid(f"{place} is the class {given.__name__}; give an error of it: {given.__name__}('why')")
    else:
        raise SettingsInvalid(f"{place} is of type {type(given).__name__}; {_EXPECTED}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"(?<=\s)(?=\S)", text) if word)


def described(answer: "Answer | Function") -> str:
    """An answer in a few words, as a failure names it."""
    return repr(answer) if isinstance(answer, Answer) else f"the function {getattr(answer, '__name__', answer)}"


def _described(step: Step) -> str:
    match step:
        case Chosen():
            return f"a call of {step.name}"
        case Pieced(part):
            text = getattr(part, "text", None)
            return f"a part of kind {part.kind}" if text is None else repr(one_line(text, 40))
        case Wait():
            return "a delay"
    return f"{type(step).__name__}({one_line(str(step), 40)!r})"
