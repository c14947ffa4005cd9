"""Names of bound calls are the same each time a run is repeated, however long each call takes."""

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st
from sabir_runtime import paths


def test_calls_are_counted_within_their_parent() -> None:
    """D-11, RN-27: index and attribute name, below the path of the caller; no time, no function's name."""
    assert paths.next_path("main") == "0:main"
    with paths.enter("0:main"):
        assert [paths.next_path("llm"), paths.next_path("search")] == ["0:main/0:llm", "0:main/1:search"]
        with paths.enter("0:main/1:search"):
            assert paths.next_path("fetch") == "0:main/1:search/0:fetch"
        assert paths.next_path("llm") == "0:main/2:llm"
    assert not paths.is_entered()


async def named_by_branches(delays: list[list[int]]) -> list[list[str]]:
    """The paths that branches of one run get, each pausing as often as said before each of its calls."""

    async def branch(pauses: list[int]) -> list[str]:
        found = [paths.next_path("first")]
        for pause in pauses:
            for _ in range(pause):
                await asyncio.sleep(0)
            found.append(paths.next_path("next"))
        return found

    with paths.enter("0:main"):
        return await asyncio.gather(*(branch(pauses) for pauses in delays))


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=5), st.randoms())
def test_branches_are_named_alike_however_they_interleave(delays: list[list[int]], order: random.Random) -> None:
    """RN-32, D-11: other pauses, the same names."""
    others = [[order.randint(0, 5) for _ in pauses] for pauses in delays]

    assert asyncio.run(named_by_branches(delays)) == asyncio.run(named_by_branches(others))
