"""What is installed, as pages list it: providers, media, what each dialect does with each setting, what it can carry.

    render without a setting ─┐
    render with it ───────────┴─▶ fields that came, and losses that say why none did

No model is named and no options were passed unless the setting is about options, so that a model's own refusals do not
show here. Grades of capabilities are those that suites declare; a third-party package's suite needs its SDK, which is
none of this workspace's: its declaration is read, not imported.
"""

import ast
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from posixpath import commonpath
from typing import Any
from unittest.mock import patch

import sabir
import sabir_testing
from pydantic import BaseModel
from sabir.contract.provider import Access
from sabir.contract.turns import Tables
from sabir.vocabulary.settings import WIRE_SETTINGS
from sabir_openai.chat_dialect import QUIRKS
from sabir_testing import CAPABILITIES, UNKNOWN, Grade

from tests.architecture.project import PROVIDERS
from tests.conformance.suites import SUITES
from tests.docs.pages import ROOT

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
    "prompt_cache": "1h",
}  # fmt: skip
"""A value of each wire setting that says something in every dialect."""
ABOUT_OPTIONS = {"option_choice", "parallel_options", "prompt_cache"}
OPTION = sabir.Option.from_schema("weather", "Current weather.", {"type": "object", "properties": {}})


def own_providers() -> list[sabir.ProviderStatus]:
    """The providers of the project's own packages; others may be installed beside them, or registered by a test."""
    packages = {package.name for package in PROVIDERS}
    return [status for status in sabir.providers() if status.distribution in packages and status.state != "registered"]


def _reached(status: sabir.ProviderStatus) -> list[tuple[str, str]]:
    """Provider and short name of each dialect that its full name means."""
    return [(status.name, dialect) for dialect in status.dialects if dialect not in status.shadowed]


@cache
def dialects() -> tuple[str, ...]:
    """The full names of the dialects that the project's own packages bring, each once."""
    return tuple(
        sorted({sabir.provider(*name).dialect(name[1]).name for each in own_providers() for name in _reached(each)})
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
            _, has, listed = str(error).partition("; its fields are ")
            if has:
                known = listed.partition(";")[0].split(", ")
                rows.append(f"| `{name}` | `{provider}` | {', '.join(f'`{each}`' for each in known)} |")
    return "\n".join(["| dialect | section | settings |", "|---|---|---|", *rows])


def providers_table() -> str:
    """One row a provider: dialects, key variables, and the endpoint where nothing else is said."""
    rows = []
    for status in own_providers():
        assert status.state == "installed", f"{status.name}: {status.error}"
        with patch.dict(os.environ, clear=True):  # the endpoints of a machine on which no variable names another
            endpoint = sabir.provider(*_reached(status)[0]).endpoint(Access())
        unnamed = "no variable" if status.credentials else "none needed"
        keys = ", ".join(f"`{name}`" for name in status.key_variables) or unnamed
        spoken = ", ".join(f"`{name}`" for _, name in _reached(status))
        rows.append(f"| `{status.names[0]}` | `{status.distribution}` | {spoken} | {keys} | `{endpoint}` |")
    return "\n".join(["| provider | package | dialects | key | endpoint |", "|---|---|---|---|---|", *rows])


def media_list() -> str:
    """Which modality each side of each dialect takes in which form."""
    lines = []
    for name in dialects():
        tables = sabir.dialect(name).dialect.tables
        sides = dict.fromkeys(side for side, _ in tables.media)
        lines += [f"- `{name}`, {side}: {_forms(tables, side)}" for side in sides] or [f"- `{name}`: none"]
    return "\n".join(lines)


def hint_list() -> str:
    """Which vendor hints media and options may carry, for each dialect."""
    lines = []
    for name in dialects():
        tables = sabir.dialect(name).dialect.tables
        takers = {f"{modality}, {side}": rule.hints for (side, modality), rule in tables.media.items()}
        takers["option"] = tables.calls.hints
        found = [f"- `{name}`, {what}: {_hint_fields(model)}" for what, model in takers.items() if model is not None]
        lines += found or [f"- `{name}`: none"]
    return "\n".join(lines)


def quirk_table() -> str:
    """One row a deviation that a row of a compatible gateway may name."""
    return "\n".join(["| quirk | meaning |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in QUIRKS.items())])


def _hint_fields(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields)


def _forms(tables: Tables, wanted: str) -> str:
    found = []
    for (side, modality), rule in tables.media.items():
        if side == wanted:
            forms = [form for form in ("url", "data", "file") if getattr(rule, form) is not None]
            found.append(f"{modality} ({', '.join(forms)})")
    return ", ".join(found)


THIRD_PARTY = {"cohere.chat": ROOT / "tests" / "third_party" / "sabir-cohere" / "tests" / "test_cohere.py"}


def declared() -> Mapping[str, Mapping[str, Grade]]:
    here = {name: suite.capabilities for name, suite in SUITES.items()}
    return here | {name: _read(path.read_text("utf-8")) for name, path in THIRD_PARTY.items()}


def _read(source: str) -> Mapping[str, Grade]:
    """The capabilities of a test file's suite, with the constants of its module that they name."""
    tree = ast.parse(source)
    suite = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    [value] = [each.value for each in suite.body if isinstance(each, ast.AnnAssign) and _names(each, "capabilities")]
    constants = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)]
    known = {name: getattr(sabir_testing, name) for name in ("FULL", "DOWNGRADED", "REFUSED", "UNKNOWN")}
    exec(compile(ast.Module(constants, []), "constants", "exec"), known)
    assert value is not None
    found: Mapping[str, Grade] = eval(compile(ast.Expression(value), "capabilities", "eval"), known)
    return found


def _names(node: ast.AnnAssign, name: str) -> bool:
    return isinstance(node.target, ast.Name) and node.target.id == name


def capability_table() -> str:
    """One row a capability, one column a dialect."""
    columns = declared()
    head = [f"| capability | {' | '.join(f'`{name}`' for name in columns)} |", "|---|" + "---|" * len(columns)]
    rows = [
        f"| `{name}` | {' | '.join(str(grades.get(name, UNKNOWN)) for grades in columns.values())} |"
        for name in CAPABILITIES
    ]
    return "\n".join([*head, *rows])


def operation_table() -> str:
    """One row a provider: whether it has embeddings, and whether it has batches."""
    rows = {}
    for status in own_providers():
        names = {name for provider, short in _reached(status) for name in _operations(provider, short)}
        has = ("yes" if any(name.startswith(kind) for name in names) else "no" for kind in ("embeddings", "batches."))
        rows[status.name] = f"| `{status.name}` | {' | '.join(has)} |"
    return "\n".join(["| provider | embeddings | batches |", "|---|---|---|", *rows.values()])


def _operations(provider: str, short_name: str) -> Iterator[str]:
    yield from getattr(sabir.provider(provider, short_name), "operations", dict)()


def expected_failures() -> str:
    """The cases that a suite opts out of, with the reasons; or that there are none."""
    rows = [
        f"| `{name}` | `{case}` | {reason} |" for name, suite in SUITES.items() for case, reason in suite.xfail.items()
    ]
    return "\n".join(["| provider | case | why |", "|---|---|---|", *rows]) if rows else "None: every case holds."
