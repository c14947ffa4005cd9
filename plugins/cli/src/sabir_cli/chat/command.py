"""`sabir chat`: talk to a model, once or in a loop. The conversation is saved, unless --no-keep is given.

PROMPT, piped text, or both ──▶ one turn ──▶ text      no PROMPT on a terminal ──▶ a loop, until /quit or Ctrl-D

Files, options, the output's type and the folder of conversations are checked before anything is sent to the model.
"""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import sabir
from cyclopts import Parameter

from sabir_cli import inputs
from sabir_cli.chat.attachments import Attached
from sabir_cli.exits import Exit
from sabir_cli.output import Output, UsageError

if TYPE_CHECKING:  # the library is imported when a message is sent, not for the help page
    from sabir.authoring import JSONValue

    from sabir_cli.chat.answer_printer import Writer
    from sabir_cli.chat.console_chat import Answer, Talk
    from sabir_cli.chat.home import Place
    from sabir_cli.config import Defaults

NOTHING_ATTACHED = Attached()
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""The same values as `sabir.authoring.ReasoningEffort`, whose import would slow down the help page."""


@Parameter(name="*")
@dataclass(frozen=True)
class Keep:
    """The flags that choose the conversation, and whether the conversation is saved."""

    goes_on: Annotated[
        bool, Parameter(name=["-c", "--continue"], negative="", help="Continue the last conversation.")
    ] = False
    name: Annotated[str | None, Parameter(help="Continue the conversation with this name, or begin it.")] = None
    no_keep: Annotated[bool, Parameter(negative="", help="Do not save this conversation.")] = False

    def __post_init__(self) -> None:
        """Check that the flags do not contradict each other. Raises UsageError if they do."""
        if self.goes_on and self.name is not None:
            raise UsageError("-c continues the last conversation, but --name names a conversation; remove -c or --name")
        if self.no_keep and (self.goes_on or self.name is not None):
            raise UsageError("--no-keep cannot continue a saved conversation; remove --no-keep, or -c and --name")


@Parameter(name="*")
@dataclass(frozen=True)
class Asked:
    """The flags with settings of the model call, the type of the answer, and the API's URL."""

    temperature: Annotated[float | None, Parameter(help="Sampling temperature.")] = None
    max_output_tokens: Annotated[int | None, Parameter(help="Maximum number of tokens of one reply.")] = None
    reasoning_effort: Annotated[Effort | None, Parameter(help="How much the model reasons, if it can.")] = None
    vendor: Annotated[
        list[str] | None,
        Parameter(negative="", help="key=value: a setting that only this vendor has; value may be JSON; repeatable."),
    ] = None

    form: Annotated[
        str | None,
        Parameter(name="--output", help="Require an answer of this type: the file of a JSON schema, or module:Model."),
    ] = None
    base_url: Annotated[str | None, Parameter(help="URL of a compatible API.")] = None

    def settings(self, defaults: "sabir.Settings", provider: str) -> "sabir.Settings":
        """Return the defaults, overridden by these flags. Raises SettingsInvalid for an invalid value, and UsageError
        for a --vendor without a value.
        """
        names = ("temperature", "max_output_tokens", "reasoning_effort")
        given: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.vendor:
            given["vendor"] = {provider: dict(map(_vendor_setting, self.vendor))}
        return sabir.Settings(**given).laid_over(defaults)


def _vendor_setting(given: str) -> "tuple[str, JSONValue]":
    from sabir.authoring import decode_json
    from sabir.errors import NotJSON

    key, equals, value = given.partition("=")
    if not (key and equals):
        raise UsageError(f"--vendor {given!r} has no value; write --vendor KEY=VALUE")
    try:
        return key, decode_json(value)
    except NotJSON:
        return key, value


NEW_AND_KEPT = Keep()
AS_DEFAULTS_SAY = Asked()


