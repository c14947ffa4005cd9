"""The words that a user says to the program, not to the model: each begins with a slash, and is never sent.

/word argument ──find──▶ a row of WORDS ──▶ its function        //text ──▶ "/text" is said to the model
      ├── unknown ──▶ UsageError, with the nearest word
      └── an argument where the row has none, or none where it needs one ──▶ UsageError
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

from sabir_cli.chat.attachments import attach
from sabir_cli.chat.entry import Suggestion
from sabir_cli.chat.export import save
from sabir_cli.chat.shown import money
from sabir_cli.chat.talk import Talk
from sabir_cli.inputs import known_models, load_options, split_place
from sabir_cli.output import UsageError, refuse_replacing
from sabir_cli.providers import first_missing
from sabir_cli.render import View, show

SENDS = "// sends a /"


class Word(NamedTuple):
    """One word: what follows it, what it does, and the function that does it."""

    name: str
    argument: str
    help: str
    run: Callable[[Talk, str], None]
    completes: Literal["", "model", "path"] = ""


def is_word(text: str) -> bool:
    """Whether a text is for the program."""
    return text.startswith("/") and not text.startswith("//")


def obey(talk: Talk, text: str) -> None:
    """Do what a slash word says; raises UsageError for an unknown or misused one, and what its function raises."""
    name, *rest = re.split(r"\s", text[1:], maxsplit=1)
    argument = "".join(rest).strip()
    found = next((word for word in WORDS if word.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [word.name for word in WORDS], 1, 0.5)
        hint = f"did you mean /{near[0]}?" if near else "/help lists the words;"
        raise UsageError(f"/{one_line(name, 40)} is no word of this program, and was not sent; {hint} {SENDS}")
    if found.argument.isupper() and not argument:
        raise UsageError(f"/{found.name} takes {found.argument}: {found.help}")
    if argument and not found.argument:
        raise UsageError(f"/{found.name} takes nothing; {SENDS}")
    found.run(talk, argument)


class Leave(Exception):
    """The user leaves."""


def _help(talk: Talk, _: str) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for word in WORDS:
        table.add_row(Text(f"/{word.name} {word.argument}".rstrip(), style="cyan"), word.help)
    table.add_row(Text("//text", style="cyan"), "say “/text” to the model")
    talk.output.err.print(table)
    for line in KEYS:
        talk.output.note(line)


KEYS = (
    "Enter sends; Alt-Enter, or \\ and Enter, begins a new line; a paste is one message.",
    "Ctrl-C stops a reply, and leaves when pressed twice; Ctrl-D leaves; Ctrl-X Ctrl-E opens your editor.",
)


def _model(talk: Talk, name: str) -> None:
    if not name:
        talk.output.note(f"{talk.target}; /model provider:model switches")
        return
    before = talk.target
    losses = talk.switch(name)
    talk.output.note(f"{before} ▸ {talk.target}")
    provider = sabir.provider(*split_place(name))
    missing = first_missing(provider.credentials)
    talk.tell_losses(losses)
    if missing:
        talk.output.note(f"{provider.name} cannot be asked: there is no {missing}; set it before you start", "yellow")


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
        talk.output.note(f"{one_line(source, 60)} goes with your next message; /drop removes it")

    return run


def _unquoted(path: str) -> str:
    """A path without the quotes or backslashes that a shell, or a file dropped on a terminal, puts into it."""
    try:
        words = [path] if os.name == "nt" else shlex.split(path)
    except ValueError:  # a quote that nothing closes is a sign of the name
        return path
    return words[0] if len(words) == 1 else path


def _losses(talk: Talk, _: str) -> None:
    if talk.answer is None:
        raise UsageError("there is no answer yet; /losses lists what was lost with the last question")
    talk.tell_losses(talk.answer.losses)
    if not talk.answer.losses:
        talk.output.note("nothing was lost with the last question")


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
    talk.output.note(f"saved in {str(path)!r}")


def _drop(talk: Talk, _: str) -> None:
    talk.output.note(talk.drop())


def _retry(talk: Talk, _: str) -> None:
    talk.retry()
    talk.output.note("")


def _quit(talk: Talk, _: str) -> None:
    raise Leave


WORDS = (
    Word("help", "", "show these words", _help),
    Word("model", "[name]", "switch to another model, and tell what that loses; or show which it is", _model, "model"),
    Word("system", "[text]", "change the instructions from the next message on, or show them", _system),
    Word("option", "[module:function]", "offer a function to the model, or show which are offered", _option),
    Word("image", "FILE", "show an image, a file or a URL, with the next message", _attach("image"), "path"),
    Word("file", "FILE", "attach a file of any kind to the next message", _attach("file"), "path"),
    Word("losses", "", "what the last answer's requests could not carry", _losses),
    Word("render", "[text]", "show what would be sent; nothing is", _render),
    Word("cost", "", "tokens and cost of this conversation, without removed turns", _cost),
    Word("save", "FILE", "save it: JSON Lines in a .jsonl, JSON in a .json, Markdown in a .md", _save, "path"),
    Word("drop", "", "remove what is attached, or else the last turn", _drop),
    Word("retry", "", "ask the last question again, or finish an interrupted turn", _retry),
    Word("quit", "", "leave", _quit),
)


def suggest(text: str) -> Iterator[Suggestion]:
    """What a line that begins so may go on with: a word, and what that takes."""
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
