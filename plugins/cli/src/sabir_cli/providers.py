"""`sabir providers` and `sabir models`: the installed providers with their state, keys and dialects, and their models.

    sabir.providers() ──▶ a row for each provider     their dialects' tables ──▶ a row for each dialect
    sabir.models(name) ──▶ a row for each beginning of models' names

If several packages provide one name, each has a row, and a note says which package a model string means.

The output names the variable, or the file and profile, in which a credential was found, never the credential's value.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import sabir
from cyclopts import Parameter
from pydantic import SecretStr
from rich.text import Text
from sabir.authoring import Credential, Dialect, FoundCredential, KeySource, Tables, printable
from sabir.errors import PluginError

from sabir_cli.config import profile_of
from sabir_cli.exits import Exit
from sabir_cli.facts import with_facts
from sabir_cli.failures import exit_of
from sabir_cli.folders import settings_path
from sabir_cli.grades import GradeState, package_grades
from sabir_cli.inputs import JSONFlag, model_rows
from sabir_cli.output import Output
from sabir_cli.record_table import RecordTable

SIDES = ("system", "user", "assistant", "results")


class Speaker(NamedTuple):
    """A provider that offers a dialect, and the dialect's short name at this provider."""

    provider: str
    short_name: str

    @property
    def full_name(self) -> str:
        """The text `provider.short_name`, with which model strings begin."""
        return f"{self.provider}.{self.short_name}"


class SpokenDialect(NamedTuple):
    """A dialect, and the providers that offer it."""

    dialect: Dialect
    carries: dict[str, Any]
    """The content that the dialect supports besides text, as returned by `capabilities`."""
    speakers: list[Speaker]

    @property
    def speaker(self) -> Speaker:
        """The provider whose `full_name` is the dialect's name, else the first provider that offers the dialect."""
        return next((each for each in self.speakers if each.full_name == self.dialect.name), self.speakers[0])

    @property
    def other_providers(self) -> tuple[str, ...]:
        """The names of the other providers that offer the dialect, without `speaker`."""
        return tuple(dict.fromkeys(each.provider for each in self.speakers if each != self.speaker))


def spoken_dialects(statuses: Iterable[sabir.ProviderStatus]) -> tuple[list[SpokenDialect], list[str]]:
    """Return the dialects of all working providers, each once and sorted by name, and one line for each provider or
    dialect that fails.
    """
    dialects: dict[str, SpokenDialect] = {}
    faults: list[str] = []
    for status in statuses:
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


def capabilities(tables: Tables) -> dict[str, Any]:  # any JSON
    """Return the content that a dialect supports besides text: "media" (side → modality → forms), "native" (side →
    kinds of parts that the dialect encodes itself), and "citations" (True or False).
    """
    media: dict[str, dict[str, list[str]]] = {}
    for (side, modality), rule in sorted(tables.media.items(), key=lambda row: SIDES.index(row[0][0])):
        forms = [form for form in ("url", "data", "file") if getattr(rule, form) is not None]
        media.setdefault(side, {})[modality] = forms
    native = {side: sorted(kinds) for side, kinds in tables.roles.native.items() if kinds}
    return {"media": media, "native": native, "citations": tables.roles.citations == "native"}


STATE_STYLES = {"installed": "green", "registered": "green", "failed": "red"}


def providers(*, as_json: JSONFlag = False) -> int:
    """List the installed providers, whether their keys are set, and the content that each dialect supports."""
    output = Output(machine=as_json)
    statuses = sabir.providers()
    dialects, faults = spoken_dialects(statuses)
    grades, unread = package_grades(statuses)
    if as_json:
        output.document([_status_document(status, dialects, grades) for status in statuses])
        return 0
    if not statuses:
        output.note("no provider is installed; install one, for example: pip install sabir-openai sabir-local")
        return 0
    output.show(_provider_table(statuses))
    for fault in (*faults, *unread):
        output.show(Text(printable(fault), style="red"))
    for note in shared_names(statuses):
        output.show(Text(printable(note), style="dim"))
    packages = dict.fromkeys(
        f"{status.distribution} {status.version}{_grade_text(grades.get(status.distribution))}"
        for status in statuses
        if status.distribution
    )
    output.show(Text(", ".join(packages), style="dim"), "", _dialect_table(dialects))
    return 0


