"""Law 2 of schemas: every keyword of an option's or a reply's schema is in the request or in the losses."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sabir.options.option import Option
from sabir.vocabulary.settings import ResponseFormat, Settings
from sabir_testing.histories.samples import said

from tests.laws.every import on_every
from tests.laws.test_hand_over import NAMES, renderer

_NAMES = ("properties", "$defs")
"""Keywords whose values are schemas by names."""
_VALUES = ("enum", "const", "default", "examples", "required", "discriminator")
"""Keywords whose values are no schemas."""
ANNOTATIONS: Mapping[str, Any] = {
    "$comment": "c", "default": "x", "deprecated": True, "description": "d", "examples": ["x"], "readOnly": True,
    "title": "t", "writeOnly": True,
}  # fmt: skip
CHECKS: Mapping[str, Any] = {"enum": ["x", "y"], "format": "uuid", "maxLength": 9, "minLength": 1, "pattern": "x"}


def some(keywords: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(st.sampled_from(sorted(keywords)), unique=True, max_size=3).map(
        lambda names: {name: keywords[name] for name in names}
    )


@st.composite
def joined(draw: Any, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """An object, an array, or a union of such schemas."""
    arms = draw(st.lists(inner, min_size=1, max_size=2))
    match draw(st.sampled_from(["object", "array", "anyOf", "oneOf", "allOf"])):
        case "object":
            found = {"type": "object", "properties": {f"p{at}": arm for at, arm in enumerate(arms)}}
            found |= draw(st.sampled_from([{}, {"required": ["p0"]}, {"additionalProperties": False}]))
        case "array":
            found = {"type": "array", "items": arms[0]}
        case "oneOf":
            found = {"oneOf": arms, **draw(st.sampled_from([{}, {"discriminator": {"propertyName": "p0"}}]))}
        case union:
            found = {union: arms}
    return {**found, **draw(some(ANNOTATIONS))}


leaves = st.builds(lambda *found: {"type": "string"} | found[0] | found[1], some(ANNOTATIONS), some(CHECKS))
schemas = st.recursive(leaves, joined, max_leaves=4)
roots = st.builds(
    lambda inner, own: {"type": "object", "properties": {"a": inner}, "required": ["a"], **own},
    schemas,
    some({name: ANNOTATIONS[name] for name in ("$comment", "deprecated", "readOnly")}),
)


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


def declared(body: Any) -> Iterator[Any]:
    """Every schema of a body: what stands under a name that some wire gives schemas."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("schema", "parameters", "input_schema", "responseJsonSchema", "parametersJsonSchema"):
                yield value
            else:
                yield from declared(value)
    elif isinstance(body, list):
        for each in body:
            yield from declared(each)


@given(schema=roots)
@on_every(NAMES)
def test_every_keyword_of_a_schema_is_sent_or_told(name: str, schema: dict[str, Any]) -> None:
    """As an option's parameters and as a reply's form; as often as it is given, or a loss names it."""
    made = renderer(name)
    option = Option.from_schema("weather", "Weather.", schema)
    form = Settings(max_output_tokens=1000, response_format=ResponseFormat(name="x", schema=schema))
    for options, settings, path in (([option], None, "options[0]"), ([], form, "settings.response_format")):
        rendering = made.render([said("user", "?")], options, settings)
        told = " ".join(loss.reason for loss in rendering.losses if loss.path.startswith(path))
        [sent] = declared(json.loads(rendering.body_bytes))
        missing = Counter(keywords(schema)) - Counter(keywords(sent))
        assert [keyword for keyword in missing if keyword not in told] == [], (sent, told)
