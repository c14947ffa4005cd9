"""The references name all that the code has, each with its meaning, and nothing that it does not have."""

import re
from collections.abc import Iterator
from typing import get_args

import sabir
from pydantic import BaseModel
from sabir import authoring, errors
from sabir.base.failures import KINDS
from sabir.base.models import StoredModel
from sabir.hooks import specs as hookspecs
from sabir.vocabulary.media import FILE_CAP
from sabir.vocabulary.settings import WIRE_SETTINGS
from sabir_actors import TYPES, ErrorCode, data, state
from sabir_actors.actor import REMEMBERED

from tests.docs import packages, roles
from tests.docs.errors import core_losses, walk
from tests.docs.packages import CALLERS, INNER, PACKAGES, WORKERS, code_texts, names_of, picture, summary_of
from tests.docs.pages import page
from tests.docs.sources import describe, words
from tests.docs.surface import GROUPS, LAWS, NAMES, PROTOCOLS, WORDS, error_names
from tests.rules import check_each

MESSAGES = page("reference/messages.md")


def rows(text: str) -> Iterator[list[str]]:
    """The rows of the tables in a text, heads and rules left out, a list of cells each."""
    lines = text.splitlines()
    for line, above in zip(lines, ["", *lines], strict=False):
        is_head = line.startswith("|") and not above.startswith("|")
        if line.startswith("|") and not is_head and not line.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return text.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]


def test_every_public_name_is_in_the_reference_once() -> None:
    """What is exported is documented, and what is documented is exported."""
    grouped = [name for names in GROUPS.values() for name in names]

    assert {*grouped, *error_names()} >= {*sabir.__all__}
    text = page("reference/surface.md").text
    assert [name for name in sabir.__all__ if not re.search(rf"^- `(async )?{name}\b", text, re.MULTILINE)] == []


def test_every_public_name_says_what_it_is() -> None:
    entries = [describe(name) for name in sabir.__all__ if name not in ("StreamEvent",)]

    assert [entry.heading for entry in entries if not entry.summary] == []


def test_every_word_of_a_public_signature_is_explained() -> None:
    """Names of sabir's own that signatures mention are public or explained on the page."""
    mentioned = words(describe(name) for names in GROUPS.values() for name in names)
    ours = {word for word in mentioned if word in WORDS or any(word in vars(module) for module in WORDS.values())}
    text = page("reference/surface.md").text

    assert ours
    assert [word for word in sorted(WORDS) if f"- `{word}" not in text] == []


def unnamed_members(name: str) -> Iterator[str]:
    """Members of a protocol that its section does not name."""
    protocol = getattr(authoring, name)
    members = {each for each in {*protocol.__annotations__, *vars(protocol)} if not each.startswith("_")}
    text = section(page("reference/contracts.md").text, f"### {name}")
    if not members:
        yield f"sabir.authoring.{name}: has no members"
    for member in sorted(members):
        if not re.search(rf"^- `(async )?{member}[:(]", text, re.MULTILINE):
            yield f"docs/reference/contracts.md: the section {name} lacks {member}"


def test_every_member_of_a_protocol_is_named() -> None:
    check_each(PROTOCOLS, unnamed_members, "name it there")


def test_every_protocol_and_every_hook_is_in_the_reference() -> None:
    """A new one is documented when it comes."""
    handed_on = (getattr(authoring, name) for name in authoring.__all__)
    found = {each.__name__ for each in handed_on if getattr(each, "_is_protocol", False)}
    text = page("reference/contracts.md").text
    hooks = [name for name in vars(hookspecs) if name.startswith("sabir_")]

    assert {*PROTOCOLS} == found - {"Performer", "SyncPerformer"}
    assert hooks
    assert [name for name in hooks if f"- `{name}(" not in text] == []


def test_every_error_of_core_is_public_and_in_the_tree() -> None:
    """The page's tree is made of public errors: none may be missing there."""
    defined = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.SabirError)}

    assert set(walk(errors.SabirError)) == defined
    assert {error.__name__ for error in defined} == set(error_names())


def test_every_setting_has_a_row() -> None:
    text = page("reference/settings.md").text
    headings = ("## Sent to the model", "## Obeyed by core", "## One vendor's own")
    parts = {heading: section(text, heading).split("<!-- generated", 1)[0] for heading in headings}
    found = {heading: [row[0].strip("`") for row in rows(part)] for heading, part in parts.items()}
    fields = [info.alias or name for name, info in sabir.Settings.model_fields.items()]

    assert found[headings[0]] == list(WIRE_SETTINGS)
    assert [name for names in found.values() for name in names] == fields


def stored_models() -> list[type[BaseModel]]:
    exported = [getattr(sabir, name) for name in sabir.__all__]
    return [each for each in exported if isinstance(each, type) and issubclass(each, StoredModel)]


