"""Calls and results as wires have them: raw text to its own dialect, canonical elsewhere; losses that name the part."""

from typing import Any

import pytest
from sabir.contract.turns import Entry, LossLog, Tables, TurnScope
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir.vocabulary.settings import Target

SCOPE = TurnScope(Target(provider="acme", dialect="acme.wire"), Tables(media={}))
ELSEWHERE = TurnScope(Target(provider="other", dialect="other.wire"), Tables(media={}))


def call(**fields: Any) -> Entry:
    payload = OptionCallPayload(invocation_id="1", option_name="f", **fields)
    return Entry(Message(policy="llm", origin=Origin(provider="acme", dialect="acme.wire", model="m"), payload=payload))


def result(**fields: Any) -> tuple[Entry, OptionResultPayload]:
    payload = OptionResultPayload(invocation_id="1", option_name="f", **fields)
    return Entry(Message(policy="f", payload=payload)), payload


def test_argument_text_goes_back_to_its_dialect_as_it_came() -> None:
    """Byte for byte home, canonical elsewhere; nothing of an object is lost either way (UP-10)."""
    entry = call(arguments={"b": 1, "a": 2}, raw_arguments='{"b": 1,  "a": 2}')
    losses = LossLog()

    assert entry.arguments_text(SCOPE.target, losses) == '{"b": 1,  "a": 2}'
    assert entry.arguments_text(ELSEWHERE.target, losses) == '{"a":2,"b":1}'
    assert entry.arguments_value(losses) == {"a": 2, "b": 1}
    assert losses.losses == []


def test_argument_text_that_is_no_object_becomes_a_field_of_one() -> None:
    """Its own dialect gets it back as it came only where it says that it accepts any text."""
    entry = call(arguments={}, raw_arguments="{]", invalid_arguments=True)

    for encode in (
        lambda losses: entry.arguments_text(ELSEWHERE.target, losses, verbatim=True),
        lambda losses: entry.arguments_text(SCOPE.target, losses),
        lambda losses: entry.arguments_value(losses),
    ):
        losses = LossLog()
        assert encode(losses) in ('{"invalid_json":"{]"}', {"invalid_json": "{]"})
        assert [(loss.kind, loss.path) for loss in losses.losses] == [("rewritten", "payload.arguments")]
    assert entry.arguments_text(SCOPE.target, LossLog(), verbatim=True) == "{]"


def test_a_result_is_its_text_or_the_json_of_what_it_is() -> None:
    for value, text in [("rain", "rain"), ("", '""'), (None, "null"), ({"a": 1}, '{"a":1}'), (False, "false")]:
        assert result(result=value)[0].result_text(LossLog()) == text
    failed = {"is_error": True, "error_type": "e", "error_message": "m"}
    assert result(**failed)[1].error_text == '{"error":{"type":"e","message":"m"}}'


def test_a_result_whose_media_were_left_out_says_so() -> None:
    losses = LossLog()
    entry, _ = result(parts=(MediaPart(modality="image", url="https://a.example/b"),))

    assert entry.result_text(losses) == "(its media are not shown)"
    assert [loss.kind for loss in losses.losses] == ["synthesized"]

    shown = entry._replace(pieces=(TextPart(text="a placeholder"),))
    assert (shown.result_text(quiet := LossLog()), quiet.losses) == ("null", [])


def test_a_loss_of_a_piece_names_its_part() -> None:
    parts = (TextPart(text="b"), TextPart(text="b"))
    entry = Entry(Message(policy="user", payload=PartsPayload(parts=parts)), parts)
    losses = LossLog()

    losses.lose("dropped", "why", entry.message.parts[1], entry, ".citations")  # type: ignore[arg-type]

    assert [(loss.path, loss.message_id) for loss in losses.losses] == [("parts[1].citations", entry.message.id)]


def test_a_loss_of_a_medium_with_hints_names_its_part() -> None:
    """The piece is another object, with the hints that its target takes; an equal part before it is another part."""
    hinted = MediaPart(modality="image", url="https://a.example/b", vendor={"acme": {"x": 1}, "other": {"y": 2}})
    taken = hinted.model_copy(update={"vendor": {"acme": {"x": 1}}})
    plain, twin = (MediaPart(modality="image", url="https://a.example/c") for _ in range(2))
    message = Message(policy="user", payload=PartsPayload(parts=(plain, twin, hinted)))
    entry, losses = Entry(message, (plain, twin, taken)), LossLog()

    for piece in (message.parts[1], taken):
        losses.lose("dropped", "why", piece, entry)  # type: ignore[arg-type]

    assert [loss.path for loss in losses.losses] == ["parts[1]", "parts[2]"]
    assert (SCOPE.target.hints_of(taken), ELSEWHERE.target.hints_of(taken), SCOPE.target.hints_of(plain)) == (
        {"x": 1},
        {},
        {},
    )


@pytest.mark.parametrize(("treatment", "kind"), [("placeholder", "downgraded"), ("drop", "dropped")])
def test_a_medium_from_elsewhere_is_named_or_left_out(treatment: Any, kind: str) -> None:
    medium = MediaPart(modality="image", url="https://a.example/b", prompt_hint="a hat")
    entry = Entry(Message(policy="llm", payload=PartsPayload(parts=(medium,))), (medium,))
    scope = TurnScope(SCOPE.target, SCOPE.tables, unsupported_media=treatment)
    losses = LossLog()

    text = scope.placeholder_or_drop("not here", medium, entry, losses)

    assert ("a hat" in text) is (treatment == "placeholder")
    assert [loss.kind for loss in losses.losses] == [kind]
