"""The references of packages beside core name all that these have, and the page of guarantees what none can do."""

import re
from collections.abc import Iterator

from tests.docs import actors, roles
from tests.docs.packages import CALLERS, PACKAGES, WORKERS, names_of, summary_of
from tests.docs.pages import page
from tests.rules import check_each

PAGES = {
    **dict.fromkeys(PACKAGES, "reference/sessions-and-runs.md"),
    roles.PACKAGE: "reference/roles.md",
    actors.PACKAGE: "reference/actors.md",
}
"""Package → the page that lists its names."""
LIMITS = (
    "affinity", "tokens drift", "records are larger",
    "one evaluation of a session is resumed: the one that began last", "snapshots are yours to keep",
)  # fmt: skip
"""What the source of resume names, as the page begins its points."""


def unsaid(package: str) -> Iterator[str]:
    """Names of a package without a summary of one line."""
    summaries = {name: summary_of(package, name) for name in names_of(package)}
    if not summaries:
        yield f"{package}: has no public name"
    for name, summary in summaries.items():
        if not summary or "\n" in summary:
            yield f"{package}.{name}: its summary is {summary!r}"


def test_every_public_name_says_what_it_is() -> None:
    """A name alone is no reference; nor is a summary of several lines in a table."""
    check_each(PAGES, unsaid, "begin its docstring with one line that says what it is")


def unlisted(package: str) -> Iterator[str]:
    """Names of a package that the section of the package does not list."""
    section = page(PAGES[package]).text.split(f"\n## {package}\n", 1)[1].split("\n## ", 1)[0]
    for name in names_of(package):
        if f"\n| `{name}` |" not in section:
            yield f"docs/{PAGES[package]}: the section {package} lacks {name}"


def test_every_public_name_has_a_row() -> None:
    """In the section of its package."""
    check_each(PAGES, unlisted, "write the page anew: python -m tests.docs.generate")


def test_every_envelope_is_listed() -> None:
    """Those that callers send and those that workers send are all that there are, but for their bases (RN-28)."""
    from sabir.base.models import AtRest
    from sabir_distributed import envelopes

    own = [each for each in vars(envelopes).values() if getattr(each, "__module__", "") == envelopes.__name__]
    models = {each for each in own if isinstance(each, type) and issubclass(each, AtRest)}

    assert models - {envelopes.Envelope, envelopes.FromWorker} == {*CALLERS, *WORKERS}


def test_the_limits_are_documented() -> None:
    """Session affinity, token drift, the size of records, and snapshots that the caller keeps (WI-54)."""
    text = page("explanation/what-runs-once.md").text
    bullets = re.findall(r"^- \*([^*]+)\.\*", text, re.MULTILINE)

    assert tuple(bullet.lower() for bullet in bullets) == LIMITS
