"""A policy is given the same arguments and observations under every runner, or the same refusal (RN-21, RN-29).

given ──by the parameter's type──▶ what the policy gets        in memory too
                              └──▶ JSON and back, the same     where it is written down or sent; else refused by name
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

import pytest
import sabir
from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from sabir import ToolContext
from sabir.errors import WrongWord
from sabir_runtime import BaseContext, BaseRunner, Batch, PolicyFailed, PolicyInvalid

from tests.runtime.every_runner import RUNNERS
from tests.runtime.support import Names, call, choosing, results
from tests.servers.postgres import postgres
from tests.servers.shared_nats import nats

__all__ = ["nats", "postgres"]
HISTORY = [sabir.user("Umbrella today?"), sabir.assistant("Take one.")]
TRAVELLING = [name for name in RUNNERS if name != "memory"]


class Town(BaseModel):
    name: str


class Capital(Town):
    """A town of which a parameter of type Town knows nothing more."""

    country: str


class Login(BaseModel):
    user: str
    password: SecretStr


@dataclass
class Key:
    held: dict[str, list[SecretBytes]]


class Unit(StrEnum):
    CELSIUS = "C"


async def tell(
    ctx: BaseContext,
    observations: Batch,
    options: Names = None,
    *,
    number: int = 0,
    days: list[date] | None = None,
    town: Town | None = None,
    rate: float = 0.0,
    any: Any = None,
    login: Login | None = None,
    key: Key | None = None,
) -> Batch:
    return [sabir.assistant(repr((number, days, town, rate, any)))]


async def tell_all(ctx: BaseContext, observations: Batch, options: Names = None, **others: Any) -> Batch:
    return [sabir.assistant(repr(others))]


async def need(ctx: BaseContext, observations: Batch, options: Names = None, *, city: str) -> Batch:
    return [sabir.assistant(city)]


async def save(
    ctx: BaseContext, observations: Batch, options: Names = None, *, path: str, context: ToolContext
) -> Batch:
    return [sabir.assistant(f"{path} for {context.call_id}")]


async def scribble(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    count = len(observations)
    observations.append(sabir.user("Mine."))
    if options is not None:
        options.append("tell_all")
    return [sabir.assistant(str(count))]


async def twice(ctx: Any, observations: Batch, options: Names = None) -> Batch:
    return [*await ctx.scribble(observations, options), *await ctx.scribble(observations, options)]


class Desk(BaseContext):
    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.tell, self.tell_all, self.need = self._bind(tell), self._bind(tell_all), self._bind(need)
        self.scribble, self.twice, self.save = self._bind(scribble), self._bind(twice), self._bind(save)
        self.choose = self._bind(choosing(call("save", "call-7", path="a.txt"), call("save", "call-8", path="b.txt")))


@pytest.fixture(params=RUNNERS)
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    """The context under each runner."""
    async with RUNNERS[request.param](request, Desk) as runner:
        yield Desk(runner)


async def test_arguments_are_of_their_parameters_types_under_every_runner(desk: Desk) -> None:
    """RN-21, RN-29: a text for a number, a tuple for a list, a text for a date are what the types make of them.

    WI-48: the context of its run is no argument, so nothing of it is written down or sent.
    """
    given = {"number": "7", "days": ("2026-11-21",), "town": {"name": "Rome"}, "rate": 1}
    (found,) = await desk.tell([], **given)
    assert found.text == repr((7, [date(2026, 11, 21)], Town(name="Rome"), 1.0, None))
    assert results(await desk.choose([], ["save"])) == ["a.txt for call-7", "b.txt for call-8"]
    with pytest.raises(PolicyFailed, match="'save' needs 'context', a ToolContext, which is not available here"):
        await desk.save([], path="a.txt")


async def test_arguments_that_do_not_fit_are_refused_under_every_runner(desk: Desk) -> None:
    """RN-21: by name, before anything is run: of another type, missing, unknown, or named as what
    every policy is given; and messages that are none."""
    with pytest.raises(PolicyInvalid, match=r"for policy 'tell': argument 'number': .*valid integer"):
        await desk.tell([], number="seven")
    with pytest.raises(PolicyInvalid, match="for policy 'need': argument 'city': missing"):
        await desk.need([])
    with pytest.raises(PolicyInvalid, match="for policy 'need': argument 'town': unknown; the policy accepts city"):
        await desk.need([], city="Rome", town="Rome")
    with pytest.raises(PolicyInvalid, match="for policy 'tell_all': argument 'ctx': the library fills in"):
        await desk.tell_all([], ctx=1)
    with pytest.raises(WrongWord, match=r"messages\[1\] is a str"):
        await desk.tell([HISTORY[0], "Hi."])


async def test_a_policy_has_lists_of_its_own(desk: Desk) -> None:
    """RN-09, RN-06, RN-21: what it appends to them reaches neither its caller nor the policy that is asked next."""
    history = list(HISTORY)
    found = await desk.twice(history, ["tell"])

    assert [message.text for message in found] == ["2", "2"]
    assert history == HISTORY


CHANGED: dict[str, tuple[str, dict[str, Any], str]] = {
    "tuple": ("tell", {"any": {"deep": [(1, 2)]}}, r"\['deep'\]\[0\] has the type tuple, but would be read back"),
    "date": ("tell", {"any": date(2026, 11, 21)}, "has the type date, but would be read back as str"),
    "key": ("tell", {"any": {1: 2}}, r"\[1\] has the type int, but would be read back as str"),
    "enum": ("tell", {"any": [Unit.CELSIUS]}, r"\[0\] has the type Unit, but would be read back as str"),
    "NaN": ("tell", {"rate": float("nan")}, "argument 'rate'"),
    "subclass": ("tell", {"town": Capital(name="Rome", country="Italy")}, "has the type Capital"),
    "open tuple": ("tell_all", {"deep": [(1, 2)]}, r"\[0\] has the type tuple"),
    "open NaN": ("tell_all", {"rate": float("nan")}, "argument 'rate'"),
    "model of secrets": ("tell", {"login": Login(user="x", password=SecretStr("hidden"))}, "'login'.password of"),
    "deep secret": ("tell", {"key": Key({"a": [SecretBytes(b"hidden")]})}, r"'key'.held\['a'\]\[0\] of policy"),
    "open secret": ("tell_all", {"password": SecretStr("hidden")}, "argument 'password'"),
    "any secret": ("tell", {"any": Secret(3)}, "argument 'any' of policy 'tell'"),
}  # fmt: skip


@pytest.mark.parametrize("desk", TRAVELLING, indirect=True)
async def test_arguments_that_would_change_on_their_way_are_refused_by_name(desk: Desk) -> None:
    """RN-29: before anything is written down or sent; of a secret, no text shows."""
    for policy, arguments, told in CHANGED.values():
        with pytest.raises(PolicyInvalid, match=told) as refused:
            await getattr(desk, policy)([], **arguments)
        assert "hidden" not in str(refused.value)
