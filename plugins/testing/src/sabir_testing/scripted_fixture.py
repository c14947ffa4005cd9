"""The fixture `scripted`: scripted adapters whose scripts must be used up when the test ends.

    def test_it_looks_up_the_weather(scripted):
        llm = scripted(calls(weather={"city": "Paris"}), "It rains.")
        assert umbrella(llm) == "It rains."

A pytest plugin of its own: the fixture, and the hook that fails a test which passed but left answers over.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:  # nothing of sabir is loaded for tests that do not ask for it
    from typing import Unpack

    from sabir_testing.scripted import Scriptable, ScriptedAdapter, ScriptedArguments

_MADE = pytest.StashKey[list["ScriptedAdapter"]]()


class MakeScripted(Protocol):
    """What the fixture `scripted` is: ScriptedAdapter, with a check at the test's end."""

    def __call__(self, *answers: "Scriptable", **how: "Unpack[ScriptedArguments]") -> "ScriptedAdapter":
        """A scripted adapter that the test must ask for all its answers."""
        ...


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> MakeScripted:
    """Makes scripted adapters; the test fails where it leaves an answer over, or asks for one too many."""
    from sabir_testing.scripted import ScriptedAdapter

    made: list[ScriptedAdapter] = request.node.stash.setdefault(_MADE, [])

    def make(*answers: "Scriptable", **how: "Unpack[ScriptedArguments]") -> ScriptedAdapter:
        made.append(ScriptedAdapter(*answers, **how))
        return made[-1]

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed where its scripts are not used up; one that failed has said why already."""
    yield
    mismatches = [mismatch for adapter in item.stash.get(_MADE, ()) if (mismatch := _mismatch(adapter))]
    if mismatches:
        pytest.fail("\n".join(mismatches), pytrace=False)


def _mismatch(adapter: "ScriptedAdapter") -> str:
    from sabir_testing.scripted import ScriptMismatch

    try:
        adapter.assert_finished()
    except ScriptMismatch as mismatch:
        return str(mismatch)
    return ""
