"""Kinds of schemas × wires × places: what is sent for each, whether it is strict, and the losses."""

import json
from typing import Any

import pytest
import sabir

from tests.laws.test_schemas import declared
from tests.providers.wires import MODELS

CHAT, RESPONSES, CLAUDE, GEMINI = "openai.chat", "openai.responses", "anthropic.messages", "google.generate_content"
TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def closed(**properties: Any) -> dict[str, Any]:
    return of(**properties) | {"additionalProperties": False}


TUPLE = {"type": "array", "prefixItems": [NUMBER, TEXT], "maxItems": 2}
ANY_OF_TUPLE = {"anyOf": [NUMBER, TEXT]}
LISTED = {"type": "array", "items": [NUMBER, TEXT]}
UNION = {"anyOf": [of(a=TEXT), of(a=NUMBER, b=TEXT)]}
MERGED = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NUMBER]}, "b": TEXT}, "required": ["a"]}
ONE_OF_TWO = of(a=TEXT, b=TEXT) | {"required": [], "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
LOOKS_AHEAD = {"type": "string", "pattern": r"^(?=.*\d)"}
ESCAPED = {"type": "string", "pattern": r"^\(?=[(?=]$"}
TREE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
TREE_AT_ROOT = {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}}
ENDLESS = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}}
ELSEWHERE = {"$ref": "https://example.org/a"}
FREE = {"type": "object", "additionalProperties": {"type": "integer"}}
LOOSE = [("downgraded", "")]
"""The loss of a schema that cannot be strict."""
GONE = [("dropped", "")]


def lost(*paths: str, kind: str = "downgraded") -> list[tuple[str, str]]:
    return [(kind, f".{path}") for path in paths]


ITEMS, UNION_LOST = lost("properties.a.items", kind="rewritten"), lost("anyOf")
TUPLE_LOST = [*ITEMS, *lost("properties.a.prefixItems", "properties.a.maxItems")]
WORDED = {"type": "array", "items": ANY_OF_TUPLE}
WORDS = f"(prefixItems: {json.dumps([NUMBER, TEXT], separators=(',', ':'))}, maxItems: 2)"

