"""The policy: a function that looks at observations and chooses a batch of actions.

    selected = await policy(ctx, observations, options, **parameters)

A model, a person and a rule are all policies; the caller cannot tell which one it calls.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from sabir import Message

from sabir_runtime.errors import PolicyInvalid

Batch: TypeAlias = list[Message]
"""A policy's choice: texts and media are one message each, an option's call and its result are two."""


class Policy(Protocol):
    """A function, or an object that is called like one.

    It sees only its `observations`. `options` are the names that it may choose, each an attribute of its context. Its
    own parameters are keyword parameters; they form its argument schema.
    """

    # The context is the user's own class, and each policy has parameters of its own: hence Any.
    def __call__(
        self, ctx: Any, observations: list[Message], options: list[str] | None = None, /, **parameters: Any
    ) -> Awaitable[Batch]:
        """The batch of actions that it chose."""
        ...


@runtime_checkable
class Named(Protocol):
    """A policy that speaks under the name by which it is bound."""

    def bound_as(self, name: str) -> "AnyPolicy":
        """The same policy, speaking as that name."""
        ...


AnyPolicy: TypeAlias = Callable[..., Awaitable[Batch]]
"""A policy as it is bound: its own keyword parameters are read from its signature."""


def check_batch(name: str, returned: object) -> Batch:
    """The policy's return value if it is a batch; raises PolicyInvalid, which says what it is instead."""
    if not isinstance(returned, list | tuple):
        remedy = "return a list of messages; a reply's are reply.messages"
        raise PolicyInvalid(f"policy {name!r} returned a {type(returned).__name__}, not a batch; {remedy}")
    for index, message in enumerate(returned):
        if type(message) is not Message:  # a subclass's instance would change when it is recorded or sent
            remedy = "return messages, for example sabir.assistant(…)"
            place = f"a {type(message).__name__} at [{index}] of its batch"
            raise PolicyInvalid(f"policy {name!r} returned {place}; {remedy}")
    return list(returned)
