"""Every case of the kit earns its place: some adapter is stopped by it, and by no other case.

    BROKEN[case] ──▶ acme, broken in one way ──the kit──▶ fails that case alone

Here the first row of each case is tried, on that case alone; `nox -s kit` tries every row on the whole kit, so that
without any one case an adapter would get through. One further fault of each kind is tried as well.
"""

from functools import partial

import pytest

from tests.testing.broken import (
    batches,
    changed_replies,
    complete_requests,
    connection_errors,
    contract,
    documented_words,
    embeddings,
    errors,
    framings,
    further_replies,
    further_streams,
    handover,
    laws,
    lossless_history,
    lossless_replies,
    lossless_requests,
    replies,
    requests,
    stored_meanings,
    stored_requests,
    streams,
    transport,
)
from tests.testing.harness import FEW, WHOLE, Breakage, failed_cases, failed_rows, fails, run, sound, unreading

MODULES = (
    ("contract", contract),
    ("contract", batches),
    ("requests", requests),
    ("requests", complete_requests),
    ("requests", lossless_requests),
    ("laws", laws),
    ("laws", stored_requests),
    ("laws", stored_meanings),
    ("laws", lossless_history),
    ("replies", replies),
    ("replies", changed_replies),
    ("replies", further_replies),
    ("replies", documented_words),
    ("replies", lossless_replies),
    ("streams", streams),
    ("streams", framings),
    ("streams", further_streams),
    ("errors", errors),
    ("transport", transport),
    ("transport", connection_errors),
    ("handover", handover),
    ("embeddings", embeddings),
)
"""Family → a module with broken adapters for some of its cases."""
BROKEN = [(family, case, breakage) for family, module in MODULES for case, breakage in module.BROKEN.items()]
FAULTS = [
    (case, fault, breakage)
    for _, module in MODULES
    for (case, fault), breakage in getattr(module, "FAULTS", {}).items()
]
CHOSEN_FAULTS = FAULTS if WHOLE else list({case: (case, fault, breakage) for case, fault, breakage in FAULTS}.values())
UNTRIED = {case for _, module in MODULES for case in getattr(module, "UNTRIED", ())}
"""Rows of cases that check nothing of acme."""
SOUND = {
    changed_replies.CALLS_CASE: changed_replies.listing(changed_replies.MANY_CALLS),
    framings.ENDS: framings.framed(partial(framings.Blocks, framings.at_line_feeds)),
    framings.BYTES: framings.framed(partial(framings.Blocks, framings.at_line_feeds)),
    framings.COUNTED: framings.framed(partial(framings.Blocks, framings.at_line_feeds)),
    batches.ANSWERED: batches.batching(),
    documented_words.COUNT: documented_words.counting(counted=True),
    further_replies.TOKENS: further_replies.asked(lambda usage: usage),
    further_streams.INDEX: further_streams.unnumbered(is_counted=True),
    lossless_replies.BEFORE: lossless_replies.nested(is_apart=True),
    stored_requests.FEATURE: stored_requests.parts(dict),
    stored_requests.NESTED: stored_requests.parts(dict),
    **dict.fromkeys(embeddings.BROKEN, embeddings.SOUND),
}
"""Case → an adapter like the broken ones, without their fault."""
FIRST = {case.partition("[")[0]: (family, case, adapter) for family, case, adapter in BROKEN[::-1]}
CHOSEN = BROKEN if WHOLE else list(FIRST.values())
MANY = 100
PROPERTIES = ("laws", "handover")
"""Families whose breakages only show in some of many histories."""
DIRECTED = {
    case.partition("[")[0] for case in (*stored_requests.BROKEN, *stored_meanings.BROKEN, *lossless_history.BROKEN)
}
"""Cases of these families without random histories."""


@pytest.mark.parametrize(("family", "case", "breakage"), CHOSEN, ids=[case for _, case, _ in CHOSEN])
def test_a_broken_adapter_fails_the_case_that_is_named_for_it(
    pytester: pytest.Pytester, family: str, case: str, breakage: Breakage
) -> None:
    """Of the other rows of that case it fails none, and of the whole kit no other case."""
    if WHOLE and family != "laws":
        breakage = unreading(breakage)
    is_random = family in PROPERTIES and case.partition("[")[0] not in DIRECTED
    examples = MANY if is_random else FEW
    failed = failed_cases(pytester, breakage, examples) if WHOLE else failed_rows(pytester, breakage, case, examples)

    assert failed == [case]


@pytest.mark.parametrize(
    ("case", "fault", "breakage"), CHOSEN_FAULTS, ids=[f"{case}: {fault}" for case, fault, _ in CHOSEN_FAULTS]
)
def test_a_further_fault_fails_its_case(pytester: pytest.Pytester, case: str, fault: str, breakage: Breakage) -> None:
    """Some of its rows, where it has rows. Other cases may stop such an adapter as well."""
    assert fails(pytester, breakage, case), fault


@pytest.mark.parametrize(("case", "adapter"), SOUND.items(), ids=SOUND)
def test_a_sound_adapter_of_another_kind_passes_a_case(pytester: pytest.Pytester, case: str, adapter: Breakage) -> None:
    """So that what the broken ones fail by is their fault alone."""
    assert not fails(pytester, adapter, case)


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
    assert set(cases) - {case for _, case, _ in BROKEN} == UNTRIED
    assert len(cases) >= 80
