"""The JSON documents of a body are found where they stand, and put back there."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_testing.reading import (
    Document,
    compact_json,
    documents,
    format_path,
    group_fragments,
    replace,
    set_text,
    texts_with_paths,
)

BODIES: dict[str, tuple[str, list[Any]]] = {
    "one": ('{"a": 1}', [{"a": 1}]),
    "one, in spaces": (' \n{"a": 1}\n', [{"a": 1}]),
    "one, on lines": ('{\n "a": [\n1\n]}', [{"a": [1]}]),
    "a list": ('[{"a":1},\r\n{"a":2}]', [[{"a": 1}, {"a": 2}]]),
    "events": ('event: x\ndata: {"a":1}\n\nid: 7\ndata:{"a":2}\n\ndata: [DONE]\n\n', [{"a": 1}, {"a": 2}]),
    "events, other line ends": ('data: {"a":1}\r\n\r\ndata: {"a":2}\r\r', [{"a": 1}, {"a": 2}]),
    "an event on lines": ('data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
    "data of its own on each line": ('data: {"a":1}\ndata: {"a":2}\n\n', [{"a": 1}, {"a": 2}]),
    "lines": ('{"a":1}\n\n{"a":2}\nno\n', [{"a": 1}, {"a": 2}]),
    "words": ("data and {words}", []),
    "a number": ("7", []),
    "nothing": ("", []),
    "cut": ('{"a": 1', []),
}


@pytest.mark.parametrize(("body", "values"), BODIES.values(), ids=BODIES)
def test_documents_are_found_and_can_be_replaced_where_they_stand(body: str, values: list[Any]) -> None:
    """What is outside of documents is the same before and after."""
    found = documents(body)
    made = replace(body, [(document, {"z": number}) for number, document in enumerate(found)])

    again = documents(made)
    assert [document.value for document in found] == values
    assert [document.value for document in again] == [{"z": number} for number in range(len(found))]
    assert _outside(made, again) == _outside(body, found)


def _outside(text: str, found: list[Document]) -> list[str]:
    ends = [0, *(each.end for each in found)]
    starts = [*(each.start for each in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_is_written_reads_as_it_was_on_one_line(value: Any) -> None:
    """And UTF-8 can hold it; half a surrogate pair is escaped, and then all beside it."""
    text = compact_json(value)

    assert json.loads(text) == value
    assert text.encode()
    assert not {"\n", "\r"} & set(text)
    assert compact_json(["\ud83d", "é"]) == '["\\ud83d","\\u00e9"]'
    assert compact_json("é") == '"é"'


def test_every_text_has_its_place_and_can_be_put_there() -> None:
    value = {"a": [{"b": "x"}, "y"], "c": 1}
    found = [(format_path(place), text) for place, text in texts_with_paths(value)]
    set_text(value, ("a", 0, "b"), "z")

    assert found == [("a", "a"), ("a[0].b", "b"), ("a[0].b", "x"), ("a[1]", "y"), ("c", "c")]
    assert value == {"a": [{"b": "z"}, "y"], "c": 1}


def test_texts_at_one_place_of_several_documents_are_put_together() -> None:
    said = [{"t": "a", "u": "1"}, {"index": 1, "d": {"t": "x"}}, {"t": "b"}, {"index": 2, "d": {"t": "z"}}]
    said.append({"index": 1, "d": {"t": "y"}})

    together = ["".join(fragment.text for fragment in fragments) for fragments in group_fragments(said)]
    assert together == ["ab", "1", "xy", "z"]
