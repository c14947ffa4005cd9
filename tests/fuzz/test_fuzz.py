"""Changed bodies of this project's recordings: the same few thousand each time. `nox -s fuzz` runs 100,000."""

import random

import pytest
from sabir_testing.reading import documents

from tests.fuzz.mutations import MARK, broken, changed, marked
from tests.fuzz.run import fuzz
from tests.fuzz.seeds import WIRES, own

COUNT = 700


@pytest.mark.parametrize("dialect", WIRES)
def test_changed_bodies_end_in_a_reply_or_in_an_error_of_this_library(dialect: str) -> None:
    """Law 10, and law 2: whole, streamed and stored requests; a text that was read is read again, or told as lost."""
    run = fuzz([seed for seed in own() if seed.dialect == dialect], COUNT, seed=7)

    assert run.faults == []
    reached = {(kind, outcome) for _, kind, outcome in run.counts}
    assert reached == {
        (kind, outcome) for kind in ("whole", "streamed", "request") for outcome in ("decoded", "refused")
    }


def test_bodies_are_changed_and_stay_json_where_they_are_to() -> None:
    lots = random.Random(7)
    bodies = [seed.body for seed in own()[:40]]
    whole = [found for body in bodies if (found := marked(lots, body)) is not None]

    after = [changed(lots, body, (number, place)) for body, number, place in whole]
    assert sum(body != made for (body, *_), made in zip(whole, after, strict=True)) > len(after) * 0.9
    assert all(documents(made.decode()) for made in after)
    assert sum(MARK.encode() in made for made in after) > len(after) * 0.9
    assert sum(broken(lots, body) != body for body in bodies) > len(bodies) * 0.9
