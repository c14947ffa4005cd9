"""Two requests are the same or differ in places that are named; what was scrubbed stands for anything."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_testing.cassettes.differences import (
    MOST_SHOWN,
    body_differences,
    is_same_text,
    list_differences,
    value_differences,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab", max_size=2), inner, max_size=3),
)
TOLD: dict[str, tuple[Any, Any, list[str]]] = {
    "a value": ({"a": 1}, {"a": 2}, ["a: recorded 1, sent 2"]),
    "a text": ({"a": "x"}, {"a": "y"}, ["a: recorded 'x', sent 'y'"]),
    "deep inside": ({"a": [{"b": 1}]}, {"a": [{"b": None}]}, ["a[0].b: recorded 1, sent null"]),
    "another kind": ({"a": []}, {"a": {}}, ["a: recorded [], sent {}"]),
    "true is not 1": ({"a": 1}, {"a": True}, ["a: recorded 1, sent true"]),
    "a number's form": ({"a": 1}, {"a": 1.0}, []),
    "one more": ({}, {"a": 1}, ["a: not recorded, sent 1"]),
    "one less": ({"a": None}, {}, ["a: recorded null, not sent"]),
    "a longer list": ([1], [1, 2], ["[1]: not recorded, sent 2"]),
    "a shorter list": ([1, 2], [1], ["[1]: recorded 2, not sent"]),
    "the whole": ([1], {"a": 1}, ['the body: recorded [1], sent {"a": 1}']),
    "the order of fields": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    "a long text": ({"a": "x" * 99}, {"a": 1}, ["a: recorded '" + "x" * 58 + "…, sent 1"]),
    "scrubbed": ({"a": "REDACTED", "b": "REDACTED"}, {"a": "owl", "b": {"c": 1}}, []),
    "scrubbed, in a text": ({"a": "key REDACTED."}, {"a": "key owl."}, []),
    "scrubbed, around it": ({"a": "REDACTED."}, {"a": "a owl"}, ["a: recorded 'REDACTED.', sent 'a owl'"]),
    "scrubbed, and gone": ({"a": "REDACTED"}, {}, ["a: recorded 'REDACTED', not sent"]),
    "scrubbed, in a name": ({"REDACTED": 1, "b": 2}, {"b": 2, "owl": 1}, []),
    "a host": ({"a": "http://recorded.invalid/x"}, {"a": "http://localhost:8080/x"}, []),
    "another path": (
        ["http://recorded.invalid/x"],
        ["http://a/y"],
        ["[0]: recorded 'http://recorded.invalid/x', sent 'http://a/y'"],
    ),
    "the placeholder, asked": ({"a": "x"}, {"a": "REDACTED"}, ["a: recorded 'x', sent 'REDACTED'"]),
}


@pytest.mark.parametrize(("recorded", "asked", "told"), TOLD.values(), ids=TOLD)
def test_a_difference_is_told_by_its_place(recorded: Any, asked: Any, told: list[str]) -> None:
    assert list(value_differences(recorded, asked)) == told
    assert list(body_differences(json.dumps(recorded).encode(), json.dumps(asked, indent=1).encode())) == told


@given(VALUES, VALUES)
def test_none_are_told_of_equal_values_alone(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (list(value_differences(one, other)) == []) is same
    assert list(value_differences(one, one)) == []


def test_bytes_differ_from_some_byte_on() -> None:
    assert list(body_differences(b"owls and bats", b"owls or bats")) == [
        "from byte 5 on: recorded b'and bats', sent b'or bats'"
    ]
    assert list(body_differences(b"\xff", b"\xff\x00")) == ["from byte 1 on: recorded nothing, sent b'\\x00'"]
    assert list(body_differences(b"{}", b"")) == ["from byte 0 on: recorded b'{}', sent nothing"]
    assert list(body_differences(b"owls, REDACTED", b"owls, olive")) == []


def test_only_the_first_few_are_listed() -> None:
    told = list_differences(value_differences(list(range(20)), [None] * 20)).splitlines()

    assert (len(told), told[0], told[-1]) == (MOST_SHOWN + 1, "  [0]: recorded 0, sent null", "  …")


def test_a_path_is_compared_like_a_text() -> None:
    assert is_same_text("/v1/REDACTED/x", "/v1/owl/x")
    assert not is_same_text("/v1/x", "/v1/owl/x")