def find_credentials(credentials: Sequence[Credential]) -> list[FoundCredential]:
    """Return for each credential whether and where it was found, with the profile of the settings."""
    return KeySource.find(credentials, {name: SecretStr(text) for name, text in profile_of(credentials).items()})


def first_missing(credentials: Sequence[Credential]) -> str:
    """Return the variable or file in which the user should store the first missing credential, for each alternative and
    joined with "or"; "" if none is missing.
    """
    missing = [each for each in find_credentials(credentials) if each.source is None and each.is_used]
    first = {each.credential.alternative: each.searched[0] for each in reversed(missing) if each.searched}
    return " or ".join(dict.fromkeys(reversed(first.values())))


def has_key(credentials: Sequence[Credential]) -> bool:
    """Return whether a secret credential, such as a key, was found and no credential is missing."""
    values = [each for each in find_credentials(credentials) if each.is_used]
    return all(each.source for each in values) and any(each.credential.secret and each.value for each in values)


def key_state(credentials: Sequence[Credential]) -> Text:
    """Return the text in the column "key": the sources of the credentials, also of those of alternatives that are not
    used, and where to store the first missing one.
    """
    if not credentials:
        return Text("none needed", style="dim")
    variables = {name for each in credentials for name in each.variables}
    texts = dict[str, None]()
    for each in find_credentials(credentials):
        if each.source not in (None, "default"):
            state = f"{each.source} set" if each.source in variables else str(each.source)
            texts[state if each.is_used else f"{state} (not used)"] = None
    if missing := first_missing(credentials):
        ways = dict.fromkeys(each.alternative for each in credentials if each.alternative)
        line_break = "\nor "  # the table is wide, so a name for each alternative and not its variables
        wanted = f"needs {line_break.join(ways)}" if " or " in missing else f"no {missing}"
        return Text(", ".join((*texts, wanted)), style="yellow")
    return Text(", ".join(texts), style="green") if texts else Text("none set", style="dim")


def _grade_text(grade: GradeState | None) -> str:
    return f" ({grade})" if grade else ""


def _status_document(
    status: sabir.ProviderStatus, dialects: Sequence[SpokenDialect], grades: Mapping[str, GradeState]
) -> dict[str, Any]:  # any JSON
    spoken = {
        speaker.short_name: {"name": each.dialect.name, **each.carries}
        for each in dialects
        for speaker in each.speakers
        if speaker.full_name in status.names
    }
    key_values = find_credentials(status.credentials)
    grade = grades.get(status.distribution)
    sources = {each.source for each in key_values}
    return {
        **status.model_dump(mode="json"),
        "key_variables": {name: "set" if name in sources else "not set" for name in status.key_variables},
        "credentials": {each.credential.name: _credential_document(each) for each in key_values},
        "dialects": spoken,
        "grade": grade.document if grade else None,
    }


def _credential_document(state: FoundCredential) -> dict[str, Any]:  # any JSON
    way = {"alternative": state.credential.alternative, "used": state.is_used} if state.credential.alternative else {}
    return {"found": state.source, "looked": state.searched, **way}


def _provider_table(statuses: Sequence[sabir.ProviderStatus]) -> RecordTable:
    titles = ("state", "package", "dialects", "key")
    table = RecordTable("provider", *titles, plain=titles)
    for status in statuses:
        dot = "" if status.means_bare_name else "."  # a dot: usable only with the full name, such as `ollama.native`
        table.add(
            status.name,
            Text(status.state, style=STATE_STYLES[status.state]),
            status.distribution or "",
            " ".join(f"{dot}{dialect}" for dialect in status.dialects if dialect not in status.shadowed),
            key_state(status.credentials) if status.state != "failed" else "",
        )
    return table


