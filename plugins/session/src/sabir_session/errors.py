"""The errors of sessions, conversations and stores, below sabir's base class.

SabirError
└── SessionError
    ├── SliceNotRegistered · SliceConflict      errors in a session's slices
    ├── ObserverInvalid                         a coroutine function as observer (TypeError)
    ├── RecordConflict                          two records have the same id or number
    ├── RecordingFailed                         the journal could not store a record; nothing changed
    │   ├── PositionTaken                       another writer was first
    │   └── StoreLost                           the database file was deleted or replaced (a StoreError, too)
    ├── SnapshotSerializationError · SnapshotRestoreError
    ├── ConversationBusy                        another process, object or question uses the conversation
    └── StoreError
        ├── JournalInvalid                      a journal's content is damaged
        ├── JournalMissing · JournalExists      a name that does not exist, or already exists
        └── StoreTooNew                         written by a newer version
"""

from sabir import SabirError


class SessionError(SabirError):
    """Base class of the errors of sessions, snapshots and stores. Catch it to handle all of them."""


class SliceNotRegistered(SessionError, LookupError):
    """Raised for a type without a slice in the session, or an event without a reducer. Register the type first."""


class SliceConflict(SessionError, ValueError):
    """Raised when a slice is registered again with another reducer or kind. Register each slice in one way only."""


class ObserverInvalid(SessionError, TypeError):
    """Raised for a coroutine function as observer or event handler, because nothing would await it. Pass a function."""


class RecordConflict(SessionError, ValueError):
    """Raised for a record whose id or sequence number belongs to another record with other content."""


class RecordingFailed(SessionError):
    """Raised when the journal cannot store a record. The session is unchanged."""


class PositionTaken(RecordingFailed):
    """Raised when another writer has changed the journal since it was opened. Nothing was written; open it again."""


class SnapshotSerializationError(SessionError, ValueError):
    """Raised when a value of a slice cannot be written to a snapshot and read back as an equal value."""


class SnapshotRestoreError(SessionError, ValueError):
    """Raised for a text that is not a snapshot, or a snapshot that does not fit the session. Nothing changed."""


class ConversationBusy(SessionError):
    """Raised when a conversation is in use: open in another process, continued by another object, or answering.

    Close the conversation there, use the other object, or wait for the answer. Then try again.
    """


class StoreError(SessionError):
    """Raised when a store cannot be opened, read or changed, and for invalid names and addresses."""


class StoreLost(RecordingFailed, StoreError):
    """Raised when the file of an open store was deleted or replaced: new records would be lost. Reopen the store."""


class JournalInvalid(StoreError, ValueError):
    """Raised when the content of a journal is damaged or cannot be read as its type."""


class JournalMissing(StoreError, LookupError):
    """Raised for a name without a journal in the store."""


class JournalExists(StoreError, ValueError):
    """Raised when a journal is forked to a name that already exists in the store. Delete that journal, or rename."""


class StoreTooNew(StoreError):
    """Raised for a store that a newer version of sabir-session has written. Upgrade sabir-session."""
