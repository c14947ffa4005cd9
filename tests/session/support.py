"""Records, sessions and stores that tests share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import sabir
from sabir import Message
from sabir_session import (
    InnerMessage,
    PostgresStore,
    Session,
    SQLiteStore,
    Store,
    ToolCallRecord,
)

from tests.session.journals import ListJournal

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
