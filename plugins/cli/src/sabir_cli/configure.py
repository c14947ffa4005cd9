"""`sabir config`: show the default settings with their sources, and change the settings file, but not its comments.

show ──▶ gather ──▶ a row for each setting         set NAME VALUE ──check──▶ config.toml         unset NAME, path
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter
from pydantic_core import to_jsonable_python
from rich.text import Text
from sabir.authoring import one_line, printable, replace_file

from sabir_cli.config import BUILT_IN, NAMES, SettingRow, check, gather
from sabir_cli.exits import Exit
from sabir_cli.folders import read_settings, settings_path, variable_of
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, UsageError
from sabir_cli.record_table import RecordTable

ConfigAction: TypeAlias = Literal["show", "set", "unset", "path"]
TAKES: dict[ConfigAction, str] = {"show": "", "set": " NAME VALUE", "unset": " NAME", "path": ""}
"""Action → the arguments that it needs."""
UNSET = {"model": "the local model", "system": "none"}
"""Setting → the text that is shown if the setting is not set. For other settings: "the provider's"."""


def config(
    action: Annotated[
        ConfigAction, Parameter(help="Show all settings, set or unset a setting, or print the file's path.")
    ] = "show",
    name: Annotated[str | None, Parameter(help=f"For set and unset: {', '.join(NAMES)}.")] = None,
    value: Annotated[str | None, Parameter(help="For set: the new value.", allow_leading_hyphen=True)] = None,
    /,
    *,
    as_json: JSONFlag = False,
) -> int:
    """Show or change default settings.

    A flag overrides the environment variable (such as SABIR_MODEL), and the
    variable overrides the settings file. Do not write API keys to the file.
    """
    output, path = Output(machine=as_json), settings_path()
    arguments = [word for word in (name, value) if word is not None]
    if len(arguments) != len(TAKES[action].split()):
        raise UsageError(f"wrong number of arguments for {action}; write `sabir config {action}{TAKES[action]}`")
    if action == "path":
        output.document({"path": str(path)}) if as_json else output.data(f"{path}\n")
        return Exit.OK
    if action != "show":
        shadow = f"; {variable_of(arguments[0])} overrides it" if os.environ.get(variable_of(arguments[0])) else ""
        output.note(store(path, *arguments) + shadow)
    if as_json:
        rows = [{**row._asdict(), "value": to_jsonable_python(row.value)} for row in gather()]
        output.document({"path": str(path), "settings": rows})
    elif action == "show":
        state = "" if path.exists() else " (does not exist yet)"
        output.show(Text(f"{path}{state}", overflow="fold"), "", _settings_table(gather()))
    return Exit.OK


def store(path: Path, name: str, value: str | None = None) -> str:
    """Write one setting to the file, or remove the setting if `value` is None. Return a line that says what changed.

    Raises UsageError for an unknown setting that has a `value`, an invalid value, a name or value that looks like an
    API key, and an unreadable file. Raises OSError if the file cannot be written.
    """
    import tomlkit  # imported here, so that other commands start faster

    stored = read_settings(path)
    if value is None and name not in stored:
        return f"{name} is not set in {path}"
    checked = None if value is None else check(name, value, "config set")
    document = tomlkit.parse(path.read_text("utf-8-sig") if path.exists() else "")
    if checked is None:
        document.remove(name)
    else:
        document[name] = value if isinstance(checked, Path) else checked
    target = path.resolve()  # a symbolic link stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, tomlkit.dumps(document))
    return f"{name} is {'no longer set' if value is None else 'set'} in {path}"


def _settings_table(rows: Sequence[SettingRow]) -> RecordTable:
    table = RecordTable("setting", "value", "from", plain={"value"})
    for row in rows:
        source = settings_path().name if row.source == str(settings_path()) else row.source
        table.add(row.name, Text(_value_text(row), style="dim" if row.source == BUILT_IN else ""), source)
    return table


def _value_text(row: SettingRow) -> str:
    if row.value is None:
        return UNSET.get(row.name, "the provider's")
    if isinstance(row.value, bool):
        return "on" if row.value else "off"
    return one_line(printable(str(row.value)), 200)
