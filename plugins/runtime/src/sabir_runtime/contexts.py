"""The context is the registry: its attributes are the policies that can be called, and chosen (RN-11 … RN-19).

    class Assistant(BaseContext):
        llm: BoundPolicy
        search: BoundPolicy

        def __init__(self, runner):
            super().__init__(runner)
            self.llm = self._bind(llm_policy("provider:model"))
            self.search = self._bind(search_web)              # the option "search", whatever the function is called

What is not bound here cannot be reached from here (RN-15); other contexts bind other sets beside it (RN-14).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sabir import Option
from sabir.calling.stream import AsyncClosing

from sabir_runtime.bound import BoundPolicy
from sabir_runtime.errors import UnknownOption
from sabir_runtime.options import option_of
from sabir_runtime.runners import bound_by

if TYPE_CHECKING:
    from sabir_runtime.runners import BaseRunner


class BaseContext(AsyncClosing):
    """What a user's contexts derive from; `_bind(policy)` makes a bound policy of a function or a callable object."""

    def __init__(self, runner: "BaseRunner") -> None:
        self._runner = runner
        self._bind: Callable[..., BoundPolicy] = partial(bound_by, runner.create_bind_function(self), self)

    def __setattr__(self, name: str, value: object) -> None:
        """Assign; a bound policy learns its name."""
        if isinstance(value, BoundPolicy):
            value.take_name(name)
        object.__setattr__(self, name, value)

    def bound_policies(self) -> dict[str, BoundPolicy]:
        """Name → bound policy, of all that can be an option; names that begin with an underscore cannot (RN-16)."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, BoundPolicy) and not name.startswith("_")
        }

    def checked_options(self, names: Iterable[str]) -> list[str]:
        """The names, if each is bound here; UnknownOption lists those that are (RN-19)."""
        if isinstance(names, str):
            raise UnknownOption(f"options must be a list of names, not the string {names!r}; write options=[{names!r}]")
        given = list(names)
        attributes = self.__dict__
        for name in given:
            if not isinstance(attributes.get(name), BoundPolicy) or name[0] == "_":
                raise UnknownOption(f"{type(self).__name__} binds no policy {name!r}; {self._known()}")
        return given

    def offer(self, names: Sequence[str] | None) -> list[Option]:
        """The options of these names, as a model is told of them; UnknownOption for one that is not bound."""
        bound = self.bound_policies()
        return [option_of(bound[name], list(names or ())) for name in self.checked_options(names or ())]

    async def aclose(self) -> None:
        """Close the policies that hold a connection, and the runner."""
        for bound in self.bound_policies().values():
            await _close(bound.policy)
        await _close(self._runner)

    def _known(self) -> str:
        return f"bound are: {', '.join(self.bound_policies()) or 'none'}"


async def _close(held: Any) -> None:  # a policy is any callable
    close = getattr(held, "aclose", None)
    if close is not None:
        await close()
