"""`sabir providers` and `sabir models`: what is installed, what failed and why, what each can carry, and its models.

    sabir.providers() ──▶ a row each      their dialects' tables ──▶ a row each, its own provider speaking for it
    sabir.models(name) ──▶ a row for each beginning of models' names

If several packages provide one name, each has a row, and a note says which of them a model string means.

Credentials are looked for where a provider says: the variable, or the file and its profile, is named, never the value.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import sabir
from cyclopts import Parameter
from rich.text import Text
from sabir.authoring import Credential, Dialect, KeySource, Tables, printable
from sabir.errors import PluginError

from sabir_cli.exits import Exit
from sabir_cli.facts import with_facts
from sabir_cli.failures import exit_of
from sabir_cli.folders import file_path
from sabir_cli.inputs import JSONFlag, model_rows
from sabir_cli.output import Output
from sabir_cli.sheet import Sheet

SIDES = ("system", "user", "assistant", "results")


class Speaker(NamedTuple):
    """One provider with its own short name for a dialect."""

    provider: str
    short_name: str

    @property
    def full_name(self) -> str:
        """`provider.short_name`, as a model string begins."""
        return f"{self.provider}.{self.short_name}"


class SpokenDialect(NamedTuple):
    """A dialect, and its speakers."""

    dialect: Dialect
    carries: dict[str, Any]
    """What it supports besides text, as JSON."""
    speakers: list[Speaker]

    @property
    def speaker(self) -> Speaker:
        """Who speaks for it: the provider that it is named after, else the first that speaks it."""
        return next((each for each in self.speakers if each.full_name == self.dialect.name), self.speakers[0])

    @property
    def other_providers(self) -> tuple[str, ...]:
        """The names of the other providers that speak it."""
        return tuple(dict.fromkeys(each.provider for each in self.speakers if each != self.speaker))


def spoken_dialects(found: Iterable[sabir.ProviderStatus]) -> tuple[list[SpokenDialect], list[str]]:
    """Every dialect of the providers that work, once, sorted by name; and errors, a line each."""
    dialects: dict[str, SpokenDialect] = {}
    faults: list[str] = []
    for status in found:
        if status.state == "failed":
            faults.append(f"{status.name} failed: {status.error}")
        for short_name in status.dialects:
            speaker = Speaker(status.name, short_name)
            if speaker.full_name not in status.names:
                continue
            try:
                with PluginError.blaming(f"{speaker.full_name} failed"):
                    dialect = sabir.provider(status.name, short_name).dialect(short_name)
                    name, carries = str(dialect.name), capabilities(dialect.tables)
            except PluginError as error:
                faults.append(str(error))
                continue
            dialects.setdefault(name, SpokenDialect(dialect, carries, [])).speakers.append(speaker)
    return [dialects[name] for name in sorted(dialects)], faults


def capabilities(tables: Tables) -> dict[str, Any]:  # whatever JSON holds
    """What a dialect carries besides text, read from its tables."""
    media: dict[str, dict[str, list[str]]] = {}
    for (side, modality), rule in sorted(tables.media.items(), key=lambda row: SIDES.index(row[0][0])):
        forms = [form for form in ("url", "data", "file") if getattr(rule, form) is not None]
        media.setdefault(side, {})[modality] = forms
    native = {side: sorted(kinds) for side, kinds in tables.roles.native.items() if kinds}
    return {"media": media, "native": native, "citations": tables.roles.citations == "native"}


STATE_STYLES = {"installed": "green", "registered": "green", "failed": "red"}


def providers(*, as_json: JSONFlag = False) -> int:
    """List providers: state, package, dialects and keys; then what each dialect carries."""
    output = Output(machine=as_json)
    found = sabir.providers()
    dialects, faults = spoken_dialects(found)
    if as_json:
        output.document([_document(status, dialects) for status in found])
        return 0
    if not found:
        output.note("no provider is installed; perhaps: pip install sabir-openai sabir-local")
        return 0
    output.show(_provider_sheet(found))
    for fault in faults:
        output.show(Text(printable(fault), style="red"))
    for note in shared_names(found):
        output.show(Text(printable(note), style="dim"))
    packages = dict.fromkeys(f"{status.distribution} {status.version}" for status in found if status.distribution)
    output.show(Text(", ".join(packages), style="dim"), "", _dialect_sheet(dialects))
    return 0


def first_missing(credentials: Sequence[Credential]) -> str:
    """Where the first credential that is missing may be put; "" where all are there."""
    return next((each.looked[0] for each in KeySource.find(credentials) if each.whence is None), "")


def has_key(credentials: Sequence[Credential]) -> bool:
    """Return whether a secret was found, and no credential is missing."""
    found = KeySource.find(credentials)
    return all(each.whence for each in found) and any(each.credential.secret and each.value for each in found)


def key_state(credentials: Sequence[Credential]) -> Text:
    """Return where the credentials were found, or where the first missing one may be."""
    if not credentials:
        return Text("none needed", style="dim")
    if missing := first_missing(credentials):
        return Text(f"no {missing}", style="yellow")
    variables = {name for each in credentials for name in each.variables}
    found = dict.fromkeys(each.whence for each in KeySource.find(credentials) if each.whence != "default")
    if not found:
        return Text("none set", style="dim")
    return Text(", ".join(f"{each} set" if each in variables else str(each) for each in found), style="green")


def _document(status: sabir.ProviderStatus, dialects: Sequence[SpokenDialect]) -> dict[str, Any]:  # whatever JSON holds
    spoken = {
        speaker.short_name: {"name": each.dialect.name, **each.carries}
        for each in dialects
        for speaker in each.speakers
        if speaker.full_name in status.names
    }
    found = KeySource.find(status.credentials)
    whences = {each.whence for each in found}
    return {
        **status.model_dump(mode="json"),
        "key_variables": {name: "set" if name in whences else "not set" for name in status.key_variables},
        "credentials": {each.credential.name: {"found": each.whence, "looked": each.looked} for each in found},
        "dialects": spoken,
    }


def _provider_sheet(found: Sequence[sabir.ProviderStatus]) -> Sheet:
    sheet = Sheet("provider", "state", "package", "dialects", "key", plain={"state", "package", "dialects", "key"})
    for status in found:
        dot = "" if status.means_bare_name else "."  # only the full name, `ollama.native`, means it
        sheet.add(
            status.name,
            Text(status.state, style=STATE_STYLES[status.state]),
            status.distribution or "",
            " ".join(f"{dot}{dialect}" for dialect in status.dialects if dialect not in status.shadowed),
            key_state(status.credentials) if status.state != "failed" else "",
        )
    return sheet


def shared_names(found: Sequence[sabir.ProviderStatus]) -> Iterable[str]:
    """Yield the package that each string means, for each name that several packages provide or that none owns."""
    for name, group in groupby(found, lambda status: status.name):
        statuses = [status for status in group if status.state != "failed"]
        is_owned = any(status.means_bare_name for status in statuses)
        if len(statuses) < 1 + is_owned:
            continue
        facts = [] if is_owned else [f"{name}:model is refused"]
        for status in statuses:
            package = status.distribution or "sabir.register"
            facts += [f"{reached}:model means {package}" for reached in status.names[:1]]
            facts += [f"{dialect} of {package} is hidden" for dialect in status.shadowed]
        yield ", ".join(facts)


def _dialect_sheet(dialects: Sequence[SpokenDialect]) -> Sheet:
    sheet = Sheet("dialect", "users send", "results hold", "models return", "spoken by")
    for each in dialects:
        carries = each.carries
        returned = [*carries["native"].get("assistant", ()), *(["citations"] if carries["citations"] else ())]
        sheet.add(
            each.dialect.name,
            " ".join(("text", *carries["media"].get("user", ()))),
            " ".join(("text", *carries["media"].get("results", ()))),
            " ".join(("text", *returned)),
            " ".join((each.speaker.provider, *each.other_providers)),
        )
    return sheet


UNKNOWN = "?"
ANY = "*"
"""The beginning of a row that speaks for all names."""


def models(
    provider: Annotated[str | None, Parameter(help="One provider, or provider.dialect; else all.")] = None,
    /,
    *,
    as_json: JSONFlag = False,
) -> int:
    """List known models. Each row applies to all models whose names start with it.

    A later model of a known line is treated like the newest row of that line; any other name is passed on as it is.
    Facts in the settings file go before the installed ones; a note names them.
    """
    output, code = Output(machine=as_json), Exit.OK
    statuses = () if provider else sabir.providers()
    for error_line in (status.error for status in statuses if status.error):
        output.error(error_line)
        code = Exit.PLUGIN
    found: dict[str, list[sabir.ModelInfo]] = {}
    overridden: dict[str, list[str]] = {}
    for name in (
        [provider] if provider else [name for status in statuses if not status.error for name in status.names[:1]]
    ):
        try:
            found[name], changes = with_facts(name.partition(".")[0], model_rows(name))
            overridden |= changes
        except PluginError as error:
            output.error(str(error))
            code = code or exit_of(error)
    if as_json:
        output.document([_model_document(name, info, overridden) for name, infos in found.items() for info in infos])
        return code
    if any(found.values()):
        output.show(_model_sheet(found))
    for name, facts in overridden.items():
        output.note(f"{name}: {file_path().name} overrides {', '.join(facts)}")
    unknown = [name for name, infos in found.items() if not infos]
    if unknown:
        output.note(f"nothing is known of the models of {', '.join(unknown)}; any name is passed on")
    return code


def _model_document(name: str, info: sabir.ModelInfo, overridden: dict[str, list[str]]) -> dict[str, Any]:
    provider, _, dialect = name.partition(".")
    changes = overridden.get(f"{provider}:{info.prefix}", [])
    own = {"dialect": dialect} if dialect else {}
    return {"provider": provider, **own, **info.model_dump(mode="json"), "overridden": changes}


def _model_sheet(found: dict[str, list[sabir.ModelInfo]]) -> Sheet:
    infos_of_all = [info for infos in found.values() for info in infos]
    further = [title for title in ("ignores", "facts") if any(map(_FURTHER[title], infos_of_all))]
    titles = ("model", "reads", "context", "output", "thinks", "refuses", *further)
    sheet = Sheet(*titles, right={"context", "output"})
    for name, infos in found.items():
        for info in sorted(infos, key=lambda info: info.prefix):
            cells = (
                f"{name}:{info.prefix or ANY}",
                UNKNOWN if info.modalities is None else " ".join(("text", *info.modalities)),
                UNKNOWN if info.context_tokens is None else f"{info.context_tokens:,}",
                UNKNOWN if info.output_tokens is None else f"{info.output_tokens:,}",
                " ".join(info.efforts or ()) or {None: UNKNOWN, True: "yes", False: "no"}[info.reasoning],
                " ".join(info.rejects),
                *(_FURTHER[title](info) for title in further),
            )
            sheet.add(*cells)
    return sheet


def _shown_facts(info: sabir.ModelInfo) -> str:
    facts = ((fact, value) for fact, value in info.facts.items() if fact != "own_settings")  # those are on the pages
    return printable(" ".join(f"{fact}={json.dumps(value, ensure_ascii=False)}" for fact, value in facts))


_FURTHER: Mapping[str, Callable[[sabir.ModelInfo], str]] = {
    "ignores": lambda info: " ".join(info.ignores),
    "facts": _shown_facts,
}
"""Title of a column that is shown if some model has a text in it → the text."""
