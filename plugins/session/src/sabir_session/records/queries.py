"""What a session's records say: of which evaluation, which is the latest, which calls have no result yet.

get_latest_evaluation_id ─▶ get_inner_messages ─▶ get_pending_tool_calls ─▶ what a resumed run does first
"""

from sabir_session.errors import SliceNotRegistered
from sabir_session.records.inner_messages import InnerMessage, ToolCallRecord
from sabir_session.records.matching import unanswered
from sabir_session.records.reducer import inner_message_append
from sabir_session.state.session import Session


def enable_inner_message_recording(session: Session) -> None:
    """Register the slice of records, and load what the session's journal holds of it; calling it twice is harmless.

    Raises SliceConflict where records have another reducer already, JournalInvalid for a damaged journal.
    """
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)


def get_inner_messages(session: Session, evaluation_id: str | None = None) -> tuple[InnerMessage, ...]:
    """The records, all or of one evaluation, in the slice's order.

    () where nothing is recorded. SliceNotRegistered, from each of these queries, for a session that has a journal and
    does not record: what the journal holds is not loaded then.
    """
    _check_records(session)
    records = session.select_all(InnerMessage)
    if evaluation_id is None:
        return records
    return tuple(record for record in records if record.evaluation_id == evaluation_id)


def get_latest_evaluation_id(session: Session) -> str | None:
    """The evaluation to go on with: the last that began and has no end, or else the last that began.

    That began last of which the first record came last: a clock may have been set back since. None where nothing is
    recorded.
    """
    _check_records(session)
    lasts = get_last_records(session)
    unfinished = [last for last in lasts if not last.is_end]
    return (unfinished or lasts)[-1].evaluation_id if lasts else None


def get_last_records(session: Session) -> list[InnerMessage]:
    """The last record of each evaluation, in the order in which these began."""
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
