"""The reference of the settings: what each dialect does with each of them, found by rendering one at a time.

    render without ─┐
    render with ────┴─▶ fields that came, and losses that say why none did

No model is named and no option is offered unless the setting is about options, so that a model's own refusals do not
show here.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from posixpath import commonpath
from typing import Any

import sabir
from sabir.vocabulary.settings import WIRE_SETTINGS

from tests.architecture.project import PROVIDERS

EXAMPLES: Mapping[str, Any] = {
    "max_output_tokens": 100,
    "temperature": 0.5,
    "top_p": 0.5,
    "stop": ("END",),
    "seed": 7,
    "reasoning_effort": "low",
    "option_choice": "required",
    "parallel_options": False,
    "response_format": {
        "title": "City", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "additionalProperties": False,
    },
}  # fmt: skip
"""A value of each wire setting that says something in every dialect."""
ABOUT_OPTIONS = {"option_choice", "parallel_options"}
OPTION = sabir.Option.from_schema("weather", "Current weather.", {"type": "object", "properties": {}})


def own_providers() -> list[sabir.ProviderStatus]:
    """The providers of the project's own packages; others may be installed beside them, or registered by a test."""
    packages = {package.name for package in PROVIDERS}
    return [status for status in sabir.providers() if status.distribution in packages and status.state != "registered"]


@cache
def dialects() -> tuple[str, ...]:
    """The full names of the dialects that the project's own packages bring, each once."""
    return tuple(
        sorted({sabir.provider(each.name).dialect(short).name for each in own_providers() for short in each.dialects})
    )


def settings_table() -> str:
    """One row a wire setting, one column a dialect."""
    names = dialects()
    head = [f"| setting | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---|" * len(names)]
    rows = [f"| `{name}` | {' | '.join(treatment(dialect, name) for dialect in names)} |" for name in WIRE_SETTINGS]
    return "\n".join([*head, *rows])


def treatment(dialect: str, setting: str) -> str:
    """What a dialect does with one setting, in a cell's words."""
    options = [OPTION] if setting in ABOUT_OPTIONS else []
    pure = sabir.dialect(dialect)
    plain = pure.render("Hello", options=options)
    given = pure.render("Hello", options=options, settings=sabir.Settings(**{setting: EXAMPLES[setting]}))
    before, after = dict(_leaves(plain.body)), dict(_leaves(given.body))
    came = {path: value for path, value in after.items() if before.get(path) != value}
    fields = ", ".join(f"`{path}`" for path in _shortest(list(came), setting))
    losses = "; ".join(f"{loss.kind}: {loss.reason}" for loss in given.losses if loss not in plain.losses)
    assert fields or losses, f"{dialect} neither sends {setting} nor reports it"
    return "; ".join(filter(None, (fields, losses)))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    else:
        yield path, json.dumps(value)


def _shortest(paths: list[str], setting: str) -> list[str]:
    """The fields themselves; for a response format, which is an object everywhere, the object that holds them all."""
    if setting != "response_format" or not paths:
        return paths
    return [commonpath([path.replace(".", "/") for path in paths]).replace("/", ".")]


def vendor_table() -> str:
    """The vendor settings of each dialect that has some, from the error that names them all."""
    rows = []
    for name in dialects():
        provider = name.partition(".")[0]
        try:
            sabir.dialect(name).render("Hello", settings=sabir.Settings(vendor={provider: {"no such setting": 1}}))
        except sabir.SettingsInvalid as error:
            _, has, listed = str(error).partition("; it has ")
            if has:
                known = listed.partition(";")[0].split(", ")
                rows.append(f"| `{name}` | `{provider}` | {', '.join(f'`{each}`' for each in known)} |")
    return "\n".join(["| dialect | section | settings |", "|---|---|---|", *rows])
