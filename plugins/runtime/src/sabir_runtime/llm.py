"""A model as a policy: observations in, its reply's messages out (RN-02).

    self.llm = self._bind(llm_policy("provider:model"))

It speaks under the name by which it is bound: its own messages are the model's, those of other policies the user's.
"""

from typing import TYPE_CHECKING

import sabir
from sabir import Adapter, Message, Settings
from sabir.base.losses import Strict
from sabir.calling.stream import AsyncClosing
from sabir.discovery.registry import split_model
from sabir.options.answers import unanswered

if TYPE_CHECKING:
    from sabir_runtime.contexts import BaseContext


class LLMPolicy(AsyncClosing):
    """One reply of a model; made by `llm_policy`."""

    def __init__(
        self,
        model: str | Adapter,
        *,
        speaks_as: str | None = None,
        settings: Settings | None = None,
        strict: Strict | None = None,
    ) -> None:
        self._model = model
        self._speaks_as = speaks_as
        self._settings = settings
        self._strict = strict
        self._adapter = None if isinstance(model, str) else model
        if isinstance(model, str):
            split_model(model)

    def bound_as(self, name: str) -> "LLMPolicy":
        """The same policy, speaking as the name by which it is bound; an adapter speaks as it was made."""
        if not isinstance(self._model, str):
            return self
        speaks_as = self._speaks_as or name
        return LLMPolicy(self._model, speaks_as=speaks_as, settings=self._settings, strict=self._strict)

    @property
    def adapter(self) -> Adapter:
        """The adapter that it asks; made at the first use."""
        if self._adapter is None:
            assert isinstance(self._model, str)
            self._adapter = sabir.adapter(self._model, speaks_as=self._speaks_as or "llm")
        return self._adapter

    async def __call__(
        self,
        ctx: "BaseContext",
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
            messages, options=ctx.offer(options), settings=self._settings, strict=self._strict
        )
        return list(reply.messages)

    async def aclose(self) -> None:
        """Close the adapter if it was made here."""
        if isinstance(self._model, str) and self._adapter is not None:
            adapter, self._adapter = self._adapter, None
            await adapter.aclose()

    def __repr__(self) -> str:
        """With what it asks."""
        return f"llm_policy({self._model!r})"


def llm_policy(
    model: str | Adapter,
    *,
    speaks_as: str | None = None,
    settings: Settings | None = None,
    strict: Strict | None = None,
) -> LLMPolicy:
    """A policy that asks a model once: `provider:model`, or an adapter, wrapped ones included.

    `settings` and `strict` go with every request. `speaks_as` is the name by which it is bound unless it is given.
    Raises SettingsInvalid for a name of another form. As an option it takes `request`, what is asked of it.
    """
    return LLMPolicy(model, speaks_as=speaks_as, settings=settings, strict=strict)
