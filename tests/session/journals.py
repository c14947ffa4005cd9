"""A journal in memory, and what can be read of any journal: its records without ids and times."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sabir
from sabir_session import InnerMessage, Journal, Session, enable_inner_message_recording, get_inner_messages

Line = tuple[str, str]


class ListJournal:
    """Holds what is written to it; `before` is told of each record first, and may refuse it by raising."""

    def __init__(self, lines: Iterable[Line] = (), before: Callable[[InnerMessage], None] | None = None) -> None:
        self.lines = list(lines)
        self._before = before

    def append(self, kind: str, body: str) -> None:
        """Keep a record."""
        if self._before is not None:
            self._before(InnerMessage.model_validate_json(body))
        self.lines.append((kind, body))

    def read(self) -> list[Line]:
        """All records."""
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
