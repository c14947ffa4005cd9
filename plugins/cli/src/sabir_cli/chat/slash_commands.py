"""The slash commands of the chat, which are never sent to the model.

/command argument ──find──▶ a row of WORDS ──▶ its function        //text ──▶ "/text" is sent to the model
      ├── unknown command ──▶ UsageError, with the most similar command
      └── unexpected or missing argument ──▶ UsageError
"""

import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import sabir
from rich.table import Table
from rich.text import Text
from sabir.authoring import one_line, printable

from sabir_cli.chat.answer_printer import money
from sabir_cli.chat.attachments import attach
from sabir_cli.chat.console_chat import Talk
from sabir_cli.chat.export import save
from sabir_cli.chat.message_reader import Suggestion
from sabir_cli.inputs import known_models, load_options, split_place
from sabir_cli.output import UsageError, refuse_replacing
from sabir_cli.providers import first_missing
from sabir_cli.render import View, show

SENDS = "to send a message that begins with a slash, type //"


class Word(NamedTuple):
    """One slash command. `argument` names its argument: "" for none, "[…]" if optional, capitals if required.
    `completes` is the kind of values that the editor completes.
    """

    name: str
    argument: str
    help: str
    run: Callable[[Talk, str], None]
    completes: Literal["", "model", "path"] = ""


def is_word(text: str) -> bool:
    """Return whether a text is a slash command: it begins with one slash, not with two."""
    return text.startswith("/") and not text.startswith("//")


