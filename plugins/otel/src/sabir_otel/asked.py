"""The settings and messages of a call, read from the sent bytes.

    rendering ──decode_history──▶ settings, options, messages

A hook gets a rendering, which holds no messages: for a stored rendering they may never have been in this process. Every
dialect reads its own requests, so a hook needs nothing else, and records exactly what the model got. If contents are
not recorded, the messages are left out before anything is decoded.
"""

import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from sabir import DecodedHistory, Rendering, Settings, dialect
from sabir.errors import SabirError

from sabir_otel import conventions
from sabir_otel.contents import definitions, input_messages, message_parts

Attributes = dict[str, Any]  # what OpenTelemetry takes as values; contents are JSON


def asked_settings(rendering: Rendering) -> Attributes:
    """The settings that have a name in the conventions; none if the dialect cannot read its own request."""
    try:
        pure = dialect(rendering.target.dialect)
        body = json.loads(rendering.body_bytes)
        history = pure.decode_history({**body, pure.dialect.messages_field: []})
    except (SabirError, ValueError):
        return {}
    return dict(_settings(history.settings))


def asked_contents(rendering: Rendering) -> Attributes:
    """The conversation and the offered options; instructions separately if the wire has a field for them."""
    try:
        pure = dialect(rendering.target.dialect)
        history = pure.decode_history(rendering.body_bytes)
    except SabirError:
        return {}
    is_apart = pure.dialect.tables.roles.leading_system == "hoisted"
    return dict(_contents(history, instructions=_leading_system(history) if is_apart else 0))


def _leading_system(history: DecodedHistory) -> int:
    return len(list(takewhile(lambda message: message.policy == "system", history.messages)))


def _contents(history: DecodedHistory, *, instructions: int) -> Iterator[tuple[str, Any]]:
    if instructions:
        yield conventions.SYSTEM_INSTRUCTIONS, message_parts(history.messages[:instructions])
    yield conventions.INPUT_MESSAGES, input_messages(history.messages[instructions:])
    if history.options:
        yield conventions.DEFINITIONS, definitions(history.options)


def _settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    for field, attribute in conventions.SETTINGS.items():
        if (value := getattr(settings, field)) is not None:
            yield attribute, value
    if settings.response_format is not None:
        yield conventions.OUTPUT_TYPE, "json"
    for section in settings.vendor.values():
        for name, attribute in conventions.VENDOR_SETTINGS.items():
            if isinstance(value := section.get(name), int | float) and not isinstance(value, bool):
                yield attribute, value
