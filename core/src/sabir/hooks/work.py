"""AgentWork: a piece of work of an agent, an option or a workflow, as telemetry hooks receive it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sabir.vocabulary.messages import Message


@dataclass(eq=False, slots=True)
class AgentWork:
    """A piece of work for `announce_work`, which telemetry hooks receive.

    `kind` is "agent" for an answered question or a policy, "option" for the run of an option, and "workflow" for a
    chain of agents. `name` is the name of the agent, option or workflow; "" if it has none. `conversation_id` is the
    same for all works of a conversation, thread or run, also in other processes; "" means unknown. `option_call` is the
    call that an option answers. `is_remote` is True if another process does the work.

    The block of `announce_work` sets `option_result` to an option's result, and `is_waiting` to True if it ends with an
    exception because the work waits for a person. `headers` are the headers that `continue_work` received, and {} if it
    received none; None means that the work was requested in this process.
    """

    kind: Literal["agent", "option", "workflow"]
    name: str = ""
    conversation_id: str = ""
    option_call: Message | None = None
    is_remote: bool = False
    option_result: Message | None = field(default=None, init=False)
    is_waiting: bool = field(default=False, init=False)
    headers: Mapping[str, str] | None = field(default=None, init=False)
