"""What a person reads: of a fault of an adapter, of each case that did not simply pass, and of each suite at the end.

expect(text in body, "the text of message 2 is neither in the body nor in the losses", history=…, rendering=…)

what is wrong
the smallest history that shows it      one line a message
what was rendered, the losses           for that history
the rule, the page                      put behind it by the plugin: the case's docstring, and where it is explained

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

WIDTH = 100
MOST_LINES = 40
MOST_TEXT = 60


class Shown(TypedDict, total=False):
    """What a failure shows in addition to its message. All are optional.

    history: the messages of the conversation.
    rendering: the rendered request.
    losses: the losses; by default those of the rendering.
    shown: further values, by their labels.
    """

    history: Sequence[Message]
    rendering: Rendering | None
    losses: Sequence[Loss] | None
    shown: Mapping[str, object] | None


@show_arguments
class ConformanceFailure(AssertionError):
    """Raised by a test of the kit if an adapter breaks a rule. `what` names the adapter's fault in one sentence.

    `str()` also shows the history, the rendered request, the losses and the values in `shown`, as far as given.
    """

    def __init__(self, what: str, **beside: Unpack[Shown]) -> None:
        super().__init__(what)
        self.what = what
        self.history = tuple(beside.get("history", ()))
        self.rendering = beside.get("rendering")
        losses = beside.get("losses")
        self.losses = losses if losses is not None or self.rendering is None else self.rendering.losses
        self.shown = dict(beside.get("shown") or {})

    def __str__(self) -> str:
        """Return the fault and everything that is shown with it, as several lines."""
        told = [self.what, *(_section(label, value) for label, value in self.shown.items())]
        if self.history:
            lines = [f"{at:>3}  {describe_message(each)}" for at, each in enumerate(self.history, start=1)]
            told.append("the history:\n" + _cut("\n".join(lines)))
        if self.rendering is not None:
            told.append(_section(f"what was rendered for {self.rendering.target}", self.rendering.body_bytes))
        if self.losses is not None:
            lines = [describe_loss(each, self.history) for each in self.losses] or ["none"]
            told.append("the losses:\n" + textwrap.indent(_cut("\n".join(lines)), "  "))
        return "\n\n".join(told)


@show_arguments
def expect(condition: object, what: str, **beside: Unpack[Shown]) -> None:
    """Raise ConformanceFailure with the sentence `what` unless the condition is true."""
    if not condition:
        raise ConformanceFailure(what, **beside)


def describe_message(message: Message) -> str:
    """Return a message in one line: its policy, kind, content and origin."""
    payload = message.payload
    match payload.kind:
        case "parts":
            held = ", ".join(_describe_part(part) for part in payload.parts)
        case "option_call":
            raw = "" if payload.raw_arguments is None else f", as written {_short(payload.raw_arguments)}"
            held = f"calls {payload.option_name} {_short(payload.arguments_json)}{raw}, id {payload.invocation_id!r}"
        case _:
            held = _describe_result(payload)
    hint = f" (as {message.role_hint_for_llm})" if message.role_hint_for_llm else ""
    origin = f"   [from {message.origin.dialect or message.origin.provider}]" if message.origin else ""
    return f"{message.policy}{hint}: {held}{origin}"


def describe_loss(loss: Loss, history: Sequence[Message] = ()) -> str:
    """Return a loss in one line. A message of the history is named by its position."""
    places = {message.id: str(at) for at, message in enumerate(history, start=1)}
    at = f"message {places.get(loss.message_id, loss.message_id)}" if loss.message_id else ""
    return f"{loss.kind}: {' '.join(filter(None, (at, loss.path)))}: {loss.reason}"


def _describe_result(payload: Any) -> str:  # an OptionResultPayload
    answered = f"result of {payload.option_name}, id {payload.invocation_id!r}: "
    if payload.is_error:
        return f"{answered}failed, {payload.error_type} {_short(payload.error_message or '')}"
    parts = ", ".join(_describe_part(part) for part in payload.parts)
    return answered + (parts or _short(payload.result_json))


def _describe_part(part: Any) -> str:  # any kind of part, unknown ones too
    match part.kind:
        case "text":
            cited = f" with {len(part.citations)} citations" if part.citations else ""
            return f"text {part.text!r}{cited}" if len(part.text) <= MOST_TEXT else f"text {_short(part.text)}{cited}"
        case "media":
            return f"{part.modality} {_short(part.url)}"
        case "reasoning":
            return f"reasoning {_short(part.text)}" + (" with state" if part.state else "")
        case "refusal":
            return f"refusal {_short(part.text)}"
        case "opaque":
            pair = f" that {part.pair} pair {part.pair_id!r}" if part.pair else ""
            return f"a block of {part.dialect}'s own{pair}"
        case kind:
            return f"a part of kind {kind!r}"


def _short(text: str) -> str:
    return repr(text) if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]!r}… ({len(text)} characters)"


def _section(label: str, value: object) -> str:
    return f"{label}:\n{textwrap.indent(_cut(shown_value(value)), '  ')}"


def shown_value(value: object) -> str:
    """Return a value as text for people: indented if it is JSON."""
    try:
        if isinstance(value, bytes):
            value = _read(value.decode())
        if isinstance(value, str):
            return value
        one_line = json.dumps(value, ensure_ascii=False)
        return one_line if len(one_line) <= WIDTH else json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError):  # no text, or nothing that JSON has
        return repr(value)


def _read(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return found


def _cut(text: str) -> str:
    lines = [line if len(line) <= 2 * WIDTH else f"{line[: 2 * WIDTH]}…" for line in text.splitlines()]
    if len(lines) <= MOST_LINES:
        return "\n".join(lines)
    half = MOST_LINES // 2
    return "\n".join([*lines[:half], f"… {len(lines) - 2 * half} lines …", *lines[-half:]])


COLUMNS = 80
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "could not run",
    "xfailed": "expected to fail",
    "skipped": "skipped",
}
_NARROW = 13


class _Suite:
    """The results of one suite, from pytest's reports."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.seen: dict[str, str] = {}
        self.excused: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.handed_over: list[str] | None = None

    def add(self, outcome: str, report: Any) -> None:
        case, said = report.nodeid.rpartition("::")[2], dict(report.user_properties)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self.seen |= [value for name, value in report.user_properties if name == CAPABILITY_PROPERTY]
        self.handed_over = said.get(HANDED_OVER, self.handed_over)
        if WARNED_PROPERTY in said:
            self.warned[case] = said[WARNED_PROPERTY]
        if outcome == "xfailed":
            self.excused[case] = getattr(report, "wasxfail", "")

    def lines(self, name: str) -> Iterator[str]:
        told = [f"{self.counts[key]} {words}" for key, words in OUTCOMES.items() if key in self.counts]
        yield f"{name}: {sum(self.counts.values())} cases, {', '.join(told)}"
        for grade in ("full", "downgraded", "refused"):
            if names := sorted(capability for capability, seen in self.seen.items() if seen == grade):
                yield from _hanging(f"  {grade}", ", ".join(names))
        if self.handed_over is not None:
            yield from _hanging("  handed to", ", ".join(self.handed_over) or "nobody")
        yield from _listed("expected to fail", self.excused)
        yield from _listed("new in this release: a failure from the next one on", self.warned)


