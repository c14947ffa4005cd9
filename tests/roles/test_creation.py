"""What keywords make which message, and how one that is given is updated (LA-61, LA-62, LA-67, LA-68, D-48)."""

from itertools import combinations
from typing import Any

import pytest
from pydantic import BaseModel
from sabir_roles import (
    ActionRequest,
    ActionResponse,
    AssistantResponse,
    Instruction,
    MessageManager,
    MessageRole,
    RoledMessage,
    RoleError,
    System,
)


class City(BaseModel):
    name: str


REQUEST = ActionRequest.create("weather", {"city": "Paris"})
KINDS: dict[str, tuple[type[RoledMessage], list[dict[str, Any]]]] = {
    "instruction": (
        Instruction,
        [
            {"instruction": "one"},
            {"instruction": ""},
            {"guidance": "be quick"},
            {"context": ["a"]},
            {"plain_content": "as it is"},
            {"images": ["https://example.org/a.png"], "image_detail": "low"},
            {"request_model": City},
            {"request_fields": ["name"]},
            {"tool_schemas": []},
            {"instruction": Instruction.create("one")},
            {"instruction": "one", "system_datetime": False},
        ],
    ),
    "assistant_response": (AssistantResponse, [{"assistant_response": ""}, {"assistant_response": {"a": 1}}]),
    "system": (System, [{"system": "Be brief."}, {"system_datetime": True}, {"system": System.create()}]),
    "action_request": (
        ActionRequest,
        [{"action_function": "weather"}, {"action_function": "weather", "action_arguments": {}}],
    ),
}
"""Kind → what it is, and keywords that make one."""
CASES = [pytest.param(made, given, id=f"{kind}-{'-'.join(given)}") for kind, (made, all_) in KINDS.items()
         for given in all_]  # fmt: skip


@pytest.mark.parametrize(("made", "given"), CASES)
def test_the_keywords_say_the_kind(made: type[RoledMessage], given: dict[str, Any]) -> None:  # LA-61, D-33, D-34, D-48
    manager = MessageManager()
    manager.add_message(instruction="before")

    message = manager.add_message(**given)

    assert type(message) is made
    assert manager.messages[0 if made is System else -1] is message
    assert len(manager) == 2


def test_two_kinds_at_once_are_refused() -> None:  # LA-62, D-48
    firsts = [all_[0] for _, all_ in KINDS.values()]
    pairs = [{**one, **two} for one, two in combinations([*firsts, {"action_output": 0, "action_request": REQUEST}], 2)]
    for given in [*pairs, {"context": "c", "action_function": "f"}, {"action_output": 0, "assistant_response": ""}]:
        with pytest.raises(ValueError, match=r"add one message at a time$"):
            MessageManager().add_message(**given)


def test_what_every_kind_takes_reaches_it() -> None:  # D-48, D-50
    shared: dict[str, Any] = {
        "sender": "planner", "recipient": "critic", "template": "{{ tone }}!", "template_context": {"tone": "calm"},
    }  # fmt: skip
    manager = MessageManager()
    for _, all_ in KINDS.values():
        message = manager.add_message(**all_[0], **shared)
        assert (message.sender, message.recipient, message.text) == ("planner", "critic", "calm!")
    request = ActionRequest.create("weather")
    response = manager.add_message(action_request=request, action_output=0, **shared)
    assert (response.sender, response.text) == ("planner", "calm!")


def test_each_kind_has_its_maker() -> None:  # LA-67
    manager = MessageManager()
    request = manager.create_action_request(function="weather", arguments={"city": "Paris"}, sender="planner")
    response = manager.create_action_response(action_request=request, action_output="rain")
    asked = manager.create_instruction(instruction="one", context="c", guidance="g", request_model=City)
    said = manager.create_assistant_response(assistant_response="yes", recipient="planner")
    system = manager.create_system(system="Be brief.", system_datetime="noon")

    assert (request.function, request.arguments, request.sender) == ("weather", {"city": "Paris"}, "planner")
    assert (response.output, response.recipient) == ("rain", "planner")
    assert (asked.instruction, asked.context, asked.response_format) == ("one", ["c"], City)
    assert (said.response, said.recipient) == ("yes", "planner")
    assert (system.system_message, system.system_datetime) == ("Be brief.", "noon")
    assert manager.create_system().system_message == System.create().system_message
    assert len(manager) == 0


def test_a_maker_updates_what_it_is_given() -> None:  # LA-67
    manager = MessageManager()
    asked, said, system = Instruction.create("one"), AssistantResponse.create("yes"), System.create("Be brief.")
    request = ActionRequest.create("weather")

    assert manager.create_instruction(instruction=asked, context="c") is asked
    assert manager.create_assistant_response(assistant_response=said, sender="critic") is said
    assert manager.create_system(system=system, system_datetime="noon") is system
    assert manager.create_action_request(action_request=request, arguments={"city": "Oslo"}) is request
    assert (asked.context, said.sender, system.system_datetime) == (["c"], "critic", "noon")
    assert request.arguments == {"city": "Oslo"}
    response = ActionResponse.create(request, "rain")
    assert manager.create_action_response(action_response=response, action_output="sun") is response
    assert response.output == "sun"
    assert manager.create_action_response(action_response=response, recipient=MessageRole.USER).output == "sun"
    assert manager.create_action_request(action_request=request) is request
    with pytest.raises(RoleError, match="already has a response"):
        manager.create_action_request(action_request=request, arguments={"city": "Bern"})
