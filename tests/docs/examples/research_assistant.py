"""A research assistant on the command line, `python research_assistant.py [provider:model]`; it remembers."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import sabir
from pydantic import BaseModel
from sabir_session import Conversation

HELP = "/model NAME · /image FILE · /report · /undo · /quit, or a question"
NOTES = Path("notes")


class Report(BaseModel):
    """What was found out."""

    title: str
    findings: list[str]
    open_questions: list[str] = []


def search(words: str) -> list[str]:
    """Name the notes in which a text occurs."""
    return [note.name for note in sorted(NOTES.glob("*.md")) if words.lower() in note.read_text("utf-8").lower()]


def read(name: str) -> str:
    """Read a note."""
    return (NOTES / Path(name).name).read_text("utf-8")


def ask(chat: Conversation[None], question: list[str | sabir.MediaPart]) -> None:
    """Print the answer as it arrives, then what it cost and what the model could not be sent."""
    with chat.stream_sync(*question) as stream:
        for text in stream.text:
            print(text, end="", flush=True)
        answer = stream.answer()
    print(f"\n[{answer.usage}, cost {answer.cost}, {len(answer.losses)} losses]")


def report(chat: Conversation[None]) -> None:
    """Print a structured report of what was said."""
    found = chat.ask_sync("Report what we found out.", output=Report).output
    print(found.title, *(f"- {finding}" for finding in found.findings), sep="\n")
    print(*(f"? {question}" for question in found.open_questions), sep="\n")


def main(model: str | sabir.Adapter, lines: Iterable[str]) -> None:
    """Answer line by line; what was asked and answered is kept in research.db."""
    attached: list[str | sabir.MediaPart] = []
    with Conversation(
        model, instructions="Use the notes. Be brief.", options=[search, read], keep="research.db", name="research"
    ) as chat:
        print(f"{len(chat.messages)} messages so far. {HELP}")
        for line in map(str.strip, lines):
            word, _, rest = line.partition(" ")
            try:
                if word == "/quit":
                    break
                elif word == "/model":
                    chat.model = rest
                    print(f"{rest} loses: {[str(loss) for loss in chat.preview().losses]}")
                elif word == "/image":
                    attached.append(sabir.image(Path(rest)))
                elif word == "/report":
                    report(chat)
                elif word == "/undo":
                    print(f"took back {len(chat.drop_last())} messages")
                elif word.startswith("/"):
                    print(HELP)
                elif line:
                    ask(chat, [line, *attached])
                    attached = []
            except sabir.SabirError as error:
                print(f"error: {error}")
        print(f"spent: {chat.usage}, cost {chat.cost}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SABIR_MODEL", "local:smollm2"), sys.stdin)