def wrong_rows(model: type[BaseModel]) -> Iterator[str]:
    """Fields that the table of a model lacks, and rows that it has beside them or twice."""
    place = f"docs/reference/messages.md: the table of {model.__name__}"
    table = [(row[0].strip("`"), row[1] == "required") for row in rows(section(MESSAGES.text, f"### {model.__name__}"))]
    fields = [(info.alias or name, info.is_required()) for name, info in model.model_fields.items()]
    for name, is_required in {*table} ^ {*fields}:
        yield f"{place} and the code differ in {name} (required: {is_required})"
    if len(table) != len(fields):
        yield f"{place} has {len(table)} rows, the model {len(fields)} fields"


def test_a_message_model_has_a_table_of_its_fields() -> None:
    check_each(stored_models(), wrong_rows, "give each field its row there")


def test_every_loss_of_core_has_a_row() -> None:
    text = page("reference/losses.md").text.split("## What core does", 1)[1].split("\n## ", 1)[0]
    documented = [(row[1].strip("`"), row[2].strip("`")) for row in rows(text)]

    assert sorted(documented) == sorted(core_losses())


def test_every_kind_of_loss_has_a_row() -> None:
    table = list(rows(section(page("reference/losses.md").text, "## Kinds")))

    assert [row[0].strip("`") for row in table] == list(KINDS)
    assert {row[0].strip("`") for row in table if row[2] == "refuses"} == sabir.base.failures.strict_kinds(True)


def test_the_fields_of_a_loss_have_a_row() -> None:
    head = page("reference/losses.md").text.split("\n## ", 1)[0]

    assert [row[0].strip("`") for row in rows(head)] == list(sabir.Loss.model_fields)


def test_the_cap_of_media_is_the_codes_own() -> None:
    """A figure on a page that no example prints."""
    assert f"sabir refuses more than {FILE_CAP:,} bytes" in page("how-to/send-media.md").text


PAGE = page("reference/authoring.md")
SECTIONS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^<!-- generated|\Z)", PAGE.text, re.MULTILINE | re.DOTALL))
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


PAGES = {
    **dict.fromkeys(PACKAGES, "reference/sessions-and-runs.md"),
    roles.PACKAGE: "reference/roles.md",
    packages.ACTORS: "reference/actors.md",
}
"""Package → the page that lists its names."""
LIMITS = (
    "resuming depends on the provider", "token counts change", "records are larger than messages",
    "`resume=true` resumes one evaluation", "you save snapshots yourself",
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


def test_every_public_name_of_a_package_says_what_it_is() -> None:
    """A name alone is no reference; nor is a summary of several lines in a table."""
    check_each(PAGES, unsaid, "begin its docstring with one line that says what it is")


def test_every_envelope_is_listed() -> None:
    """Those that callers send and those that workers send are all that there are, but for their bases (RN-28)."""
    from sabir.base.models import StoredModel
    from sabir_runtime.distributed import envelopes

    own = [each for each in vars(envelopes).values() if getattr(each, "__module__", "") == envelopes.__name__]
    models = {each for each in own if isinstance(each, type) and issubclass(each, StoredModel)}

    assert models - {envelopes.Envelope, envelopes.FromWorker} == {*CALLERS, *WORKERS}


def test_the_limits_are_documented() -> None:
    """Session affinity, token drift, the size of records, and snapshots that the caller keeps (WI-54)."""
    text = page("explanation/what-runs-once.md").text
    bullets = re.findall(r"^- \*([^*]+)[.:]\*", text, re.MULTILINE)

    assert tuple(bullet.lower() for bullet in bullets) == LIMITS


def test_the_picture_shows_every_state() -> None:
    """D-24: it is drawn by hand, beside the moves that it shows."""
    assert [each for each in get_args(data.ThreadState) if each not in picture()] == []
    assert {after for _, after in state.MOVES.values()} | {"created"} == set(get_args(data.ThreadState))


def test_every_code_says_what_it_means() -> None:
    assert code_texts().keys() == set(map(str, ErrorCode))


def test_every_model_that_stands_within_data_is_listed() -> None:
    """Those of messages have a heading each; those that are only inherited from have none of their own."""
    models = {
        each
        for each in vars(data).values()
        if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == data.__name__
    }
    of_types = {model for each in TYPES.values() for model in (each.data, each.response_data)}
    bases = {base for model in models for base in model.__bases__}

    assert models - of_types - bases - {data.Data} == set(INNER)


def test_every_event_of_a_thread_is_explained() -> None:
    told = [name.strip("`") for name, *_ in rows(section(page("reference/actors.md").text, "## Events of a thread"))]

    assert sorted(told) == sorted(get_args(state.EventKind))


def test_the_page_says_how_many_answers_an_actor_keeps() -> None:
    assert f"the latest {REMEMBERED:,} answers" in section(page("reference/actors.md").text, "## Duplicates")
