"""`sabir chat`: talk to a model, once or in a loop. The conversation is saved, unless --no-keep is given.

PROMPT, piped text, or both ──▶ one turn ──▶ text      no PROMPT on a terminal ──▶ a loop, until /quit or Ctrl-D

Before anything is sent to the model, files, options, the output's type and the folder of conversations are checked.
"""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import sabir
from cyclopts import Parameter

from sabir_cli import inputs
from sabir_cli.chat.attachments import AttachmentFlags
from sabir_cli.exits import Exit
from sabir_cli.output import Output, UsageError

if TYPE_CHECKING:  # the library is imported when a message is sent, not for the help page
    from sabir.authoring import JSONValue

    from sabir_cli.chat.answer_printer import Writer
    from sabir_cli.chat.console_chat import AnyAnswer, ConsoleChat
    from sabir_cli.chat.home import ChatLocation
    from sabir_cli.config import Defaults

NO_ATTACHMENTS = AttachmentFlags()
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""The same values as `sabir.authoring.ReasoningEffort`, whose import would slow down the help page."""


@Parameter(name="*")
@dataclass(frozen=True)
class ConversationFlags:
    """The flags that choose the conversation, and whether the conversation is saved."""

    continues_last: Annotated[
        bool, Parameter(name=["-c", "--continue"], negative="", help="Continue the last conversation.")
    ] = False
    name: Annotated[str | None, Parameter(help="Continue the conversation with this name, or begin it.")] = None
    no_keep: Annotated[bool, Parameter(negative="", help="Do not save this conversation.")] = False

    def __post_init__(self) -> None:
        """Check that the flags do not contradict each other. Raises UsageError if they do."""
        if self.continues_last and self.name is not None:
            raise UsageError("-c continues the last conversation, but --name names a conversation; remove -c or --name")
        if self.no_keep and (self.continues_last or self.name is not None):
            raise UsageError("--no-keep cannot continue a saved conversation; remove --no-keep, or -c and --name")


@Parameter(name="*")
@dataclass(frozen=True)
class CallFlags:
    """The flags with settings of the model call, the type of the answer, and the API's URL."""

    temperature: Annotated[float | None, Parameter(help="Sampling temperature.")] = None
    max_output_tokens: Annotated[int | None, Parameter(help="Maximum number of tokens of one reply.")] = None
    reasoning_effort: Annotated[Effort | None, Parameter(help="How much the model reasons, if it can.")] = None
    vendor: Annotated[
        list[str] | None,
        Parameter(negative="", help="key=value: a setting that only this vendor has; value may be JSON; repeatable."),
    ] = None

    output_type: Annotated[
        str | None,
        Parameter(name="--output", help="Require an answer of this type: the file of a JSON schema, or module:Model."),
    ] = None
    base_url: Annotated[str | None, Parameter(help="URL of a compatible API.")] = None

    def settings(self, defaults: "sabir.Settings", provider: str) -> "sabir.Settings":
        """Return the defaults, overridden by these flags. Raises SettingsInvalid for an invalid value, and UsageError
        for a --vendor without a value.
        """
        names = ("temperature", "max_output_tokens", "reasoning_effort")
        fields: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.vendor:
            fields["vendor"] = {provider: dict(map(_vendor_setting, self.vendor))}
        return sabir.Settings(**fields).laid_over(defaults)


def _vendor_setting(text: str) -> "tuple[str, JSONValue]":
    from sabir.authoring import decode_json
    from sabir.errors import NotJSON

    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"--vendor {text!r} has no value; write --vendor KEY=VALUE")
    try:
        return key, decode_json(value)
    except NotJSON:
        return key, value


NEW_CONVERSATION = ConversationFlags()
NO_CALL_FLAGS = CallFlags()


