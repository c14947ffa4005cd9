"""Sessions: typed lists of items (slices) that only reducers change, with observers and a journal.

    mutate(T).append(item) ─▶ reducer ─▶ plan ─▶ journal (logs only) ─▶ slice ─▶ observers
    bus.publish(event) ───────────┘  │                  │
                                     └ nothing new      └ RecordingFailed: the slice did not change

Sessions are thread-safe. Only one thread changes a session at a time, and observers are called in the order of the
changes.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sized
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar, overload

from sabir.authoring import Signature

from sabir_session import errors
from sabir_session.state.codec import SliceKind, Snapshot
from sabir_session.state.slices import Reducer, ReducerContext, Slice, find_declaration

logger = logging.getLogger("sabir.session")

Item = TypeVar("Item")
Event = TypeVar("Event")
Observer = Callable[[tuple[Item, ...], tuple[Item, ...]], object]


class Journal(Protocol):
    """Protocol of an append-only list of records, in which a session stores the items of its logs.

    A log is a slice (a list of items of one type) that only grows. A session writes an item to the journal before the
    log changes. `Store.journal` returns a journal in a database. If a journal has `__len__`, it must return the number
    of records. A session then raises RecordingFailed if another session has written to the same journal object.
    """

    def append(self, kind: str, body: str) -> None:
        """Write one record: the stored name of its type, and its text.

        After this method has returned, the record must survive a crash of the process. If this method raises, it must
        have written nothing.
        """

    def read(self) -> Iterable[tuple[str, str]]:
        """Return the records in order, each as (kind, body), including the records that this object has appended."""


class Subscription:
    """A subscription of an observer or event handler. `Session.observe` and `EventBus.subscribe` return it.

    To end the subscription, call it or its method `unsubscribe`. Ending it twice has no effect.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def unsubscribe(self) -> None:
        """End the subscription: the function is not called for later events or changes."""
        self._end()

    __call__ = unsubscribe
    """The same as `unsubscribe`."""


class EventBus(Protocol):
    """Protocol of an event bus. A session subscribes to the types of events for which its slices have reducers.

    Publishing an event on the bus then changes the slices. InProcessEventBus is the default.
    """

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Call `handler` with every event of exactly this type. Return the subscription."""

    def publish(self, event: object) -> None:
        """Call each handler that is subscribed to the type of `event` with the event."""


class Listeners:
    """Functions by type, in the order in which they were added. Thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._by_type: defaultdict[type, dict[Subscription, Callable[..., object]]] = defaultdict(dict)

    def add(self, listened_type: type, function: Callable[..., object]) -> Subscription:
        """Add a function. Each addition has its own subscription, even if the function was added before.

        Raises ObserverInvalid for a coroutine function.
        """
        if Signature.is_asynchronous(function):
            name = getattr(function, "__qualname__", type(function).__name__)
            remedy = "pass a sync function, which may start a task"
            raise errors.ObserverInvalid(f"{name} is a coroutine function, which nothing would await; {remedy}")

        def end() -> None:
            with self._lock:
                self._by_type[listened_type].pop(handle, None)
                if not self._by_type[listened_type]:
                    del self._by_type[listened_type]

        handle = Subscription(end)
        with self._lock:
            self._by_type[listened_type][handle] = function
        return handle

    def functions_for(self, listened_type: type) -> tuple[Callable[..., object], ...]:
        """Return the functions of a type, in order."""
        if listened_type not in self._by_type:
            return ()
        with self._lock:
            return tuple(self._by_type.get(listened_type, {}).values())


