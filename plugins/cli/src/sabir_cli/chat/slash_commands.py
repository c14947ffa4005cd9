"""The slash commands of the chat, which are never sent to the model.

/command argument ──find──▶ a row of SLASH_COMMANDS ──▶ its function        //text ──▶ "/text" is sent to the model
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

from sabir_cli.chat.answer_printer import format_money
from sabir_cli.chat.attachments import attach
from sabir_cli.chat.console_chat import ConsoleChat
from sabir_cli.chat.export import save
from sabir_cli.chat.message_reader import Suggestion
from sabir_cli.inputs import known_models, load_options, split_provider
from sabir_cli.output import UsageError, refuse_replacing
from sabir_cli.providers import first_missing
from sabir_cli.render import View, show

SLASH_HINT = "to send a message that begins with a slash, type //"


class SlashCommand(NamedTuple):
    """A slash command. `argument` describes its argument: "" for none, "[…]" if optional, capitals if required.
    `completes` is the kind of arguments that the editor completes.
    """

    name: str
    argument: str
    help: str
    run: Callable[[ConsoleChat, str], None]
    completes: Literal["", "model", "path"] = ""


def is_command(text: str) -> bool:
    """Return whether a text is a slash command: it begins with one slash, not with two."""
    return text.startswith("/") and not text.startswith("//")


def run_command(chat: ConsoleChat, text: str) -> None:
    """Run a slash command. Raises UsageError for an unknown command or a wrong argument, and what the command's
    function raises.
    """
    name, *arguments = re.split(r"\s", text[1:], maxsplit=1)
    argument = "".join(arguments).strip()
    command = next((each for each in SLASH_COMMANDS if each.name == name), None)
    if command is None:
        similar = difflib.get_close_matches(name, [each.name for each in SLASH_COMMANDS], 1, 0.5)
        hint = f"did you mean /{similar[0]}?" if similar else "/help lists the commands;"
        raise UsageError(f"unknown command /{one_line(name, 40)} (not sent); {hint} {SLASH_HINT}")
    if command.argument.isupper() and not argument:
        raise UsageError(f"/{command.name} needs {command.argument}: {command.help}")
    if argument and not command.argument:
        raise UsageError(f"/{command.name} does not accept an argument; {SLASH_HINT}")
    command.run(chat, argument)


class Quit(Exception):
    """Raised by /quit, and after a confirmed "exit" or "quit", to end the chat."""


def _run_help(chat: ConsoleChat, _: str) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for command in SLASH_COMMANDS:
        table.add_row(Text(f"/{command.name} {command.argument}".rstrip(), style="cyan"), command.help)
    table.add_row(Text("//text", style="cyan"), "send “/text” to the model")
    chat.output.err.print(table)
    for line in KEYS:
        chat.output.note(line)


KEYS = (
    "Enter sends. Alt-Enter, or \\ and then Enter, begins a new line. Pasted lines are one message.",
    "Ctrl-C stops a reply, and twice leaves. Ctrl-D leaves. Ctrl-X Ctrl-E opens your editor.",
)


def _run_model(chat: ConsoleChat, name: str) -> None:
    if not name:
        chat.output.note(f"the model is {chat.target}; /model provider:model switches to another model")
        return
    before = chat.target
    losses = chat.switch(name)
    chat.output.note(f"{before} ▸ {chat.target}")
    provider = sabir.provider(*split_provider(name))
    missing = first_missing(provider.credentials)
    chat.print_losses(losses)
    if missing:
        chat.output.note(f"{provider.name} has no key: set {missing} before you start sabir", "yellow")


def _run_system(chat: ConsoleChat, text: str) -> None:
    if text:
        chat.conversation.instructions = text
    chat.output.note(f"instructions: {one_line(str(chat.conversation.instructions)) or 'none'}")


def _run_option(chat: ConsoleChat, spec: str) -> None:
    if spec:
        chat.conversation.options = (*chat.conversation.options, *load_options([spec]))
    names = ", ".join(option.name for option in chat.conversation.options)
    chat.output.note(f"options: {names or 'none; /option module:function offers one'}")


def _attacher(kind: str) -> Callable[[ConsoleChat, str], None]:
    def run(chat: ConsoleChat, source: str) -> None:
        source = _unquoted(source)
        chat.attachments.append(attach(kind, source))
        chat.output.note(f"{one_line(source, 60)} will be sent with your next message; /drop removes attachments")

    return run


def _unquoted(path: str) -> str:
    """Return a path without quotes and backslashes, which the user or a terminal adds as for a shell."""
    try:
        words = [path] if os.name == "nt" else shlex.split(path)
    except ValueError:  # an unclosed quote belongs to the file's name
        return path
    return words[0] if len(words) == 1 else path


def _run_losses(chat: ConsoleChat, _: str) -> None:
    if chat.answer is None:
        raise UsageError("there is no answer yet; send a message first, and then /losses to list its losses")
    chat.print_losses(chat.answer.losses)
    if not chat.answer.losses:
        chat.output.note("the last question was sent without losses")


def _run_render(chat: ConsoleChat, text: str) -> None:
    rendering = chat.conversation.preview(*chat.attachments, *([text] if text else []))
    show(chat.output.err, [View(chat.target, rendering, messages=chat.conversation.messages)])


def _run_cost(chat: ConsoleChat, _: str) -> None:
    cost = chat.conversation.cost
    chat.output.note(f"{chat.conversation.usage} · {'cost not known' if cost is None else f'${format_money(cost)}'}")


def _run_save(chat: ConsoleChat, file: str) -> None:
    path = Path(_unquoted(file)).expanduser()
    refuse_replacing(repr(str(path)), path, may_replace=path.absolute() in chat.saved)
    save(path, chat.conversation.sent_messages)
    chat.saved.add(path.absolute())
    chat.output.note(f"saved to {str(path)!r}")


def _run_drop(chat: ConsoleChat, _: str) -> None:
    chat.output.note(chat.drop())


def _run_retry(chat: ConsoleChat, _: str) -> None:
    chat.retry()
    chat.output.note("")


def _run_quit(chat: ConsoleChat, _: str) -> None:
    raise Quit


SLASH_COMMANDS = (
    SlashCommand("help", "", "list the commands", _run_help),
    SlashCommand(
        "model", "[name]", "show the model; or switch to another model and list the losses", _run_model, "model"
    ),
    SlashCommand("system", "[text]", "show the instructions, or change them from the next message on", _run_system),
    SlashCommand(
        "option", "[module:function]", "show the functions that the model may call, or add a function", _run_option
    ),
    SlashCommand("image", "FILE", "attach an image (file or URL) to the next message", _attacher("image"), "path"),
    SlashCommand("file", "FILE", "attach an image, sound, video, document or text file", _attacher("file"), "path"),
    SlashCommand("losses", "", "list the losses of the last turn", _run_losses),
    SlashCommand("render", "[text]", "show the next request without sending it", _run_render),
    SlashCommand("cost", "", "show tokens and cost of this conversation; removed turns do not count", _run_cost),
    SlashCommand("save", "FILE", "write the conversation to a .jsonl, .json or .md file", _run_save, "path"),
    SlashCommand("drop", "", "remove the next message's attachments, or if there are none the last turn", _run_drop),
    SlashCommand("retry", "", "ask the last question again, or finish an interrupted turn", _run_retry),
    SlashCommand("quit", "", "leave the chat", _run_quit),
)


def suggest(text: str) -> Iterator[Suggestion]:
    """Yield completions of a line that begins with a slash: commands, or the models or paths that a command accepts."""
    if not is_command(text) or "\n" in text:
        return
    name, space, argument = text[1:].partition(" ")
    if not space:
        for command in SLASH_COMMANDS:
            if command.name.startswith(name):
                yield Suggestion(f"/{command.name}", len(text), command.help)
        return
    completes = next((command.completes for command in SLASH_COMMANDS if command.name == name), "")
    candidates = _model_names() if completes == "model" else _complete_path(argument) if completes == "path" else ()
    for candidate in candidates:
        if candidate.startswith(argument):
            yield Suggestion(candidate, len(argument))


def _model_names() -> Iterator[str]:
    for status in sabir.providers():
        if status.state != "failed":
            yield from (f"{name}:{model}" for name in status.names[:1] for model in known_models(name))


def _complete_path(argument: str) -> Iterator[str]:
    folder, slash, start = argument.rpartition("/")
    directory = Path(f"{folder}{slash}").expanduser() if folder or slash else Path()
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return
    for path in paths:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield f"{folder}{slash}{printable(path.name)}{'/' if path.is_dir() else ''}"
