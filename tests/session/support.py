"""Records, sessions, journals and stores that tests share, and a town whose evaluation can be interrupted."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
import sabir
from sabir import Message, ToolContext
from sabir_session import (
    Answer,
    Conversation,
    InnerMessage,
    Journal,
    PostgresStore,
    Prompt,
    PromptResponse,
    Session,
    SQLiteStore,
    Store,
    ToolCallRecord,
    enable_inner_message_recording,
    evaluate_sync,
    get_inner_messages,
)
from sabir_testing.scripted import ScriptedAdapter

Line = tuple[str, str]


class ListJournal:
    """Holds what is written to it; `before` is told of each record first, and may refuse it by raising."""

    def __init__(self, lines: Iterable[Line] = (), before: Callable[[InnerMessage], None] | None = None) -> None:
        self.lines = list(lines)
        self._before = before

    def append(self, kind: str, body: str) -> None:
        if self._before is not None:
            self._before(InnerMessage.model_validate_json(body))
        self.lines.append((kind, body))

    def read(self) -> list[Line]:
        return list(self.lines)


def recording(journal: Journal | None = None) -> Session:
    """A session that records, and holds what a journal holds."""
    session = Session(journal=journal)
    enable_inner_message_recording(session)
    return session


def records_of(session: Session) -> list[Any]:
    """What the session's records say, without ids, times and whatever else differs from run to run.

    Ids of calls are named in the order in which they appear: some wires have none, and core makes them up.
    """
    names: dict[str, str] = {}
    return [_named(_told(record), names) for record in get_inner_messages(session)]


def numbers_of(session: Session) -> list[tuple[str, int, int]]:
    """Role, sequence and turn of each record."""
    return [(record.role, record.sequence, record.turn) for record in get_inner_messages(session)]


def _told(record: InnerMessage) -> dict[str, Any]:
    said = record.model_dump(exclude={"evaluation_id", "created_at", "message_id", "messages"})
    return {**said, "messages": [_content(message) for message in record.messages]}


def _content(message: sabir.Message) -> dict[str, Any]:
    return message.model_dump(exclude={"id": True, "origin": {"response_id"}})


def _named(value: Any, names: dict[str, str], key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {each: _named(held, names, each) for each, held in value.items()}
    if isinstance(value, list | tuple):
        return [_named(each, names) for each in value]
    is_id = key in ("call_id", "invocation_id", "tool_call_id") and value is not None
    return names.setdefault(value, f"id-{len(names)}") if is_id else value


Ask: TypeAlias = Callable[..., Answer[Any]]
"""One way to ask a conversation, to the end."""
Opener: TypeAlias = Callable[[], Store]
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def opener(address: str) -> Opener:
    """What opens the store at a path or a URL."""
    return lambda: PostgresStore(address) if address.startswith("postgresql://") else SQLiteStore(address)


def minutes(number: float) -> datetime:
    """A moment so many minutes after noon."""
    return NOON + timedelta(minutes=number)


def call(call_id: str, name: str = "weather") -> ToolCallRecord:
    return ToolCallRecord(call_id=call_id, name=name, arguments='{"city": "Bern"}')


def result_message(call_id: str, *, fails: bool = False) -> Message:
    failure = {"is_error": True, "error_type": "timeout", "error_message": "no answer"} if fails else {"result": "rain"}
    payload = sabir.OptionResultPayload(invocation_id=call_id, option_name="weather", **failure)
    return Message(policy="weather", payload=payload)


def system(evaluation: str = "e", **fields: Any) -> InnerMessage:
    fields = {"sequence": 0, "content": "Be brief.", "created_at": NOON, **fields}
    return InnerMessage(role="system", evaluation_id=evaluation, **fields)


def asked(sequence: int, *call_ids: str, evaluation: str = "e", **fields: Any) -> InnerMessage:
    """An assistant record with calls of these ids."""
    fields = {"content": "", "created_at": NOON, "tool_calls": tuple(map(call, call_ids)), **fields}
    return InnerMessage(role="assistant", evaluation_id=evaluation, sequence=sequence, **fields)


def told(sequence: int, call_id: str, *, evaluation: str = "e", fails: bool = False, **fields: Any) -> InnerMessage:
    """A tool record that answers a call."""
    fields = {"content": "rain", "created_at": NOON, "messages": (result_message(call_id, fails=fails),), **fields}
    return InnerMessage(role="tool", evaluation_id=evaluation, sequence=sequence, tool_call_id=call_id, **fields)


def record_all(session: Session, records: Iterable[InnerMessage]) -> None:
    for record in records:
        session.mutate(InnerMessage).append(record)


def statuses(session: Session) -> dict[str, str]:
    """Call id → its status, the last one of each."""
    return {each.call_id: each.status for record in session.select_all(InnerMessage) for each in record.tool_calls}


class FullJournal(ListJournal):
    """A journal that takes nothing from its `limit`-th record on."""

    def __init__(self, limit: int = 0) -> None:
        super().__init__()
        self.limit = limit

    def append(self, kind: str, body: str) -> None:
        if len(self.lines) >= self.limit:
            raise OSError("no space left on device")
        super().append(kind, body)


@dataclass(frozen=True)
class Plan:
    """A state slice's item."""

    goal: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """An event that changes plans."""

    text: str


@dataclass(frozen=True)
class Note:
    """A log slice's item that is no pydantic model."""

    text: str


PROMPT: Prompt[None] = Prompt(ns="trips", key="umbrella", system="Be brief.", messages=[sabir.user("Umbrella today?")])
PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}


@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"rain in {city}"


@sabir.option
async def tide(city: str) -> str:
    "The tide in a city."
    return f"low in {city}"


class Stopped(BaseException):
    """The process ends here."""


class Town:
    """Two options that log their runs; one of them can be made to end the process."""

    def __init__(self, *, stops: str = "") -> None:
        self.ran: list[tuple[str, bool]] = []
        self._stops = stops

    def weather(self, city: str) -> str:
        if city == self._stops:
            raise Stopped
        context = ToolContext.current()
        self.ran.append((context.call_id, context.is_resume))
        return f"rain in {city}"

    def run(
        self, llm: sabir.Adapter, session: Session, *, resume: bool = False, evaluation_id: str | None = None
    ) -> PromptResponse[None]:
        return evaluate_sync(
            llm, PROMPT, session=session, options=[self.weather], resume=resume, evaluation_id=evaluation_id
        )


def interrupted(journal: ListJournal, *answers: Any, stops: str = "Rome") -> Town:
    """A town whose process ended while the weather in that city was looked up."""
    town = Town(stops=stops)
    with pytest.raises(Stopped):
        town.run(ScriptedAdapter(*answers), recording(journal))
    return town


def texts_of(chat: Conversation[Any]) -> list[str]:
    """The text of each message with one, without the results of options."""
    return [message.text for message in chat.messages if message.text and message.result is None]