def chat(
    prompt: Annotated[str | None, inputs.STDIN_TOO, Parameter(help="Your message; - reads standard input.")] = None,
    /,
    *,
    model: inputs.ModelFlag = None,
    system: Annotated[str | None, Parameter(help="Instructions to the model.")] = None,
    keep: Keep = NEW_AND_KEPT,
    attached: Attached = NOTHING_ATTACHED,
    option: inputs.OptionFlags = None,
    asked: Asked = AS_DEFAULTS_SAY,
    raw: Annotated[bool, Parameter(negative="", help="Print the text unchanged, not laid out as Markdown.")] = False,
    as_json: inputs.JSONFlag = False,
) -> int:
    """Talk to a model: send one PROMPT, or chat on a terminal.

    Text that you pipe into the command is sent before the PROMPT. The answer
    goes to standard output as it arrives. Option calls, results, losses,
    tokens and cost go to standard error.

    Conversations are saved; `sabir chats` lists them. In a script, -c or
    --name without a message finishes an interrupted answer, or prints the
    last answer again.
    """
    from sabir_cli.chat.home import Place
    from sabir_cli.chat.output_types import load_form
    from sabir_cli.config import Defaults

    output = Output(machine=as_json)
    defaults = Defaults.load()
    options = inputs.load_options(option)
    form = None if asked.form is None else load_form(asked.form)
    loops = prompt is None and not as_json and sys.stdin is not None and sys.stdin.isatty()
    said = [] if loops else inputs.read_said(prompt)
    before = [*attached.messages(), *attached.parts()]
    if not said and not loops and not (keep.goes_on or keep.name):
        raise UsageError("there is no message to send; write a PROMPT, or pipe text into the command")

    with ExitStack() as stack:
        place = stack.enter_context(Place.of(defaults.home, keep.name, last=keep.goes_on, kept=not keep.no_keep))
        llm = stack.enter_context(place.adapter(model, asked.base_url, output))
        settings = asked.settings(defaults.settings, llm.target.provider)
        how = {"options": options, "output": form, "settings": settings}
        conversation = place.open(llm, system, None if attached.history else defaults.system, **how)
        talk = _talk(conversation, output, plain=raw or not defaults.markdown, form=form)
        talk.attached.extend(before)
        if loops:
            return _loop(talk, place, defaults)
        lasting = talk.writer = _Lasting(talk.writer)
        code = _once(talk, said, as_json=as_json, name=place.name)
        if lasting.error is not None:
            raise lasting.error
        return code


class _Lasting:
    """A writer that writes nothing after the first OSError, such as a closed pipe, so that the complete answer is still
    recorded. The error is in `error`.
    """

    def __init__(self, writer: "Writer") -> None:
        self._writer = writer
        self.error: OSError | None = None

    def write(self, text: str) -> None:
        self._try(lambda: self._writer.write(text))

    def end(self) -> None:
        self._try(self._writer.end)

    def _try(self, act: Callable[[], None]) -> None:
        if self.error is not None:
            return
        try:
            act()
        except OSError as error:
            self.error = error
            with suppress(OSError, ValueError):  # so that the rest of the buffer is discarded without an error
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _once(talk: "Talk", said: list[str], *, as_json: bool, name: str | None) -> int:
    was_begun = talk.is_begun
    try:
        if said and talk.chat.unfinished:
            talk.catch_up()
        answer = talk.say(*said) if said else talk.repeat()
    except BaseException:
        became = talk.recover()
        if became is not None and (became.is_kept or was_begun):
            talk.output.note(f"{became.text}{'; sabir chat -c continues it' if became.is_kept else ''}")
        raise
    if as_json:
        talk.output.document(_document(talk, answer, name))
    return Exit.FAILED if talk.shown.heard and talk.shown.heard[-1].failed else Exit.OK


def _loop(talk: "Talk", place: "Place", defaults: "Defaults") -> int:
    from sabir_cli.chat.loop import hold
    from sabir_cli.chat.message_reader import open_entry
    from sabir_cli.chat.slash_commands import suggest

    history = None if place.name is None else defaults.home / "history"
    hold(talk, open_entry(talk.output, history, suggest), place.name)
    return Exit.OK


def _talk(conversation: Any, output: Output, *, plain: bool, form: object) -> "Talk":  # its output is of any type
    from sabir_cli.chat.answer_printer import writer_for
    from sabir_cli.chat.console_chat import Talk

    return Talk(conversation, output, writer_for(output, plain=plain), shows_output=form is not None)


def _document(talk: "Talk", answer: "Answer", name: str | None) -> dict[str, Any]:  # any JSON
    """Return the JSON document that `--json` prints. The value of its field `messages` can be passed to `sabir
    render`.
    """
    reply = answer.reply.model_dump(
        mode="json", exclude={"messages", "alternatives", "details_json", "losses", "usage"}
    )
    return {
        "name": name,
        "text": answer.text,
        **({"output": talk.plain_output} if talk.shows_output else {}),
        **reply,
        "usage": answer.usage.model_dump(mode="json", exclude={"details_json"}),
        "cost": None if answer.cost is None else float(answer.cost),
        "losses": [loss.model_dump(mode="json") for loss in answer.losses],
        "tokens_per_second": talk.shown.heard[-1].rate if talk.shown.heard else None,
        "messages": [message.model_dump(mode="json", exclude_none=True) for message in talk.chat.sent_messages],
    }
