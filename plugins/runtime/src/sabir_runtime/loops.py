"""A policy that is asked again with what came of its choices, until it chooses no option.

observations ─▶ ctx.llm ─▶ calls with results ─▶ ctx.llm ─▶ … ─▶ text
"""

import sabir
from sabir import Message

from sabir_runtime.contexts import BaseContext
from sabir_runtime.errors import LoopLimit
from sabir_runtime.policies import AnyPolicy

TURNS = 16
"""How often a policy is asked unless something else is said."""


def loop_policy(of: str, *, turns: int = TURNS) -> AnyPolicy:
    """A policy that asks the one bound as `of` until it chooses nothing more; its batch is all that came.

    LoopLimit after that many turns. As an option it takes `request`, what is asked of it.
    """

    async def loop(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Work on a request until it is done.

        Args:
            request: What is asked.
        """
        ctx.checked_options([of])
        asked = ctx.bound_policies()[of]
        history = [sabir.user(request)] if request else list(observations)
        start = len(history)
        for _ in range(turns):
            batch = await asked(history, options)
            history = [*history, *batch]
            if not any(message.kind == "option_call" for message in batch):
                return history[start:]
        raise LoopLimit(f"{of!r} chose options {turns} times in a row; give loop_policy more turns, or it less to do")

    return loop
