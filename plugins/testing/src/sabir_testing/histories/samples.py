"""Sample contents for the kit's test cases, unlike any recorded question, and recorded histories.

recorded/<dialect>.json     {"dialect", "cases": {case: {"provenance": …, "messages": […]}}}

The histories are decoded recordings of this project, to be handed over to any provider. `provenance` names the server
that answered, because not every recording is from a vendor. Their origins have an endpoint that does not exist, so that
their signed state is never sent to a provider.
"""

import base64
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import sabir
from sabir import Message
from sabir.authoring import KnownPart, Modality

GRAY_JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5"
    "PTgyPC4zNDL/wAALCAABAAEBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/9oACAEBAAA/ANIr/9k="
)
"""A JPEG of one gray pixel, in base64."""
MEDIA_FILES: Mapping[Modality, tuple[str, str, str]] = {
    "image": ("jpg", "image/jpeg", GRAY_JPEG),
    "audio": ("wav", "audio/wav", "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="),
    "video": ("mp4", "video/mp4", "AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t"),
    "document": ("pdf", "application/pdf", "JVBERi0xLjQKJSBraXQKJSVFT0YK"),
}
"""Modality → suffix, MIME type and base64 of a small file."""
FILE_ID = "kit-file-1"


WIRE_KEYS = ("output", "error", "result", "content", "type", "$ref", "parts", "name", "text")
"""Field names of known APIs. An option result with such a field could be confused with a field of the API itself."""
JSON_KINDS: Mapping[str, Any] = {
    "whole number": 18,
    "zero": 0,
    "negative number": -3,
    "fraction": 18.25,
    "negative zero": -0.0,
    "large exponent": 1e16,
    "small exponent": -1e-7,
    "big integer": 2**70,
    "true": True,
    "false": False,
    "nothing": None,
    "empty text": "",
    "empty object": {},
    "empty list": [],
    "list of one": [1],
    "list of all": [None, True, -1.5, "two", [], {}],
    "nested": {"a": {"b": [{"c": [[1], {"d": None}]}]}},
    "word": "sunny",
    "white space": " \n\t",
    "ends of white space": "\nso ",
    "escapes": '"quoted" \\ back\\n and \x1f',
    "other scripts": "żółć ✓ 🌧\u2028 e\u0301",
    "text of JSON": '{"output": 18}',
    "text of a number": "18",
    "percent": "%s {0}",
    "output": {"output": 18},
    "error": {"error": "no", "code": 1},
    "output and error": {"output": 1, "error": None},
    "result": {"result": [1]},
    "content": {"type": "text", "text": "x", "content": []},
    "reference": {"$ref": "#/x"},
    "reference within": [{"a": {"$ref": "#/$defs/x"}}],
    "parts": {"parts": [{"text": "x"}], "name": "weather"},
    "odd keys": {"": 1, " ": 2, "é✓": 3, 'a"b': 4},
}
"""Kind ─▶ a JSON value of this kind, for option results and arguments."""


def medium(modality: Modality, form: str, provider: str) -> tuple[sabir.MediaPart, str]:
    """Return a medium in one of the forms "url", "bytes" and "file", and the text that a request with it contains.

    The form "undetected" is bytes that do not show their type.
    """
    suffix, mime, content = MEDIA_FILES[modality]
    name = f"kit.{suffix}"
    url, undetected = f"https://example.org/{name}", base64.b64encode(b"kit, and no known signature").decode()
    mark = {"bytes": content, "undetected": undetected, "url": url, "file": FILE_ID}[form]
    in_data = f"data:{mime};base64,"
    prefix = {"bytes": in_data, "undetected": in_data, "url": "", "file": f"provider-file:{provider}/"}[form]
    return sabir.MediaPart(modality=modality, url=prefix + mark, mime=mime, name=name), mark


