"""Every error of sessions, as one tree below sabir's own.

SabirError
└── SessionError
    ├── SliceNotRegistered · SliceConflict      what a session was told about its slices
    ├── ObserverInvalid                         an observer that nothing would await (TypeError)
    ├── RecordConflict                          two records claim one place
    ├── RecordingFailed                         the journal did not take a record; nothing changed
    │   └── PositionTaken                       another writer was first
    ├── SnapshotSerializationError · SnapshotRestoreError
    ├── JournalInvalid                          what a journal holds cannot be read as what it says it is
    └── StoreError
        ├── JournalMissing · JournalExists      a name that is not there, or is there already
        └── StoreTooNew                         written by a newer version
"""

from sabir import SabirError


class SessionError(SabirError):
    """The root of what sessions, snapshots and stores raise."""


class SliceNotRegistered(SessionError, LookupError):
    """A session has no reducer for that slice, or the slice none for that event."""


class SliceConflict(SessionError, ValueError):
    """A slice is registered already, and otherwise."""


class ObserverInvalid(SessionError, TypeError):
    """What was to be called with changes or events is a coroutine function."""


class RecordConflict(SessionError, ValueError):
    """A record has the id or the sequence number of another one with other content."""


class RecordingFailed(SessionError):
    """The journal did not take a record, so the session did not change either."""


class PositionTaken(RecordingFailed):
    """Another writer took the position of a record in the journal; what it wrote can be read there."""


class SnapshotSerializationError(SessionError, ValueError):
    """A value of a slice cannot be written to a snapshot so that it comes back equal."""


class SnapshotRestoreError(SessionError, ValueError):
    """A text is no snapshot, or a snapshot does not fit the session; nothing changed."""


class JournalInvalid(SessionError, ValueError):
    """A journal's content is damaged, or not what its kind says."""


class StoreError(SessionError):
    """A store cannot be opened, read or changed."""


class JournalMissing(StoreError, LookupError):
    """The store holds no journal of that name."""


class JournalExists(StoreError, ValueError):
    """The store holds a journal of that name already."""


class StoreTooNew(StoreError):
    """The store was written by a newer version, whose layout this one does not know."""
