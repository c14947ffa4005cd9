"""A model as a policy: observations in, its reply's messages out.

    self.llm = self._bind(llm_policy("provider:model"))

It speaks under the name by which it is bound: its own messages are the model's, those of other policies the user's.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import sabir
from sabir import Adapter, Message, Settings, unanswered
from sabir.authoring import AsyncClosing, Strict, split_model

from sabir_runtime.contexts import BaseContext


@dataclass(repr=False, eq=False)
class LLMPolicy(AsyncClosing):
    """A policy that asks a model once: `provider:model`, or an adapter, wrapped ones included.

    `settings` and `strict` go with every request. `speaks_as` is the name by which it is bound unless it is given.
    Raises SettingsInvalid for a name of another form. As an option it takes `request`, what is asked of it.
    """

    model: str | Adapter
    _: KW_ONLY
    speaks_as: str | None = None
    settings: Settings | None = None
    strict: Strict | None = None

    def __post_init__(self) -> None:
        """Refuse a name of another form."""
        if isinstance(self.model, str):
            split_model(self.model)

    def bound_as(self, name: str) -> "LLMPolicy":
        """The same policy, speaking as the name by which it is bound; an adapter speaks as it was made."""
        return replace(self, speaks_as=self.speaks_as or name) if isinstance(self.model, str) else self

    @cached_property
    def adapter(self) -> Adapter:
        """The adapter that it asks; made at the first use."""
        if isinstance(self.model, str):
            return sabir.adapter(self.model, speaks_as=self.speaks_as or "llm")
        return self.model

    async def __call__(
        self,
        ctx: BaseContext,
        observations: list[Message],
        options: list[str] | None = None,
        *,
        request: str = "",
    ) -> list[Message]:
        """Ask a language model.

        Args:
            request: What is asked of it.
        """
        messages = observations
        if request:
            asking = {message.id for message in unanswered(observations)}
            messages = [message for message in observations if message.id not in asking] + [sabir.user(request)]
        reply = await self.adapter.complete(
            messages, options=ctx.offer(options), settings=self.settings, strict=self.strict
        )
        return list(reply.messages)

    async def aclose(self) -> None:
        """Close the adapter if it was made here."""
        made: Adapter | None = vars(self).pop("adapter", None)
        if made is not None and made is not self.model:
            await made.aclose()

    def __repr__(self) -> str:
        """With what it asks."""
        return f"llm_policy({self.model!r})"


llm_policy = LLMPolicy
"""The policy that asks this model: what a context binds."""
