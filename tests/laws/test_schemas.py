"""Laws of schemas: what is sent fits the rules of its wire, and every keyword is in the request or in the losses.

The rules stand here a second time, read from the vendors' pages and refusals apart from the code:

    OpenAI      https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
    Anthropic   https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
    Google      https://ai.google.dev/api/generate-content#GenerationConfig
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sabir.options.option import Option
from sabir.vocabulary.settings import ResponseFormat, Settings
from sabir_testing.histories.samples import message_by

from tests.laws.every import on_every
from tests.laws.test_hand_over import NAMES, renderer

_NAMES = ("properties", "$defs", "dependentSchemas")
"""Keywords whose values are schemas by names."""
_VALUES = ("enum", "const", "default", "examples", "required", "discriminator")
"""Keywords whose values are no schemas."""
ANNOTATIONS: Mapping[str, Any] = {
    "$comment": "c", "default": "x", "deprecated": True, "description": "d", "examples": ["x"], "readOnly": True,
    "title": "t", "writeOnly": True,
}  # fmt: skip
CHECKS: Mapping[str, Any] = {
    "enum": ["x", "y"],
    "format": "uuid",
    "maxLength": 9,
    "minLength": 1,
    "pattern": r"^(?=.*\d)",
}


def some(keywords: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(st.sampled_from(sorted(keywords)), unique=True, max_size=3).map(
        lambda names: {name: keywords[name] for name in names}
    )


@st.composite
def joined(draw: Any, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    arms = draw(st.lists(inner, min_size=1, max_size=2))
    match draw(st.sampled_from(["object", "array", "anyOf", "oneOf", "allOf"])):
        case "object":
            found = {"type": "object", "properties": {f"p{at}": arm for at, arm in enumerate(arms)}}
            free = [{"additionalProperties": closed} for closed in (False, True, {"type": "integer"})]
            found |= draw(st.sampled_from([{}, {"required": ["p0"]}, *free]))
        case "array":
            found = {"type": "array"} | draw(st.sampled_from([{"items": arms[0]}, {"prefixItems": arms}, {}]))
        case "oneOf":
            found = {"oneOf": arms, **draw(st.sampled_from([{}, {"discriminator": {"propertyName": "p0"}}]))}
        case union:
            found = {union: arms}
    return {**found, **draw(some(ANNOTATIONS))}


REFERENCES = ("#/$defs/Leaf", "#/$defs/Tree", "#/$defs/gone", "https://example.org/schema")
DEFINITIONS = {
    "Leaf": {"type": "string", "title": "Leaf"},
    "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
}
references = st.builds(lambda to, beside: {"$ref": to, **beside}, st.sampled_from(REFERENCES), some(ANNOTATIONS))
leaves = references | st.builds(
    lambda *found: {"type": "string"} | found[0] | found[1], some(ANNOTATIONS), some(CHECKS)
)
schemas = st.recursive(leaves, joined, max_leaves=4)
PROPERTIES = ("a", "filter[name]", "$top", "x" * 65, "type")


@st.composite
def objects(draw: Any) -> dict[str, Any]:
    """The schema of an object, perhaps with unions of objects at its root."""
    branch = st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(PROPERTIES), leaves, max_size=2)})
    root = {"type": "object", "properties": draw(st.dictionaries(st.sampled_from(PROPERTIES), schemas, max_size=2))}
    root |= draw(st.sampled_from([{}, {"required": [*root["properties"]]}]))
    for union in draw(st.lists(st.sampled_from(["anyOf", "oneOf", "allOf"]), unique=True, max_size=1)):
        root[union] = draw(st.lists(branch, min_size=1, max_size=2))
    root |= draw(some({name: ANNOTATIONS[name] for name in ("$comment", "deprecated", "readOnly")}))
    return {**root, "$defs": DEFINITIONS} if "$ref" in json.dumps(root) else root


def keywords(schema: Any) -> Iterator[str]:
    """Every keyword of a schema, wherever it stands; a union of one schema is that schema."""
    if isinstance(schema, Mapping):
        while len(schema.get("allOf", ())) == 1:
            schema = {**schema["allOf"][0], **{name: value for name, value in schema.items() if name != "allOf"}}
        for name, value in schema.items():
            yield name
            for each in value.values() if name in _NAMES else [] if name in _VALUES else [value]:
                yield from keywords(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from keywords(each)


def declared(body: Any, *, strict: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Every schema of a body: what stands under a name that some wire gives schemas, and whether it is strict."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("schema", "parameters", "input_schema", "responseJsonSchema", "parametersJsonSchema"):
                yield name, value, body.get("strict") is True
            else:
                yield from declared(value)
    elif isinstance(body, list):
        for each in body:
            yield from declared(each)


BOTH_STRICT = {
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "definitions", "description", "enum",
    "format", "items", "minItems", "properties", "required", "title", "type",
}  # fmt: skip
OPENAI_STRICT = BOTH_STRICT | {
    "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maximum", "minimum", "multipleOf", "pattern",
}  # fmt: skip
CLAUDE_STRICT = BOTH_STRICT | {"allOf"}
CLAUDE_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for name, value in schema.items():
            for each in value.values() if name in _NAMES else value if isinstance(value, list) else [value]:
                yield from parts_of(each) if name not in _VALUES else ()


def is_endless(schema: Any, root: Any, trail: tuple[str, ...] = ()) -> bool:
    """Whether a reference leads back to itself or out of the schema."""
    for each in parts_of(schema):
        reference = each.get("$ref", "")
        name = reference.removeprefix("#/$defs/")
        if reference and (reference in trail or name not in root.get("$defs", {})):
            return True
        if reference and is_endless(root["$defs"][name], root, (*trail, reference)):
            return True
    return False


def faults(name: str, place: str, schema: Any, *, strict: bool) -> Iterator[str]:
    """What the vendor refuses in a schema at a place of its requests."""
    parts, unions = [*parts_of(schema)], {"allOf", "anyOf", "oneOf"}
    is_openai, is_claude = name.startswith("openai"), name.startswith("anthropic")
    is_claude_strict = is_claude and (strict or place == "schema")
    if (place != "schema" or is_openai) and place != "responseJsonSchema":
        yield from ["the root is not an object"] * (schema.get("type") != "object")
    if is_openai or (is_claude and place == "input_schema"):
        yield from schema.keys() & (unions | {"enum", "not"} if is_openai else unions)
    if place == "input_schema":
        yield from (key for key in schema.get("properties", {}) if not CLAUDE_NAME.fullmatch(key))
    if is_claude_strict and is_endless(schema, schema):
        yield "a reference is recursive or external"
    for part in parts:
        beside = part.keys() - {"$defs", "$ref"} if "$ref" in part else set()
        if is_openai and part.get("type") == "array" and not isinstance(part.get("items"), dict):
            yield f"an array without items: {part}"
        if beside and ((is_openai and strict) or is_claude_strict or place == "responseJsonSchema"):
            yield f"a reference with {beside}"
        if not (is_claude_strict or (is_openai and strict)):
            continue
        yield from part.keys() - (OPENAI_STRICT if is_openai else CLAUDE_STRICT)
        if "(?" in part.get("pattern", ""):
            yield "lookaround"
        if part.get("type") == "object" and (part.get("additionalProperties") is not False or "properties" not in part):
            yield f"an open object: {part}"
        if is_openai and "properties" in part and {*part["properties"]} != {*part.get("required", ())}:
            yield f"an optional property: {part}"


@given(schema=objects(), strict=st.booleans())
@on_every(NAMES)
def test_a_schema_fits_its_wire_and_every_keyword_is_sent_or_told(
    name: str, schema: dict[str, Any], strict: bool
) -> None:
    """As an option's parameters and as a reply's form; as often as it is given, or a loss names it."""
    made, before = renderer(name), json.dumps(schema)
    option = Option.from_schema(
        "weather",
        "Weather.",
        schema,
        vendor={name.partition(".")[0]: {"strict": True}} if strict and not name.startswith("google") else None,
    )
    form = Settings(max_output_tokens=1000, response_format=ResponseFormat(name="x", schema=schema))
    for options, settings, path in (([option], None, "options[0]"), ([], form, "settings.response_format")):
        rendering = made.render([message_by("user", "?")], options, settings)
        losses = [loss for loss in rendering.losses if loss.path.startswith(path)]
        told = " ".join(loss.reason for loss in losses)
        sent = [*declared(json.loads(rendering.body_bytes))]
        if not sent:
            assert [loss.path for loss in losses if loss.kind == "dropped"] == [path]
            continue
        [(place, fitted, is_strict)] = sent
        missing = (
            Counter(keywords(schema)) - Counter(keywords(fitted)) - Counter({"$ref": 99})
        )  # it is told or replaced
        assert [keyword for keyword in missing if keyword not in told] == [], (fitted, told)
        assert [*faults(name, place, fitted, strict=is_strict)] == [], fitted
        if options and strict and not is_strict and not name.startswith("google"):
            assert any(loss.kind == "downgraded" and "without `strict`" in loss.reason for loss in losses)
    assert json.dumps(schema) == before
