"""MessageManager: order, views, adding and taking away, refusals that change nothing, and JSON (LA-57 … LA-71)."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir.base.failures import Loss
from sabir.vocabulary.messages import Message
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
from sabir_roles.message_manager import MessageManager as ByItsOtherName

from tests.roles.support import asked_and_answered, made_by


def test_the_document_s_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:  # LA-72, D-34
    # 1) Create a manager
    manager = MessageManager(system=System.create())

    # 2) Add a user instruction
    instruct = Instruction.create(instruction="How to deploy a python app?")
    msg = manager.add_message(instruction=instruct)

    # 3) AI responds
    response = AssistantResponse.create("You can use Docker or a PaaS like Heroku.")
    msg = manager.add_message(assistant_response=response)

    # Inspect
    print(manager.last_response.response)  # type: ignore[union-attr]

    assert capsys.readouterr().out == "You can use Docker or a PaaS like Heroku.\n"
    assert msg is response
    assert ByItsOtherName is MessageManager


def test_the_system_message_is_first_however_it_came() -> None:  # LA-57, D-49
    system, asked = System.create("Be brief."), Instruction.create("Umbrella?")
    later = MessageManager([asked])
    later.set_system(system)

    for manager in (MessageManager([asked], system=system), MessageManager([asked, system]), later):
        assert manager.messages == [system, asked]
        assert manager.system is system
    assert MessageManager().system is None
    assert [each.text for each in MessageManager([asked, system]).to_messages()] == ["Be brief.", "Umbrella?"]


def test_the_progression_is_the_ids_in_their_order() -> None:  # LA-58, D-49
    one, two = Instruction.create("one"), Instruction.create("two")

    assert MessageManager([one, two]).progression == [one.id, two.id]
    assert MessageManager([one, two], progression=[two.id, one.id]).messages == [two, one]
    for wrong in ([one.id], [one.id, two.id, "nobody"]):
        with pytest.raises(ValueError, match="progression"):
            MessageManager([one, two], progression=wrong)


def test_each_kind_has_its_view_in_order() -> None:  # LA-59
    empty, manager = MessageManager(), asked_and_answered()
    kinds = [type(each) for each in manager]

    assert (empty.last_response, empty.last_instruction) == (None, None)
    assert kinds == [System, Instruction, ActionRequest, ActionResponse, AssistantResponse, Instruction]
    assert manager.last_response is manager.messages[4]
    assert manager.last_instruction is manager.messages[5]
    assert manager.assistant_responses == [manager.messages[4]]
    assert manager.instructions == [manager.messages[1], manager.messages[5]]
    assert manager.actions == manager.messages[2:4]
    assert manager.action_requests == [manager.messages[2]]
    assert manager.action_responses == [manager.messages[3]]
    assert manager.action_requests[0] in manager
    assert len(manager) == 6


def test_set_system_takes_the_place_of_the_old_one() -> None:  # LA-60, D-49
    manager = asked_and_answered()
    new = System.create("Be wordy.")
    rest = manager.messages[1:]

    manager.set_system(new)

    assert manager.messages == [new, *rest]
    before = manager.to_messages()
    manager.set_system(new)
    assert all(was is now for was, now in zip(before, manager.to_messages(), strict=True))
    assert before[0].text == "Be wordy."


def test_a_message_that_is_here_keeps_its_place() -> None:  # LA-63
    manager = MessageManager()
    first = manager.add_message(instruction="one")
    manager.add_message(instruction="two")

    assert manager.add_message(instruction=first, context="more") is first
    assert manager.messages[0] is first
    assert len(manager) == 2
    assert isinstance(first, Instruction)
    assert first.context == ["more"]


def test_metadata_is_merged_into_extra() -> None:  # LA-64
    manager = MessageManager()
    message = manager.add_message(instruction="one", metadata={"ticket": 7, "tags": ["a"]})
    message.metadata["own"] = 1
    manager.add_message(instruction=message, metadata={"tags": ["b"], "priority": "high"})

    assert message.metadata == {"own": 1, "extra": {"ticket": 7, "tags": ["b"], "priority": "high"}}
    assert MessageManager.from_dict(manager.to_dict()).messages[0].metadata == message.metadata
    manager.add_message(instruction=message, context="more")
    assert message.metadata["extra"]["priority"] == "high"


async def test_clearing_keeps_the_system_message() -> None:  # LA-65, LA-66
    manager, other = asked_and_answered(), asked_and_answered()
    system = manager.system
    manager.clear_messages()
    await other.aclear_messages()

    assert manager.messages == [system]
    assert [type(each) for each in other] == [System]
    assert [each.text for each in manager.to_messages()] == ["Be brief."]


def test_tool_schemas_are_taken_from_the_last_instruction() -> None:  # LA-69
    manager = MessageManager()
    manager.remove_last_instruction_tool_schemas()
    kept = manager.add_message(instruction="one", tool_schemas=[{"name": "weather"}])
    last = manager.add_message(instruction="two", tool_schemas=[{"name": "tide"}])

    manager.remove_last_instruction_tool_schemas()

    assert "tool_schemas" in kept.content
    assert "tool_schemas" not in last.content
    assert "tide" not in manager.to_messages()[1].text


def test_trailing_responses_become_context_oldest_first() -> None:
    """LA-70, D-35: requests between are skipped; an answer of the assistant ends the trail."""
    manager = asked_and_answered()
    for city in ("Oslo", "Rome"):
        request = manager.add_message(action_function="weather", action_arguments={"city": city})
        assert isinstance(request, ActionRequest)
        manager.add_message(action_request=request, action_output=f"rain in {city}")
    asked = Instruction.create("And?")

    manager.concat_recent_action_responses_to_instruction(asked)
    assert [each["output"] for each in asked.context] == ["rain in Oslo", "rain in Rome"]

    manager.add_message(assistant_response="So it is.")
    other = Instruction.create("And now?", context="only this")
    manager.concat_recent_action_responses_to_instruction(other)
    assert other.context == ["only this"]
    with pytest.raises(RoleError, match="expected a message of type Instruction"):
        manager.concat_recent_action_responses_to_instruction("And?")  # type: ignore[arg-type]


def test_the_chat_form_is_of_all_or_of_the_named_ones() -> None:  # LA-71, D-26
    manager = asked_and_answered()
    ids = manager.progression
    unset = AssistantResponse.create("nobody says this")
    unset.role = MessageRole.UNSET
    silent = MessageManager([*manager.messages, unset])

    assert manager.to_chat_msgs([]) == []
    roles = ["system", "user", "action", "action", "assistant", "user"]
    assert [each["role"] for each in manager.to_chat_msgs()] == roles
    assert manager.to_chat_msgs([ids[1], ids[0]]) == manager.to_chat_msgs()[1::-1]
    assert silent.to_chat_msgs() == manager.to_chat_msgs()
    for wrong in ("nobody", ["x"]):
        with pytest.raises(ValueError, match="there is no message with the id"):
            manager.to_chat_msgs([wrong])  # type: ignore[list-item]


def test_json_holds_the_whole_manager() -> None:
    manager = asked_and_answered()
    sent = manager.to_messages()
    loaded = MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))

    assert loaded.to_dict() == manager.to_dict()
    assert loaded.to_messages() == sent
    assert [each.id for each in loaded.to_messages()] == [each.id for each in sent]
    request, response = loaded.action_requests[0], loaded.action_responses[0]
    other = ActionRequest.create("weather", {"city": "Oslo"})
    response.update(action_request=other)
    assert not request.is_responded()
    broken: list[Any] = [None, {}, {"messages": {}}, {"messages": [None]}, {"messages": [{"kind": "Song"}]}]
    for wrong in broken:
        with pytest.raises(RoleError):
            MessageManager.from_dict(wrong)


def test_one_append_to_a_thousand_messages_makes_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maker runs once, and the others are the same objects; an edit in the middle makes one, too."""
    manager = MessageManager(Instruction.create(f"question {number}") for number in range(1000))
    before = manager.to_messages()
    made = made_by(monkeypatch)

    assert manager.to_messages() == before
    assert made == []
    added = manager.add_message(instruction="the last")
    after = manager.to_messages()
    assert made == [added]
    assert all(was is now for was, now in zip(before, after, strict=False))
    manager.instructions[500].update(context="more")
    edited = manager.to_messages()
    assert made == [added, manager.messages[500]]
    assert [place for place in range(1001) if edited[place] is not after[place]] == [500]


