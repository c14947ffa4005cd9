"""Convert conversations to the JSON of OpenTelemetry's GenAI conventions, and read where they are recorded.

    messages ──▶ [{"role": "user", "parts": [{"type": "text", "content": "…"}]}, …]

The shape: https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/gen-ai/gen-ai-input-messages.json.
The type of media is recorded, never their bytes, which could be larger than everything else in a trace.

A hook gets a rendering (a request), which has no messages, because a stored rendering may come from another process.
Every dialect can read its own requests, so the settings and messages are read from the sent bytes, which are exactly
what the model received:

    rendering ──decode_history──▶ settings, options, messages

If contents are not recorded, the messages are removed before decoding.
"""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from sabir import (
    DecodedHistory,
    MediaPart,
    Message,
    NativeCallPart,
    NativeResultPart,
    OpaquePart,
    ReasoningPart,
    RefusalPart,
    Rendering,
    Reply,
    Settings,
    TextPart,
    dialect,
)
from sabir.authoring import FinishReason, Part
from sabir.errors import SabirError, SettingsInvalid

from sabir_otel import conventions
from sabir_otel.conventions import FINISH_REASONS

Contents: TypeAlias = Literal["none", "span", "event", "span_and_event"]
"""Where the contents of messages are recorded: nowhere, in attributes of the span, in the event, or in both."""
Events: TypeAlias = Literal["on", "off"]
"""Whether an event (a log record) is emitted for each call, in addition to the span. "on" or "off"."""
Shape: TypeAlias = dict[str, Any]  # JSON in the form of the conventions' schemas

CONTENTS_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EVENTS_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"
CONTENTS_VALUES: Mapping[str, Contents] = {
    "": "none",
    "NO_CONTENT": "none",
    "SPAN_ONLY": "span",
    "EVENT_ONLY": "event",
    "SPAN_AND_EVENT": "span_and_event",
    "FALSE": "none",
    "TRUE": "span_and_event",
}
"""Value of CONTENTS_VARIABLE → choice. TRUE and FALSE are the values of older instrumentations."""
EVENTS_VALUES: Mapping[str, Events] = {"": "on", "TRUE": "on", "FALSE": "off"}
PROVIDER_FILE = "provider-file:"
ROLES_BY_KIND = {"option_call": "assistant", "option_result": "tool"}
ROLES_BY_POLICY = {"system": "system", "llm": "assistant"}
"""Policy of a message in a decoded request → role. Messages of any other policy have the role "user"."""
Word = TypeVar("Word", Contents, Events)

logger = logging.getLogger("sabir")


def check_word(name: str, word: Word | None, words: object) -> Word | None:
    """Return `word` unchanged. Raises SettingsInvalid unless it is None or one of the words of the type `words`."""
    if word is not None and word not in get_args(words):
        raise SettingsInvalid(f"{name} is {word!r}; expected {' or '.join(map(repr, get_args(words)))}")
    return word


def _read_variable(variable: str, values: Mapping[str, Word], otherwise: Word) -> Word:
    value = os.environ.get(variable, "").strip().upper()
    if value not in values:
        expected = ", ".join(filter(None, values))
        logger.warning("the environment variable %s is %r; expected one of %s", variable, value, expected)
    return values.get(value, otherwise)


contents_of_environment = partial(_read_variable, CONTENTS_VARIABLE, CONTENTS_VALUES, "none")
"""Return the choice of CONTENTS_VARIABLE: "none" if it is not set, and with a warning for an unknown value."""
events_of_environment = partial(_read_variable, EVENTS_VARIABLE, EVENTS_VALUES, "on")
"""Return the choice of EVENTS_VARIABLE: "on" if it is not set, and with a warning for an unknown value."""


def input_messages(messages: Iterable[Message]) -> list[Shape]:
    """Return one entry with role and parts for each message, in order."""
    return [{"role": _message_role(message), "parts": message_parts([message])} for message in messages]


def output_messages(reply: Reply) -> list[Shape]:
    """Return one entry for the reply, and one for each of its alternatives. An entry contains all messages of one
    answer.
    """
    answers = [(reply.messages, reply.finish_reason)]
    answers += [(other.messages, other.finish_reason) for other in reply.alternatives]
    return [
        {"role": "assistant", "parts": message_parts(messages), "finish_reason": finish_reason(reason)}
        for messages, reason in answers
    ]


def finish_reason(reason: FinishReason) -> str:
    """Return the conventions' name for a finish reason, or the reason itself if the conventions have no other name."""
    return FINISH_REASONS.get(reason, reason)


def message_parts(messages: Iterable[Message]) -> list[Shape]:
    """Return the parts, option calls and results of messages in the conventions' JSON, in order."""
    return [shape for message in messages for shape in _message_shapes(message)]


