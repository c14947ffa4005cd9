"""Adapters that misread answers: each reads one answer wrongly, in one way of asking, and all others rightly."""

import atexit
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from sabir import Loss, Reply, ReplyEnd, Usage
from sabir.contract.dialect import ServerEvent
from sabir.contract.provider import WireRequest
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import Fold
from sabir.vocabulary.messages import PartsPayload
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import BlockEnd, BlockStart, StreamEvent
from sabir_testing.kit.service_questions import ANSWERED

from tests.testing.broken.requests import texts
from tests.testing.harness import TEMPLATE, Breakage, Delegate, changed

RECORDED = TEMPLATE / "tests" / "cassettes"
Is = Callable[[Reply], bool]
Changes = Callable[[Reply], Mapping[str, Any]]


def says(text: str) -> Is:
    """Whether a reply is the answer of that text, and no thought is before it."""
    return lambda reply: reply.text == text and not reply.reasoning


ANSWER_TO: Mapping[str, Is] = {
    "text": says("You said: What is the weather in Paris?"),
    "multi_turn": says("You said: What is my name?"),
    "system": says("You said: What do you do at night?"),
    "option_call": lambda reply: len(reply.option_calls) == 1 and not reply.reasoning,
    "parallel_calls": lambda reply: len(reply.option_calls) == 2,
    "option_result": says("18 °C, rain in Paris"),
    "option_error": says("That failed: the weather station does not answer"),
    "option_picture": says("The sky over Paris: (an image)"),
    "image": says("It shows a red dot."),
    "reasoning": lambda reply: "Is 91 a prime" in reply.reasoning,
    "reasoning_loop": lambda reply: "umbrella" in reply.reasoning and bool(reply.option_calls),
    "structured_output": lambda reply: reply.text.startswith("{"),
    "max_tokens": lambda reply: reply.finish_reason == "length",
}
"""Question → whether a reply is the answer that the template's service gives to it."""


class Misread(Delegate):
    """A dialect that gets the end of some answers wrong: whole ones, streamed ones, or both."""

    def __init__(self, base: Any, is_meant: Is, changes: Changes, ways: str = "whole streamed") -> None:
        super().__init__(base)
        self.is_meant, self.changes, self.ways = is_meant, changes, ways

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        reply: Reply = self.base.decode(body, scope)
        if "whole" in self.ways and self.is_meant(reply):
            return reply.model_copy(update=self.changes(reply))
        return reply

    def decoder(self, scope: DecodeScope) -> Any:
        decoder = self.base.decoder(scope)
        return _Misreading(decoder, scope, self) if "streamed" in self.ways else decoder


class _Misreading(Delegate):
    """A decoder that gets the end of its stream wrong, where it is one of those."""

    def __init__(self, base: Any, scope: DecodeScope, misread: Misread) -> None:
        super().__init__(base)
        self.fold, self.misread = Fold(scope), misread

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in self.base.feed(event):
            self.fold.feed(found)
            if isinstance(found, ReplyEnd) and self.misread.is_meant(self.fold.reply()):
                changes = dict(self.misread.changes(self.fold.reply()))
                for index, part in enumerate(changes.pop("further_parts", ()), start=1000):
                    yield BlockStart(index=index, kind=part.kind)
                    yield BlockEnd(index=index, block=part)
                yield found.model_copy(update=changes)
            else:
                yield found


class ThinksAloud(Misread):
    """The thought stands in the text as well."""

    def __init__(self, base: Any) -> None:
        super().__init__(base, ANSWER_TO["reasoning"], lambda reply: {"further_parts": [_aloud(reply)]})

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        reply: Reply = self.base.decode(body, scope)
        if not self.is_meant(reply):
            return reply
        [message] = reply.messages
        payload = PartsPayload(parts=(*message.parts, _aloud(reply)))
        return reply.model_copy(update={"messages": (message.model_copy(update={"payload": payload}),)})


def _aloud(reply: Reply) -> TextPart:
    return TextPart(text=reply.reasoning)


class Unsigned(Delegate):
    """The streamed thought has lost what the service put on it."""

    def __init__(self, own: Any, scope: DecodeScope) -> None:
        super().__init__(own(scope))

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in self.base.feed(event):
            block = getattr(found, "block", None)
            is_meant = block is not None and block.kind == "reasoning" and "Is 91 a prime" in block.text
            yield found.model_copy(update={"block": block.model_copy(update={"state": None})}) if is_meant else found


def forgetful(text: str) -> str:
    """One word of what the model said does not go back."""
    return "It shows a dot." if text == "It shows a red dot." else text


