"""`sabir chats`: the conversations that are kept; listed, shown, exported, deleted.

home ──▶ list: a row each      show NAME: as it is read      export NAME: JSON Lines or Markdown, to read elsewhere
"""

import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import sabir
from cyclopts import Parameter
from sabir.authoring import one_line

from sabir_cli.chat.export import Form, as_text, save
from sabir_cli.chat.summaries import FILE, LONGEST_NAME, Summary, read_summaries
from sabir_cli.exits import Exit
from sabir_cli.folders import home_folder
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, UsageError, refuse_replacing
from sabir_cli.sheet import Sheet

Action: TypeAlias = Literal["list", "show", "export", "delete"]


def chats(
    action: Annotated[Action, Parameter(help="What to do.")] = "list",
    /,
    *names: Annotated[str, Parameter(help="The conversation's name; delete takes several.")],
    to: Annotated[Path | None, Parameter(help="For export: the file; else standard output.")] = None,
    form: Annotated[
        Form | None, Parameter(name="--as", help="For export: the form; else the file's name says it, else jsonl.")
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="For export: replace what --to names.")] = False,
    as_json: JSONFlag = False,
) -> int:
    """List the conversations that are kept, show one, export one, or delete some.

    For example: sabir chats show 12, and sabir chats export 12 --to rome.md
    """
    output = Output(machine=as_json)
    if (to is not None or form is not None or force) and action != "export":
        raise UsageError("--to, --as and --force are for export; leave them out")
    if as_json and action == "export":
        raise UsageError("--json gives one document, and an export has a form of its own; write --as json")
    least, most, told = TAKES[action]
    if not least <= len(names) <= most:
        raise UsageError(f"{action} takes {told}; `sabir chats` lists them")
    if action == "list":
        _list(output)
        return Exit.OK
    from sabir_cli.chat.home import Home
    from sabir_cli.config import Defaults

    with Home(Defaults.load().home) as home:
        match action:
            case "show":
                _show(home.messages(names[0]), output)
            case "export":
                _export(home.sent_messages(names[0]), to, form, output, force=force)
            case "delete":
                for name in names:
                    home.delete(name)
                    output.note(f"deleted {name}")
                if as_json:
                    output.document({"deleted": list(names)})
    return Exit.OK


LEAST_WORDS = 34
"""Characters of the first words that are shown on the narrowest terminal."""
TAKES: Mapping[Action, tuple[int, float, str]] = {
    "list": (0, 0, "no NAME"), "show": (1, 1, "one NAME"), "export": (1, 1, "one NAME"),
    "delete": (1, math.inf, "NAMES"),
}  # fmt: skip
"""Action → the least and the most names that it takes, and that in words."""


def _list(output: Output) -> None:
    """List the conversations; neither the library nor the store is imported, so that a long list comes at once."""
    home = home_folder()
    summaries = _summaries(home)
    if output.machine:
        output.document([{**each._asdict(), "when": each.when.isoformat()} for each in summaries])
        return
    if not summaries:
        output.note(f"no conversation is kept in {str(home)!r} yet; `sabir chat` begins one")
        return
    room = max(LEAST_WORDS, output.out.width - 50)  # one line, next to names of an ordinary length
    sheet = Sheet("name", "when", "turns", "model", "first words", plain={"when", "model", "first words"})
    for each in summaries:
        sheet.add(
            one_line(each.name, LONGEST_NAME), _when(each.when), str(each.turns), each.model, _begun(each.words, room)
        )
    output.show(sheet)


def _summaries(home: Path) -> "list[Summary]":
    try:
        return read_summaries(home / FILE)
    except LookupError:  # tables of another version: the store upgrades them, or says why it cannot
        from sabir_cli.chat.home import Home

        with Home(home) as opened:
            return opened.summaries()


def _begun(text: str, room: int) -> str:
    """Return a text of one line, cut at that many characters."""
    return text if len(text) <= room else one_line(text, room)


def _when(when: datetime) -> str:
    """A time as this place has it."""
    return f"{when.astimezone():%Y-%m-%d %H:%M}"


def _show(messages: "list[sabir.Message]", output: Output) -> None:
    if output.machine:
        output.document([message.model_dump(mode="json", exclude_none=True) for message in messages])
        return
    from sabir_cli.chat.shown import writer_for

    writer = writer_for(output, plain=False)
    writer.write(as_text(messages, "markdown"))
    writer.end()


def _export(
    messages: "list[sabir.Message]", to: Path | None, form: Form | None, output: Output, *, force: bool
) -> None:
    if to is None:
        output.data(as_text(messages, form or "jsonl"))
        return
    otherwise, remedy = ", or leave it out for standard output", ", or add --force"
    refuse_replacing(f"{str(to)!r}", to, may_replace=force, otherwise=otherwise, remedy=remedy)
    save(to, messages, form)
    output.note(f"wrote  {to}")
