"""What the pieces of a call's arguments become."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid
from sabir.vocabulary.settings import Target
from sabir_google.dialect import GENERATE_CONTENT
from sabir_google.streamed_calls import StreamedFunctionCall, join_calls

SCOPE = DecodeScope(target=Target(provider="google", dialect=GENERATE_CONTENT.name, model="gemini-3-pro"))
FIELDS = {str: "stringValue", bool: "boolValue", int: "numberValue", float: "numberValue", type(None): "nullValue"}

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | NAMES
INNER = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=8,
)


def pieces(value: Any, path: str = "$") -> Iterator[dict[str, Any]]:
    """Those of a value: strings in characters, the names of fields in single quotes where they must be quoted."""
    if isinstance(value, dict):
        for name, each in value.items():
            quoted = "['" + json.dumps(name)[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"
            yield from pieces(each, f"{path}.{name}" if name.isidentifier() else f"{path}{quoted}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from pieces(each, f"{path}[{place}]")
    elif isinstance(value, str):
        for each in value or [""]:
            yield {"jsonPath": path, "stringValue": each, "willContinue": True}
    else:
        yield {"jsonPath": path, FIELDS[type(value)]: value}


def call(*found: Any, more: bool = False, **given: Any) -> dict[str, Any]:
    return {"functionCall": {**given, "partialArgs": list(found), **({"willContinue": True} if more else {})}}


@given(st.dictionaries(NAMES, INNER, max_size=3))
def test_pieces_of_any_arguments_join_to_them(arguments: dict[str, Any]) -> None:
    growing = StreamedFunctionCall(SCOPE)
    parts = [call(name="f", more=True), *(call(each, more=True) for each in pieces(arguments))]
    texts = [growing.add(part) for part in (*parts, {"functionCall": {}})]
    assert growing.build() == {"functionCall": {"name": "f", "args": arguments}}
    assert json.loads("".join(texts)) == arguments


def test_values_out_of_order_join_all_the_same() -> None:
    growing = StreamedFunctionCall(SCOPE)
    first, second = {"jsonPath": "$.a.x", "numberValue": 1}, {"jsonPath": "$.b", "nullValue": "NULL_VALUE"}
    later = {"jsonPath": '$["a"].y', "boolValue": False}
    assert growing.add(call(first, second, later, name="f")) == '{"a":{"x":1},"b":null'
    assert growing.build()["functionCall"]["args"] == {"a": {"x": 1, "y": False}, "b": None}


def test_parts_of_one_answer_join_as_those_of_a_stream_do() -> None:
    """A call ends with the piece after which no more comes; an empty piece behind it, and what stands between, is none
    of it."""
    one, two = {"jsonPath": "$.city", "stringValue": "Paris"}, {"jsonPath": "$.city", "stringValue": "Rome"}
    parts: list[Any] = [
        call(name="weather", id="1", more=True), {"text": "and"}, call(one, id="1"), {"functionCall": {}},
        call(two, name="weather", id="2"), {"functionCall": {"name": "time"}},
    ]  # fmt: skip
    assert join_calls(parts, SCOPE) == [
        {"functionCall": {"name": "weather", "id": "1", "args": {"city": "Paris"}}},
        {"text": "and"},
        {"functionCall": {"name": "weather", "id": "2", "args": {"city": "Rome"}}},
        {"functionCall": {"name": "time"}},
    ]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    reply = GENERATE_CONTENT.decode(json.dumps(body).encode(), SCOPE)
    assert [each.call and each.call.arguments for each in reply.option_calls] == [
        {"city": "Paris"}, {"city": "Rome"}, {},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "piece",
    [
        {"stringValue": "x"},
        {"jsonPath": "$", "stringValue": "x"},
        {"jsonPath": "city", "stringValue": "x"},
        {"jsonPath": "$.city[", "stringValue": "x"},
        {"jsonPath": "$.city[*]", "stringValue": "x"},
        {"jsonPath": "$[0]", "stringValue": "x"},
        {"jsonPath": "$.list[7]", "numberValue": 1},
        {"jsonPath": "$.list.name", "numberValue": 1},
        {"jsonPath": "$.list", "numberValue": 1},
        {"jsonPath": "$.list[0].name", "numberValue": 1},
        {"jsonPath": "$.list[0]", "numberValue": 2},
        {"jsonPath": "$" + ".a" * 101, "numberValue": 1},
        {"jsonPath": "$.city", "numberValue": "NaN"},
        {"jsonPath": "$.city", "structValue": {}},
    ],
)
def test_a_piece_that_fits_nowhere_is_told(piece: dict[str, Any]) -> None:
    growing = StreamedFunctionCall(SCOPE)
    growing.add(call({"jsonPath": "$.list[0]", "numberValue": 1}, name="f", more=True))
    with pytest.raises(ResponseInvalid, match=r"arguments of 'f' at .*: send the request again$"):
        growing.add(call(piece))
