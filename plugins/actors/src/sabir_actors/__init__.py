"""Threads: conversations that actors lead through fixed phases. Records in a store let another process continue them.

async with ActorSystem("provider:model", store=SQLiteStore("threads.db")) as system:
    client = ThreadClient(system)
    thread_id = await client.create("user1", "Shall I repot my fern?")
    await client.start(thread_id)
    print((await client.result(thread_id)).output)
"""

from sabir_actors.actor import Actor
from sabir_actors.agents import AgentManagerActor
from sabir_actors.client import ThreadClient
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phase import PhaseActor
from sabir_actors.phases import AEIOUY_CHAIN, Chain, Phase, PhaseReply
from sabir_actors.protocol import (
    AEIOUY,
    TYPES,
    ErrorResponse,
    Message,
    Response,
    deserialize_message,
    serialize_message,
    validate_message,
)
from sabir_actors.queues import ThreadQueue
from sabir_actors.restart_policy import RestartPolicy
from sabir_actors.state import ThreadEvent, ThreadView
from sabir_actors.supervisor import SupervisorActor
from sabir_actors.system import ActorSystem
from sabir_actors.thread_actor import ThreadActor

__all__ = [
    "AEIOUY",
    "AEIOUY_CHAIN",
    "TYPES",
    "Actor",
    "ActorError",
    "ActorSystem",
    "AgentManagerActor",
    "Chain",
    "ErrorCode",
    "ErrorResponse",
    "Message",
    "Phase",
    "PhaseActor",
    "PhaseReply",
    "Response",
    "RestartPolicy",
    "SupervisorActor",
    "ThreadActor",
    "ThreadClient",
    "ThreadEvent",
    "ThreadQueue",
    "ThreadView",
    "deserialize_message",
    "serialize_message",
    "validate_message",
]
