"""The parts of the reference that are written by hand name all that the code has, and nothing that it does not have."""

import re
from collections.abc import Iterator

import sabir
from pydantic import BaseModel
from sabir import authoring, errors
from sabir.base.failures import KINDS
from sabir.base.models import AtRest
from sabir.hooks import specs as hookspecs
from sabir.vocabulary.media import FILE_CAP
from sabir.vocabulary.settings import WIRE_SETTINGS

from tests.docs.contracts import PROTOCOLS
from tests.docs.errors import walk
from tests.docs.losses import core_losses
from tests.docs.pages import page
from tests.docs.sources import describe, words
from tests.docs.surface import GROUPS, WORDS, error_names, surface
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
    """A signature alone is no reference."""
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
    """Attributes and methods alike: what a stranger's plugin needs to know."""
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
    """Neutral settings first; each once, and none that does not exist."""
    text = page("reference/settings.md").text
    headings = ("## Sent to the model", "## Obeyed by core", "## One vendor's own")
    parts = {heading: section(text, heading).split("<!-- generated", 1)[0] for heading in headings}
    found = {heading: [row[0].strip("`") for row in rows(part)] for heading, part in parts.items()}
    fields = [info.alias or name for name, info in sabir.Settings.model_fields.items()]

    assert found[headings[0]] == list(WIRE_SETTINGS)
    assert [name for names in found.values() for name in names] == fields


def stored_models() -> list[type[BaseModel]]:
    """The models that a history is made of."""
    exported = [getattr(sabir, name) for name in sabir.__all__]
    return [each for each in exported if isinstance(each, type) and issubclass(each, AtRest)]


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
    """By the names that JSON has; those without a default are called required."""
    check_each(stored_models(), wrong_rows, "give each field its row there")


def test_every_loss_of_core_has_a_row() -> None:
    """Kind and reason, as the source writes them down."""
    text = page("reference/losses.md").text.split("## What core does", 1)[1].split("\n## ", 1)[0]
    documented = [(row[1].strip("`"), row[2].strip("`")) for row in rows(text)]

    assert sorted(documented) == sorted(core_losses())


def test_every_kind_of_loss_has_a_row() -> None:
    """In their order, with what strict=True refuses."""
    table = list(rows(section(page("reference/losses.md").text, "## Kinds")))

    assert [row[0].strip("`") for row in table] == list(KINDS)
    assert {row[0].strip("`") for row in table if row[2] == "refuses"} == sabir.base.failures.strict_kinds(True)


def test_the_fields_of_a_loss_have_a_row() -> None:
    """What a program reads of one."""
    head = page("reference/losses.md").text.split("\n## ", 1)[0]

    assert [row[0].strip("`") for row in rows(head)] == list(sabir.Loss.model_fields)


def test_the_cap_of_media_is_the_codes_own() -> None:
    """A figure on a page that no example prints."""
    assert f"More than {FILE_CAP:,} bytes are refused" in page("how-to/send-media.md").text


def test_the_surface_is_more_than_a_list() -> None:
    """The generated part holds members, too."""
    assert surface().count("\n  - ") > 50
