"""Content holds JSON, shares nothing with what was given, and its owner hears of every change."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from sabir_roles import RoledMessage
from sabir_roles.content import WatchedDict, WatchedList, json_copy, watch

from tests.roles.support import json_values, refuses


def deaf() -> None:
    """Hear nothing."""


def is_held(value: object) -> bool:
    """Whether every array and object tells of its changes, however deep it is."""
    if isinstance(value, dict):
        return isinstance(value, WatchedDict) and all(map(is_held, value.values()))
    return not isinstance(value, list) or (isinstance(value, WatchedList) and all(map(is_held, value)))


@given(json_values)
def test_what_is_held_equals_what_was_given(value: Any) -> None:
    held = watch(value, deaf)
    assert is_held(held)
    assert (
        held == json_copy(held) == copy.copy(held) == copy.deepcopy(held) == pickle.loads(pickle.dumps(held)) == value
    )


def test_nothing_is_shared_with_what_was_given() -> None:
    data: dict[str, Any] = {"a": [{"b": 1}]}
    message = RoledMessage(content=data)
    data["a"][0]["b"] = 2
    assert message.content == {"a": [{"b": 1}]}


def test_a_set_becomes_an_array_of_one_order() -> None:
    """The same set gives the same text in every process, however deep it is."""
    names = {f"name {number}" for number in range(50)}
    message = RoledMessage(content={"a": names, "b": [{"c": frozenset({(2, 1), (1, 2)})}], "d": {3, "x", 1}})
    assert message.content == {"a": sorted(names), "b": [{"c": [[1, 2], [2, 1]]}], "d": ["x", 1, 3]}


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda content: content.__setitem__("x", [1]),
    "delete": lambda content: content.__delitem__("d"),
    "update": lambda content: content.update(x=[1]),
    "merge": lambda content: content.__ior__({"x": [1]}),
    "set default": lambda content: content.setdefault("x", [1]),
    "pop": lambda content: content.pop("d"),
    "pop item": lambda content: content.popitem(),
    "clear": lambda content: content.clear(),
    "set in an array": lambda content: content["a"].__setitem__(0, [9]),
    "set a slice": lambda content: content["a"].__setitem__(slice(1), [[7], 8]),
    "delete in an array": lambda content: content["a"].__delitem__(0),
    "append": lambda content: content["a"].append([1]),
    "extend": lambda content: content["a"].extend([[1]]),
    "add": lambda content: content["a"].__iadd__([[1]]),
    "repeat": lambda content: content["a"].__imul__(2),
    "insert": lambda content: content["a"].insert(0, {"b": []}),
    "pop of an array": lambda content: content["a"].pop(),
    "remove": lambda content: content["a"].remove(2),
    "clear an array": lambda content: content["a"].clear(),
    "reverse": lambda content: content["a"].reverse(),
    "sort": lambda content: content["a"].sort(),
    "deep": lambda content: content["d"]["e"][0].update(f=[2]),
    "of what was appended": lambda content: (content["a"].append([]), content["a"][-1].append(1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_way_to_change_content_is_heard_of(name: str) -> None:
    """What is rendered afterwards is of the content as it is then, and all of it still tells of changes."""
    message = RoledMessage(content={"a": [3, 2], "d": {"e": [{"f": 1}]}})
    before = message.rendered
    CHANGES[name](message.content)
    assert message.rendered != before
    assert message.rendered == RoledMessage(content=message.content).rendered
    assert is_held(message.content)


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800", {"a": [object()]}])
def test_what_is_no_json_is_refused_wherever_it_is_put(value: object) -> None:
    message = RoledMessage(content={"a": [1], "d": {}})
    with refuses("is not a JSON value", "use JSON values"):
        RoledMessage(content={"x": value})
    for change in (
        lambda: setattr(message, "content", {"x": value}),
        lambda: message.content.__setitem__("x", value),
        lambda: message.content.update({"y": 1, "x": value}),
        lambda: message.content["a"].append(value),
        lambda: message.content["a"].extend([2, value]),
        lambda: message.content["d"].setdefault("x", value),
        lambda: message.update(x=value, recipient="system"),
    ):
        with refuses("is not a JSON value", "use JSON values", of=message):
            change()
    assert message.content == {"a": [1], "d": {}}
    assert is_held(message.content)


def test_the_names_of_values_are_strings() -> None:
    message = RoledMessage()
    with refuses("the name 1 of a value", "strings", of=message):
        message.content[1] = 2  # type: ignore[index]
