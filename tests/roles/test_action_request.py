"""ActionRequest: a call by name, its arguments, and whether it was answered."""

import json
from functools import partial
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template
from sabir_roles import ActionRequest, ActionResponse, RoledMessage

from tests.roles.checks import json_values, made_of, refuses, texts, through_json


def look(place: str) -> str:
    """Look somewhere."""
    return place


@pytest.mark.parametrize(
    ("function", "name"), [("look", "look"), (look, "look"), (len, "len"), (sabir.option(name="see")(look), "see")]
)
def test_a_function_is_named_by_itself_or_its_name(function: Any, name: str) -> None:
    """LA-45: an option by the name that it is offered by."""
    assert ActionRequest.create(function).function == name


@pytest.mark.parametrize("function", [None, "", 5, partial(look), ["look"]])
def test_what_has_no_name_is_refused(function: Any) -> None:
    """LA-45: in one line that tells what was given."""
    with refuses("an empty text" if function == "" else type(function).__name__, "names no function"):
        ActionRequest.create(function, {})


def test_a_template_sees_function_arguments_and_further_values() -> None:
    """LA-45, LA-56: and an output that is None; no further value stands in the place of the request."""
    source = "{{ function }} {{ arguments.a }} {{ output }} {{ mark }}"
    made = ActionRequest.create("look", {"a": "{{ x }}"}, "me", "you", Template(source), mark=0, action_request="x")
    assert (made.function, made.rendered) == ("look", "look {{ x }} None 0")


def test_function_arguments_and_request_are_read_as_copies() -> None:
    """LA-46: what is done to them is not done to the message."""
    made = ActionRequest.create("look", {"places": ["x"]})
    assert made.request == {"function": "look", "arguments": {"places": ["x"]}}
    made.request["function"] = "see"
    made.arguments["places"].append("y")
    assert (made.function, made.arguments, made.action_response_id) == ("look", {"places": ["x"]}, None)
    assert ActionRequest.create("look").arguments == {}


@pytest.mark.parametrize("text", ["{}", '{"a": 0}', ' {"a": [null]} '])
def test_the_json_text_of_an_object_is_taken_as_arguments(text: str) -> None:
    """LA-46, D-54: as models give it."""
    assert ActionRequest.create("look", text).arguments == json.loads(text)


@pytest.mark.parametrize(
    "arguments", [[], ["a"], 0, False, 5, "", "x", "[1]", "null", b"{}", {"a"}, '{"a":' * 100_000, {"a": object()}]
)
def test_other_arguments_are_refused(arguments: Any) -> None:
    """LA-46, D-54: created or updated."""
    with refuses():
        ActionRequest.create("look", arguments)
    made = ActionRequest.create("look", {"a": 1})
    with refuses(of=made):
        made.update("see", arguments, sender="x")


def test_content_whose_arguments_are_no_mapping_is_refused_where_it_is_read() -> None:
    """LA-46: a program may fill content itself."""
    made = ActionRequest(content={"action_request": {"function": "look", "arguments": [1]}})
    with refuses("arguments", "mapping"):
        _ = made.arguments


def test_a_request_is_responded_once_a_response_is_linked() -> None:
    """LA-47: and is not any more when the link is taken away."""
    made = ActionRequest.create("look")
    assert not made.is_responded()
    response = ActionResponse.create(made, None)
    assert made.is_responded()
    assert made.action_response_id == response.id
    assert through_json(made).is_responded()
    made.action_response_id = None
    assert not made.is_responded()


@pytest.mark.parametrize("change", [{}, {"function": "see"}, {"arguments": {}}, {"sender": "x"}, {"template": "x"}])
def test_a_responded_request_is_not_updated(change: dict[str, Any]) -> None:
    """LA-48: whatever is given."""
    made = ActionRequest.create("look")
    response = ActionResponse.create(made, 1)
    with refuses("'look'", "answered", of=made):
        made.update(**change)
    with refuses("answered", of=made):
        made.update(action_response=response)


def test_an_update_changes_what_is_given() -> None:
    """LA-46, D-57: empty arguments empty them; None is not given."""
    made = ActionRequest.create("look", {"a": 1})
    made.update(look, None, "me", None, mark=0)
    assert (made.request, made.sender, made.recipient) == ({"function": "look", "arguments": {"a": 1}}, "me", "action")
    made.update("see", {})
    assert (made.request, made.content["mark"]) == ({"function": "see", "arguments": {}}, 0)


def test_an_update_links_a_response() -> None:
    """LA-49, D-55: both ways; the request that it answered before is unanswered again."""
    first, second = ActionRequest.create("look", {"a": 1}), ActionRequest.create("see", {"b": 2})
    response = ActionResponse.create(first, 0)
    second.update(arguments={"b": 3}, action_response=response)
    assert (second.action_response_id, response.action_request_id) == (response.id, second.id)
    assert (response.function, response.arguments, response.output) == ("see", {"b": 3}, 0)
    assert not first.is_responded()


@pytest.mark.parametrize("response", ["x", 5, ActionRequest.create("see")])
def test_what_is_no_response_is_not_linked(response: Any) -> None:
    """LA-49: and nothing else that was given is changed."""
    made = ActionRequest.create("look")
    with refuses("ActionResponse", of=made):
        made.update("see", action_response=response)


@given(texts.filter(bool), st.dictionaries(texts, json_values, max_size=3))
def test_a_request_is_an_option_call(function: str, arguments: dict[str, Any]) -> None:
    """LA-55: name, arguments and invocation id, and back; the same call, also through JSON."""
    made = ActionRequest.create(function, arguments)
    message = made_of(made)
    assert (message.call.option_name, message.call.arguments) == (function, arguments)
    assert (message.call.invocation_id, message.policy) == (made.invocation_id, "llm")
    taken = RoledMessage.from_message(message)
    assert isinstance(taken, ActionRequest)
    assert (taken.function, taken.arguments, taken.invocation_id) == (function, arguments, made.invocation_id)
    assert taken.to_message() is message
    assert through_json(taken).to_message() == message


def test_linking_a_response_leaves_the_call_as_it_is() -> None:
    """LA-55: the link is the working copy's; the call and its state were said before."""
    made = ActionRequest.create("look", {"a": 1})
    before = made.to_message()
    ActionResponse.create(made, 1)
    assert made.to_message() is before
