"""`sabir providers`: what is installed, what failed and why, which keys are set, what each dialect can carry.

    sabir.providers() ──▶ a row each          their dialects' tables ──▶ a row each

Key variables are named and looked for; their values are never shown.
"""

import os
from collections.abc import Sequence
from typing import Any

import sabir
from rich.table import Table
from rich.text import Text

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


def is_set(variable: str) -> bool:
    """Whether the environment holds a key under that name."""
    return bool(os.environ.get(variable, "").strip())


def key_state(variables: Sequence[str]) -> Text:
    """Which variable holds the key, or which one may."""
    if not variables:
        return Text("none needed", style="dim")
    found = next((name for name in variables if is_set(name)), None)
    return Text(f"{found} set", style="green") if found else Text(f"no {variables[0]}", style="yellow")


def _document(status: sabir.ProviderStatus, dialects: Sequence[Spoken]) -> dict[str, Any]:  # whatever JSON holds
    spoken = {
        speaker.short_name: {"name": each.dialect.name, **each.carries}
        for each in dialects
        for speaker in (each.speaker, *each.others)
        if speaker.provider == status.name
    }
    keys = {name: "set" if is_set(name) else "not set" for name in status.key_variables}
    return {**status.model_dump(mode="json"), "key_variables": keys, "dialects": spoken}


def _provider_table(found: Sequence[sabir.ProviderStatus]) -> Table:
    table = make_table("provider", "state", "package", "dialects", "key")
    for status in found:
        table.add_row(
            Text(status.name, style="bold"),
            Text(status.state, style=STATE_STYLES[status.state]),
            f"{status.distribution} {status.version}".strip(),
            " ".join(status.dialects),
            key_state(status.key_variables) if status.state != "failed" else "",
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
