"""Both ways between working copies and the vocabulary: what is kept, and what an edit loses and says (LA-55)."""

import json
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from sabir.vocabulary.messages import (
    Message,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    PartsPayload,
    UnknownPayload,
)
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir_roles import (
    ActionRequest,
    AssistantResponse,
    Instruction,
    MessageManager,
    MessageRole,
    RoledMessage,
    RoleError,
    System,
)

from tests.laws.histories import histories
from tests.roles.support import asked_and_answered

HERE = Origin(provider="acme", dialect="acme.wire", model="acme-1")
IMAGE, OTHER = "https://example.org/a.png", "https://example.org/b.png"


def parts(policy: str, *said: Any, **more: Any) -> Message:
    return Message(policy=policy, payload=PartsPayload(parts=said), **more)


def call(**more: Any) -> Message:
    payload = OptionCallPayload(**{"invocation_id": "call_1", "option_name": "weather", "arguments": {"a": 1}, **more})
    return Message(policy="llm", origin=HERE, payload=payload)


def result(**more: Any) -> Message:
    return Message(policy="weather", payload=OptionResultPayload(invocation_id="call_1", option_name="weather", **more))


def paths(copy: RoledMessage) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in copy.losses]


def reloaded(manager: MessageManager) -> MessageManager:
    return MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))


def same(first: list[Message], second: list[Message]) -> bool:
    return len(first) == len(second) and all(one is other for one, other in zip(first, second, strict=True))


def test_each_kind_becomes_a_message_of_its_side() -> None:  # LA-55
    manager = asked_and_answered()
    system, asked, request, response, said, _ = sent = manager.to_messages()

    assert [each.id for each in sent] == manager.progression
    assert [each.policy for each in sent] == ["system", "user", "llm", "weather", "llm", "user"]
    assert (system.text, asked.text, said.text) == ("Be brief.", "Umbrella in Paris?", "Take one.")
    assert request.call is not None and response.result is not None
    assert dict(request.call.arguments) == {"city": "Paris"}
    assert request.call.invocation_id == response.result.invocation_id == manager.progression[2]
    assert response.result.result == "rain"


def test_a_named_sender_is_the_policy_and_the_role_is_its_hint() -> None:  # LA-05, LA-55
    named = [
        Instruction.create("go", sender="planner"),
        System.create("Be brief.", sender="owner"),
        AssistantResponse.create("yes", sender="critic"),
        ActionRequest.create("weather", sender="critic"),
    ]
    made = [each.to_message() for each in named]

    assert [(each.policy, each.role_hint_for_llm) for each in made if each] == [
        ("planner", "user"), ("owner", "system"), ("critic", "assistant"), ("critic", None)
    ]  # fmt: skip


def test_a_call_and_its_result_go_both_ways() -> None:  # LA-55
    history = [call(raw_arguments='{"a":1}', state={"sealed": "s"}), result(result={"celsius": 18})]
    manager = MessageManager.from_messages(history)
    request, response = manager.action_requests[0], manager.action_responses[0]

    assert (request.function, request.arguments, request.invocation_id) == ("weather", {"a": 1}, "call_1")
    assert (response.output, response.arguments, response.invocation_id) == ({"celsius": 18}, {"a": 1}, "call_1")
    assert (request.action_response_id, response.action_request_id) == (response.id, request.id)
    assert same(manager.to_messages(), history)
    assert ActionRequest.from_message(history[0]).to_message() is history[0]
    with pytest.raises(RoleError, match="is of kind ActionRequest, not System"):
        System.from_message(history[0])


def test_a_result_meets_the_latest_call_of_its_id() -> None:
    """LA-55: ids may come again; results of parallel calls may come in any order."""
    first, again, second = call(), call(), call(invocation_id="call_2")
    late = result(result="late").model_copy(update={"id": "late"})
    other = Message(
        policy="weather", payload=OptionResultPayload(invocation_id="call_2", option_name="weather", result="2")
    )
    manager = MessageManager.from_messages([first, result(result="one"), again, second, other, late])
    links = {each.id: each.action_response_id for each in manager.action_requests}

    assert links == {first.id: manager.progression[1], again.id: "late", second.id: other.id}


