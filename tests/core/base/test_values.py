"""JSON values: held as canonical text, seen through views that nothing can change."""

import copy
import enum
import json
import pickle
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sabir.base.values import (
    FrozenDict,
    FrozenList,
    JSONText,
    NotJSON,
    count_values,
    decode_json,
    encode_json,
    freeze,
    has_more_values,
    parse_json,
)

from tests.core.samples import json_values
from tests.core.support import raises_line


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    left: int
    right: tuple[int, ...]


@given(json_values)
def test_a_value_comes_back_from_its_text(value: Any) -> None:
    text = encode_json(value)

    assert json.loads(text) == text.view() == freeze(value) == value
    assert decode_json(text) == value


def test_text_is_compact_and_canonical() -> None:
    """D-01: values have sorted keys at every level, documents the order given; a string is no JSON by accident."""
    assert encode_json({"b": [1, 2.5], "a": "ä"}) == '{"b":[1,2.5],"a":"ä"}'
    assert encode_json({"b": [1, {"d": 2, "c": 1}], "a": "ä"}, sort_keys=True) == '{"a":"ä","b":[1,{"c":1,"d":2}]}'
    assert type(encode_json(1)) is JSONText
    assert (encode_json("{}"), encode_json(JSONText("{}"))) == ('"{}"', "{}")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Point(x=1), {"x": 1}),
        (Pair(1, (2, 3)), {"left": 1, "right": [2, 3]}),
        (datetime(2026, 11, 21, tzinfo=UTC), "2026-11-21T00:00:00Z"),
        (Colour.RED, "red"),
        (b"abc", "abc"),
        ({1: "a"}, {"1": "a"}),
        ((1, [Point(x=2)]), [1, [{"x": 2}]]),
    ],
)
def test_values_of_python_become_json_at_once(value: Any, plain: Any) -> None:
    """D-01: what a round trip would turn into something else is normalised when it is given."""
    assert encode_json(value).view() == plain


class Unreadable:
    def __repr__(self) -> str:
        return "<unreadable\nthing>"


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "numbers must be finite"),
        ({"a": [float("-inf")]}, "numbers must be finite"),
        ((float("inf"), Point(x=1)), "is not a JSON value"),
        ("\ud800", r"lone surrogate U\+D800"),
        ({"\udfff": 1}, r"lone surrogate U\+DFFF"),
        ([Point(x=1), "\ud800"], r"is not a JSON value"),
        (object(), "is not a JSON value"),
        (Unreadable(), "<unreadable thing> is not a JSON value"),
        (Unshowable(), "a value of type Unshowable is not a JSON value"),
        (b"\xff", "is not a JSON value"),
    ],
    ids=range(10),
)
def test_what_json_cannot_hold_is_refused_in_one_line(value: Any, words: str) -> None:
    """D-01: non-finite numbers, lone surrogates, objects without a JSON form."""
    with raises_line(NotJSON, match=words) as caught:
        encode_json(value)

    assert str(caught.value).isascii()


def test_a_value_that_holds_itself_and_text_that_is_not_strict_are_refused() -> None:
    deep: Any = []
    loop: list[Any] = []
    loop.append(loop)
    for _ in range(100_000):
        deep = [deep]

    for value in (loop, deep):
        with pytest.raises(NotJSON):
            encode_json(value)
    for text in ("", "{", "NaN", "[Infinity]", "-Infinity", "{'a': 1}", b"\xff", "[" * 100_000, "[1e999]"):
        with raises_line(NotJSON, match="is not JSON text"):
            decode_json(text)


EDGES = [
    "0", "-0", "-0.0", "1E5", "1e-400", "1e999", "-1e400", "9" * 400 + ".0", "1" + "0" * 30, "01", "1.", ".5", "+1",
    '{"a":1,"b":2,"a":3}', r'"\ud83d\ude00"', r'"\ud800"', '"\ud800"', '"\t"', '"\x7f"', r'"\/"', r'"\x"', "[1,]",
    "{1:2}", "1 2", "\ufeff1", " [ ] \n", "tru", "NaN",
    "-Infinity", "9" * 5000, "[" * 100 + "]" * 100, "[" * 250 + "]" * 250,
]  # fmt: skip
signs = st.text(st.sampled_from('0123456789-+.eE[]{}:," \\u'))
texts = json_values.map(json.dumps) | signs | st.sampled_from(EDGES)


@given(texts)
def test_the_quick_parser_gives_what_the_exact_one_gives_or_nothing(text: str) -> None:
    for each in (text, *EDGES):
        try:
            quick = parse_json(each)
            canonical = encode_json(quick)
        except ValueError:
            continue
        assert canonical == encode_json(decode_json(each))
        assert repr(quick) == repr(decode_json(each))


def test_the_quick_parser_refuses_what_is_no_json_in_valid_unicode() -> None:
    for text in ("NaN", "[Infinity]", "-Infinity", r'"\ud800"', '"\ud800"', b"\xff", "[" * 250 + "]" * 250):
        with pytest.raises(ValueError):
            parse_json(text)
    with pytest.raises(NotJSON, match="numbers must be finite"):
        encode_json(parse_json("[1e999]"))


VIEW = freeze({"a": [1, {"b": [2]}], "c": {"d": None}})


def test_a_view_is_the_value_in_every_comparison() -> None:
    plain = {"a": [1, {"b": [2]}], "c": {"d": None}}

    assert plain == VIEW
    assert (json.dumps(VIEW), repr(VIEW)) == (json.dumps(plain), repr(plain))
    assert hash(VIEW) == hash(freeze({"c": {"d": None}, "a": [1, {"b": [2]}]}))
    assert hash(VIEW["a"]) == hash(freeze([1, {"b": [2]}]))
    assert freeze(VIEW) is VIEW
    for view in (VIEW, copy.copy(VIEW), copy.deepcopy(VIEW), pickle.loads(pickle.dumps(VIEW))):
        assert view == VIEW
        assert (type(view), type(view["a"]), type(view["a"][1])) == (FrozenDict, FrozenList, FrozenDict)
    assert type({**VIEW}) is dict


def separators(value: Any) -> int:
    """The commas between values and the opening brackets of compact JSON text."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return 1 + max(len(value) - 1, 0) + sum(map(separators, items))
    return 0


@given(json_values, st.integers(0, 20))
def test_values_are_counted_as_often_as_they_are_separated(value: Any, most: int) -> None:
    text = encode_json(value)
    number = separators(value)

    assert number <= count_values(text, 10_000) <= number + 2
    assert count_values(text, 10_000) == count_values(text.encode(), 10_000)
    assert not (has_more_values(text, most) and number + 2 <= most)
    assert has_more_values(text, most) or number <= most or len(text) <= most


@given(st.binary(max_size=60), st.integers(0, 9))
def test_any_bytes_are_counted(data: bytes, most: int) -> None:
    assert 0 <= count_values(data, most) <= most + 1
