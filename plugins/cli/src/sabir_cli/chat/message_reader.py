"""Read the user's messages: in an editor if the terminal supports one, else line by line.

    Enter                       sends the message
    Alt-Enter, or \\ and Enter   begins a new line
    a paste of several lines    is one message

The editor has a history, stored in a file if a path is given, and completes slash commands and their arguments.
"""

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sabir.authoring import create_private_file

from sabir_cli.output import Output

if TYPE_CHECKING:  # the editor is loaded only when it is used, not for a pipe
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

PROMPT = "> "
MORE = "  "
"""The prompt of the second and further lines of a message."""
PASTED_WITHIN = 0.05
"""Seconds. Lines that arrive faster were pasted, not typed, and form one message."""
WITHOUT_CURSOR = frozenset({"", "dumb", "unknown", "network"})
"""Values of TERM for terminals whose cursor cannot be moved."""


class Suggestion(NamedTuple):
    """A completion: `text` replaces the `replaced` characters before the cursor, and `help` explains the completion."""

    text: str
    replaced: int
    help: str = ""


Suggest = Callable[[str], Iterable[Suggestion]]
"""A function that returns the completions of the text before the cursor."""


class MessageReader(Protocol):
    """Reads the messages that the user types: in an editor, or line by line."""

    def read(self) -> str:
        """Return the next message. Raises EOFError at the end of the input.

        Raises KeyboardInterrupt for Ctrl-C. In the editor, Ctrl-C first clears the text, if there is any.
        """
        ...

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question and return True for yes. The end of the input means yes. Ctrl-C means no in the
        editor, and raises KeyboardInterrupt otherwise.
        """
        ...


def open_reader(output: Output, history: Path | None, suggest: Suggest) -> MessageReader:
    """Return an editor if standard input and output are a terminal with a cursor, else a reader of plain lines."""
    has_cursor = os.name == "nt" or os.environ.get("TERM", "") not in WITHOUT_CURSOR
    if has_cursor and sys.stdin.isatty() and sys.stdout.isatty():
        return _Editor(history, suggest)
    return _LineReader(output)


class _LineReader:
    """Reads messages from standard input line by line."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def read(self) -> str:
        was_typed_before = _has_input(0)
        lines = [self._read_line(PROMPT)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._read_line(MORE))
        while not was_typed_before and _has_input(PASTED_WITHIN):
            lines.append(self._read_line(""))
        return "\n".join(lines)

    def confirm(self, question: str) -> bool:
        try:
            return is_yes(self._read_line(question))
        except EOFError:
            return True

    def _read_line(self, prompt: str) -> str:
        self._output.err.print(prompt, end="", soft_wrap=True)
        if not (line := sys.stdin.readline()):
            self._output.err.print()
            raise EOFError
        return line.rstrip("\n")


def _has_input(seconds: float) -> bool:
    """Return whether a further line arrives on a terminal within this number of seconds. False if standard input is not
    a terminal, and on Windows.
    """
    if os.name == "nt" or not sys.stdin.isatty():
        return False
    return bool(select.select([sys.stdin], [], [], seconds)[0])


class _Editor:
    """Reads messages with prompt_toolkit."""

    def __init__(self, history: Path | None, suggest: Suggest) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        class SlashCompleter(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
                for suggestion in suggest(document.text_before_cursor):
                    yield Completion(suggestion.text, -suggestion.replaced, display_meta=suggestion.help)

        if history is not None:
            with suppress(OSError):  # without the file, the history lasts until the program ends
                create_private_file(history)
        is_writable = history is not None and os.access(history, os.W_OK)
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=FileHistory(str(history)) if is_writable else InMemoryHistory(),
            completer=SlashCompleter(),
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            reserve_space_for_menu=6,
            key_bindings=_key_bindings(),
            prompt_continuation=MORE,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".md",
        )

    def read(self) -> str:
        return self._session.prompt()

    def confirm(self, question: str) -> bool:
        from prompt_toolkit import PromptSession

        try:
            # in a separate session, so that the answer does not get into the history
            return is_yes(PromptSession[str]().prompt(question))
        except EOFError:
            return True
        except KeyboardInterrupt:
            return False


def is_yes(answer: str) -> bool:
    """Return whether the answer to a question is "y" or "yes", in any case."""
    return answer.strip().lower() in ("y", "yes")


def _key_bindings() -> "KeyBindings":
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("tab")
    def complete(event: "KeyPressEvent") -> None:
        """Insert the only completion at once. If there are several, show them, or go to the next one."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and len(state.completions) == 1:
            buffer.apply_completion(state.completions[0])
        elif state is not None:
            buffer.complete_next()
        elif buffer.completer is not None:
            candidates = [*buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True))]
            if len(candidates) == 1:
                buffer.apply_completion(candidates[0])
            else:
                buffer.start_completion(insert_common_part=True)

    @keys.add("escape", "enter")
    def new_line(event: "KeyPressEvent") -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c")
    def clear(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.text:  # the upward key shows the text again
            buffer.reset(append_to_history=True)
        else:
            event.app.exit(exception=KeyboardInterrupt())

    return keys


@contextmanager
def echo_disabled() -> Iterator[None]:
    """Do not echo keys that are pressed in the `with` block, so that they do not mix with other text.

    The keys are not lost: the next prompt receives them. Without a terminal, and on Windows, nothing is changed.
    """
    try:
        import termios
    except ImportError:
        yield
        return
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, AttributeError, termios.error):  # standard input is not a terminal
        yield
        return
    flags = before[3] & ~termios.ECHO | termios.NOFLSH  # NOFLSH, so that Ctrl-C does not discard keys
    silent = [*before[:3], flags, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
