"""A conversation with roles and templates, as a typed program writes it; checked by mypy and pyright, never run."""

from typing import assert_type

import sabir
from pydantic import BaseModel
from sabir.base.failures import Loss
from sabir.vocabulary.reply import Reply
from sabir_roles import (
    ActionRequest,
    ActionResponse,
    AssistantResponse,
    Instruction,
    MessageManager,
    MessageRole,
    RoledMessage,
    System,
    environment,
    validate_sender_recipient,
)


class Trip(BaseModel):
    """What an answer is parsed into."""

    city: str


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return city


SHOWN = environment().from_string("{{ instruction | text }}")


async def talk() -> str:
    """Ask, act, and ask again."""
    llm = sabir.adapter("echo:m")
    manager = MessageManager(system=System.create("Be brief.", system_datetime=True))
    asked = Instruction.create("Umbrella?", context=["It is autumn."], request_model=Trip, template=SHOWN)
    assert_type(manager.add_message(instruction=asked, sender=MessageRole.USER), RoledMessage)
    manager.add_message(instruction="And?", images=["sky.png"], image_detail="low", metadata={"ticket": 7})
    await manager.a_add_message(action_function=weather, action_arguments={"city": "Rome"})
    assert_type(await manager.complete(llm, options=[weather], settings=sabir.Settings(seed=1), strict=True), Reply)
    assert_type(await manager.act([weather]), list[ActionResponse])
    assert_type(manager.act_sync([weather]), list[ActionResponse])
    reply = manager.complete_sync(llm, options=[weather])
    async with manager.stream(llm) as stream:
        async for text in stream.text:
            assert_type(text, str)
    with manager.stream_sync(llm) as stream_sync:
        assert_type(stream_sync.reply(), Reply)
    assert_type(manager.add_reply(reply), list[RoledMessage])
    assert_type(manager.to_messages(), list[sabir.Message])
    assert_type(manager.losses, tuple[Loss, ...])
    assert_type(manager.last_response, AssistantResponse | None)
    assert_type(manager.action_requests, list[ActionRequest])
    assert_type(manager.instructions[0].response_format, type[BaseModel] | None)
    assert_type(MessageManager.from_dict(manager.to_dict()), MessageManager)
    assert_type(MessageManager.from_messages([*manager.to_messages(), sabir.user("hi")]), MessageManager)
    if manager.last_response is not None:
        manager.last_response.response = "Take one."
    return reply.parse(Trip).city


request = ActionRequest.create(weather.name, {"city": "Rome"}, sender="planner")
response = ActionResponse.create(request, "rain")
assert_type(request.action_response_id, str | None)
assert_type(response.clone(), ActionResponse)
assert_type(validate_sender_recipient("planner"), MessageRole | str)

Instruction.create("Umbrella?", image_detail="sharp")  # type: ignore[arg-type]
Instruction.create("Umbrella?", contxt=[])  # type: ignore[call-arg]
MessageManager().add_message(instructions="Umbrella?")  # type: ignore[call-arg]
MessageManager(system="Be brief.")  # type: ignore[arg-type]
System.create(system_datetime=3)  # type: ignore[arg-type]
