"""The errors of sessions, conversations and stores, below sabir's base class.

SabirError
└── SessionError
    ├── SliceNotRegistered · SliceConflict      a type has no slice (list of items), or is registered in two ways
    ├── ObserverInvalid                         a coroutine function as observer (TypeError)
    ├── RecordConflict                          two records have the same id or number
    ├── RecordingFailed                         the journal could not store a record, which was not added
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
    """Base class of the errors of sessions, snapshots and stores, to catch them with one `except`."""


class SliceNotRegistered(SessionError, LookupError):
    """Raised when a session has no slice (list of items) for a type, or the slice has no reducer for an event.

    Also raised when the records of the session's journal are not loaded. Register the type first.
    """


class SliceConflict(SessionError, ValueError):
    """Raised when a slice is registered again with another kind, or with another reducer for the same event type.

    Also raised for a reducer of other events than the items of a log, and for two classes with the same stored name.
    """


class ObserverInvalid(SessionError, TypeError):
    """Raised for a coroutine function as observer or event handler, which nothing would await. Pass a sync function."""


class RecordConflict(SessionError, ValueError):
    """Raised for a new record with the `message_id` of a record of other content, or with a used sequence number.

    The record is not added. Give each record its own `message_id`, and the next sequence number of its evaluation.
    """


class RecordingFailed(SessionError):
    """Raised when the journal cannot store a record, for example on a full disk. The record is not in the session."""


class PositionTaken(RecordingFailed):
    """Raised when another writer has added records to a journal since the caller opened the journal or read its length.

    `Store.rewind` also raises it after another writer has removed records. Nothing was written. Open the journal again,
    in a new session.
    """


class SnapshotSerializationError(SessionError, ValueError):
    """Raised when a slice has an item that cannot be written as JSON, or that would be read back as another value."""


class SnapshotRestoreError(SessionError, ValueError):
    """Raised for a text that is not a snapshot, and for a snapshot of a newer version or that does not fit the session.

    The session is unchanged.
    """


class ConversationBusy(SessionError):
    """Raised when a conversation is open in another process, was changed elsewhere, or is answering a question.

    Also raised when it is open in another PostgresStore of this process. Close the conversation there, open it again to
    see the change, or wait for the answer.
    """


class StoreError(SessionError):
    """Raised when a store cannot be opened, read or changed, for invalid names and addresses, and after `close`."""


class StoreLost(RecordingFailed, StoreError):
    """Raised when the file of an open store was deleted or replaced: new records would be lost. Reopen the store."""


class JournalInvalid(StoreError, ValueError):
    """Raised when the rows of a journal are damaged, or when a record cannot be read as an item of its type."""


class JournalMissing(StoreError, LookupError):
    """Raised when a store has no journal of the name. The error lists existing names, up to 200 characters."""


class JournalExists(StoreError, ValueError):
    """Raised when a fork would get a name that the store already has. Delete that journal, or use another name."""


class StoreTooNew(StoreError):
    """Raised for a store that a newer version of sabir-session has written. Upgrade sabir-session."""