def chat(
    prompt: Annotated[str | None, inputs.STDIN_TOO, Parameter(help="Your message; - reads standard input.")] = None,
    /,
    *,
    model: inputs.ModelFlag = None,
    system: Annotated[str | None, Parameter(help="Instructions to the model.")] = None,
    conversation_flags: ConversationFlags = NEW_CONVERSATION,
    attachment_flags: AttachmentFlags = NO_ATTACHMENTS,
    option: inputs.OptionFlags = None,
    call_flags: CallFlags = NO_CALL_FLAGS,
    raw: Annotated[bool, Parameter(negative="", help="Do not lay out the text as Markdown.")] = False,
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
    from sabir_cli.chat.answer_printer import writer_for
    from sabir_cli.chat.console_chat import ConsoleChat
    from sabir_cli.chat.home import ChatLocation
    from sabir_cli.chat.output_types import load_output_type
    from sabir_cli.config import Defaults

    output = Output(machine=as_json)
    defaults = Defaults.load()
    options = inputs.load_options(option)
    output_type = None if call_flags.output_type is None else load_output_type(call_flags.output_type)
    loops = prompt is None and not as_json and sys.stdin is not None and sys.stdin.isatty()
    texts = [] if loops else inputs.read_message(prompt)
    attachments = [*attachment_flags.messages(), *attachment_flags.parts()]
    if not texts and not loops and not (conversation_flags.continues_last or conversation_flags.name):
        raise UsageError("there is no message to send; write a PROMPT, or pipe text into the command")

    with ExitStack() as stack:
        choice = {"continues_last": conversation_flags.continues_last, "is_saved": not conversation_flags.no_keep}
        location = stack.enter_context(ChatLocation.of(defaults.home, conversation_flags.name, **choice))
        llm = stack.enter_context(location.adapter(model, call_flags.base_url, output))
        settings = call_flags.settings(defaults.settings, llm.target.provider)
        arguments = {"options": options, "output": output_type, "settings": settings}
        conversation = location.open(llm, system, None if attachment_flags.history else defaults.system, **arguments)
        writer = writer_for(output, plain=raw or not defaults.markdown)
        chat = ConsoleChat(conversation, output, writer, shows_output=output_type is not None)
        stack.callback(chat.close)
        chat.attachments.extend(attachments)
        if loops:
            return _run_loop(chat, location, defaults)
        chat.writer = fail_safe = _FailSafeWriter(chat.writer)
        code = _send_once(chat, texts, as_json=as_json, name=location.name)
        if fail_safe.error is not None:
            raise fail_safe.error
        return code


class _FailSafeWriter:
    """A writer that stores the first OSError, such as a closed pipe, in `error`, and then writes nothing more. So the
    answer is still received and recorded completely.
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
            with suppress(OSError, ValueError):  # discard the rest of the buffer, whose flush would fail
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _send_once(chat: "ConsoleChat", texts: list[str], *, as_json: bool, name: str | None) -> int:
    had_question = chat.has_question
    try:
        if texts and chat.conversation.unfinished:
            chat.catch_up()
        answer = chat.say(*texts) if texts else chat.repeat()
    except BaseException:
        recovery = chat.recover()
        if recovery is not None and (recovery.is_kept or had_question):
            chat.output.note(f"{recovery.text}{'; sabir chat -c continues it' if recovery.is_kept else ''}")
        raise
    if as_json:
        chat.output.document(_answer_document(chat, answer, name))
    return Exit.FAILED if chat.printer.replies and chat.printer.replies[-1].failed else Exit.OK


def _run_loop(chat: "ConsoleChat", location: "ChatLocation", defaults: "Defaults") -> int:
    from sabir_cli.chat.loop import run_loop
    from sabir_cli.chat.message_reader import open_reader
    from sabir_cli.chat.slash_commands import suggest

    history = None if location.name is None else defaults.home / "history"
    run_loop(chat, open_reader(chat.output, history, suggest), location.name)
    return Exit.OK


def _answer_document(chat: "ConsoleChat", answer: "AnyAnswer", name: str | None) -> dict[str, Any]:  # any JSON
    """Return the JSON document that `--json` prints. The value of its field `messages` can be passed to `sabir
    render`.
    """
    reply = answer.reply.model_dump(
        mode="json", exclude={"messages", "alternatives", "details_json", "losses", "usage"}
    )
    return {
        "name": name,
        "text": answer.text,
        **({"output": chat.plain_output} if chat.shows_output else {}),
        **reply,
        "usage": answer.usage.model_dump(mode="json", exclude={"details_json"}),
        "prompt_cache": None if answer.prompt_cache is None else asdict(answer.prompt_cache),
        "cost": None if answer.cost is None else float(answer.cost),
        "losses": [loss.model_dump(mode="json") for loss in answer.losses],
        "tokens_per_second": chat.printer.replies[-1].rate if chat.printer.replies else None,
        "messages": [message.model_dump(mode="json", exclude_none=True) for message in chat.conversation.sent_messages],
    }
