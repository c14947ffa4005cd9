"""ActionRequest: a call by name, its arguments, and whether it was answered."""

from typing import Any

import pytest
import sabir
from sabir_roles import ActionRequest, ActionResponse

from tests.roles.checks import refuses


def look(place: str) -> str:
    """Look somewhere."""
    return place


@pytest.mark.parametrize(
    ("function", "name"), [("look", "look"), (look, "look"), (len, "len"), (sabir.option(name="see")(look), "see")]
)
def test_a_function_is_named_by_itself_or_its_name(function: Any, name: str) -> None:
    """LA-45: an option by the name that it is offered by."""
    assert ActionRequest.create(function).function == name


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


@pytest.mark.parametrize("change", [{}, {"function": "see"}, {"arguments": {}}, {"sender": "x"}, {"template": "x"}])
def test_a_responded_request_is_not_updated(change: dict[str, Any]) -> None:
    """LA-48: whatever is given."""
    made = ActionRequest.create("look")
    response = ActionResponse.create(made, 1)
    with refuses("'look'", "answered", of=made):
        made.update(**change)
    with refuses("answered", of=made):
        made.update(action_response=response)


def test_an_update_links_a_response() -> None:
    """LA-47, LA-49, D-55: both ways; the request that it answered before is unanswered again."""
    first, second = ActionRequest.create("look", {"a": 1}), ActionRequest.create("see", {"b": 2})
    response = ActionResponse.create(first, 0)
    second.update(arguments={"b": 3}, action_response=response)
    assert (second.action_response_id, response.action_request_id) == (response.id, second.id)
    assert (response.function, response.arguments, response.output) == ("see", {"b": 3}, 0)
    assert (first.is_responded(), second.is_responded()) == (False, True)
