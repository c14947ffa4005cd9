"""One failure while closing leaves nothing else open."""

import asyncio

import pytest
from sabir_actors.adapters import Adapters
from sabir_runtime import BaseContext, InMemoryRunner
from sabir_session import Conversation


class Resource:
    """Something to close, which may fail."""

    def __init__(self, closed: list[str], name: str, *, fails: bool = False) -> None:
        self._closed = closed
        self._name = name
        self._fails = fails

    async def __call__(self, ctx: object, observations: object, options: object = None) -> list[object]:
        return []

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self._closed.append(self._name)
        if self._fails:
            raise OSError(self._name)


def test_a_context_closes_its_runner_after_a_policy_failed_to_close() -> None:
    closed: list[str] = []

    class Desk(BaseContext):
        def __init__(self, runner: InMemoryRunner) -> None:
            super().__init__(runner)
            self.first = self._bind(Resource(closed, "first", fails=True))
            self.second = self._bind(Resource(closed, "second"))

    class Runner(InMemoryRunner):
        async def aclose(self) -> None:
            closed.append("runner")

    with pytest.raises(OSError, match="first"):
        asyncio.run(Desk(Runner()).aclose())

    assert closed == ["first", "second", "runner"]


def test_a_system_closes_all_adapters_if_one_fails_to_close() -> None:
    closed: list[str] = []
    adapters = Adapters(lambda model: Resource(closed, model, fails=model == "b"))  # type: ignore[arg-type, return-value]
    for model in "abc":
        adapters.acquire(model)

    with pytest.raises(OSError, match="b"):
        asyncio.run(adapters.aclose())

    assert sorted(closed) == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["close", "aclose"])
def test_a_conversation_closes_its_adapters_if_one_fails_to_close(how: str) -> None:
    closed: list[str] = []
    conversation = Conversation("echo:m")
    conversation._adapters = {  # type: ignore[assignment]
        name: Resource(closed, name, fails=name == "a") for name in "ab"
    }

    with pytest.raises(OSError, match="a"):
        conversation.close() if how == "close" else asyncio.run(conversation.aclose())

    assert sorted(closed) == ["a", "b"]
