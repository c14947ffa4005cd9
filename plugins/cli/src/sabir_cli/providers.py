"""`sabir providers`: what is installed, what failed and why, which credentials are found, what each dialect can carry.

    sabir.providers() ──▶ a row each          their dialects' tables ──▶ a row each

Credentials are looked for where a provider says: the variable, or the file and its profile, is named, never the value.
"""

from collections.abc import Sequence
from typing import Any

import sabir
from rich.table import Table
from rich.text import Text
from sabir.authoring import Credential, KeySource

from sabir_cli.dialects import Spoken, spoken_dialects
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, make_table

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
    output.show(_provider_table(found))
    for fault in faults:
        output.show(Text(fault, style="red"))
    output.show("", _dialect_table(dialects))
    return 0


def first_missing(credentials: Sequence[Credential]) -> str:
    """Where the first credential that is missing may be put; "" where all are there."""
    return next((each.looked[0] for each in KeySource.find(credentials) if each.whence is None), "")


def key_state(credentials: Sequence[Credential]) -> Text:
    """Where the credentials were found, or where the first that is missing may be."""
    if not credentials:
        return Text("none needed", style="dim")
    if missing := first_missing(credentials):
        return Text(f"no {missing}", style="yellow")
    variables = {name for each in credentials for name in each.variables}
    found = dict.fromkeys(each.whence for each in KeySource.find(credentials) if each.whence != "default")
    return Text(", ".join(f"{each} set" if each in variables else str(each) for each in found), style="green")


def _document(status: sabir.ProviderStatus, dialects: Sequence[Spoken]) -> dict[str, Any]:  # whatever JSON holds
    spoken = {
        speaker.short_name: {"name": each.dialect.name, **each.carries}
        for each in dialects
        for speaker in (each.speaker, *each.others)
        if speaker.provider == status.name
    }
    found = KeySource.find(status.credentials)
    whences = {each.whence for each in found}
    return {
        **status.model_dump(mode="json"),
        "key_variables": {name: "set" if name in whences else "not set" for name in status.key_variables},
        "credentials": {each.credential.name: {"found": each.whence, "looked": each.looked} for each in found},
        "dialects": spoken,
    }


def _provider_table(found: Sequence[sabir.ProviderStatus]) -> Table:
    table = make_table("provider", "state", "package", "dialects", "key")
    for status in found:
        table.add_row(
            Text(status.name, style="bold"),
            Text(status.state, style=STATE_STYLES[status.state]),
            f"{status.distribution} {status.version}".strip(),
            " ".join(status.dialects),
            key_state(status.credentials) if status.state != "failed" else "",
        )
    return table


def _dialect_table(dialects: Sequence[Spoken]) -> Table:
    table = make_table("dialect", "users send", "results hold", "models return", "spoken by")
    for each in dialects:
        carries = each.carries
        returned = [*carries["native"].get("assistant", ()), *(["citations"] if carries["citations"] else ())]
        table.add_row(
            Text(each.dialect.name, style="bold"),
            " ".join(("text", *carries["media"].get("user", ()))),
            " ".join(("text", *carries["media"].get("results", ()))),
            " ".join(("text", *returned)),
            " ".join((each.speaker.provider, *each.other_providers)),
        )
    return table
