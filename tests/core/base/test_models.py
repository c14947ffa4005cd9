"""The bases of all data: strict when constructed, tolerant when loaded, and assembled as they are constructed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from sabir.base.models import load_stored
from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import ReplyBuilder
from sabir.vocabulary.constructors import user
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import TextPart

from tests.core.samples import check_constructed, json_objects, names, parts, states
from tests.core.support import SCOPE

arguments = json_objects | json_objects.map(json.dumps) | st.text(max_size=8) | st.none()


@given(st.none() | names, names, arguments, states)
def test_a_decoded_call_is_what_its_constructor_makes(wire_id: str, name: str, said: Any, state: Any) -> None:
    """Law 11, D-01: what is assembled without validation has nothing that validation would refuse or change."""
    check_constructed(SCOPE.read_call(wire_id, name, said, state))


@given(st.lists(parts | st.builds(SCOPE.read_call, names, names, arguments), max_size=6), names)
def test_a_decoded_reply_is_what_its_constructors_make(blocks: list[Any], policy: str) -> None:
    builder = ReplyBuilder(DecodeScope(SCOPE.target, policy=policy))
    for block in blocks:
        builder.add(block)

    check_constructed(builder.finish(finish_reason="stop", origin=SCOPE.origin("m", "r")))


def test_what_would_make_no_message_is_refused_where_it_is_decoded() -> None:
    builder = ReplyBuilder(DecodeScope(SCOPE.target, policy=""))
    builder.add(TextPart(text="a"))
    with pytest.raises(ValidationError, match="policy"):
        builder.messages(SCOPE.origin())
    builder = ReplyBuilder(SCOPE)
    builder.add({"kind": "text"})  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="text"):
        builder.messages(SCOPE.origin())
    for wire_id, name in (("\ud800", "f"), ("1", "\ud800"), (3, "f"), ("1", 3)):
        with pytest.raises(ValidationError, match=r"invocation_id|option_name"):
            SCOPE.read_call(wire_id, name, "{}")  # type: ignore[arg-type]


MESSAGE = json.loads(user("a").model_dump_json())
ADDED: dict[str, dict[str, Any]] = {
    "Message has no field 'tags', 'zzz'; its fields are schema, id, policy": {"tags": 1, "zzz": 2},
    "Origin has no field 'region'; its fields are provider": {
        "origin": {"provider": "p", "dialect": "d", "region": "eu"}
    },
    "TextPart has no field 'mood'; its fields are state, kind, text": {
        "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "a", "mood": "calm"}]}
    },
}


@pytest.mark.parametrize("words", ADDED)
def test_unknown_fields_are_named_with_the_known_ones_wherever_they_stand(words: str) -> None:
    """PJ-03: by the constructor and by validation alike, in a mapping and in JSON."""
    document = {**MESSAGE, **ADDED[words]}

    for make in (
        lambda: Message(**document),
        lambda: Message.model_validate(document),
        lambda: Message.model_validate_json(json.dumps(document)),
        lambda: DecodedHistory(messages=[document]),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValidationError, match=words):
            make()


def test_unknown_fields_hide_no_other_error_and_are_errors_for_whoever_nests_a_message() -> None:
    with pytest.raises(ValidationError, match=r"(?s)policy.*String should have at least 1 character.*tags"):
        Message(**{**MESSAGE, "policy": "", "tags": 1})
    with pytest.raises(ValidationError, match=r"0\.tags\n  Extra inputs are not permitted"):
        TypeAdapter(list[Message]).validate_python([{**MESSAGE, "tags": 1}])


def test_loading_keeps_unknown_fields_of_what_is_at_rest_alone() -> None:
    loaded = load_stored(DecodedHistory.model_validate, {"messages": [{**MESSAGE, "tags": [1]}]})
    same, made = load_stored(Message.model_validate, MESSAGE), Message(**MESSAGE)

    assert loaded.messages[0].model_dump()["tags"] == [1]
    with pytest.raises(ValidationError, match=r"Settings\.warmth"):
        load_stored(DecodedHistory.model_validate, {"messages": [], "settings": {"warmth": 1}})
    assert same == made
    assert [same.__pydantic_extra__, same.payload.__pydantic_extra__, made.__pydantic_extra__] == [None] * 3
