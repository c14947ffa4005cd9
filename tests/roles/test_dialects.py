"""One manager, rendered for every installed dialect: equal in meaning, and what differs is in the losses (LA-34)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.base.losses import Loss
from sabir.rendering.pairing import side_of
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionResultPayload
from sabir_roles import ActionRequest, MessageManager
from sabir_testing.histories.drawn import PIXEL

from tests.laws.oracle import check_request, validators
from tests.laws.rules import check_pairing
from tests.laws.test_dialect_laws import MODELS


class Weather(BaseModel):
    """What the answer is."""

    city: str
    celsius: int


def conversation() -> MessageManager:
    """Of every kind, with a schema and an image that is looked at closely."""
    manager = MessageManager()
    manager.add_message(system="Be brief.", system_datetime="2026-11-23T12:00+00:00")
    manager.add_message(
        instruction="Umbrella?", guidance="Look first.", context=["It is autumn.", {"wind": 3}], images=[PIXEL],
        image_detail="low", tool_schemas=[{"name": "weather"}],
    )  # fmt: skip
    request = manager.add_message(action_function="weather", action_arguments={"city": "Paris", "days": 2})
    assert isinstance(request, ActionRequest)
    manager.add_message(action_request=request, action_output={"celsius": 18, "sky": ["grey", None]})
    manager.add_message(assistant_response="Take one.", sender="critic")
    manager.add_message(instruction="And in numbers?", sender="planner", request_model=Weather)
    return manager


def meaning(messages: list[Message], losses: tuple[Loss, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """What is said, by which side, in order; in the place of a medium that the losses name, the text that names it."""
    lesser = {(loss.message_id, loss.path) for loss in losses if loss.kind == "downgraded"}
    for message in messages:
        text = ""
        if message.call is not None:
            yield "call", message.call.option_name, dict(message.call.arguments)
        elif message.result is not None:
            yield "result", message.result.option_name, outcome(message.result)
        for index, part in enumerate(() if message.result else message.parts):
            if part.kind == "text":
                text += part.text
            elif part.kind == "media" and (message.id, f"parts[{index}]") in lesser:
                text += "[image not shown]"
            elif part.kind == "media":
                yield side_of(message, "llm"), part.modality, part.url
        if text:
            yield side_of(message, "llm"), text


def outcome(result: OptionResultPayload) -> Any:
    """A value, also where a wire has it as text."""
    value = "".join(part.text for part in result.parts if part.kind == "text") if result.parts else result.result
    return json.loads(value) if isinstance(value, str) else value


def names_a_detail(messages: list[Message], losses: tuple[Loss, ...]) -> bool:
    """Whether the detail that was asked for went along; else it, or the image, is among the losses."""
    images = [part for message in messages for part in message.parts if part.kind == "media"]
    went = any(section.get("detail") == "low" for part in images for section in part.vendor.values())
    return went != any("detail" in f"{loss.path} {loss.reason}" or loss.kind == "downgraded" for loss in losses)


DIALECTS = [f"{provider.name}.{dialect}" for provider in sabir.providers() for dialect in provider.dialects]


def test_every_dialect_is_looked_at() -> None:
    """An installed one that is not among those below is one too few."""
    assert {"openai.chat", "openai.responses", "anthropic.messages", "google.generate_content"} <= set(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_manager_means_the_same_on_every_dialect(name: str) -> None:
    """The wire's own types take it, and reading it back gives what was said, by whom, and the form of the answer."""
    manager = conversation()
    sent = manager.to_messages()
    pure = sabir.dialect(name)
    target = pure.target.model_copy(update={"model": MODELS.get(name, "small")})
    asked = manager.last_instruction.settings  # type: ignore[union-attr]
    rendering = Renderer(pure.dialect, target).render(sent, settings=asked)
    read = pure.decode_history(rendering.body)
    found = list(read.messages)

    assert list(meaning(found)) == list(meaning(sent, rendering.losses))
    assert names_a_detail(found, rendering.losses)
    form = read.settings.response_format
    assert (form is None) == any(loss.path == "settings.response_format" for loss in rendering.losses)
    assert form is None or set(form.schema_view["properties"]) == {"city", "celsius"}
    if name in validators():
        check_request(name, rendering.body_bytes)
    check_pairing(name, rendering.body_bytes)
    assert manager.losses == ()
    assert {loss.kind for loss in rendering.losses} <= {"dropped", "downgraded", "rewritten", "synthesized"}
