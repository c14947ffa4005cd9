"""What a session's records say: of which evaluation, which is the latest, which calls have no result yet.

get_latest_evaluation_id ─▶ get_inner_messages ─▶ get_pending_tool_calls ─▶ what a resumed run does first
"""

from sabir_session.conversation import inner_message_append
from sabir_session.errors import SliceNotRegistered
from sabir_session.matching import unanswered
from sabir_session.records import InnerMessage, ToolCallRecord
from sabir_session.session import Session


def enable_inner_message_recording(session: Session) -> None:
    """Register the slice of records, and load what the session's journal holds of it; calling it twice is harmless.

    WI-22. Raises SliceConflict where records have another reducer already, JournalInvalid for a damaged journal.
    """
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)


def get_inner_messages(session: Session, evaluation_id: str | None = None) -> tuple[InnerMessage, ...]:
    """The records, all or of one evaluation, in the slice's order (WI-36, D-13).

    () where nothing is recorded. SliceNotRegistered, from each of these queries, for a session that has a journal and
    does not record: what the journal holds is not loaded then.
    """
    if session.has_journal and not session.is_registered(InnerMessage):
        raise SliceNotRegistered(
            "the session does not record, so nothing of its journal is loaded; "
            "call enable_inner_message_recording(session) first"
        )
    records = session.select_all(InnerMessage)
    if evaluation_id is None:
        return records
    return tuple(record for record in records if record.evaluation_id == evaluation_id)


def get_latest_evaluation_id(session: Session) -> str | None:
    """The evaluation that began last, by its first record; of those at one moment, the later arrival (WI-37, D-14).

    None where nothing is recorded.
    """
    firsts: dict[str, InnerMessage] = {}
    for record in get_inner_messages(session):
        firsts.setdefault(record.evaluation_id, record)
    latest = max(reversed(firsts.values()), key=lambda record: record.created_at, default=None)
    return None if latest is None else latest.evaluation_id


def get_pending_tool_calls(session: Session, evaluation_id: str) -> tuple[ToolCallRecord, ...]:
    """The calls of an evaluation that no result answers, in call order; () where all are answered (WI-38, UP-13)."""
    return tuple(unanswered(get_inner_messages(session, evaluation_id)))