def _message_role(message: Message) -> str:
    return ROLES_BY_KIND.get(message.kind) or ROLES_BY_POLICY.get(message.policy, "user")


def _message_shapes(message: Message) -> list[Shape]:
    if call := message.call:
        arguments = call.unreadable_arguments or json.loads(call.arguments_json)
        return [{"type": "tool_call", "id": call.invocation_id, "name": call.option_name, "arguments": arguments}]
    if result := message.result:
        value = [_part_shape(part) for part in result.parts] or json.loads(result.result_json)
        response = result.error_message if result.is_error else value
        return [{"type": "tool_call_response", "id": result.invocation_id, "response": response}]
    return list(map(_part_shape, message.parts))


def _part_shape(part: Part) -> Shape:
    shape = PART_SHAPES.get(type(part))
    return shape(part) if shape else {"type": part.kind}


def _medium_shape(part: MediaPart) -> Shape:
    known: Shape = {"modality": part.modality, **({"mime_type": part.mime} if part.mime else {})}
    if part.url.startswith("data:"):
        kind, _, data = part.url.removeprefix("data:").partition(",")
        return {"type": "media", "mime_type": kind.partition(";")[0], **known, "characters": len(data)}
    if part.url.startswith(PROVIDER_FILE):
        return {"type": "file", **known, "file_id": part.url.removeprefix(PROVIDER_FILE).partition("/")[2]}
    return {"type": "uri", **known, "uri": part.url}


_NOT_SHOWN = {"kind", "tool", "pair_id", "dialect", "raw_json"}


def _native_shape(part: NativeCallPart | NativeResultPart, name: str) -> Shape:
    """Return a call of a vendor's own tool, or its result, with its typed fields."""
    fields = part.model_dump(mode="json", exclude=_NOT_SHOWN, exclude_defaults=True)
    called = {"name": part.tool} if part.kind == "native_call" else {}
    return {"type": name, "id": part.pair_id, **called, name: {"type": part.tool, **fields}}


PART_SHAPES: Mapping[type, Callable[[Any], Shape]] = {
    TextPart: lambda part: {"type": "text", "content": part.text},
    ReasoningPart: lambda part: {"type": "reasoning", "content": part.text},
    RefusalPart: lambda part: {"type": "refusal", "content": part.text},
    MediaPart: _medium_shape,
    NativeCallPart: lambda part: _native_shape(part, "server_tool_call"),
    NativeResultPart: lambda part: _native_shape(part, "server_tool_call_response"),
    OpaquePart: lambda part: {"type": "opaque", "dialect": part.dialect},
}
"""Class of a part → its JSON. The conventions do not define a type for refusals, media and opaque parts."""


Attributes = dict[str, Any]  # the values that OpenTelemetry accepts; contents are JSON


def request_settings(rendering: Rendering) -> Attributes:
    """Return the settings in a sent request that have a name in the conventions, by these names.

    Returns {} if the dialect cannot read the request.
    """
    try:
        pure = dialect(rendering.target.dialect)
        body = json.loads(rendering.body_bytes)
        history = pure.decode_history({**body, pure.dialect.messages_field: []})
    except (SabirError, ValueError):
        return {}
    return dict(_setting_attributes(history.settings))


def request_contents(rendering: Rendering) -> Attributes:
    """Return the messages and the names of the options in a sent request, as attributes.

    The instructions are separate if the API has a field of its own for them. Returns {} if the dialect cannot read the
    request.
    """
    try:
        pure = dialect(rendering.target.dialect)
        history = pure.decode_history(rendering.body_bytes)
    except SabirError:
        return {}
    is_apart = pure.dialect.tables.roles.leading_system == "hoisted"
    leading = takewhile(lambda message: message.policy == "system", history.messages if is_apart else ())
    return dict(_history_attributes(history, instructions=len(list(leading))))


def _history_attributes(history: DecodedHistory, *, instructions: int) -> Iterator[tuple[str, Any]]:
    if instructions:
        yield conventions.SYSTEM_INSTRUCTIONS, message_parts(history.messages[:instructions])
    yield conventions.INPUT_MESSAGES, input_messages(history.messages[instructions:])
    if history.options:
        # Only their names, as the conventions recommend.
        yield conventions.DEFINITIONS, [{"type": "function", "name": option.name} for option in history.options]


def _setting_attributes(settings: Settings) -> Iterator[tuple[str, Any]]:
    for field, attribute in conventions.SETTINGS.items():
        if (value := getattr(settings, field)) is not None:
            yield attribute, value
    if settings.response_format is not None:
        yield conventions.OUTPUT_TYPE, "json"
    for section in settings.vendor.values():
        for name, attribute in conventions.VENDOR_SETTINGS.items():
            if isinstance(value := section.get(name), int | float) and not isinstance(value, bool):
                yield attribute, value
