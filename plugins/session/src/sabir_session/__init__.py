"""Conversations that outlive their process, for sabir: sessions, recordings, snapshots and stores.

with SQLiteStore("chats.db") as store:
    session = Session(journal=store.journal("monday"))
    enable_inner_message_recording(session)     # what is there is loaded; what comes is written before it counts
"""

from sabir_session.bus import EventBus, InProcessEventBus, Subscription
from sabir_session.conversation import inner_message_append
from sabir_session.errors import (
    JournalExists,
    JournalInvalid,
    JournalMissing,
    ObserverInvalid,
    PositionTaken,
    RecordConflict,
    RecordingFailed,
    SessionError,
    SliceConflict,
    SliceNotRegistered,
    SnapshotRestoreError,
    SnapshotSerializationError,
    StoreError,
    StoreTooNew,
)
from sabir_session.folds import Reducer, ReducerContext
from sabir_session.journals import Journal
from sabir_session.postgres import PostgresStore
from sabir_session.queries import (
    enable_inner_message_recording,
    get_inner_messages,
    get_latest_evaluation_id,
    get_pending_tool_calls,
)
from sabir_session.records import InnerMessage, ToolCallRecord
from sabir_session.reducers import append_item, replace_latest
from sabir_session.session import Session
from sabir_session.snapshots import SliceSnapshot, Snapshot
from sabir_session.sqlite import SQLiteStore
from sabir_session.stores import Store

__all__ = [
    "EventBus",
    "InProcessEventBus",
    "InnerMessage",
    "Journal",
    "JournalExists",
    "JournalInvalid",
    "JournalMissing",
    "ObserverInvalid",
    "PositionTaken",
    "PostgresStore",
    "RecordConflict",
    "RecordingFailed",
    "Reducer",
    "ReducerContext",
    "SQLiteStore",
    "Session",
    "SessionError",
    "SliceConflict",
    "SliceNotRegistered",
    "SliceSnapshot",
    "Snapshot",
    "SnapshotRestoreError",
    "SnapshotSerializationError",
    "Store",
    "StoreError",
    "StoreTooNew",
    "Subscription",
    "ToolCallRecord",
    "append_item",
    "enable_inner_message_recording",
    "get_inner_messages",
    "get_latest_evaluation_id",
    "get_pending_tool_calls",
    "inner_message_append",
    "replace_latest",
]