class Failed(NamedTuple):
    """What stands in for an answer."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> Iterator[bytes]:
        yield b'{"error": {"code": "other", "message": "something else"}}'

    def close(self) -> None:
        pass


class Restates(Delegate):
    """A connection that turns the failure of one question, in one way of asking, into another."""

    def __init__(self, base: Any, question: str, *, streaming: bool) -> None:
        super().__init__(base)
        self.question, self.streaming = question, streaming

    def open_sync(self, request: WireRequest) -> Any:
        answer = self.base.open_sync(request)
        word, status = FAILURES[self.question]
        if (word in request.body, request.streaming, answer.status) != (True, self.streaming, status):
            return answer
        answer.close()
        return Failed(500, {"content-type": "application/json"})


FAILURES: Mapping[str, tuple[bytes, int]] = {
    "bad_key": (b"What is the weather in Paris?", 401),
    "missing_model": (b'"missing"', 404),
    "bad_request": (b'"many"', 400),
    "context_overflow": (b"word word word", 400),
    "rate_limited": (b"slow down", 429),
    "overloaded": (b"overload", 503),
}
"""Question → a text of its request, and the status of its answer."""


def ended(reason: str) -> Changes:
    """Another finish reason than the right one."""
    return lambda reply: {"finish_reason": reason}


def misread(question: str, changes: Changes, ways: str = "whole streamed") -> Breakage:
    """A dialect that gets the end of the answer to one question wrong."""
    return Breakage(dialect=lambda base: Misread(base, ANSWER_TO[question], changes, ways))


def of_origin(**fields: Any) -> Changes:
    """Something else in the origin."""
    return lambda reply: {"origin": reply.origin.model_copy(update=fields)}


def neat(reply: Reply) -> Mapping[str, Any]:
    """The arguments of its call are written anew."""
    [message] = reply.messages
    assert message.call is not None
    payload = message.call.model_copy(update={"raw_arguments": message.call.arguments_json})
    return {"messages": (message.model_copy(update={"payload": payload}),)}


_FOLDERS = TemporaryDirectory()
atexit.register(_FOLDERS.cleanup)


def folder(name: str, file: str, change: Callable[[str], str]) -> Path:
    """A copy of the template's cassettes in which one is another."""
    made = Path(_FOLDERS.name) / name
    if not made.exists():
        shutil.copytree(RECORDED, made)
        recorded = (RECORDED / "text.yaml").read_text("utf-8")
        (made / file).write_text(change(recorded), "utf-8")
    return made


def _with_cookie(recorded: str) -> str:
    cookie = "      set-cookie:\n      - session=9f8e7d6c5b4a39281706f5e4d3c2b1a0\n"
    return recorded.replace("    headers:\n", f"    headers:\n{cookie}", 1)


OTHERWISE = {"option_call": "stop", "parallel_calls": "stop", "reasoning_loop": "stop", "max_tokens": "stop"}
"""The finish reasons that a careless table gives; "other" elsewhere."""

BROKEN: Mapping[str, Breakage] = {
    **{
        f"test_a_recorded_answer_says_what_was_asked[{question}]": misread(
            question, ended(OTHERWISE.get(question, "other"))
        )
        for question in ANSWERED
    },
    "test_a_recorded_answer_says_what_was_asked[reasoning]": Breakage(dialect=ThinksAloud),
    **{
        f"test_a_streamed_answer_is_the_whole_answer[{question}]": misread(question, ended("paused"), "streamed")
        for question in ANSWERED
    },
    **{
        f"test_a_{way}_failure_is_its_error[{question}]": Breakage(
            connection=partial(Restates, question=question, streaming=way == "streamed")
        )
        for question in FAILURES
        for way in ("recorded", "streamed")
    },
    "test_the_usage_of_an_answer_is_counted": misread("text", lambda reply: {"usage": Usage()}, "whole"),
    "test_the_usage_of_a_stream_is_counted": misread("text", lambda reply: {"usage": Usage()}, "streamed"),
    "test_an_answer_says_who_gave_it": misread("text", of_origin(model="large"), "whole"),
    "test_an_answer_keeps_the_vendors_id": misread("text", of_origin(response_id=None), "whole"),
    "test_the_vendors_finish_reason_is_kept": misread("text", lambda reply: {"raw_finish_reason": "stop"}, "whole"),
    "test_a_call_keeps_its_arguments_as_they_came": misread("option_call", neat, "whole"),
    "test_what_was_signed_is_kept": changed(decoder=Unsigned),
    "test_an_answer_goes_back_as_it_came": texts(forgetful),
    "test_an_answer_loses_nothing": misread(
        "text", lambda reply: {"losses": (Loss(kind="dropped", path="parts[1]", reason="not read"),)}, "whole"
    ),
    "test_every_recording_is_asked_for": Breakage(
        attributes={"cassettes": folder("stray", "text_again.yaml", lambda recorded: recorded)}
    ),
    "test_a_recording_is_whole_and_holds_no_secret": Breakage(
        attributes={"cassettes": folder("leaking", "text.yaml", _with_cookie)}
    ),
}