PLACES: list[tuple[str, Any, dict[str, tuple[Any, bool, list[tuple[str, str]]]]]] = [
    ("tuple", of(a=TUPLE), {
        "openai option": (of(a={**TUPLE, "items": ANY_OF_TUPLE}), False, ITEMS),
        "openai strict": (of(a={**TUPLE, "items": ANY_OF_TUPLE}), False, LOOSE + ITEMS),
        "openai reply": (of(a={**TUPLE, "items": ANY_OF_TUPLE}), False, LOOSE + ITEMS),
        "anthropic option": (of(a=TUPLE), False, []),
        "anthropic strict": (closed(a={**WORDED, "description": WORDS}), True, TUPLE_LOST),
        "anthropic reply": (closed(a={**WORDED, "description": WORDS}), False, TUPLE_LOST),
        "google option": (of(a=TUPLE), False, []), "google reply": (of(a=TUPLE), False, [])}),
    ("array of anything", of(a={"type": ["array", "null"]}), {
        "openai option": (of(a={"type": ["array", "null"], "items": {}}), False, ITEMS),
        "openai strict": (of(a={"type": ["array", "null"], "items": {}}), False, LOOSE + ITEMS),
        "openai reply": (of(a={"type": ["array", "null"], "items": {}}), False, LOOSE + ITEMS),
        "google option": (of(a={"type": ["array", "null"]}), False, [])}),
    ("older tuple", of(a=LISTED), {
        "openai option": (
            of(a={"type": "array", "prefixItems": [NUMBER, TEXT], "items": ANY_OF_TUPLE}), False, ITEMS * 2),
        "anthropic option": (of(a={"type": "array", "prefixItems": [NUMBER, TEXT]}), False, ITEMS)}),
    ("union of objects", UNION, {
        "openai option": (MERGED, False, UNION_LOST),
        "openai strict": (MERGED, False, LOOSE + UNION_LOST),
        "openai reply": (MERGED, False, LOOSE + UNION_LOST),
        "anthropic option": (MERGED, False, UNION_LOST),
        "anthropic strict": (MERGED | {"additionalProperties": False}, True, UNION_LOST),
        "anthropic reply": ({"anyOf": [closed(a=TEXT), closed(a=NUMBER, b=TEXT)]}, False, []),
        "google option": ({"type": "object", **UNION}, False, []), "google reply": (UNION, False, [])}),
    ("one of two required", ONE_OF_TWO, {
        "openai option": (of(a=TEXT, b=TEXT) | {"required": []}, False, lost("oneOf")),
        "anthropic option": (of(a=TEXT, b=TEXT) | {"required": []}, False, lost("oneOf"))}),
    ("union within", of(a=UNION), {
        "openai reply": (closed(a={"anyOf": [closed(a=TEXT), closed(a=NUMBER, b=TEXT)]}), True, []),
        "anthropic option": (of(a=UNION), False, [])}),
    ("lookaround", of(a=LOOKS_AHEAD), {
        "openai option": (of(a=LOOKS_AHEAD), False, []),
        "openai strict": (of(a=LOOKS_AHEAD), False, LOOSE),
        "openai reply": (of(a=LOOKS_AHEAD), False, LOOSE)}),
    ("no lookaround", of(a=ESCAPED), {"openai option": (closed(a=ESCAPED), True, [])}),
    ("recursive", TREE_AT_ROOT, {
        "openai option": (TREE | {"$defs": {"Tree": TREE}}, False, []),
        "anthropic option": (TREE | {"$defs": {"Tree": TREE}}, False, []),
        "anthropic strict": (TREE | {"$defs": {"Tree": TREE}}, False, LOOSE),
        "anthropic reply": (None, False, GONE),
        "google reply": (TREE_AT_ROOT, False, [])}),
    ("without an end", ENDLESS, {"openai strict": (ENDLESS["$defs"]["N"] | {"$defs": ENDLESS["$defs"]}, False, LOOSE)}),
    ("external", of(a=ELSEWHERE), {
        "openai strict": (of(a=ELSEWHERE), False, LOOSE),
        "openai reply": (of(a=ELSEWHERE), False, LOOSE),
        "anthropic strict": (of(a=ELSEWHERE), False, LOOSE),
        "anthropic reply": (None, False, GONE)}),
    ("free keys", of(a=FREE), {
        "openai option": (of(a=FREE), False, []),
        "openai strict": (of(a=FREE), False, LOOSE),
        "openai reply": (of(a=FREE), False, LOOSE),
        "anthropic option": (of(a=FREE), False, []),
        "anthropic strict": (of(a=FREE), False, LOOSE),
        "anthropic reply": (None, False, GONE),
        "google reply": (of(a=FREE), False, [])}),
    ("not an object", {"type": "array", "items": TEXT}, {
        "openai reply": (None, False, GONE),
        "anthropic reply": ({"type": "array", "items": TEXT}, False, [])}),
    ("described reference", of(a={"$ref": "#/$defs/A", "description": "d"}) | {"$defs": {"A": TEXT}}, {
        "openai reply": (closed(a={**TEXT, "description": "d"}) | {"$defs": {"A": TEXT}}, True, []),
        "anthropic reply": (closed(a={**TEXT, "description": "d"}) | {"$defs": {"A": TEXT}}, False, []),
        "google reply": (of(a={**TEXT, "description": "d"}) | {"$defs": {"A": TEXT}}, False, [])}),
]  # fmt: skip
WIRES = {"openai": (CHAT, RESPONSES), "anthropic": (CLAUDE,), "google": (GEMINI,)}
CASES = [
    pytest.param(wire, schema, place, *expected, id=f"{kind}, {wire} {place}")
    for kind, schema, places in PLACES
    for cell, expected in places.items()
    for provider, place in [cell.split()]
    for wire in WIRES[provider]
]


@pytest.mark.parametrize(("wire", "schema", "place", "sent", "strict", "losses"), CASES)
def test_a_schema_is_sent_as_the_wire_takes_it(
    wire: str, schema: Any, place: str, sent: Any, strict: bool, losses: list[tuple[str, str]]
) -> None:
    settings: dict[str, Any] = {"max_output_tokens": 9}
    options = []
    if place == "reply":
        settings["response_format"] = sabir.ResponseFormat(name="output", schema=schema)
    else:
        vendor = {wire.partition(".")[0]: {"strict": True}} if place == "strict" else None
        options = [sabir.Option.from_schema("f", "F.", schema, vendor=vendor)]
    rendering = sabir.dialect(wire).render(
        "hi", options=options, settings=sabir.Settings(**settings), model=MODELS[wire]
    )
    found = [(value, is_strict) for _, value, is_strict in declared(json.loads(rendering.body_bytes))]
    base = "settings.response_format" if place == "reply" else "options[0].parameters"
    paths = [(loss.kind, loss.path.removeprefix(base).removeprefix(".schema")) for loss in rendering.losses]

    assert found == ([] if sent is None else [(sent, strict)])
    assert paths == losses