def test_an_unknown_payload_rides_along() -> None:
    """What a newer writer said is kept through a working copy that says nothing, and its JSON."""
    newer = sabir.loads(json.dumps([{"policy": "llm", "payload": {"kind": "thought", "depth": 3}, "flavour": 1}]))
    assert isinstance(newer[0].payload, UnknownPayload)
    manager = MessageManager.from_messages([sabir.user("hi"), *newer])

    assert type(manager.messages[1]) is RoledMessage
    assert manager.messages[1].role is MessageRole.UNSET
    assert manager.to_chat_msgs() == [{"role": "user", "content": "hi"}]
    assert manager.to_messages()[1] is newer[0]
    assert sabir.dumps(reloaded(manager).to_messages()) == sabir.dumps(manager.to_messages())


@settings(max_examples=settings().max_examples // 5)
@given(histories)
def test_any_history_goes_through_the_manager_and_its_json(history: list[Message]) -> None:
    """from_messages → to_dict → JSON → from_dict → to_messages is the identity, ids included; nothing is lost."""
    manager = MessageManager.from_messages(history)
    loaded = reloaded(manager)

    assert same(manager.to_messages(), history)
    assert loaded.to_messages() == history
    assert sabir.dumps(loaded.to_messages()) == sabir.dumps(history)
    assert manager.losses == loaded.losses == ()


def test_an_edited_answer_is_made_anew_and_says_what_it_lost() -> None:
    spoken = parts(
        "llm",
        ReasoningPart(text="hm", state={"sealed": "r"}),
        TextPart(text="rain", state={"sealed": "t"}, citations=(Citation(kind="url_citation", url=IMAGE),)),
        OpaquePart(dialect="acme.wire", block={"type": "search"}),
        RefusalPart(text="no more"),
        MediaPart(modality="image", url=IMAGE, state={"sealed": "m"}),
        origin=HERE,
        step_num=3,
    )
    history = [sabir.user("Umbrella?"), spoken, sabir.user("Sure?")]
    manager = MessageManager.from_messages(history)
    assert manager.last_response is not None
    manager.last_response.response = "sun"
    edited = manager.to_messages()

    assert same([edited[0], edited[2]], [history[0], history[2]])
    assert edited[1].id != spoken.id
    assert (edited[1].origin, edited[1].step_num, edited[1].policy) == (None, 3, "llm")
    assert edited[1].parts == (TextPart(text="sun"), MediaPart(modality="image", url=IMAGE))
    assert paths(manager.messages[1]) == [
        ("withheld", "origin"),
        ("dropped", "parts[0]"),
        ("withheld", "parts[1].state"),
        ("dropped", "parts[1].citations"),
        ("dropped", "parts[2]"),
        ("dropped", "parts[3]"),
        ("withheld", "parts[4].state"),
    ]
    assert manager.losses == manager.messages[1].losses
    assert {loss.message_id for loss in manager.losses} == {edited[1].id}
    assert same(manager.to_messages(), edited)
    assert reloaded(manager).to_messages() == edited


def test_what_says_the_same_again_is_the_same_again() -> None:
    """An edit that is taken back loses nothing, nor does one that changes nothing that a message holds."""
    spoken = parts("llm", ReasoningPart(text="hm", state={"sealed": "r"}), TextPart(text="rain"), origin=HERE)
    manager = MessageManager.from_messages([spoken])
    answer = manager.last_response
    assert answer is not None
    assert answer.source is spoken
    answer.response = "sun"
    assert manager.to_messages()[0] is not spoken
    assert reloaded(manager).to_messages() == manager.to_messages()
    answer.response = "rain"
    answer.recipient = "planner"
    answer.metadata["seen"] = True

    assert manager.to_messages()[0] is spoken
    assert manager.losses == ()


def test_an_edited_call_loses_the_state_that_signed_it() -> None:
    history = [call(state={"sealed": "c"}, raw_arguments='{"a":1}'), result(result="rain")]
    manager = MessageManager.from_messages(history)
    manager.action_requests[0].content["action_request"]["arguments"] = {"a": 2}
    edited = manager.to_messages()

    assert edited[0].call == OptionCallPayload(invocation_id="call_1", option_name="weather", arguments={"a": 2})
    assert edited[1] is history[1]
    assert paths(manager.messages[0]) == [("withheld", "origin"), ("withheld", "payload.state")]


@pytest.mark.parametrize(
    "outcome",
    [
        {"is_error": True, "error_type": "Boom", "error_message": "no", "retryable": True},
        {"parts": (TextPart(text="see"), MediaPart(modality="image", url=IMAGE))},
        {"result": {"celsius": 18}},
    ],
)
def test_a_result_of_another_sender_still_says_the_same(outcome: dict[str, Any]) -> None:
    """A failure stays one, and pictures stay pictures; of another output they are gone, and the losses say so."""
    plain = result(**outcome)
    manager = MessageManager.from_messages([plain])
    manager.messages[0].sender = "station"
    made = manager.to_messages()[0]

    assert (made.policy, made.result) == ("station", plain.result)
    assert manager.losses == ()
    manager.action_responses[0].update(output="sun")
    gone = {"is_error": ["payload.is_error"], "parts": ["payload.parts[0]", "payload.parts[1]"], "result": []}
    assert manager.to_messages()[0].result == result(result="sun").result
    assert paths(manager.messages[0]) == [("dropped", path) for path in gone[next(iter(outcome))]]


def test_images_that_stay_keep_their_place_and_all_that_they_say() -> None:
    """Names, labels and hints of images that an edit leaves alone go along; new ones come last."""
    known = MediaPart(modality="image", url=IMAGE, name="sky", prompt_hint="the sky", vendor={"acme": {"zoom": 2}})
    sound = MediaPart(modality="audio", url="https://example.org/a.mp3")
    history = [parts("user", known, TextPart(text="what is it?"), sound)]
    manager = MessageManager.from_messages(history)
    asked = manager.instructions[0]

    asked.extend_images([OTHER])
    assert manager.to_messages()[0].parts == (*history[0].parts, MediaPart(modality="image", url=OTHER))
    asked.update(images=[OTHER, IMAGE], image_detail="low")
    first, *rest = manager.to_messages()[0].parts
    low = {"*": {"detail": "low"}}
    assert (first, rest[0]) == history[0].parts[1:]
    assert [part.url for part in rest[1:]] == [OTHER, IMAGE]
    assert (rest[2].name, rest[2].prompt_hint, rest[2].vendor) == ("sky", "the sky", {"acme": {"zoom": 2}, **low})
    asked.update(images=[IMAGE], image_detail="high")
    shown = manager.to_messages()[0].parts[0]
    assert isinstance(shown, MediaPart)
    assert (shown.name, shown.vendor) == ("sky", {"acme": {"zoom": 2}, "*": {"detail": "high"}})
    asked.update(images=[])
    assert manager.to_messages()[0].parts == history[0].parts[1:]
    assert manager.losses == ()


def test_a_detail_is_changed_where_it_was_asked_for() -> None:
    seen = MediaPart(modality="image", url=IMAGE, vendor={"acme": {"detail": "low"}})
    manager = MessageManager.from_messages([parts("user", seen)])
    assert manager.instructions[0].image_detail == "low"
    manager.instructions[0].update(image_detail="high")

    assert manager.to_messages()[0].parts == (seen.model_copy(update={"vendor": {"acme": {"detail": "high"}}}),)


def test_a_call_whose_text_was_broken_is_told_of_when_it_becomes_whole() -> None:
    broken = call(arguments={}, raw_arguments='{"a": bad', invalid_arguments=True)
    manager = MessageManager.from_messages([broken])
    manager.action_requests[0].update(function="other")

    assert manager.to_messages()[0].call.invalid_arguments is False  # type: ignore[union-attr]
    assert ("rewritten", "payload.arguments") in paths(manager.messages[0])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"images": 3}, "the images in content"),
        ({"images": [3]}, "the images in content"),
        ({"images": [IMAGE], "image_detail": 3}, "detail"),
    ],
)
def test_content_that_no_message_can_be_made_of_is_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    asked = Instruction.create("x")
    asked.content.update(wrong)
    with pytest.raises(RoleError, match=words):
        asked.to_message()


def test_a_stored_source_of_another_kind_is_refused() -> None:
    stored = ActionRequest.create("f").to_dict()
    stored["source"] = json.loads(sabir.dumps([parts("user", TextPart(text="x"))]))[0]
    with pytest.raises(RoleError, match="a parts message cannot be of kind ActionRequest"):
        ActionRequest.from_dict(stored)
