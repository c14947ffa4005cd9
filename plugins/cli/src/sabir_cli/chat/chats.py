"""`sabir chats`: list, show, export and delete saved conversations.

home ──▶ list: one row each      show NAME: as Markdown      export NAME: as JSON Lines, JSON or Markdown
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import sabir
from cyclopts import Parameter
from sabir.authoring import one_line

from sabir_cli.chat.export import ExportFormat, as_text, save
from sabir_cli.chat.summaries import LONGEST_NAME, STORE_FILE, Summary, read_summaries
from sabir_cli.exits import Exit
from sabir_cli.folders import home_folder
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, UsageError, refuse_replacing
from sabir_cli.record_table import RecordTable

ChatsAction: TypeAlias = Literal["list", "show", "export", "delete"]


def chats(
    action: Annotated[ChatsAction, Parameter(help="What to do.")] = "list",
    /,
    *names: Annotated[str, Parameter(help="The conversation's name; delete accepts several.")],
    to: Annotated[Path | None, Parameter(help="For export: the file to write. Default: standard output.")] = None,
    export_format: Annotated[
        ExportFormat | None,
        Parameter(name="--as", help="For export: the format. Default: the ending of --to, else jsonl."),
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="For export: overwrite the file --to.")] = False,
    as_json: JSONFlag = False,
) -> int:
    """List the saved conversations, show or export one, or delete some.

    For example: sabir chats show 12, and sabir chats export 12 --to rome.md
    """
    output = Output(machine=as_json)
    if (to is not None or export_format is not None or force) and action != "export":
        raise UsageError(f"--to, --as and --force work with `sabir chats export` only, not with {action}; remove them")
    if as_json and action == "export":
        raise UsageError("`sabir chats export` does not accept --json; write --as json")
    least, most, accepted = TAKES[action]
    if not least <= len(names) <= most:
        raise UsageError(f"`sabir chats {action}` accepts {accepted}, not {len(names)}; `sabir chats` lists the names")
    if action == "list":
        _list_chats(output)
        return Exit.OK
    from sabir_cli.chat.home import Home
    from sabir_cli.config import Defaults

    with Home(Defaults.load().home) as home:
        match action:
            case "show":
                _show_messages(home.messages(names[0]), output)
            case "export":
                _export(home.sent_messages(names[0]), to, export_format, output, force=force)
            case "delete":
                for name in names:
                    home.delete(name)
                    output.note(f"deleted {name}")
                if as_json:
                    output.document({"deleted": list(names)})
    return Exit.OK


LEAST_WORDS = 34
"""The minimum width of the column with a conversation's first words, in characters."""
TAKES: Mapping[ChatsAction, tuple[int, float, str]] = {
    "list": (0, 0, "no NAME"), "show": (1, 1, "one NAME"), "export": (1, 1, "one NAME"),
    "delete": (1, math.inf, "one NAME or more"),
}  # fmt: skip
"""Action → the minimum number of names, the maximum, and how the error describes the accepted numbers."""


def _list_chats(output: Output) -> None:
    """Print the list of conversations. The store is not opened, so that even a long list appears at once."""
    home = home_folder()
    summaries = _load_summaries(home)
    if output.machine:
        output.document([{**summary._asdict(), "when": summary.when.isoformat()} for summary in summaries])
        return
    if not summaries:
        output.note(f"no conversation is saved in {str(home)!r} yet; `sabir chat` begins a conversation")
        return
    width = max(LEAST_WORDS, output.out.width - 50)  # so that each row is one line, if its name is not long
    table = RecordTable("name", "when", "turns", "model", "first words", plain={"when", "model", "first words"})
    for summary in summaries:
        name, when = one_line(summary.name, LONGEST_NAME), f"{summary.when.astimezone():%Y-%m-%d %H:%M}"
        table.add(name, when, str(summary.turns), summary.model, _first_words(summary.words, width))
    output.show(table)


def _load_summaries(home: Path) -> "list[Summary]":
    try:
        return read_summaries(home / STORE_FILE)
    except LookupError:  # tables of another version: opening the store upgrades them, or raises an error
        from sabir_cli.chat.home import Home

        with Home(home) as store:
            return store.summaries()


def _first_words(text: str, width: int) -> str:
    """Return a text, or its beginning in one line if it has more than `width` characters."""
    return text if len(text) <= width else one_line(text, width)


def _show_messages(messages: "list[sabir.Message]", output: Output) -> None:
    if output.machine:
        output.document([message.model_dump(mode="json", exclude_none=True) for message in messages])
        return
    from sabir_cli.chat.answer_printer import writer_for

    writer = writer_for(output, plain=False)
    writer.write(as_text(messages, "markdown"))
    writer.end()


def _export(
    messages: "list[sabir.Message]", to: Path | None, export_format: ExportFormat | None, output: Output, *, force: bool
) -> None:
    if to is None:
        output.data(as_text(messages, export_format or "jsonl"))
        return
    otherwise, remedy = ", or remove --to to write to standard output", ", or add --force"
    refuse_replacing(f"--to {str(to)!r}", to, may_replace=force, otherwise=otherwise, remedy=remedy)
    save(to, messages, export_format)
    output.note(f"wrote  {to}")
