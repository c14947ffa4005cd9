"""How a case reports a fault of an adapter: the fault, and everything needed to reproduce it.

expect(text in body, "the text of message 2 is neither in the body nor in the losses", history=…, rendering=…)

what is wrong
the smallest history that shows it      one line a message
what was rendered, the losses           for that history
the rule, the page                      put behind it by the plugin: the case's docstring, and where it is explained
"""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from sabir import Loss, Message, Rendering

WIDTH = 100
MOST_LINES = 40
MOST_TEXT = 60


class Shown(TypedDict, total=False):
    """What is shown beside what is wrong: the losses are those of the rendering unless others are given."""

    history: Sequence[Message]
    rendering: Rendering | None
    losses: Sequence[Loss] | None
    shown: Mapping[str, object] | None


class Broken(AssertionError):
    """An adapter breaks a rule of the kit. `what` names the offender; the other arguments are shown beside it."""

    def __init__(self, what: str, **beside: Unpack[Shown]) -> None:
        super().__init__(what)
        self.what = what
        self.history = tuple(beside.get("history", ()))
        self.rendering = beside.get("rendering")
        self.losses = beside.get("losses")
        if self.losses is None and self.rendering is not None:
            self.losses = self.rendering.losses
        self.shown = dict(beside.get("shown") or {})

    def __str__(self) -> str:
        """All of it, as a person reads it."""
        return "\n\n".join([self.what, *self._sections()])

    def _sections(self) -> list[str]:
        sections = [_section(label, value) for label, value in self.shown.items()]
        if self.history:
            lines = [f"{at:>3}  {describe_message(each)}" for at, each in enumerate(self.history, start=1)]
            sections.append("the history:\n" + _cut("\n".join(lines)))
        if self.rendering is not None:
            sections.append(_section(f"what was rendered for {self.rendering.target}", self.rendering.body_bytes))
        if self.losses is not None:
            told = [describe_loss(each, self.history) for each in self.losses] or ["none"]
            sections.append("the losses:\n" + textwrap.indent(_cut("\n".join(told)), "  "))
        return sections


def expect(condition: object, what: str, **beside: Unpack[Shown]) -> None:
    """Raise Broken unless the condition holds."""
    if not condition:
        raise Broken(what, **beside)


def describe_message(message: Message) -> str:
    """One message in one line: who, what kind, what it holds, and from where."""
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
    """One loss in one line; a message of the history is named by its place."""
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
    """A value as a person reads it: JSON laid out where it is JSON, else its text."""
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return repr(value)
        try:
            value = json.loads(text)
        except ValueError:
            return text
    if isinstance(value, str):
        return value
    try:
        one_line = json.dumps(value, ensure_ascii=False)
        return one_line if len(one_line) <= WIDTH else json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError):
        return repr(value)


def _cut(text: str) -> str:
    lines = [line if len(line) <= 2 * WIDTH else f"{line[: 2 * WIDTH]}…" for line in text.splitlines()]
    if len(lines) <= MOST_LINES:
        return "\n".join(lines)
    half = MOST_LINES // 2
    return "\n".join([*lines[:half], f"… {len(lines) - 2 * half} lines …", *lines[-half:]])