def shared_names(statuses: Sequence[sabir.ProviderStatus]) -> Iterable[str]:
    """Yield a line for each provider name that several packages provide, or that no package provides without a dialect.
    The line says which package each model string means.
    """
    for name, group in groupby(statuses, lambda status: status.name):
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


def _dialect_table(dialects: Sequence[SpokenDialect]) -> RecordTable:
    table = RecordTable("dialect", "users send", "results hold", "models return", "spoken by")
    for each in dialects:
        carries = each.carries
        returned = [*carries["native"].get("assistant", ()), *(["citations"] if carries["citations"] else ())]
        table.add(
            each.dialect.name,
            " ".join(("text", *carries["media"].get("user", ()))),
            " ".join(("text", *carries["media"].get("results", ()))),
            " ".join(("text", *returned)),
            " ".join((each.speaker.provider, *each.other_providers)),
        )
    return table


UNKNOWN = "?"
"""The text for a fact that is not known."""
ANY = "*"
"""The text in place of the name in a row that applies to all models."""


def models(
    provider: Annotated[str | None, Parameter(help="Only this provider, or provider.dialect. Default: all.")] = None,
    /,
    *,
    as_json: JSONFlag = False,
) -> int:
    """List known models. Each row applies to all models whose names start with it.

    A newer model of a known series is treated like the latest row of that
    series. Nothing is known about other names. Facts in your settings file
    override the installed ones, and a note names them.
    """
    output, code = Output(machine=as_json), Exit.OK
    statuses = () if provider else sabir.providers()
    for error_line in (status.error for status in statuses if status.error):
        output.error(error_line)
        code = Exit.PLUGIN
    infos_by_name: dict[str, list[sabir.ModelInfo]] = {}
    overridden: dict[str, list[str]] = {}
    for name in (
        [provider] if provider else [name for status in statuses if not status.error for name in status.names[:1]]
    ):
        try:
            infos_by_name[name], changes = with_facts(name.partition(".")[0], model_rows(name))
            overridden |= changes
        except PluginError as error:
            output.error(str(error))
            code = code or exit_of(error)
    if as_json:
        rows = [(name, info) for name, infos in infos_by_name.items() for info in infos]
        output.document([_model_document(name, info, overridden) for name, info in rows])
        return code
    if any(infos_by_name.values()):
        output.show(_model_table(infos_by_name))
    for name, facts in overridden.items():
        output.note(f"{name}: {settings_path().name} overrides {', '.join(facts)}")
    unknown = [name for name, infos in infos_by_name.items() if not infos]
    if unknown:
        output.note(f"no facts are known about models of {', '.join(unknown)}; any model name is sent unchanged")
    return code


def _model_document(name: str, info: sabir.ModelInfo, overridden: dict[str, list[str]]) -> dict[str, Any]:
    provider, _, dialect = name.partition(".")
    changes = overridden.get(f"{provider}:{info.prefix}", [])
    own = {"dialect": dialect} if dialect else {}
    return {"provider": provider, **own, **info.model_dump(mode="json"), "overridden": changes}


def _model_table(infos_by_name: dict[str, list[sabir.ModelInfo]]) -> RecordTable:
    infos_of_all = [info for infos in infos_by_name.values() for info in infos]
    further = [title for title in ("ignores", "facts") if any(map(_FURTHER[title], infos_of_all))]
    titles = ("model", "reads", "context", "output", "thinks", "refuses", *further)
    table = RecordTable(*titles, right={"context", "output"})
    for name, infos in infos_by_name.items():
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
            table.add(*cells)
    return table


def _facts_text(info: sabir.ModelInfo) -> str:
    facts = ((fact, value) for fact, value in info.facts.items() if fact != "own_settings")  # documented on pages
    return printable(" ".join(f"{fact}={json.dumps(value, ensure_ascii=False)}" for fact, value in facts))


_FURTHER: Mapping[str, Callable[[sabir.ModelInfo], str]] = {
    "ignores": lambda info: " ".join(info.ignores),
    "facts": _facts_text,
}
"""Title of a column that is shown only if a model has a value → the function that returns the value."""
