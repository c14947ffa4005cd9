"""Queries of a session's records: by evaluation, the latest evaluation, calls without a result.

get_latest_evaluation_id ─▶ get_inner_messages ─▶ get_pending_tool_calls ─▶ the first calls of a resumed run
"""

from sabir_session.errors import SliceNotRegistered
from sabir_session.records.inner_messages import InnerMessage, ToolCallRecord
from sabir_session.records.matching import unanswered
from sabir_session.records.reducer import inner_message_append
from sabir_session.state.session import Session


def enable_inner_message_recording(session: Session) -> None:
    """Register the slice of records, and load the records of the session's journal; calling it twice is harmless.

    Raises SliceConflict if records already have another reducer, JournalInvalid for a damaged journal.
    """
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)


def get_inner_messages(session: Session, evaluation_id: str | None = None) -> tuple[InnerMessage, ...]:
    """The records, all or of one evaluation, in the slice's order.

    () if nothing is recorded. Each of these queries raises SliceNotRegistered for a session that has a journal and does
    not record: the journal's records are not loaded then.
    """
    _check_records(session)
    records = session.select_all(InnerMessage)
    if evaluation_id is None:
        return records
    return tuple(record for record in records if record.evaluation_id == evaluation_id)


def get_latest_evaluation_id(session: Session) -> str | None:
    """The evaluation to continue: the last unfinished one, else the last one.

    The last one is the evaluation whose first record arrived last: clocks may have been set back. None if nothing is
    recorded.
    """
    _check_records(session)
    lasts = get_last_records(session)
    unfinished = [last for last in lasts if not last.is_end]
    return (unfinished or lasts)[-1].evaluation_id if lasts else None


def get_last_records(session: Session) -> list[InnerMessage]:
    """The last record of each evaluation, in the order in which the evaluations began."""
    return [*{record.evaluation_id: record for record in session.select_arrived(InnerMessage)}.values()]


def _check_records(session: Session) -> None:
    if session.has_journal and not session.is_registered(InnerMessage):
        raise SliceNotRegistered(
            "the session does not record, so nothing of its journal is loaded; "
            "call enable_inner_message_recording(session) first"
        )


def get_pending_tool_calls(session: Session, evaluation_id: str) -> tuple[ToolCallRecord, ...]:
    """The calls of an evaluation that no result answers, in call order; () where all are answered."""
    return tuple(unanswered(get_inner_messages(session, evaluation_id)))
