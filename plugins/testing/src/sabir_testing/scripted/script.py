"""The script of a scripted adapter: answers in their order, and the requests that they were given to."""

from collections.abc import Sequence
from itertools import count
from threading import Lock
from typing import NamedTuple

from sabir import Message, Option, Rendering, Settings
from sabir.authoring import WireRequest
from sabir.errors import SettingsInvalid

from sabir_testing.scripted.answers import Always, Answer, Function, Scriptable, as_answer, described
from sabir_testing.scripted.gate import ScriptMismatch
from sabir_testing.scripted.sent import Sent, listed
from sabir_testing.scripted.wire import Chunk, chunks_of


class Asked(NamedTuple):
    """What a rendering was made of."""

    rendering: Rendering
    messages: tuple[Message, ...]
    options: tuple[Option, ...]
    settings: Settings


class Script:
    """One answer a request; threads and tasks may share it."""

    def __init__(self, given: Sequence[Scriptable], speaks_as: str) -> None:
        answers = list(given)
        ending = answers.pop() if answers and isinstance(answers[-1], Always) else None
        self._answers = [_checked(each, number) for number, each in enumerate(answers, 1)]
        self._ending = ending.answer if isinstance(ending, Always) else None
        self._speaks_as = speaks_as
        self._asked: dict[bytes, Asked] = {}
        self._sent: list[Sent] = []
        self._numbers = count(1)
        self._lock = Lock()

    def __str__(self) -> str:
        """How far it is, in one line."""
        ending = "" if self._ending is None else ", then always one"
        return f"{counted(len(self._answers), 'answer')}{ending}, {len(self._sent)} asked for"

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The requests that came."""
        return tuple(self._sent)

    def note(self, asked: Asked) -> None:
        """Remember what a rendering was made of, by the bytes that it may be sent as."""
        for rendering in (asked.rendering, asked.rendering.for_stream()):
            self._asked[rendering.body_bytes] = asked

    def knows(self, rendering: Rendering) -> bool:
        """Whether it is known what a rendering was made of."""
        return rendering.body_bytes in self._asked

    def serve(self, request: WireRequest) -> list[Chunk]:
        """The next answer; raises ScriptMismatch if there is none."""
        sent = self._take(self._asked[request.body], streaming=request.streaming)
        given = self._answers[sent.number - 1] if sent.number <= len(self._answers) else self._ending
        if given is None:
            raise ScriptMismatch(self._excess(sent))
        words = sum(len(message.text.split()) for message in sent.messages)
        return list(chunks_of(_answered(given, sent), lambda: f"call-{next(self._numbers)}", words))

    def assert_finished(self) -> None:
        """Raise ScriptMismatch where an answer is left, or a request found none."""
        sent, left = self.sent, self._answers[len(self._sent) :]
        if left:
            what = f"{len(left)} of {counted(len(self._answers), 'scripted answer')} not asked for"
            raise ScriptMismatch(f"{what}: {', '.join(map(described, left))}; sent: {listed(sent)}")
        if self._ending is None and len(sent) > len(self._answers):
            raise ScriptMismatch(self._excess(sent[len(self._answers)]))

    def _take(self, asked: Asked, *, streaming: bool) -> Sent:
        with self._lock:
            sent = Sent(
                number=len(self._sent) + 1,
                messages=asked.messages,
                options=asked.options,
                settings=asked.settings,
                rendering=asked.rendering,
                streaming=streaming,
                speaks_as=self._speaks_as,
            )
            self._sent.append(sent)
        return sent

    def _excess(self, sent: Sent) -> str:
        scripted = counted(len(self._answers), "answer")
        return f"{scripted} scripted, and {sent} came in addition; add an answer, or end the script with always(…)"


def _checked(given: Scriptable, number: int) -> Answer | Function:
    place = f"answer {number} of the script"
    if isinstance(given, Always):
        raise SettingsInvalid(f"{place} is always(…), which only the last can be; put it there")
    return as_answer(given, place)


def _answered(given: Answer | Function, sent: Sent) -> Answer:
    """The answer itself, or what a function says to a request."""
    if isinstance(given, Answer):
        return given
    said = as_answer(given(sent), f"what the function of answer {sent.number} returned")
    if not isinstance(said, Answer):
        raise SettingsInvalid(f"the function of answer {sent.number} returned a function; let it return an answer")
    return said


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number} {what}{'s'[: number != 1]}"