def message_by(policy: str, *parts: str | KnownPart) -> Message:
    """Return a message by a policy with texts and other parts."""
    as_parts = tuple(sabir.TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return Message(policy=policy, payload=sabir.PartsPayload(parts=as_parts))


def call_message(invocation_id: str, arguments: Mapping[str, Any], name: str = "lookup") -> Message:
    """Return a message with a model's option call."""
    payload = sabir.OptionCallPayload(invocation_id=invocation_id, option_name=name, arguments=dict(arguments))
    return Message(policy="llm", payload=payload)


def result_message(invocation_id: str, result: Any = None, name: str = "lookup", **outcome: Any) -> Message:
    """Return a message with an option result: the JSON value `result` or, if there are any, the payload's fields in
    `outcome` instead.
    """
    payload = sabir.OptionResultPayload(
        invocation_id=invocation_id, option_name=name, **(outcome or {"result": result})
    )
    return Message(policy=name, payload=payload)


def error_result(invocation_id: str, message: str, name: str = "lookup") -> Message:
    """Return a message with an option's error result."""
    return result_message(invocation_id, name=name, is_error=True, error_type="Failed", error_message=message)


def _response_format(field: str) -> sabir.ResponseFormat:
    """Return a response format: an object with one string field."""
    properties = {field: {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": [field], "additionalProperties": False}
    return sabir.ResponseFormat.model_validate({"name": "report", "schema": schema})


LOOKUP = sabir.Option.from_schema(
    "lookup",
    "Finds a word in the kit's book.",
    {
        "type": "object",
        "properties": {"kit_word": {"type": "string", "description": "The word to look up."}},
        "required": ["kit_word"],
        "additionalProperties": False,
    },
)
INSTRUCTION = (
    "You look after the kit's book. Whoever asks for a word is told the page on which it stands, and the line; whoever "
    "asks for a page is told its first word. Never guess. Sign each answer with the words: the kit's own librarian."
)
"""A long system text, so that the tests notice any truncation."""
LONG_RESULT = " ".join(f"page {page}," for page in range(1, 60)) + " and at last the kit's index."
COUNT = sabir.Option.from_schema("count", "Counts the kit's pages.", {"type": "object", "properties": {}})
SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "max_output_tokens": (5001, 5002, 10, 11),
    "temperature": (0.31, 0.34, 0.0, 1.0, 0.5),
    "top_p": (0.31, 0.34, 0.5, 0.6),
    "stop": (("kit-stop",), ("kit-end",), "x", ("a", "b", "c", "d", "e"), "y"),
    "seed": (70001, 70002, 7, 8),
    "reasoning_effort": ("high", "low", "none", "max", "minimal", "medium"),
    "option_choice": ("none", "auto", "required", "lookup"),
    "parallel_options": (False, True),
    "response_format": (_response_format("kit_headline"), _response_format("kit_footnote")),
    "prompt_cache": ("1h", "5m", True),
}
"""Setting → sample values. The first two must produce different requests if the setting is sent, except for
`reasoning_effort` and `prompt_cache`.
"""
CHOICES = {"auto": "auto", "none": "none", "required": "required", "named": "lookup"}
ZEROS = ("temperature", "top_p", "seed")
"""Settings with a meaningful value 0, which is false in Python."""


# --- recorded histories -----------------------------------------------------------------------------------------------

FOLDER = "recorded"
ENDPOINT = "https://recorded.invalid"
"""The endpoint in the origins of all recorded histories."""


@cache
def _documents() -> Mapping[str, Any]:
    folder = files("sabir_testing").joinpath(FOLDER)
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    documents = [json.loads(path.read_text("utf-8")) for path in paths]
    return {document["dialect"]: document for document in documents}


def source_dialects() -> tuple[str, ...]:
    """Return the names of the dialects with recorded histories."""
    return tuple(_documents())


@cache
def recorded_histories() -> Mapping[str, Mapping[str, tuple[Message, ...]]]:
    """Return the recorded histories: dialect → case → messages. Every call returns the same object."""
    cases = {name: document["cases"].items() for name, document in _documents().items()}
    return {
        name: {case: tuple(sabir.loads(json.dumps(fields["messages"]))) for case, fields in items}
        for name, items in cases.items()
    }
