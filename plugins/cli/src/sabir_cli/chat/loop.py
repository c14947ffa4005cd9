"""The chat on a terminal: send each message to the model, and run slash commands, until the user leaves.

reader ──▶ /command ──▶ run_command       text ──▶ say ──▶ the answer
               └── error, Ctrl-C ──▶ a line that says whether the turn was kept, and then the next message
"""

from sabir.authoring import one_line

from sabir_cli.chat.console_chat import LONGEST_ANSWER, ConsoleChat, quoted
from sabir_cli.chat.message_reader import MessageReader
from sabir_cli.chat.slash_commands import Quit, is_command, run_command
from sabir_cli.chat.summaries import USER
from sabir_cli.failures import explain

AGAIN = "press Ctrl-C again to leave"
LEAVING_WORDS = frozenset({"exit", "quit"})
"""Messages after which the program asks whether to leave, because these words end other programs."""


def run_loop(chat: ConsoleChat, reader: MessageReader, name: str | None) -> None:
    """Read messages and commands, and process them, until the user leaves.

    `name` is the saved conversation's name; None if the conversation is not saved. Exceptions of messages and commands
    are printed, except BrokenPipeError, which is raised.
    """
    _greet(chat, name)
    is_leaving = False
    while True:
        try:
            text = reader.read().strip()
        except EOFError:
            break
        except KeyboardInterrupt:
            if is_leaving:
                break
            is_leaving = True
            chat.output.note(f"{AGAIN}, or Ctrl-D")
            continue
        is_leaving = False
        try:
            _process_input(chat, reader, text)
        except Quit:
            break
        except KeyboardInterrupt:
            is_leaving = True
            recovery = chat.recover(stopped=True)
            texts = (recovery.text, recovery.remedy) if recovery else ()
            chat.output.note("; ".join(("stopped", *texts, AGAIN)))
        except BrokenPipeError:
            raise
        except Exception as error:
            recovery = chat.recover()
            chat.output.error(f"{explain(error)}{f' ({recovery.text}; {recovery.remedy})' if recovery else ''}")
    _print_farewell(chat, name)


def _process_input(chat: ConsoleChat, reader: MessageReader, text: str) -> None:
    """Run a slash command, or send a message. Raises Quit if the user leaves, and what the command or the call
    raises.
    """
    if text.lower() in LEAVING_WORDS:
        if reader.confirm(f"Leave? y/N (to send the word, type //{text}) "):
            raise Quit
    elif is_command(text):
        run_command(chat, text)
    elif text:
        chat.say(text[1:] if text.startswith("//") else text)
        chat.output.note("")


def _greet(chat: ConsoleChat, name: str | None) -> None:
    storage = f"saved as {name}" if name else "not saved; /save FILE writes it to a file"
    chat.output.note(f"{chat.target} · {storage} · /help")
    questions = [message for message in chat.conversation.messages if message.policy == USER]
    if questions:
        chat.output.note(f"> {quoted(questions[-1])}", "bold dim")
        messages = reversed(chat.conversation.messages)
        texts = (message.text for message in messages if message.policy != USER and message.result is None)
        last = next(filter(None, texts), "")
        if chat.conversation.unfinished:
            chat.output.note("this turn was interrupted: /retry continues it, /drop removes it", "yellow")
        elif last:
            chat.output.note(one_line(last, LONGEST_ANSWER))


def _print_farewell(chat: ConsoleChat, name: str | None) -> None:
    if chat.attachments:
        chat.output.note(f"{len(chat.attachments)} attached, but never sent")
    if name and chat.has_question:
        chat.output.note(f"saved as {name}; sabir chat -c continues it, sabir inspect shows it in the browser")