def obey(talk: Talk, text: str) -> None:
    """Run a slash command. Raises UsageError for an unknown command or a wrong argument, and what the command's
    function raises.
    """
    name, *rest = re.split(r"\s", text[1:], maxsplit=1)
    argument = "".join(rest).strip()
    found = next((word for word in WORDS if word.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [word.name for word in WORDS], 1, 0.5)
        hint = f"did you mean /{near[0]}?" if near else "/help lists the commands;"
        raise UsageError(f"unknown command /{one_line(name, 40)} (not sent); {hint} {SENDS}")
    if found.argument.isupper() and not argument:
        raise UsageError(f"/{found.name} needs {found.argument}: {found.help}")
    if argument and not found.argument:
        raise UsageError(f"/{found.name} does not accept an argument; {SENDS}")
    found.run(talk, argument)


class Leave(Exception):
    """Raised to end the chat, by /quit or a confirmed leaving word."""


def _help(talk: Talk, _: str) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for word in WORDS:
        table.add_row(Text(f"/{word.name} {word.argument}".rstrip(), style="cyan"), word.help)
    table.add_row(Text("//text", style="cyan"), "send “/text” to the model")
    talk.output.err.print(table)
    for line in KEYS:
        talk.output.note(line)


KEYS = (
    "Enter sends. Alt-Enter, or \\ and then Enter, begins a new line. Pasted lines are one message.",
    "Ctrl-C stops a reply, and twice leaves. Ctrl-D leaves. Ctrl-X Ctrl-E opens your editor.",
)


def _model(talk: Talk, name: str) -> None:
    if not name:
        talk.output.note(f"the model is {talk.target}; /model provider:model switches to another model")
        return
    before = talk.target
    losses = talk.switch(name)
    talk.output.note(f"{before} ▸ {talk.target}")
    provider = sabir.provider(*split_place(name))
    missing = first_missing(provider.credentials)
    talk.tell_losses(losses)
    if missing:
        talk.output.note(f"{provider.name} has no key: set {missing} before you start sabir", "yellow")


def _system(talk: Talk, text: str) -> None:
    if text:
        talk.chat.instructions = text
    talk.output.note(f"instructions: {one_line(str(talk.chat.instructions)) or 'none'}")


def _option(talk: Talk, spec: str) -> None:
    if spec:
        talk.chat.options = (*talk.chat.options, *load_options([spec]))
    names = ", ".join(option.name for option in talk.chat.options)
    talk.output.note(f"options: {names or 'none; /option module:function offers one'}")


def _attach(kind: str) -> Callable[[Talk, str], None]:
    def run(talk: Talk, source: str) -> None:
        source = _unquoted(source)
        talk.attached.append(attach(kind, source))
        talk.output.note(f"{one_line(source, 60)} will be sent with your next message; /drop removes it")

    return run


def _unquoted(path: str) -> str:
    """Return a path without quotes and backslashes, which the user or a terminal adds as for a shell."""
    try:
        words = [path] if os.name == "nt" else shlex.split(path)
    except ValueError:  # an unclosed quote belongs to the file's name
        return path
    return words[0] if len(words) == 1 else path


def _losses(talk: Talk, _: str) -> None:
    if talk.answer is None:
        raise UsageError("there is no answer yet; send a message first, and then /losses to list its losses")
    talk.tell_losses(talk.answer.losses)
    if not talk.answer.losses:
        talk.output.note("the last question was sent without losses")


def _render(talk: Talk, text: str) -> None:
    show(
        talk.output.err,
        [View(talk.target, talk.chat.preview(*talk.attached, *([text] if text else [])), messages=talk.chat.messages)],
    )


def _cost(talk: Talk, _: str) -> None:
    cost = talk.chat.cost
    talk.output.note(f"{talk.chat.usage} · {'cost not known' if cost is None else f'${money(cost)}'}")


def _save(talk: Talk, file: str) -> None:
    path = Path(_unquoted(file)).expanduser()
    refuse_replacing(repr(str(path)), path, may_replace=path.absolute() in talk.saved)
    save(path, talk.chat.sent_messages)
    talk.saved.add(path.absolute())
    talk.output.note(f"saved to {str(path)!r}")


def _drop(talk: Talk, _: str) -> None:
    talk.output.note(talk.drop())


def _retry(talk: Talk, _: str) -> None:
    talk.retry()
    talk.output.note("")


def _quit(talk: Talk, _: str) -> None:
    raise Leave


WORDS = (
    Word("help", "", "list the commands", _help),
    Word("model", "[name]", "show the model; or switch to another model and list the losses", _model, "model"),
    Word("system", "[text]", "show the instructions, or change them from the next message on", _system),
    Word("option", "[module:function]", "show the functions that the model may call, or add a function", _option),
    Word("image", "FILE", "attach an image (file or URL) to the next message", _attach("image"), "path"),
    Word("file", "FILE", "attach a file of any kind to the next message", _attach("file"), "path"),
    Word("losses", "", "list what the model's API could not accept of the last turn", _losses),
    Word("render", "[text]", "show the next request without sending it", _render),
    Word("cost", "", "show tokens and cost of this conversation; removed turns do not count", _cost),
    Word("save", "FILE", "write the conversation to a .jsonl, .json or .md file", _save, "path"),
    Word("drop", "", "remove the next message's attachments, or if there are none the last turn", _drop),
    Word("retry", "", "ask the last question again, or finish an interrupted turn", _retry),
    Word("quit", "", "leave the chat", _quit),
)


def suggest(text: str) -> Iterator[Suggestion]:
    """Yield completions of a line that begins with a slash: commands, or the models or paths that a command accepts."""
    if not is_word(text) or "\n" in text:
        return
    name, space, argument = text[1:].partition(" ")
    if not space:
        for word in WORDS:
            if word.name.startswith(name):
                yield Suggestion(f"/{word.name}", len(text), word.help)
        return
    completes = next((word.completes for word in WORDS if word.name == name), "")
    found = _models() if completes == "model" else _paths(argument) if completes == "path" else ()
    for each in found:
        if each.startswith(argument):
            yield Suggestion(each, len(argument))


def _models() -> Iterator[str]:
    for status in sabir.providers():
        if status.state != "failed":
            yield from (f"{name}:{model}" for name in status.names[:1] for model in known_models(name))


def _paths(begun: str) -> Iterator[str]:
    folder, slash, start = begun.rpartition("/")
    place = Path(f"{folder}{slash}").expanduser() if folder or slash else Path()
    try:
        found = sorted(place.iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield f"{folder}{slash}{printable(path.name)}{'/' if path.is_dir() else ''}"
