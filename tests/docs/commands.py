"""The reference of the command line: commands, arguments, slash words and exit codes, as it has them itself."""

from collections.abc import Iterator

from cyclopts import App
from sabir_actors.command import threads
from sabir_calls.batches.command import batch
from sabir_calls.command import map_
from sabir_cli.chat.slash_commands import SLASH_COMMANDS
from sabir_cli.exits import MEANINGS
from sabir_cli.main import build
from sabir_cli.output import Output
from sabir_embeddings.command import embed
from sabir_local.command import local
from sabir_runtime.distributed.command import worker
from sabir_runtime.durable.command import runs
from sabir_testing.live.command import check
from sabir_testing.loss_locks.command import diff

from tests.docs.sources import paragraph


def app() -> App:
    """The command with what the packages of this project add to it, and nobody else."""
    whole = build(Output())
    for command in (batch, check, diff, embed, local, runs, threads, worker):
        whole.command(command)
    whole.command(map_, name="map")
    return whole


def names() -> list[str]:
    return [name for name in app() if not name.startswith("-")]


def command_list() -> str:
    """Each command with what it does and what it takes."""
    return "\n\n".join("\n".join(_command(name)) for name in names())


def exit_codes() -> str:
    rows = (f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items())
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def slash_words() -> str:
    """What a user says to the program in a conversation, as /help lists it."""
    rows = (f"| `{f'/{word.name} {word.argument}'.rstrip()}` | {word.help} |" for word in SLASH_COMMANDS)
    return "\n".join(["| word | what it does |", "|---|---|", *rows])


def _command(name: str) -> Iterator[str]:
    command = app()[name]
    yield f"## sabir {name}"
    yield paragraph(command.help)
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if argument.children:  # a group of flags, which follow by themselves
            continue
        required = " (required)" if argument.required else ""
        first = argument.names[0]
        by_place = [first[2:].upper()] if argument.index is not None and first.startswith("--") else []
        shown = ", ".join(f"`{each}`" for each in [*by_place, *argument.names])
        yield f"- {shown}{required}: {argument.parameter.help}"
