"""`sabir models`: the installed plugins' rows of models, by the beginnings of their names."""

import json
from typing import Annotated

import sabir
from cyclopts import Parameter
from rich.table import Table

from sabir_cli.exits import Exit, exit_of
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, make_table

UNKNOWN = "?"


def models(
    provider: Annotated[str | None, Parameter(help="One provider; else all that are installed.")] = None,
    /,
    *,
    as_json: JSONFlag = False,
) -> int:
    """List known models: each row speaks for all models whose names begin so.

    A model that no row names is passed on as it is; nothing is refused for it.
    """
    output = Output(machine=as_json)
    listed = () if provider else sabir.providers()
    failed = [status.error for status in listed if status.error is not None]
    code = Exit.PLUGIN if failed else Exit.OK
    for error_line in failed:
        output.error(error_line)
    found: dict[str, tuple[sabir.ModelInfo, ...]] = {}
    for name in [provider] if provider else [status.name for status in listed if status.error is None]:
        try:
            found[name] = sabir.models(name)
        except sabir.errors.PluginError as error:
            output.error(str(error))
            code = code or exit_of(error)
    if as_json:
        output.document(
            [{"provider": name, **info.model_dump(mode="json")} for name, infos in found.items() for info in infos]
        )
        return code
    if any(found.values()):
        output.show(_table(found))
    unknown = [name for name, infos in found.items() if not infos]
    if unknown:
        output.note(f"nothing is known of the models of {', '.join(unknown)}; any name is passed on")
    return code


def _table(found: dict[str, tuple[sabir.ModelInfo, ...]]) -> Table:
    table = make_table("model", "reads", "context", "output", "thinks", "refuses")
    table.columns[2].justify = table.columns[3].justify = "right"
    if any(info.facts for infos in found.values() for info in infos):
        table.add_column("facts")
    for name, infos in found.items():
        for info in sorted(infos, key=lambda info: info.prefix):
            table.add_row(
                f"{name}:{info.prefix}…" if not info.prefix else f"{name}:{info.prefix}",
                UNKNOWN if info.modalities is None else " ".join(("text", *info.modalities)),
                UNKNOWN if info.context_tokens is None else f"{info.context_tokens:,}",
                UNKNOWN if info.output_tokens is None else f"{info.output_tokens:,}",
                {None: UNKNOWN, True: "yes", False: "no"}[info.reasoning],
                " ".join(info.rejects),
                " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in info.facts.items()),
            )
    return table
