"""The context is the registry: attributes are names, names are options, and nothing else can be reached."""

from typing import ClassVar

import pytest
import sabir
from sabir_runtime import BaseContext, Batch, InMemoryRunner, PolicyInvalid, UnknownOption
from sabir_runtime.contexts import context_names

from tests.runtime.support import Context, Names, call, results, search_web

HISTORY = [sabir.user("Umbrella today?")]


async def test_an_option_is_named_by_its_attribute_whatever_its_function_is_called() -> None:
    """RN-12, RN-13, D-09, UP-07."""
    ctx = Context(call("search", query="rain"))

    assert ctx.search.name == "search"
    assert [option.name for option in ctx.offer(["search"])] == ["search"]
    with pytest.raises(UnknownOption):
        await ctx.chooser(HISTORY, ["search_web"])


async def test_a_bound_policy_has_one_name_of_its_own() -> None:
    """D-09, RN-14, RN-17: learnt at its one assignment; a function bound twice has two. PJ-06: none is "runtime"."""
    ctx = Context(call("again", query="rain"))
    bound = ctx._bind(search_web)
    with pytest.raises(PolicyInvalid, match=r"'search_web' has no name yet; assign it to an attribute"):
        _ = bound.name
    with pytest.raises(
        PolicyInvalid, match=r"'runtime' is reserved .*; bind 'search_web' to an attribute with another name$"
    ):
        ctx.runtime = bound
    ctx.again = bound
    with pytest.raises(PolicyInvalid, match=r"'search' cannot also be named 'find'; call self._bind"):
        ctx.find = ctx.search

    assert (ctx.search.name, ctx.again.name) == ("search", "again")
    assert results(await ctx.chooser(observations=HISTORY, options=["again"])) == ["3 × rain"]
    assert results(await ctx.chooser(HISTORY, ["again"])) == ["3 × rain"]


def test_a_context_is_stored_under_the_names_that_its_class_assigns() -> None:
    class Desk(BaseContext):
        stored_as: ClassVar[str] = "desk"

    class Counter(Desk):
        stored_before: ClassVar[tuple[str, ...]] = ("Desk",)

    place = "test_a_context_is_stored_under_the_names_that_its_class_assigns.<locals>"
    assert context_names(BaseContext).all == ("BaseContext",)
    assert context_names(Desk).all == ("desk", f"{place}.Desk")
    assert context_names(Counter).all == (f"{place}.Counter", "Desk")


async def test_leaving_a_context_closes_its_policies_and_its_runner() -> None:
    """Adapters hold connections; so do runners."""
    closed = []

    class Closable:
        async def __call__(self, ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
            return []

        async def aclose(self) -> None:
            closed.append("policy")

    class ClosableRunner(InMemoryRunner):
        async def aclose(self) -> None:
            closed.append("runner")

    async with Context(runner=ClosableRunner()) as ctx:
        ctx.closable = ctx._bind(Closable())

    assert closed == ["policy", "runner"]
