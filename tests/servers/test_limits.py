"""No answer takes more than four times its bound of memory, in any dialect, and large ordinary answers are read."""

from collections.abc import Iterator
from itertools import islice

import pytest

from tests.servers.attacks import ATTACKS, BOUND, MIB, ORDINARY, WIRES, Attack
from tests.servers.limits import LARGEST, PAGE, SLOW, packed
from tests.servers.measuring import METHODS, Measured, Outcome

BOUNDS = {"body_bytes": BOUND, "event_bytes": BOUND // 2}
UNLIMITED = dict.fromkeys(("body_bytes", "event_bytes", "error_bytes", "values", "blocks"), 2**40)
UNEVEN = 3 * MIB
"""How much the size of a process differs between two equal calls."""
MOST = 4 * BOUND + UNEVEN


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    with Measured() as calls:
        yield calls


def outcomes(
    measured: Measured, name: str, attack: Attack, wire: str, bounds: dict[str, int], enough: int = 0
) -> Iterator[Outcome]:
    """The outcomes of all ways to ask, with `peak` above that of a short answer; a call ends at `enough`, if not 0."""
    plain = attack.build(wire, attack.size)  # empty if the wire cannot say it
    response = packed(plain, streamed=attack.streamed, status=400 if "error" in name else 200)
    for method in METHODS if plain else ():
        if attack.streamed == method.startswith("stream"):
            yield measured.measure(response, wire, method, bounds, enough=enough)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_within_four_times_the_bound(measured: Measured, name: str, wire: str) -> None:
    for outcome in outcomes(measured, name, ATTACKS[name], wire, BOUNDS):
        assert outcome.error in ("ResponseInvalid", "StreamBroken", "InvalidRequest"), outcome
        assert outcome.peak < MOST


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_takes_more_than_that_without_limits(measured: Measured, name: str) -> None:
    """Else the test above would prove nothing."""
    for wire in WIRES:
        for outcome in islice(outcomes(measured, name, ATTACKS[name], wire, UNLIMITED, MOST + MIB), 1):
            assert outcome.peak > MOST, (wire, outcome)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ORDINARY)
def test_a_large_ordinary_answer_is_read(measured: Measured, name: str, wire: str) -> None:
    for outcome in outcomes(measured, name, ORDINARY[name], wire, BOUNDS):
        assert outcome.error == "", outcome
        assert outcome.peak < MOST


def test_the_page_has_a_row_for_each_kind_of_response() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]

    assert rows[2:] == [*ATTACKS, *ORDINARY, LARGEST, *SLOW]
