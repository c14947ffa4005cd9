"""Managers that tests share, and counts of what is made."""

from typing import Any

import pytest
from sabir_roles import ActionRequest, MessageManager, RoledMessage


def asked_and_answered() -> MessageManager:
    """System, question, call, result, answer, question."""
    manager = MessageManager()
    manager.add_message(system="Be brief.")
    manager.add_message(instruction="Umbrella in Paris?")
    request = manager.add_message(action_function="weather", action_arguments={"city": "Paris"})
    assert isinstance(request, ActionRequest)
    manager.add_message(action_request=request, action_output="rain")
    manager.add_message(assistant_response="Take one.")
    manager.add_message(instruction="And tomorrow?")
    return manager


def made_by(monkeypatch: pytest.MonkeyPatch) -> list[RoledMessage]:
    """The working copies of which messages are made from now on."""
    made: list[RoledMessage] = []
    make = RoledMessage._make

    def count(copy: RoledMessage) -> Any:
        made.append(copy)
        return make(copy)

    monkeypatch.setattr(RoledMessage, "_make", count)
    return made
