"""The chat on a terminal: send each message to the model, and run slash commands, until the user leaves.

entry ──▶ /command ──▶ obey       text ──▶ say ──▶ the answer
             └── error, Ctrl-C ──▶ a line that tells whether the turn was kept, and then the next message
"""

import sabir
from sabir.authoring import one_line

from sabir_cli.chat.console_chat import LONGEST_ANSWER, Talk, quoted
from sabir_cli.chat.message_reader import Entry
from sabir_cli.chat.slash_commands import Leave, is_word, obey
from sabir_cli.chat.summaries import USER
from sabir_cli.failures import explain

AGAIN = "press Ctrl-C again to leave"
LEAVING_WORDS = frozenset({"exit", "quit"})
"""Messages after which the program asks whether to leave, because these words end other programs."""


def hold(talk: Talk, entry: Entry, name: str | None) -> None:
    """Read messages and commands, and answer them, until the user leaves. `name` is the saved conversation's name; None
    if the conversation is not saved.
    """
    _greet(talk, name)
    is_leaving = False
    while True:
        try:
            text = entry.read().strip()
        except EOFError:
            break
        except KeyboardInterrupt:
            if is_leaving:
                break
            is_leaving = True
            talk.output.note(f"{AGAIN}, or Ctrl-D")
            continue
        is_leaving = False
        try:
            _take(talk, entry, text)
        except Leave:
            break
        except KeyboardInterrupt:
            is_leaving = True
            became = talk.recover(stopped=True)
            told = (became.text, became.remedy) if became else ()
            talk.output.note("; ".join(("stopped", *told, AGAIN)))
        except BrokenPipeError:
            raise
        except Exception as error:
            became = talk.recover()
            talk.output.error(f"{explain(error)}{f' ({became.text}; {became.remedy})' if became else ''}")
    _part(talk, name)


def _take(talk: Talk, entry: Entry, text: str) -> None:
    """Run a slash command, or send a message. Raises Leave if the user leaves, and what the command or the call
    raises.
    """
    if text.lower() in LEAVING_WORDS:
        if entry.confirm(f"Leave? y/N (to send the word, type //{text}) "):
            raise Leave
    elif is_word(text):
        obey(talk, text)
    elif text:
        talk.say(text[1:] if text.startswith("//") else text)
        talk.output.note("")


def _greet(talk: Talk, name: str | None) -> None:
    where = f"saved as {name}" if name else "not saved; /save FILE writes it to a file"
    talk.output.note(f"{talk.target} · {where} · /help")
    said = [message for message in talk.chat.messages if message.policy == USER]
    if said:
        talk.output.note(f"> {quoted(said[-1])}", "bold dim")
        last = _last_answer(talk.chat.messages)
        if talk.chat.unfinished:
            talk.output.note("this turn was interrupted: /retry continues it, /drop removes it", "yellow")
        elif last:
            talk.output.note(one_line(last, LONGEST_ANSWER))


def _last_answer(messages: tuple[sabir.Message, ...]) -> str:
    texts = [message.text for message in messages if message.policy != USER and message.result is None]
    return next((text for text in reversed(texts) if text), "")


def _part(talk: Talk, name: str | None) -> None:
    if talk.attached:
        talk.output.note(f"{len(talk.attached)} attached, but never sent")
    if name and talk.is_begun:
        talk.output.note(f"saved as {name}; sabir chat -c continues it")
