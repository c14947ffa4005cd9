"""What merges the cases of a rule into one test loses none of them: tests/rules.py."""

from collections.abc import Iterator

import pytest

from tests.rules import check_each


def odd(number: int) -> Iterator[str]:
    """A rule: a number is even and small, and none is negative."""
    if number % 2:
        yield f"{number}: is odd"
    if number < 0:
        raise ValueError("no rule for it")
    if number > 4:
        yield f"{number}: is large"


def failure(*things: int) -> list[str]:
    with pytest.raises(pytest.fail.Exception) as caught:
        check_each(things, odd, "take two")
    return str(caught.value).splitlines()


def test_what_keeps_the_rule_passes() -> None:
    """Silence is all that is asked of it."""
    check_each([2, 4], odd, "take two")


def test_every_fault_of_every_thing_is_named_with_the_remedy() -> None:
    """The first hides neither the second of the same thing nor those of the next."""
    assert failure(3, 4, 5) == ["3 at fault", "3: is odd; take two", "5: is odd; take two", "5: is large; take two"]


def test_a_thing_whose_check_raises_is_named_and_hides_no_other() -> None:
    """Nor what was found of it before."""
    assert failure(-1, 3) == [
        "3 at fault",
        "-1: is odd; take two",
        "-1: its check raised ValueError: no rule for it; take two",
        "3: is odd; take two",
    ]


def test_a_rule_that_finds_nothing_to_check_fails() -> None:
    """It would hold of nothing for ever."""
    assert failure() == ["there is nothing to check: mend how the things of this rule are found"]
