"""Every case of the kit earns its place: some adapter is stopped by it, and by no other case.

    BROKEN[case] ──▶ acme, broken in one way ──the kit──▶ fails that case alone

Here the first row of each case is tried, and on it the cases of its family; `nox -s kit` tries every row, and on each
the cases of all families.

So each broken adapter fails in the test that is named for it, and without any one case an adapter would get through.
"""

import pytest

from tests.testing.broken import contract, errors, handover, laws, replies, requests, streams, transport
from tests.testing.harness import FEW, WHOLE, Breakage, failed_cases, failed_siblings, fails, run, sound

FAMILIES = {
    "contract": contract.BROKEN,
    "requests": requests.BROKEN,
    "laws": laws.BROKEN,
    "replies": replies.BROKEN,
    "streams": streams.BROKEN,
    "errors": errors.BROKEN,
    "transport": transport.BROKEN,
    "handover": handover.BROKEN,
}
BROKEN = [(family, case, breakage) for family, rows in FAMILIES.items() for case, breakage in rows.items()]
FIRST = {case.partition("[")[0]: (family, case, adapter) for family, case, adapter in BROKEN[::-1]}
CHOSEN = BROKEN if WHOLE else list(FIRST.values())
MANY = 100
PROPERTIES = ("laws", "handover")
"""Families whose breakages only show in some of many histories."""


@pytest.mark.parametrize(("family", "case", "breakage"), CHOSEN, ids=[case for _, case, _ in CHOSEN])
def test_a_broken_adapter_fails_the_case_that_is_named_for_it_alone(
    pytester: pytest.Pytester, family: str, case: str, breakage: Breakage
) -> None:
    """Without that case, this adapter would pass. Of a family of properties, its siblings are tried on few examples."""
    if family in PROPERTIES and not WHOLE and "[" not in case:
        assert fails(pytester, breakage, case, MANY)
        assert failed_siblings(pytester, breakage, family, case) == []
    else:
        assert failed_cases(pytester, breakage, family, MANY if family in PROPERTIES else FEW) == [case]


@pytest.mark.parametrize(
    "case", ["test_a_turn_renders_alike_as_the_tail_and_closed", "test_every_history_is_a_valid_request"]
)
def test_results_of_every_kind_are_shown_to_the_suite(pytester: pytest.Pytester, case: str) -> None:
    """An adapter whose results are only sometimes what the vendor takes is stopped where they are checked at all."""
    assert fails(pytester, laws.BARE, case, MANY)


def test_every_case_has_an_adapter_that_only_it_stops(pytester: pytest.Pytester) -> None:
    """The sound adapter passes all cases, there are no others than these, and there are enough of them."""
    outcomes = run(pytester, sound())
    cases = [outcome.name for outcome in outcomes]

    assert [outcome for outcome in outcomes if outcome.failed] == []
    assert set(cases) - {case for _, case, _ in BROKEN} == set()
    assert len(cases) >= 80
