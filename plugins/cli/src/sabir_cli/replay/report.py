"""The differences of a replay: as text for people, and as a JSON document.

question 2: “Rain in Rome?”
  reply 1, call weather: argument city
    recorded  "Rome"
    replayed  "Roma"
  stopped: there is no recorded result for weather(city='Roma')
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text
from sabir.authoring import JSONValue, one_line, printable

from sabir_cli.losses import first_words
from sabir_cli.replay.differences import Difference
from sabir_cli.replay.recording import RecordedQuestion

LONGEST_SHOWN = 240
"""Maximum length of a shown text or value, in characters. A longer text begins shortly before its first difference."""
LEAD = 40
"""The number of equal characters that are shown before the first difference of a longer text."""


@dataclass(frozen=True)
class QuestionReport:
    """The result of one question. `number` counts from 1. `stopped` says why it ended early; "" if it did not."""

    number: int
    question: RecordedQuestion
    differences: tuple[Difference, ...]
    stopped: str = ""

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.differences or self.stopped)

    def document(self) -> dict[str, Any]:  # any JSON
        """Return the report as a JSON object."""
        message = self.question.message
        rows = [asdict(difference) for difference in self.differences]
        return {
            "question": self.number,
            "text": message.text if message else "",
            "differences": rows,
            "stopped": self.stopped,
        }


class HangingLine:
    """A renderable: `begin` and a text, whose further lines are indented as far as its first line."""

    def __init__(self, begin: str, text: Text) -> None:
        self._begin, self._text = begin, text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines, without blanks at their ends."""
        indent = cell_len(self._begin)
        lines = self._text.wrap(console, max(20, options.max_width - indent), overflow="fold")
        for number, line in enumerate(lines):
            line.rstrip()
            yield Text.assemble(" " * indent if number else (self._begin, "dim"), line)


def report_lines(report: QuestionReport) -> Iterator[RenderableType]:
    """Yield the lines of a question that differs."""
    message = report.question.message
    words = first_words(message) if message else "no message of the user"
    yield Text(printable(f"question {report.number}: {words}"), style="bold")
    for difference in report.differences:
        yield HangingLine("  ", Text(printable(_title(difference))))
        yield from _sides(difference)
    if report.stopped:
        yield HangingLine("  ", Text(printable(f"stopped: {report.stopped}"), style="yellow"))


def summary_line(reports: Sequence[QuestionReport]) -> str:
    """Return the line after all questions: how many differ, and in which aspects."""
    total = _count(len(reports), "question")
    different = sum(report.differs for report in reports)
    if not different:
        return f"{total}, no difference"
    counts = Counter(_NOUNS.get(each.aspect, each.aspect) for report in reports for each in report.differences)
    parts = [_count(number, noun) for noun, number in counts.items()]
    if stopped := sum(bool(report.stopped) for report in reports):
        parts.append(f"{stopped} stopped")
    return f"{different} of {total} differ{'s' * (different == 1)}: {', '.join(parts)}"


_NOUNS = {"input tokens": "token count", "output tokens": "token count"}


def _count(number: int, noun: str) -> str:
    """Return a number and a noun, such as "2 replies". "media" has no other plural."""
    plural = noun if noun == "media" else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _title(difference: Difference) -> str:
    """Return what differs, such as "reply 1, call weather: argument city"."""
    if difference.aspect == "question":
        return "question"
    reply = f"reply {difference.reply}"
    if difference.aspect in ("argument", "result"):
        option, _, path = difference.place.partition(" ")
        return f"{reply}, call {option}: {difference.aspect} {path}".rstrip()
    if difference.aspect in ("reply", "call") and None in (difference.recorded, difference.replayed):
        side = "the recording" if difference.replayed is None else "the replay"
        return f"{reply}: only in {side}" if difference.aspect == "reply" else f"{reply}, call: only in {side}"
    return f"{reply}, {difference.aspect}"


def _sides(difference: Difference) -> Iterator[RenderableType]:
    """Yield the lines of both sides. A reply or a call that one side lacks has one line."""
    values = {"recorded": difference.recorded, "replayed": difference.replayed}
    texts = {side: _readable(content) for side, content in values.items()}
    start = _start_of_difference(*texts.values())
    for side, text in texts.items():
        if values[side] is not None or difference.aspect not in ("reply", "call"):
            yield HangingLine(f"    {side}  ", Text(printable(_excerpt(text, start))))


def _readable(content: JSONValue) -> str:
    """Return a text or number as it is, another value as JSON, and a missing one as a dash."""
    if content is None:
        return "–"
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _start_of_difference(one: str, other: str) -> int:
    """Return where the shown part of two texts begins: 0, or for long texts shortly before the first difference."""
    if max(len(one), len(other)) <= LONGEST_SHOWN:
        return 0
    shorter = min(len(one), len(other))
    at = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    return max(0, at - LEAD)


def _excerpt(text: str, start: int) -> str:
    """Return the text from `start` on, in one line that is cut at its end."""
    excerpt = one_line(text[start:], LONGEST_SHOWN) or "(empty)"
    return f"… {excerpt}" if start else excerpt
