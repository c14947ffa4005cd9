"""ActionRequest, a call by name, and ActionResponse, what the function gave back: linked both ways."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import sabir
from hypothesis import given
from pydantic import BaseModel
from sabir_roles import ActionRequest, ActionResponse, RoledMessage

from tests.roles.support import json_values, made_of, refuses, through_json


def look(place: str) -> str:
    return place


@pytest.mark.parametrize(
    ("function", "name"), [("look", "look"), (look, "look"), (len, "len"), (sabir.option(name="see")(look), "see")]
)
def test_a_function_is_named_by_itself_or_its_name(function: Any, name: str) -> None:  # LA-45
    assert ActionRequest.create(function).function == name


@pytest.mark.parametrize(
    "arguments", [[], ["a"], 0, False, 5, "", "x", "[1]", "null", b"{}", {"a"}, '{"a":' * 100_000, {"a": object()}]
)
def test_other_arguments_are_refused(arguments: Any) -> None:  # LA-46, D-54
    with refuses():
        ActionRequest.create("look", arguments)
    made = ActionRequest.create("look", {"a": 1})
    with refuses(of=made):
        made.update("see", arguments, sender="x")


@pytest.mark.parametrize("change", [{}, {"function": "see"}, {"arguments": {}}, {"sender": "x"}, {"template": "x"}])
def test_a_responded_request_is_not_updated(change: dict[str, Any]) -> None:  # LA-48
    made = ActionRequest.create("look")
    response = ActionResponse.create(made, 1)
    with refuses("'look'", "already has a response", of=made):
        made.update(**change)
    with refuses("already has a response", of=made):
        made.update(action_response=response)


def test_an_update_links_a_response() -> None:  # LA-47, LA-49, D-55
    first, second = ActionRequest.create("look", {"a": 1}), ActionRequest.create("see", {"b": 2})
    response = ActionResponse.create(first, 0)
    second.update(arguments={"b": 3}, action_response=response)
    assert (second.action_response_id, response.action_request_id) == (response.id, second.id)
    assert (response.function, response.arguments, response.output) == ("see", {"b": 3}, 0)
    assert (first.is_responded(), second.is_responded()) == (False, True)


class Found(BaseModel):
    output: Any = None


FALSY: list[Any] = [0, "", [], {}, False, None, 0.0]


def test_a_response_answers_its_request() -> None:  # LA-50
    request = ActionRequest.create("look", {"a": 1}, sender="me", recipient="you")
    made = ActionResponse.create(request, 5)
    assert (made.role, made.sender, made.recipient) == ("action", "you", "me")
    assert (made.action_request_id, request.action_response_id) == (request.id, made.id)


@pytest.mark.parametrize(
    "bad", [{"output": object()}, {"response_model": 5}, {"sender": ""}, {"recipient": 5}, {"template": "{{"}]
)
def test_a_response_that_is_refused_leaves_its_request_unanswered(bad: dict[str, Any]) -> None:  # LA-50
    request = ActionRequest.create("look")
    with refuses(of=request):
        ActionResponse.create(request, **bad)
    first = ActionResponse.create(request, 1)
    with refuses("'look'", "already has a response", of=request):
        ActionResponse.create(request, 2)
    assert request.action_response_id == first.id


@pytest.mark.parametrize("output", [*FALSY, 7])
def test_any_output_is_kept_and_that_of_a_response_model_wins(output: Any) -> None:  # LA-51, D-32, LA-53, D-33
    """Created, updated, rendered, stored and as an option result, whether it is falsy or not."""
    request = ActionRequest.create
    made = ActionResponse.create(request("look"), "other", response_model=Found(output=output))
    updated, modelled = (ActionResponse.create(request("look"), "x") for _ in range(2))
    updated.update(output=output)
    modelled.update(output="other", response_model=SimpleNamespace(output=output))
    for each in (made, updated, modelled, ActionResponse.create(request("look"), output), through_json(made)):
        assert (type(each.output), each.output) == (type(output), output)
        assert json.loads(each.text)["output"] == made_of(each).result.result == output
    with refuses("response_model", "dict", "output", of=made):
        made.update(response_model={"output": 1})


def test_function_arguments_output_and_response_are_read_as_copies() -> None:  # LA-52
    request = ActionRequest.create("look", {"a": [1]})
    made = ActionResponse.create(request, {"b": [2]})
    assert (made.function, made.arguments, made.output) == ("look", {"a": [1]}, {"b": [2]})
    assert made.response == {"function": "look", "arguments": {"a": [1]}, "output": {"b": [2]}}
    made.response["function"] = "see"
    made.arguments["a"].append(2)
    made.output["b"].append(3)
    assert made.response == {"function": "look", "arguments": {"a": [1]}, "output": {"b": [2]}}
    assert made.action_request_id == request.id


def test_a_response_moves_to_another_request() -> None:  # LA-54, D-55
    first, second = ActionRequest.create("look", {"a": 1}), ActionRequest.create("see", {"b": 2})
    made = ActionResponse.create(first, 1)
    made.update(second)
    assert (made.function, made.arguments, made.output) == ("see", {"b": 2}, 1)
    assert (made.action_request_id, second.action_response_id, first.is_responded()) == (second.id, made.id, False)
    made.update(first, output=0)
    assert (made.function, made.output, second.is_responded(), first.is_responded()) == ("look", 0, False, True)
    made.update(first)
    assert first.action_response_id == made.id
    call, result = made_of(first), made_of(made)
    assert call.call.invocation_id == result.result.invocation_id


@pytest.mark.parametrize("bad", [{"output": object()}, {"sender": ""}, {"template": 5}, {"mark": object()}])
def test_an_update_that_is_refused_changes_nothing(bad: dict[str, Any]) -> None:  # LA-54
    first, second, third = (ActionRequest.create("look") for _ in range(3))
    made = ActionResponse.create(first, 1)
    ActionResponse.create(third, 1)
    before = first.to_dict(), second.to_dict()
    with refuses(of=made):
        made.update(second, **{"output": 2, **bad})
    with refuses("already has a response", of=made):
        made.update(third, output=2)
    with refuses("ActionRequest", of=made):
        made.update("look", output=2)  # type: ignore[arg-type]
    assert (first.to_dict(), second.to_dict()) == before


@given(json_values)
def test_a_response_is_an_option_result(output: Any) -> None:  # LA-55
    request = ActionRequest.create("look", {"a": 1})
    made = ActionResponse.create(request, output)
    call, message = made_of(request), made_of(made)
    assert (message.result.option_name, message.result.result) == ("look", output)
    assert message.result.invocation_id == call.call.invocation_id == request.invocation_id == made.invocation_id
    taken = RoledMessage.from_message(message)
    assert isinstance(taken, ActionResponse)
    assert (taken.function, taken.output, taken.invocation_id) == ("look", output, request.invocation_id)
    assert taken.to_message() is message
    assert through_json(taken).to_message() == message


def test_an_error_of_the_vocabulary_is_an_output_and_goes_back_as_it_was() -> None:  # LA-55
    builder = sabir.MessageBuilder.continue_step(sabir.assistant("let me look"))
    builder.add_option_call("look")
    failed = sabir.OptionResultBuilder.response_to(builder.to_messages()[0]).error("TimeoutError", "too late")
    taken = RoledMessage.from_message(failed)
    assert isinstance(taken, ActionResponse)
    assert taken.output["error"]["message"] == "too late"
    assert through_json(taken).to_message() == failed
    taken.update(output="late, but here")
    message = made_of(taken)
    assert (message.result.is_error, message.result.result) == (False, "late, but here")
