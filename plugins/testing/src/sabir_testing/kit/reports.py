"""Reports: the text of a failed test case, the advice for other outcomes, and the summary of each suite.

expect(text in body, "the text of message 2 is neither in the body nor in the losses", history=…, rendering=…)

the fault
the smallest history that shows the fault   one line for each message
the rendered request, the losses            of that history
the rule, the page                          added by the pytest plugin: the case's docstring, and its documentation

TestAcme: 184 cases, 182 passed, 1 failed, 1 expected to fail
  full         image.url, system, …
  expected to fail
    test_…[seed]: the reason
"""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypedDict, Unpack

import pytest
import sabir
from sabir import Loss, Message, Rendering
from sabir.authoring import show_arguments

from sabir_testing.kit import CAPABILITY_PROPERTY, HANDED_OVER, SUITE_PROPERTY, WARNED_PROPERTY
from sabir_testing.reading import as_json

WIDTH = 100
MOST_LINES = 40
MOST_TEXT = 60


class FailureContext(TypedDict, total=False):
    """What a failure shows in addition to its message. All are optional.

    history: the messages of the conversation.
    rendering: the rendered request.
    losses: the losses; by default those of the rendering.
    details: further values, by their labels.
    """

    history: Sequence[Message]
    rendering: Rendering | None
    losses: Sequence[Loss] | None
    details: Mapping[str, object] | None


@show_arguments
class ConformanceFailure(AssertionError):
    """Raised by a test of the kit if an adapter breaks a rule. `what` names the adapter's fault in one sentence.

    `str()` also shows the history, the rendered request, the losses and the values in `details`, as far as given.
    """

    def __init__(self, what: str, **context: Unpack[FailureContext]) -> None:
        super().__init__(what)
        self.what = what
        self.history = tuple(context.get("history", ()))
        self.rendering = context.get("rendering")
        losses = context.get("losses")
        self.losses = losses if losses is not None or self.rendering is None else self.rendering.losses
        self.details = dict(context.get("details") or {})
        self.seed: int | None = None
        """The seed from which the failed example derives; None if the example is not random."""

    def __str__(self) -> str:
        """Return `what` and the context, on several lines."""
        sections = [self.what, *(_labelled(label, value) for label, value in self.details.items())]
        if self.history:
            lines = [f"{at:>3}  {describe_message(each)}" for at, each in enumerate(self.history, start=1)]
            sections.append("the history:\n" + _shorten("\n".join(lines)))
        if self.rendering is not None:
            sections.append(_labelled(f"the rendered request for {self.rendering.target}", self.rendering.body_bytes))
        if self.losses is not None:
            lines = [describe_loss(each, self.history) for each in self.losses] or ["none"]
            sections.append("the losses:\n" + textwrap.indent(_shorten("\n".join(lines)), "  "))
        return "\n\n".join(sections)


@show_arguments
def expect(condition: object, what: str, **context: Unpack[FailureContext]) -> None:
    """Raise ConformanceFailure with the sentence `what` unless the condition is true. It also shows `context`."""
    if not condition:
        raise ConformanceFailure(what, **context)


def describe_message(message: Message) -> str:
    """Return a message in one line: its policy, kind, content and origin."""
    payload = message.payload
    match payload.kind:
        case "parts":
            content = ", ".join(_describe_part(part) for part in payload.parts)
        case "option_call":
            raw = "" if payload.raw_arguments is None else f", raw_arguments {_excerpt(payload.raw_arguments)}"
            arguments = _excerpt(payload.arguments_json)
            content = f"calls {payload.option_name} {arguments}{raw}, id {payload.invocation_id!r}"
        case _:
            content = _describe_result(payload)
    hint = f" (as {message.role_hint_for_llm})" if message.role_hint_for_llm else ""
    origin = f"   [from {message.origin.dialect or message.origin.provider}]" if message.origin else ""
    return f"{message.policy}{hint}: {content}{origin}"


def describe_loss(loss: Loss, history: Sequence[Message] = ()) -> str:
    """Return a loss in one line. A message of the history is named by its position."""
    places = {message.id: str(at) for at, message in enumerate(history, start=1)}
    at = f"message {places.get(loss.message_id, loss.message_id)}" if loss.message_id else ""
    return f"{loss.kind}: {' '.join(filter(None, (at, loss.path)))}: {loss.reason}"


def _describe_result(payload: Any) -> str:  # an OptionResultPayload
    head = f"result of {payload.option_name}, id {payload.invocation_id!r}: "
    if payload.is_error:
        return f"{head}error {payload.error_type} {_excerpt(payload.error_message or '')}"
    parts = ", ".join(_describe_part(part) for part in payload.parts)
    return head + (parts or _excerpt(payload.result_json))


def _describe_part(part: Any) -> str:  # any kind of part, unknown ones too
    match part.kind:
        case "text":
            cited = f" with {len(part.citations)} citations" if part.citations else ""
            return f"text {part.text!r}{cited}" if len(part.text) <= MOST_TEXT else f"text {_excerpt(part.text)}{cited}"
        case "media":
            return f"{part.modality} {_excerpt(part.url)}"
        case "reasoning":
            return f"reasoning {_excerpt(part.text)}" + (" with state" if part.state else "")
        case "refusal":
            return f"refusal {_excerpt(part.text)}"
        case "opaque":
            pair = f" that {part.pair} pair {part.pair_id!r}" if part.pair else ""
            return f"opaque part of {part.dialect}{pair}"
        case kind:
            return f"part of kind {kind!r}"


def _excerpt(text: str) -> str:
    return repr(text) if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]!r}… ({len(text)} characters)"