REFUSED: list[dict[str, Any]] = [
    {},
    {"instruction": None},
    {"nonsense": 1},
    {"instruction": "one", "metadata": 5},
    {"instruction": "one", "metadata": {"x": object()}},
    {"instruction": "one", "template_context": 5},
    {"instruction": "one", "image_detail": "sharp", "images": ["https://example.org/a.png"]},
    {"instruction": "one", "images": ["what?!"]},
    {"instruction": "one", "request_fields": ["a"], "request_model": Loss},
    {"instruction": "one", "sender": 5},
    {"instruction": object()},
    {"instruction": "one", "template": "{{ open"},
    {"instruction": "one", "template": 5},
    {"action_output": 1},
    {"action_request": "weather"},
    {"action_request": "weather", "action_output": 1},
    {"action_response": "rain"},
    {"action_function": ""},
    {"action_function": "weather", "action_arguments": "[1]"},
    {"system": "s", "system_datetime": 5},
    {"system": object()},
]
"""What no manager takes."""
SPOILT: list[dict[str, Any]] = [
    {"template_context": {"x": object()}},
    {"template_context": [1]},
    {"metadata": {"x": object()}},
    {"sender": 5},
    {"template": "{% if %}"},
]
"""What spoils an update that would be taken without it."""


def updates(manager: MessageManager) -> list[dict[str, Any]]:
    system, asked, request, response, said, _ = manager.messages
    return [
        {"instruction": asked, "context": "more", "images": ["https://example.org/a.png"]},
        {"system": system, "system_datetime": "noon"},
        {"assistant_response": said, "recipient": "planner"},
        {"action_response": response, "action_output": 0},
        {"action_request": request, "action_function": "tide"},
    ]