def summary(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of the summary, from pytest's reports by outcome."""
    suites: dict[str, _Suite] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, ()):
            name = dict(getattr(report, "user_properties", ())).get(SUITE_PROPERTY)
            if name is not None:
                suites.setdefault(str(name), _Suite()).add(outcome, report)
    short = [name.partition("::")[2] for name in suites]
    titles = {name: title if short.count(title) == 1 else name for name, title in zip(suites, short, strict=True)}
    return [line for name, suite in suites.items() for line in suite.lines(titles[name])]


def _hanging(head: str, text: str) -> list[str]:
    first, later = head.ljust(_NARROW), " " * _NARROW
    return textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _listed(head: str, cases: Mapping[str, str]) -> Iterator[str]:
    """Yield a heading and one line for each case with its reason. Nothing if there are no cases."""
    if cases:
        yield f"  {head}"
    for case, said in cases.items():
        yield from textwrap.wrap(f"{case}: {said}", COLUMNS, initial_indent="    ", subsequent_indent="      ")


_NOT_THE_AUTHORS = ("site-packages", "dist-packages", "<frozen", "<string>")
_HERE = str(Path(__file__).parents[1])
MOST_FRAMES = 3


def told(error: BaseException) -> str:
    """Return the text for an error: a ConformanceFailure's own text, otherwise the error and the last lines of the
    author's code.
    """
    if isinstance(error, ConformanceFailure):
        return str(error)
    packages = (_HERE, str(Path(sabir.__file__).parent), str(Path(pytest.__file__).parent.parent), *_NOT_THE_AUTHORS)
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    own = [each for each in frames if not any(part in each[0] for part in packages)]
    shown = dict.fromkeys([*own[-MOST_FRAMES:], *frames[-1:]])
    lines = "\n".join(f"  {file}:{line}, in {name}" for file, line, name in shown)
    return f"{type(error).__name__}: {error}\n\nraised at:\n{lines}"


def told_of_skip(report: pytest.TestReport, suite: str, case: str) -> str | None:
    """Return the advice for a skipped case, or None if the kit itself skipped it."""
    where = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    if str(where).startswith(_HERE):
        return None
    return how_to_opt_out(suite, case)


def how_to_opt_out(suite: str, case: str) -> str:
    """Return the advice for a skipped case."""
    return f"{suite} skips {case}; to opt out of a case, write xfail = {{{case!r}: 'the reason'}}"


def told_of_success(suite: str, xfail: Mapping[str, str], case: str) -> str:
    """Return the advice for a case that passed although `xfail` lists it."""
    entry = case if case in xfail else case.partition("[")[0]
    rows = "" if entry == case else "; an entry without a row expects every row to fail: name those that do"
    reason = xfail.get(entry, "none")
    return f"{case} holds now; take {entry!r} out of {suite}.xfail, which gives the reason: {reason}{rows}"
