"""The page of the gateways, from the rows that the plugins read: what each accepts, ignores and refuses, and why.

rows ──▶ a line each: name, dialects, URL, key        rows ──▶ a list each: an item for each entry, with its sources
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from sabir.authoring import WIRE_SETTINGS, Row, RowEntry

ROWS: Mapping[str, Row] = {
    **Row.load_all_packaged("sabir_openai"),
    **{f"{name}.messages": row for name, row in Row.load_all_packaged("sabir_anthropic").items()},
}
"""Title of a section → its row; a row that only adds a dialect to a name has that dialect's full name."""
FEATURES = (
    *(name for name in WIRE_SETTINGS if name not in ("option_choice", "response_format")),
    "option_choice.auto", "option_choice.none", "option_choice.required", "option_choice.named",
    "response_format.schema", "response_format.object", "options", "strict", "image.url", "image.data", "audio.data",
    "document.data", "document.url", "document.file",
)  # fmt: skip
"""What a reader looks for; features in no entry of a row are listed as unverified."""
_LISTS = {"accepts": "accepts", "ignores": "ignores", "refuses": "refuses", "adds": "needs", "efforts": "efforts"}
_RECORDED = re.compile(r"recorded (\S+) (\S+)")


def overview() -> str:
    """Return a table with a line for each row."""
    lines = ["| name | dialects, the default first | URL | key |", "|---|---|---|---|"]
    for name, row in sorted(ROWS.items()):
        dialects = ", ".join(f"`{row.name}.{short}`" for short in row.dialects)
        keys = ", ".join(f"`{variable}`" for variable in row.key_variables) or "none"
        lines.append(f"| [{name}](#{name.replace('.', '')}) | {dialects} | {row.url} | {keys} |")
    return "\n".join(lines)


def details() -> str:
    """Return a section for each row."""
    return "\n\n".join(section for title, row in sorted(ROWS.items()) for section in _section(title, row))


def _section(title: str, row: Row) -> Iterator[str]:
    yield f"### {title}"
    yield _wrapped(f"{row.docs}" + (f". Its own settings: {_codes(row.own_settings)}." if row.own_settings else ""))
    if row.entries:
        yield "\n".join(map(_item, row.entries))
    names = {
        name for entry in row.entries for column in ("accepts", "ignores", "refuses") for name in getattr(entry, column)
    }
    known = names | {
        name.partition(".")[0] for name in names if name.partition(".")[0] in WIRE_SETTINGS and "." not in name
    }
    unverified = [name for name in FEATURES if not {name, name.partition(".")[0]} & known]
    yield _wrapped(
        f"Unverified: {_codes(unverified)}." if unverified else "Everything that readers look for is listed."
    )


def _item(entry: RowEntry) -> str:
    """Return an item of a list: the models, what holds for them, and the sources."""
    return f"{_wrapped(f'**{_models(entry)}**: {_facts(entry)}.', '- ')}\n{_wrapped(_sources(entry), '  ')}"


def _wrapped(text: str, begin: str = "") -> str:
    """Return a text in lines of at most 120 columns; a link may be longer."""
    indent = " " * len(begin)
    wrapped = textwrap.wrap(
        text, 120, initial_indent=begin, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapped)


def _models(entry: RowEntry) -> str:
    models = ", ".join(f"`{prefix}…`" for prefix in entry.models if prefix) or "all models"
    models += f", on {', '.join(entry.dialects)}" if entry.dialects else ""
    return f"{models}, while they reason" if entry.while_reasoning else models


def _facts(entry: RowEntry) -> str:
    facts = [f"{verb} {_codes(getattr(entry, column))}" for column, verb in _LISTS.items() if getattr(entry, column)]
    facts += [f"sends `{setting}` as `{field}`" for setting, field in entry.renames.items()]
    if entry.reasoning is not None:
        facts.append("reasons" if entry.reasoning else "does not reason")
    if entry.modalities is not None:
        facts.append(f"reads text{''.join(f', {each}' for each in entry.modalities)}")
    return "; ".join(facts)


def _sources(entry: RowEntry) -> str:
    return ", ".join(_source(source) for source in entry.sources)


def _source(source: str) -> str:
    if _RECORDED.fullmatch(source):
        return source
    date, _, url = source.partition(" ")
    return f"[{urlsplit(url).hostname},\u00a0{date}]({url})"


def _codes(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names) if isinstance(names, tuple | list | Mapping) else ""


SECTIONS = {"gateways": overview, "gateway rows": details}
