"""Calls that wait for a person, for days if need be: over every restart, until somebody decides.

    self.approve = self._bind(human_policy(decision))        in the context
    await runner.decide("order-7", path, "yes")              from any process; or `sabir runs decide order-7 PATH yes`

Those that wait are listed as such by `sabir runs list --state waiting`, and `show` says at which path.
"""

from sabir import Message
from sabir_runtime import Question

from sabir_durable.errors import DurableFault
from sabir_durable.execution import place


async def decision(question: Question) -> list[Message]:
    """What somebody decides for the bound call that asks; a durable run waits for it, and so does its next process.

    `question` is in the ledger already, with the call. DurableFault outside of a durable run.
    """
    where = place.get()
    if where is None:
        raise DurableFault("a decision is waited for in a run of a DurableRunner; give human_policy another `ask` here")
    return await where.execution.wait(where.path)