class InProcessEventBus:
    """The default event bus of a session. Handlers run in the caller's thread, before `publish` returns."""

    def __init__(self) -> None:
        self._handlers = Listeners()

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Call `handler` with every event of exactly this type. Return the subscription.

        Handlers are called in the order of their subscriptions. Raises ObserverInvalid for a coroutine function.
        """
        return self._handlers.add(event_type, handler)

    def publish(self, event: object) -> None:
        """Call all handlers of exactly the event's type, even if some raise an Exception.

        Afterwards, raise the exception of the handler that failed, or an ExceptionGroup if several handlers failed.
        """
        failures: list[Exception] = []
        for handler in self._handlers.functions_for(type(event)):
            try:
                handler(event)
            except Exception as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"{len(failures)} handlers of {type(event).__name__} failed", failures)


class Session:
    """Lists of typed items (slices) that reducers change: the records of conversations, and data of your own types.

    `bus` publishes the events for the reducers; None creates an InProcessEventBus. `journal` stores the items of logs,
    which are slices that only grow, before the items are appended; None means that nothing is stored. The items of a
    type are loaded from the journal when the type is registered as a log. Raises SessionError for a `bus` without the
    methods of an EventBus, and for a `journal` without the methods of a Journal.

    >>> import sabir, sabir_session
    >>> session = sabir_session.Session()
    >>> sabir_session.evaluate_sync(sabir.adapter("echo:m"), "Hello!", session=session).text
    'Hello!'
    >>> [record.role for record in sabir_session.get_inner_messages(session)]
    ['system', 'user', 'assistant']
    """

    def __init__(self, bus: EventBus | None = None, journal: Journal | None = None) -> None:
        _check_methods("bus", bus, ("subscribe", "publish"))
        _check_methods("journal", journal, ("append", "read"))
        self.bus: EventBus = InProcessEventBus() if bus is None else bus
        self._journal = journal
        untyped: object = journal
        self._sized_journal = untyped if isinstance(untyped, Sized) else None
        self._journal_length: int | None = None
        self._slices: dict[type, Slice[Any]] = {}
        self._observers = Listeners()
        self._unreported: deque[tuple[type, tuple[Any, ...], tuple[Any, ...]]] = deque()
        self._is_notifying = False
        self._lock = RLock()
        self._context = ReducerContext(self)

    @overload
    def mutate(self) -> "SessionMutator": ...
    @overload
    def mutate(self, item_type: type[Item]) -> "SliceMutator[Item]": ...
    def mutate(self, item_type: type[Item] | None = None) -> "SessionMutator | SliceMutator[Item]":
        """Return a SliceMutator to change the slice of `item_type`; without a type, a SessionMutator for all slices."""
        return SessionMutator(self) if item_type is None else SliceMutator(self, item_type)

    def select_all(self, item_type: type[Item]) -> tuple[Item, ...]:
        """Return the items of the slice of a type, in the slice's order; () for a type that is not registered."""
        with self._lock:
            return self._slices[item_type].fold.items() if item_type in self._slices else ()

    def select_arrived(self, item_type: type[Item]) -> tuple[Item, ...]:
        """Return the items of the slice of a type in the order of arrival; () for a type that is not registered.

        Records of conversations (InnerMessage) are grouped by evaluation: the evaluations in the order in which their
        first records arrived, and the records of each evaluation by `sequence`. A slice whose reducer changes the order
        of its items has no other order: the result is that of `select_all`.
        """
        with self._lock:
            return self._slices[item_type].fold.arrived() if item_type in self._slices else ()

    def select_last(self, item_type: type[Item]) -> Item | None:
        """Return the last item of the slice of a type; of InnerMessage records, the record that was added last.

        Returns None if there are no items, or if the type is not registered.
        """
        with self._lock:
            return self._slices[item_type].fold.last() if item_type in self._slices else None

    def is_registered(self, item_type: type) -> bool:
        """Return whether the session has a slice of this type."""
        return item_type in self._slices

    @property
    def has_journal(self) -> bool:
        """Whether the session was created with a journal."""
        return self._journal is not None

    def observe(self, item_type: type[Item], observer: Observer[Item]) -> Subscription:
        """Call `observer(old, new)` after each change of the slice of `item_type`. Return the subscription.

        `old` and `new` are all items of the slice before and after the change. Loading the items of a journal, and the
        rollback of a slice, are one change each. Observers run in the thread of the change, in the order in which they
        were added. An observer's error is logged on `sabir.session`, and does not undo the change. Raises
        ObserverInvalid for a coroutine function. Each change of an observed slice copies its items, so that changes of
        long slices take longer.
        """
        return self._observers.add(item_type, observer)

    def snapshot(self) -> Snapshot:
        """Return a Snapshot of all slices, which `session.mutate().rollback(snapshot)` restores.

        Raises SnapshotSerializationError for an item that cannot be written as JSON, or, except for items of a
        StoredModel class, that would be read back as another value.
        """
        with self._lock:
            contents = [(each, each.fold.arrived()) for each in self._slices.values()]
        return Snapshot(slices=tuple(each.snapshot_of(items) for each, items in contents))

    def clone(self, bus: EventBus | None = None) -> "Session":
        """Return an independent session with the same slices and items, without the observers and the journal.

        `bus` is the event bus of the new session; None creates an InProcessEventBus. To copy a stored conversation with
        its journal, use `Store.fork`.
        """
        other = Session(bus)
        with self._lock:
            for item_type, item_slice in self._slices.items():
                copy = other._slices[item_type] = Slice(item_type, item_slice.kind, item_slice.reducers)
                copy.fold = copy.build_fold(item_slice.fold.arrived())
                for event_type in item_slice.reducers:
                    other._listen(item_type, event_type)
        return other

    def _register(
        self, item_type: type[Item], event_type: type, reducer: Reducer[Item, Any], kind: SliceKind | None
    ) -> None:
        with self._lock:
            declaration = find_declaration(reducer)
            default_kind = declaration.kind if declaration else "state"
            item_slice = self._slices.get(item_type) or Slice(item_type, kind or default_kind, {})
            names = {name for each in self._slices.values() if each is not item_slice for name in each.stored_names}
            if shared := names & item_slice.stored_names:
                raise errors.SliceConflict(
                    f"two classes have the stored name {min(shared)!r}; change `stored_as` of one class"
                )
            if not item_slice.add_reducer(event_type, reducer, kind):
                return
            if item_slice.kind == "log" and self._journal is not None:
                self._load_journal(item_slice, self._journal)
            self._slices[item_type] = item_slice
            self._listen(item_type, event_type)
            if item_slice.kind == "log" and item_slice.fold.items():
                self._notify_observers(item_type, (), item_slice.fold.items())

    def _listen(self, item_type: type, event_type: type) -> None:
        self.bus.subscribe(event_type, lambda event: self._dispatch(item_type, event))

    def _load_journal(self, item_slice: Slice[Item], journal: Journal) -> None:
        position = -1
        for position, (kind, body) in enumerate(journal.read()):
            if kind not in item_slice.stored_names:
                continue
            try:
                plan = item_slice.fold.plan(item_slice.codec.decode(body), self._context)
            except ValueError as error:
                fault = f"record {position} of the journal, of type {kind}, cannot be read"
                raise errors.JournalInvalid(f"{fault}: {error}") from None
            if plan is not None:
                item_slice.fold.commit(plan)
        if self._journal_length is None:
            self._journal_length = position + 1

    def _dispatch(self, item_type: type[Item], event: object) -> None:
        with self._lock:
            item_slice = self._slices.get(item_type)
            if item_slice is None:
                name = item_type.__name__
                remedy = f"call session.mutate({name}).register({name}, reducer) first"
                raise errors.SliceNotRegistered(f"the session has no slice {name}; {remedy}")
            is_observed = bool(self._observers.functions_for(item_type))
            before = item_slice.fold.items() if is_observed else ()
            if self._apply_event(item_slice, event) and is_observed:
                self._notify_observers(item_type, before, item_slice.fold.items())

    def _apply_event(self, item_slice: Slice[Any], event: object) -> bool:
        """Apply an event to a slice; the item of a log is first written to the journal. Return whether it changed."""
        if item_slice.kind == "log" and type(event) is not item_slice.item_type:
            log, name = item_slice.item_type.__name__, type(event).__name__
            raise errors.SliceNotRegistered(
                f"the log of {log} accepts {log} only, not {name}; register a slice for {name}"
            )
        plan = item_slice.fold.plan(event, self._context)
        if plan is None:
            return False
        if item_slice.kind == "log" and self._journal is not None:
            self._write_to_journal(self._journal, item_slice, event)
        item_slice.fold.commit(plan)
        return True

    def _write_to_journal(self, journal: Journal, item_slice: Slice[Any], event: object) -> None:
        """Write an event to the journal. Refuse if another session has written to the same journal object."""
        if self._sized_journal is not None and len(self._sized_journal) != self._journal_length:
            reason = f"record {self._journal_length} of the journal was written by another session on the same journal"
            raise errors.RecordingFailed(f"{reason}; open the journal again, in a new session")
        try:
            body = item_slice.codec.encode(event)
        except ValueError as error:
            reason = f"an item of type {item_slice.stored_name} cannot be written as JSON: {error}"
            raise errors.RecordingFailed(f"{reason}; nothing changed") from None
        try:
            journal.append(item_slice.stored_name, body)
        except errors.RecordingFailed:
            raise
        except Exception as error:
            reason = f"the journal could not store an item of type {item_slice.stored_name}: {error}"
            raise errors.RecordingFailed(f"{reason}; nothing changed") from error
        if self._journal_length is not None:
            self._journal_length += 1

    def _notify_observers(self, item_type: type, old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        """Call the observers, after all earlier changes were reported, because an observer may change the session."""
        self._unreported.append((item_type, old, new))
        if self._is_notifying:
            return
        self._is_notifying = True
        try:
            while self._unreported:
                changed_type, *change = self._unreported.popleft()
                for observer in self._observers.functions_for(changed_type):
                    try:
                        observer(*change)
                    except Exception as error:
                        name, error_type = getattr(observer, "__qualname__", repr(observer)), type(error).__name__
                        arguments = (name, changed_type.__name__, error_type, error)
                        logger.exception("observer %s of %s failed: %s: %s; the change was made", *arguments)
        finally:
            self._is_notifying = False

    def _rollback(self, snapshot: Snapshot) -> None:
        with self._lock:
            goals = self._decode_snapshot(snapshot)
            planned = [(each, goals.get(item_type, ())) for item_type, each in self._slices.items()]
            extensions = [(log, log.find_missing(goal)) for log, goal in planned if log.kind == "log"]
            new_folds = [(state, state.restored_fold(goal)) for state, goal in planned if state.kind == "state"]
            for log, missing in extensions:
                self._extend_log(log, missing)
            for state, fold in new_folds:
                before, state.fold = state.fold.items(), fold
                if before != fold.items():
                    self._notify_observers(state.item_type, before, fold.items())

    def _extend_log(self, log: Slice[Any], missing: tuple[Any, ...]) -> None:
        before = log.fold.items() if missing else ()
        try:
            for item in missing:
                self._apply_event(log, item)
        finally:
            if missing and log.fold.items() is not before:
                self._notify_observers(log.item_type, before, log.fold.items())

    def _decode_snapshot(self, snapshot: Snapshot) -> dict[type, tuple[Any, ...]]:
        """Return the items of a snapshot by type. The snapshot may contain earlier stored names of the types."""
        slices = {name: each for each in self._slices.values() for name in each.stored_names}
        items: dict[type, tuple[Any, ...]] = {}
        for entry in snapshot.slices:
            restored = slices.get(entry.slice_type)
            if restored is None or restored.item_type in items:
                reason = f"the session has no slice {entry.slice_type!r} of the snapshot, or the snapshot has it twice"
                raise errors.SnapshotRestoreError(f"{reason}; register the type before the rollback")
            items[restored.item_type] = restored.decode_items(entry)
        return items


def _check_methods(argument: str, passed: object, methods: tuple[str, str]) -> None:
    """Raise SessionError if an argument lacks the methods, as a store, a path, or a journal as the bus does."""
    if passed is not None and not all(callable(getattr(passed, method, None)) for method in methods):
        lacking = f"is of type {type(passed).__name__}; expected an object with the methods {' and '.join(methods)}"
        remedy = "pass a journal as Session(journal=store.journal(name))"
        raise errors.SessionError(f"Session: {argument} {lacking}; {remedy}")


class SliceMutator(Generic[Item]):
    """Changes one slice of a session. `Session.mutate(item_type)` returns it."""

    def __init__(self, session: Session, item_type: type[Item]) -> None:
        self._session = session
        self._item_type = item_type

    def register(self, event_type: type[Event], reducer: Reducer[Item, Event], kind: SliceKind | None = None) -> None:
        """Register a reducer for events of exactly `event_type`, and create the slice if it does not exist.

        `kind` is "state" or "log". None means the kind of the existing slice; for a new slice, the reducer's default,
        or else "state". A log accepts only events of its own type, and is filled with the items of this type from the
        session's journal. Registering the same reducer again has no effect. Raises SliceConflict if the slice is
        registered differently or another class has the same stored name, JournalInvalid for a damaged journal, and
        StoreError if the journal cannot be read.
        """
        self._session._register(self._item_type, event_type, reducer, kind)

    def append(self, item: Item) -> None:
        """Change the slice with an item: call the reducer that is registered for the type of the item.

        An item of a log is written to the session's journal first. Raises SliceNotRegistered without a reducer,
        RecordingFailed if the journal cannot store the item, TypeError if the reducer does not return a tuple, and the
        reducer's errors. After an error, the slice is unchanged.
        """
        self._session._dispatch(self._item_type, item)

    def dispatch(self, event: object) -> None:
        """Change the slice with an event: call the reducer that is registered for the event's type.

        Raises the errors of `append`.
        """
        self._session._dispatch(self._item_type, event)


class SessionMutator:
    """Changes all slices of a session. `Session.mutate()` returns it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def rollback(self, snapshot: Snapshot) -> None:
        """Set all slices of the kind "state" to the content of a snapshot. States missing in the snapshot become empty.

        Logs only grow: a log that is longer than in the snapshot is unchanged, and a shorter log is extended, in the
        journal too. Raises SnapshotRestoreError if a log differs from the snapshot's, if the snapshot has a slice that
        is not registered, or if an item cannot be read or a reducer refuses it; nothing is changed then. Raises
        RecordingFailed if the journal cannot store an item; earlier items of the logs are then stored, and no state is
        changed.
        """
        self._session._rollback(snapshot)
