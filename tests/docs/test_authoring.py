"""The page of the door of authors leaves out no name, and shows each in use."""

import re
from collections.abc import Iterator

from sabir import authoring

from tests.docs.authoring import LAWS, NAMES
from tests.docs.pages import page
from tests.rules import check_each

PAGE = page("reference/authoring.md")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^<!-- generated|\Z)", PAGE.text, re.MULTILINE | re.DOTALL))
"""Heading → what stands below it."""


def unused(heading: str) -> Iterator[str]:
    """The names of a group that neither an example below it nor a quotation from a plugin of ours uses."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", SECTIONS[heading], re.MULTILINE | re.DOTALL))
    code = re.sub(r"^from sabir[\w.]* import (\([^)]*\)|[^\n]*)", "", code, flags=re.MULTILINE)  # to import is no use
    for name in NAMES[heading]:
        if not re.search(rf"\b{name}\b", code):
            yield f"{heading}: no example uses {name}"


def test_every_name_stands_in_one_group_with_a_law() -> None:
    """A group is a heading, a sentence and its names; the door has no others."""
    names = [name for group in NAMES.values() for name in group]

    assert sorted(names) == sorted(authoring.__all__)
    assert [heading for heading, law in LAWS.items() if not re.fullmatch(r"[A-Z][^.]*\.", law)] == []
    assert [law for law in LAWS.values() if f"\n{law}\n" not in PAGE.text] == []


def test_every_name_is_used_in_an_example_of_its_group() -> None:
    """An example runs, and a quotation is code of ours that is tested where it stands."""
    check_each(NAMES, unused, "use it in the group's example, or quote a plugin that does")
