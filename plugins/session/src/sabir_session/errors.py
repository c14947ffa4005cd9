"""Every error of sessions, as one tree below sabir's own.

SabirError
└── SessionError
    ├── SliceNotRegistered · SliceConflict      errors in a session's slices
    ├── ObserverInvalid                         a coroutine function as observer (TypeError)
    ├── RecordConflict                          two records claim one place
    ├── RecordingFailed                         the journal did not take a record; nothing changed
    │   ├── PositionTaken                       another writer was first
    │   └── StoreLost                           the database file was deleted or replaced (a StoreError, too)
    ├── SnapshotSerializationError · SnapshotRestoreError
    ├── ConversationBusy                        another process, object or question has the conversation
    └── StoreError
        ├── JournalInvalid                      a journal's content is damaged
        ├── JournalMissing · JournalExists      a name that does not exist, or already exists
        └── StoreTooNew                         written by a newer version
"""

from sabir import SabirError


class SessionError(SabirError):
    """The base class of errors of sessions, snapshots and stores."""


class SliceNotRegistered(SessionError, LookupError):
    """A session has no reducer for that slice, or the slice has none for that event."""


class SliceConflict(SessionError, ValueError):
    """A slice is already registered with another reducer or kind."""


class ObserverInvalid(SessionError, TypeError):
    """An observer or event handler is a coroutine function, which nothing would await."""


class RecordConflict(SessionError, ValueError):
    """A record has the id or the sequence number of another one with other content."""


class RecordingFailed(SessionError):
    """The journal did not take a record, so the session did not change either."""


class PositionTaken(RecordingFailed):
    """Another writer took the position of a record in the journal; its record can be read there."""


class SnapshotSerializationError(SessionError, ValueError):
    """A value of a slice cannot be written to a snapshot so that it comes back equal."""


class SnapshotRestoreError(SessionError, ValueError):
    """A text is not a snapshot, or a snapshot does not fit the session; nothing changed."""


class ConversationBusy(SessionError):
    """Another process has the conversation, another object continued it, or it is already answering a question."""


class StoreError(SessionError):
    """A store cannot be opened, read or changed."""


class StoreLost(RecordingFailed, StoreError):
    """The file of an open store was deleted or replaced: what is written to it would be lost."""


class JournalInvalid(StoreError, ValueError):
    """A journal's content is damaged, or not what its kind says."""


class JournalMissing(StoreError, LookupError):
    """The store holds no journal of that name."""


class JournalExists(StoreError, ValueError):
    """The store holds a journal of that name already."""


class StoreTooNew(StoreError):
    """The store was written by a newer version, whose layout this one does not know."""