@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_what_is_refused_leaves_the_manager_as_it_was(data: st.DataObject) -> None:  # LA-28, LA-61, LA-62, LA-68
    manager = asked_and_answered()
    sent, stored = manager.to_messages(), manager.to_dict()
    for _ in range(data.draw(st.integers(1, 4))):
        refused = data.draw(
            st.one_of(
                st.sampled_from(REFUSED),
                st.builds(
                    lambda update, spoilt: {**update, **spoilt},
                    st.sampled_from(updates(manager)),
                    st.sampled_from(SPOILT),
                ),
            )
        )
        with pytest.raises(ValueError) as met:
            manager.add_message(**refused)
        assert isinstance(met.value, RoleError)
        assert "\n" not in str(met.value)

    assert manager.to_dict() == stored
    assert all(was is now for was, now in zip(sent, manager.to_messages(), strict=True))


def test_another_message_of_the_same_id_is_refused_before_anything_changes() -> None:
    manager = asked_and_answered()
    stored = manager.to_dict()
    for place, word in ((1, "instruction"), (2, "action_request"), (3, "action_response"), (4, "assistant_response")):
        copy: Any = RoledMessage.from_dict(stored["messages"][place])
        given: dict[str, Any] = {word: copy, "sender": "someone"}
        with pytest.raises(RoleError, match="another message already has the id"):
            manager.add_message(**given)
        assert copy.to_dict() == stored["messages"][place]
    copy = RoledMessage.from_dict(stored["messages"][2])
    copy.action_response_id = None
    with pytest.raises(RoleError, match="another message already has the id"):
        manager.add_message(action_request=copy, action_output="sun")
    with pytest.raises(RoleError, match="another message already has the id"):
        manager.set_system(System.create("x").model_copy(update={"id": manager.progression[1]}))

    assert manager.to_dict() == stored


def test_a_history_that_holds_a_message_twice_is_taken() -> None:
    """Also one that is added twice: each has a working copy of its own, and goes back as the same object."""
    hello = sabir.user("hello")
    history: list[Message] = [hello, sabir.assistant("hi"), hello]
    manager = MessageManager.from_messages(history)
    reply = sabir.adapter("echo:m").complete_sync(history)
    manager.add_reply(reply)
    manager.add_reply(reply)

    assert len(set(manager.progression)) == 5
    assert all(was is now for was, now in zip([*history, *reply.messages * 2], manager.to_messages(), strict=True))
    loaded = MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))
    assert loaded.to_messages() == manager.to_messages()
    assert manager.losses == loaded.losses == ()


def test_a_copy_of_a_manager_goes_its_own_way() -> None:
    manager = asked_and_answered()
    for twin in (copy.copy(manager), copy.deepcopy(manager), pickle.loads(pickle.dumps(manager))):
        assert (twin.to_dict(), twin.to_messages()) == (manager.to_dict(), manager.to_messages())
        twin.clear_messages()
        twin.add_message(instruction="elsewhere")
        assert len(manager) != len(twin)
        assert manager.to_messages()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: MessageManager(system="Be brief."),  # type: ignore[arg-type]
        lambda: MessageManager(system=Instruction.create("Be brief.")),  # type: ignore[arg-type]
        lambda: MessageManager([sabir.user("hi")]),  # type: ignore[list-item]
        lambda: MessageManager(messages=5),  # type: ignore[arg-type]
        lambda: MessageManager(progression=5),  # type: ignore[arg-type]
        lambda: MessageManager([System.create("x")], progression=[[]]),  # type: ignore[list-item]
        lambda: MessageManager().to_chat_msgs(5),  # type: ignore[arg-type]
        lambda: MessageManager.from_messages([3]),  # type: ignore[list-item]
        lambda: MessageManager.from_messages(3),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_list_of_the_right_things_is_refused(refused: Callable[[], object]) -> None:  # LA-57
    with pytest.raises(RoleError, match=r"; (pass|list)"):
        refused()