def _labelled(label: str, value: object) -> str:
    return f"{label}:\n{textwrap.indent(_shorten(format_value(value)), '  ')}"


def format_value(value: object) -> str:
    """Return a value as text for people: a text itself, JSON on one line or, if it is long, indented, otherwise the
    `repr`.
    """
    try:
        if isinstance(value, bytes):
            value = as_json(value.decode())
        if isinstance(value, str):
            return value
        one_line = json.dumps(value, ensure_ascii=False)
        return one_line if len(one_line) <= WIDTH else json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError):  # not UTF-8, or not a JSON value
        return repr(value)


def _shorten(text: str) -> str:
    """Cut off the ends of long lines, and leave out the middle of a text with many lines."""
    lines = [line if len(line) <= 2 * WIDTH else f"{line[: 2 * WIDTH]}…" for line in text.splitlines()]
    if len(lines) <= MOST_LINES:
        return "\n".join(lines)
    half = MOST_LINES // 2
    return "\n".join([*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]])


COLUMNS = 80
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "could not run",
    "xfailed": "expected to fail",
    "skipped": "skipped",
}
_NARROW = 13


class _SuiteSummary:
    """The results of one suite, from pytest's reports."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.seen: dict[str, str] = {}
        self.expected_failures: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.handed_over: list[str] | None = None

    def add(self, outcome: str, report: Any) -> None:
        """Add the report of one test case."""
        case, properties = report.nodeid.rpartition("::")[2], dict(report.user_properties)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self.seen |= [value for name, value in report.user_properties if name == CAPABILITY_PROPERTY]
        self.handed_over = properties.get(HANDED_OVER, self.handed_over)
        if WARNED_PROPERTY in properties:
            self.warned[case] = properties[WARNED_PROPERTY]
        if outcome == "xfailed":
            self.expected_failures[case] = getattr(report, "wasxfail", "")

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the summary. `name` is the suite's name."""
        counts = [f"{self.counts[key]} {words}" for key, words in OUTCOMES.items() if key in self.counts]
        yield f"{name}: {sum(self.counts.values())} cases, {', '.join(counts)}"
        for grade in ("full", "downgraded", "refused"):
            if names := sorted(capability for capability, seen in self.seen.items() if seen == grade):
                yield from _wrap_after(f"  {grade}", ", ".join(names))
        if self.handed_over is not None:
            yield from _wrap_after("  handed to", ", ".join(self.handed_over) or "no provider")
        yield from _list_cases("expected to fail", self.expected_failures)
        heading = "new cases that failed (in this release only a warning, in the next a failure)"
        yield from _list_cases(heading, self.warned)


def summary(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of the summary, from pytest's reports by outcome."""
    suites: dict[str, _SuiteSummary] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, ()):
            name = dict(getattr(report, "user_properties", ())).get(SUITE_PROPERTY)
            if name is not None:
                suites.setdefault(str(name), _SuiteSummary()).add(outcome, report)
    short = [name.partition("::")[2] for name in suites]
    titles = {name: title if short.count(title) == 1 else name for name, title in zip(suites, short, strict=True)}
    return [line for name, suite in suites.items() for line in suite.lines(titles[name])]


def _wrap_after(head: str, text: str) -> list[str]:
    first, later = head.ljust(_NARROW), " " * _NARROW
    return textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _list_cases(head: str, cases: Mapping[str, str]) -> Iterator[str]:
    """Yield a heading and one line for each case with its reason, or nothing if there are no cases."""
    if cases:
        yield f"  {head}"
    for case, reason in cases.items():
        yield from textwrap.wrap(f"{case}: {reason}", COLUMNS, initial_indent="    ", subsequent_indent="      ")


_LIBRARY_PATHS = ("site-packages", "dist-packages", "<frozen", "<string>")
_KIT_FOLDER = str(Path(__file__).parents[1])
MOST_FRAMES = 3


def failure_text(error: BaseException) -> str:
    """Return the text for an error: a ConformanceFailure's own text, otherwise the error and the last lines of the
    author's code.
    """
    if isinstance(error, ConformanceFailure):
        return str(error)
    installed = str(Path(sabir.__file__).parent), str(Path(pytest.__file__).parent.parent)
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    libraries = (_KIT_FOLDER, *installed, *_LIBRARY_PATHS)
    author_frames = [frame for frame in frames if not any(part in frame[0] for part in libraries)]
    locations = dict.fromkeys([*author_frames[-MOST_FRAMES:], *frames[-1:]])
    lines = "\n".join(f"  {file}:{line}, in {name}" for file, line, name in locations)
    return f"{type(error).__name__}: {error}\n\nraised at:\n{lines}"


def advice_for_skip(report: pytest.TestReport, suite: str, case: str) -> str | None:
    """Return the advice for a skipped case, or None if the kit itself skipped it."""
    where = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    if str(where).startswith(_KIT_FOLDER):
        return None
    return how_to_opt_out(suite, case)


def how_to_opt_out(suite: str, case: str) -> str:
    """Return the advice for a skipped case."""
    return f"{suite} skips {case}, which is not allowed; to opt out, write xfail = {{{case!r}: 'the reason'}}"


def advice_for_success(suite: str, xfail: Mapping[str, str], case: str) -> str:
    """Return the advice for a case that passed although `xfail` lists it."""
    entry = case if case in xfail else case.partition("[")[0]
    rows = "" if entry == case else f". {entry!r} expects every row to fail; name only the rows that fail, as {case!r}"
    reason = xfail.get(entry, "none")
    return f"{case} passes now; remove {entry!r} from {suite}.xfail (its reason: {reason}){rows}"
