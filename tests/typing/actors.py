"""Threads through phases, and an actor of one's own, as a typed program writes them; checked, never run."""

from typing import Any, assert_type

from pydantic import BaseModel
from sabir_actors import (
    AEIOUY,
    AEIOUY_CHAIN,
    TYPES,
    Actor,
    ActorError,
    ActorSystem,
    Chain,
    ErrorCode,
    ErrorResponse,
    Message,
    Phase,
    Response,
    RestartPolicy,
    ThreadClient,
    deserialize_message,
    serialize_message,
    validate_message,
)
from sabir_actors.data import AgentResponse, ThreadResult, ThreadStatus
from sabir_session import SQLiteStore


class Critique(BaseModel):
    """What a phase of one's own answers with."""

    response: str
    flaws: list[str]


REVIEW = Chain("review", (Phase("draft", "Write."), Phase("critique", "Find flaws.", output=Critique)))


class Recall(Actor):
    """An actor of one's own."""

    async def on_recall(self, message: Message) -> dict[str, Any]:
        """Answer a type that the protocol does not name."""
        if "key" not in message.data:
            raise ActorError(ErrorCode.INVALID_MESSAGE, "give data a key", retryable=False, known=list(message.data))
        return {"found": message.data["key"]}


async def talk() -> str:
    """Create, start, steer and watch a thread."""
    async with ActorSystem("echo:m", chains=[REVIEW], store=SQLiteStore("t.db"), restarts=RestartPolicy()) as system:
        assert_type(system, ActorSystem)
        system.add(Recall("recall", system))
        client = ThreadClient(system)
        thread_id = await client.create("user1", "Shall I repot my fern?", chain="review", metadata={"source": "web"})
        await client.start(thread_id)
        async for status in client.watch(thread_id):
            assert_type(status, ThreadStatus)
        assert_type(await client.result(thread_id), ThreadResult)
        assert_type(await system.send_message(Message(type="RECALL", data={"key": 1}, receiver="recall")), Response)
        return thread_id


message = Message(type="PROCESS_PHASE", data={"phase_type": "action"}, sender="a", correlation_id="run")
assert_type(validate_message(message, REVIEW.names), bool)
assert_type(message.get_response_type(), str)
assert_type(message.response({"thread_id": "t"}), Response)
assert_type(message.error(ActorError(ErrorCode.TIMEOUT, "late")), ErrorResponse)
assert_type(deserialize_message(serialize_message(message)), Message | Response | ErrorResponse)
assert_type(AEIOUY_CHAIN.following(AEIOUY[0]), str | None)
assert_type(AgentResponse.model_validate(message.data).result.confidence, float | None)

error = ErrorResponse(error_message="no", error_code="FAILED", message_id=message.id, data={"thread_id": "t"})
assert_type(error.error_message, str)
assert_type(error.error_code, str | None)
assert_type(TYPES["RETRY"].response, str)

Message(type="X", datum={})  # type: ignore[call-arg]
Message(type="X", data=[])  # type: ignore[arg-type]
ErrorResponse(error_code="FAILED")  # type: ignore[call-arg]
message.data["phase_type"] = "yield"  # type: ignore[index]
