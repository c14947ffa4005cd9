"""The context is the registry: attributes are names, names are options, and nothing else can be reached."""

import pytest
import sabir
from sabir import Message
from sabir_runtime import BaseContext, BoundPolicy, InMemoryRunner, PolicyInvalid, UnknownOption

from tests.runtime.support import Context, call, results, search_web

HISTORY = [sabir.user("Umbrella today?")]


class Recording(InMemoryRunner):
    """Remembers which contexts asked it for a function to bind with."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[BaseContext] = []

    def create_bind_function(self, ctx: BaseContext):  # type: ignore[no-untyped-def]
        self.asked.append(ctx)
        return super().create_bind_function(ctx)


async def test_an_option_is_named_by_its_attribute_whatever_its_function_is_called() -> None:
    """RN-12, RN-13, D-09, UP-07."""
    ctx = Context(call("search", query="rain"))

    assert ctx.search.name == "search"
    assert [option.name for option in ctx.offer(["search"])] == ["search"]
    with pytest.raises(UnknownOption):
        await ctx.chooser(HISTORY, ["search_web"])


async def test_one_function_is_bound_under_two_names() -> None:
    """RN-14: each has its own."""
    ctx = Context(call("again", query="rain"))
    ctx.again = ctx._bind(search_web)

    assert (ctx.search.name, ctx.again.name) == ("search", "again")
    assert results(await ctx.chooser(HISTORY, ["again"])) == ["3 × rain"]


async def test_a_bound_policy_is_called_by_name_and_by_place() -> None:
    """RN-17, RN-18: `await ctx.llm(observations=[…], options=[…])`, and in the order of the parameters."""
    ctx = Context(call("search", query="rain"))
    by_name = await ctx.chooser(observations=HISTORY, options=["search"])
    by_place = await ctx.chooser(HISTORY, ["search"])

    assert isinstance(ctx.chooser, BoundPolicy)
    assert [message._content() for message in by_name] == [message._content() for message in by_place]


async def test_a_bound_policy_without_a_name_says_how_to_get_one() -> None:
    """D-09: the name is learnt at the assignment."""
    ctx = Context()
    bound = ctx._bind(search_web)

    with pytest.raises(PolicyInvalid, match=r"'search_web' has no name yet; assign it to an attribute"):
        _ = bound.name


def test_no_bound_policy_has_the_name_of_what_nobody_chose() -> None:
    """PJ-06: results of the policy "runtime" are the executor's own."""
    ctx = BaseContext(InMemoryRunner())

    with pytest.raises(PolicyInvalid, match=r"'runtime' is reserved .*; give the attribute of 'search_web' another$"):
        ctx.runtime = ctx._bind(search_web)  # type: ignore[attr-defined]


def test_one_bound_policy_has_one_name() -> None:
    """D-09: a second one would be ambiguous in a record."""
    ctx = Context()
    with pytest.raises(PolicyInvalid, match="'search' cannot be 'find' too; bind the function once more"):
        ctx.find = ctx.search


async def test_leaving_a_context_closes_its_policies_and_its_runner() -> None:
    """Adapters hold connections; so do runners."""
    closed = []

    class Closable:
        async def __call__(
            self, ctx: BaseContext, observations: list[Message], options: list[str] | None = None
        ) -> list[Message]:
            """Nothing."""
            return []

        async def aclose(self) -> None:
            closed.append("policy")

    class ClosableRunner(InMemoryRunner):
        async def aclose(self) -> None:
            closed.append("runner")

    async with Context(runner=ClosableRunner()) as ctx:
        ctx.closable = ctx._bind(Closable())

    assert closed == ["policy", "runner"]
