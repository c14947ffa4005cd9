"""Recorded conversations for the tests of `sabir replay`."""

from pathlib import Path
from typing import Any

import sabir
import sabir_session
from pydantic import BaseModel
from sabir_cli.replay.recording import RecordedQuestion, read_questions
from sabir_testing import ScriptedAdapter
from sabir_testing.scripted import Scriptable

RAN: list[str] = []
"""The cities for which the option ran."""


class City(BaseModel):
    name: str


@sabir.option
def weather(city: str) -> dict[str, Any]:
    "Current weather in a city."
    RAN.append(city)
    return {"sky": "rain", "celsius": len(city)}


def record(
    store: Path | sabir_session.Store, name: str, *questions: str, script: tuple[Scriptable, ...] = (), **how: Any
) -> None:
    """Record a conversation. The model is echo, or a script."""
    llm = ScriptedAdapter(*script, model="openai.chat:gpt-4.1") if script else sabir.adapter("echo:m")
    arguments = {"instructions": "Be brief.", "options": [weather], **how}
    with sabir_session.Conversation(llm, **arguments, keep=store, name=name) as chat:
        for question in questions:
            chat.ask_sync(question)


def questions_of(store: sabir_session.Store, name: str) -> list[RecordedQuestion]:
    session = sabir_session.Session(journal=store.journal(name))
    sabir_session.enable_inner_message_recording(session)
    return read_questions(sabir_session.get_inner_messages(session))
