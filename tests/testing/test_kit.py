"""Every case of the kit earns its place: some adapter is stopped by it, and by no other case.

    BROKEN[case] ──▶ acme, broken in one way ──the kit──▶ fails that case alone

Here the first row of each case is tried, on that case alone; `nox -s kit` tries every row on the whole kit, so that
without any one case an adapter would get through.
"""

import pytest

from tests.testing.broken import contract, errors, handover, laws, replies, requests, streams, transport
from tests.testing.harness import FEW, WHOLE, Breakage, failed_cases, failed_rows, run, sound

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
def test_a_broken_adapter_fails_the_case_that_is_named_for_it(
    pytester: pytest.Pytester, family: str, case: str, breakage: Breakage
) -> None:
    """Of the other rows of that case it fails none, and of the whole kit no other case."""
    examples = MANY if family in PROPERTIES else FEW
    failed = failed_cases(pytester, breakage, examples) if WHOLE else failed_rows(pytester, breakage, case, examples)

    assert failed == [case]


@pytest.mark.parametrize(
    "case", ["test_a_turn_renders_alike_as_the_tail_and_closed", "test_every_history_is_a_valid_request"]
)
def test_results_of_every_kind_are_shown_to_the_suite(pytester: pytest.Pytester, case: str) -> None:
    """An adapter whose results are only sometimes what the vendor takes is stopped where they are checked at all."""
    assert failed_rows(pytester, laws.BARE, case, MANY) == [case]


def test_every_case_has_an_adapter_that_only_it_stops(pytester: pytest.Pytester) -> None:
    """The sound adapter passes all cases, there are no others than these, and there are enough of them."""
    suite = type("TestSound", (sound(),), {"examples": MANY if WHOLE else MANY // 4})
    outcomes = run(pytester, suite)
    cases = [outcome.name for outcome in outcomes]

    assert [outcome for outcome in outcomes if outcome.failed] == []
    assert set(cases) - {case for _, case, _ in BROKEN} == set()
    assert len(cases) >= 80
