"""Stored conversations with models, for sabir, and their parts: sessions, records, stores and evaluations.

chat = Conversation("provider:model", options=[search], keep="chats.db", name="monday")
answer = await chat.ask("…")                                                # the next process can continue

with SQLiteStore("chats.db") as store:
    session = Session(journal=store.journal("monday"))
    response = await evaluate(llm, prompt, session=session, options=[search])       # resume=True continues it

A program that adds records without `evaluate` first calls `enable_inner_message_recording(session)`, which loads the
existing records. Each new record is written to the journal before the session changes.
"""

from sabir_session.continued import continued_model
from sabir_session.conversation.answers import Answer, AnswerStream, SyncAnswerStream
from sabir_session.conversation.arguments import Content, Instructions
from sabir_session.conversation.conversation import Conversation
from sabir_session.errors import (
    ConversationBusy,
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
    StoreLost,
    StoreTooNew,
)
from sabir_session.evaluation.approval import DENIED, HUMAN, Approve, Decision
from sabir_session.evaluation.budgets import Budget, with_budget
from sabir_session.evaluation.evaluate import EvaluateArguments, MainLoop, evaluate, evaluate_sync
from sabir_session.evaluation.evaluations import current_messages, follow_up, unfinished_evaluations
from sabir_session.evaluation.events import (
    CallEnded,
    CallProgress,
    CallStarted,
    Event,
    OutputArrived,
    ReplyArrived,
    RequestStarted,
    TextArrived,
    Watch,
)
from sabir_session.evaluation.partials import Partial
from sabir_session.evaluation.performers import Recorder
from sabir_session.evaluation.prompt_caches import CacheOutcome, PromptCacheReport
from sabir_session.evaluation.prompts import (
    ApprovalPending,
    BudgetExhausted,
    ConversationNotFound,
    Options,
    OutputMode,
    Prompt,
    PromptLike,
    PromptMismatch,
    PromptResponse,
    Strict,
    Validator,
)
from sabir_session.record_log import (
    enable_inner_message_recording,
    get_inner_messages,
    get_latest_evaluation_id,
    get_pending_tool_calls,
    inner_message_append,
)
from sabir_session.records import InnerMessage, ToolCallRecord
from sabir_session.state.codec import SliceSnapshot, Snapshot
from sabir_session.state.session import EventBus, InProcessEventBus, Journal, Session, Subscription
from sabir_session.state.slices import Reducer, ReducerContext, append_item, replace_latest
from sabir_session.stores.engines import PostgresStore, SQLiteStore
from sabir_session.stores.store import Store

__all__ = [
    "DENIED", "HUMAN", "Answer", "AnswerStream", "ApprovalPending", "Approve", "Budget", "BudgetExhausted",
    "CacheOutcome", "CallEnded", "CallProgress", "CallStarted", "Content", "Conversation", "ConversationBusy",
    "ConversationNotFound", "Decision", "EvaluateArguments", "Event", "EventBus", "InProcessEventBus", "InnerMessage",
    "Instructions", "Journal", "JournalExists", "JournalInvalid", "JournalMissing", "MainLoop", "ObserverInvalid",
    "Options", "OutputArrived", "OutputMode", "Partial", "PositionTaken", "PostgresStore", "Prompt",
    "PromptCacheReport", "PromptLike", "PromptMismatch", "PromptResponse", "RecordConflict", "Recorder",
    "RecordingFailed", "Reducer", "ReducerContext", "ReplyArrived", "RequestStarted", "SQLiteStore", "Session",
    "SessionError", "SliceConflict", "SliceNotRegistered", "SliceSnapshot", "Snapshot", "SnapshotRestoreError",
    "SnapshotSerializationError", "Store", "StoreError", "StoreLost", "StoreTooNew", "Strict", "Subscription",
    "SyncAnswerStream", "TextArrived", "ToolCallRecord", "Validator", "Watch", "append_item", "continued_model",
    "current_messages", "enable_inner_message_recording", "evaluate", "evaluate_sync", "follow_up",
    "get_inner_messages", "get_latest_evaluation_id", "get_pending_tool_calls", "inner_message_append",
    "replace_latest", "unfinished_evaluations", "with_budget",
]  # fmt: skip
