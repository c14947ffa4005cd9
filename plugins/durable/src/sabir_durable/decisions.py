"""Calls that wait for a person's decision, for days if need be, across restarts.

    self.approve = self._bind(human_policy(decision))        in the context
    await runner.decide("order-7", path, "yes")              from any process; or `sabir runs decide order-7 PATH yes`

`sabir runs list --state waiting` lists the waiting runs, and `show` names the path of the call.
"""

from sabir import Message
from sabir_runtime import Question

from sabir_durable.errors import DurableFault
from sabir_durable.execution import place


async def decision(question: Question) -> list[Message]:
    """A person's decision for the bound call that asks; a durable run waits for it, also in its next process.

    `question` is already in the ledger, with the call. Raises DurableFault outside of a durable run.
    """
    where = place.get()
    if where is None:
        raise DurableFault("a decision is waited for in a run of a DurableRunner; give human_policy another `ask` here")
    return await where.execution.wait(where.path)
