"""One rule over many things is one test, and its failure names every thing that breaks the rule.

check_each(files, faults, remedy) ──▶ passes | fails with a line `place: what; remedy` for each fault
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[1]
Thing = TypeVar("Thing")


def check_each(things: Iterable[Thing], faults: Callable[[Thing], Iterable[str]], remedy: str) -> None:
    """Fail with every fault of every thing, and where there is no thing to check.

    A thing whose check raises is a fault as well, so that it hides none of the others'.
    """
    __tracebackhide__ = True
    found = []
    checked = 0
    for thing in things:
        checked += 1
        try:
            for fault in faults(thing):
                found.append(fault)
        except Exception as error:
            found.append(f"{_shown(thing)}: its check raised {type(error).__name__}: {error}")
    if not checked:
        pytest.fail("there is nothing to check: mend how the things of this rule are found", pytrace=False)
    if found:
        pytest.fail("\n".join([f"{len(found)} at fault", *(f"{fault}; {remedy}" for fault in found)]), pytrace=False)


def _shown(thing: object) -> str:
    if isinstance(thing, Path) and thing.is_relative_to(ROOT):
        return thing.relative_to(ROOT).as_posix()
    return str(thing)
