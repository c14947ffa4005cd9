"""Failures of the kit's cases, with the history, the rendered request and the losses that show the fault.

expect(text in body, "the text of message 2 is neither in the body nor in the losses", history=…, rendering=…)

the fault
the smallest history that shows the fault   one line for each message
the rendered request, the losses            of that history

This module does not import pytest, because `sabir check` uses it too.
"""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from sabir import Loss, Message, Rendering
from sabir.authoring import show_arguments

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
        case "native_call" | "native_result":
            what = f"native {part.kind.removeprefix('native_')} of {part.tool}"
            return (
                what
                + (f" from {part.dialect}" if part.dialect else "")
                + (f", pair {part.pair_id!r}" if part.pair else "")
            )
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
