"""A session: typed slices, changed only by reducers, watched by observers, kept in a journal.

    mutate(T).append(item) ─▶ reducer ─▶ plan ─▶ journal (logs only) ─▶ slice ─▶ observers
    bus.publish(event) ───────────┘  │                  │
                                     └ nothing new      └ RecordingFailed: the slice did not change

Any thread may use a session; one change is made at a time, and observers are called in the order of the changes.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sized
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar, overload

from sabir.authoring import Signature

from sabir_session import errors
from sabir_session.state.codec import SliceKind, Snapshot
from sabir_session.state.slices import Reducer, ReducerContext, Slice, declared

logger = logging.getLogger("sabir.session")

Item = TypeVar("Item")
Event = TypeVar("Event")
Observer = Callable[[tuple[Item, ...], tuple[Item, ...]], object]


class Journal(Protocol):
    """An append-only list of texts, each with the stored name of its type.

    A session writes a log's items to it before the log changes. The length of a journal, if it has one, is its number
    of records: by it a session sees that another session has written to the same object, and refuses to write after it.
    """

    def append(self, kind: str, body: str) -> None:
        """Write one record; once this has returned, it survives the death of the process. If it raises, nothing is
        written."""

    def read(self) -> Iterable[tuple[str, str]]:
        """The records that were there when the journal was opened, and those appended through it since, in order."""


class Subscription:
    """The handle of a subscription; calling it, or `unsubscribe`, ends it. Ending twice is harmless."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def unsubscribe(self) -> None:
        """End it: nothing is called from now on."""
        self._end()

    __call__ = unsubscribe
    """The same."""


class EventBus(Protocol):
    """Publishes events; a session takes the events for which its slices have reducers."""

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Have the handler called with every event of exactly that type."""

    def publish(self, event: object) -> None:
        """Give the event to its handlers."""


class Listeners:
    """Functions by type, in the order in which they were added.

    A change during a round takes effect in the next round.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._by_type: defaultdict[type, dict[Subscription, Callable[..., object]]] = defaultdict(dict)

    def add(self, listened_to: type, function: Callable[..., object]) -> Subscription:
        """Add a function; each addition ends separately, even of the same function."""
        if Signature.is_asynchronous(function):
            name = getattr(function, "__qualname__", type(function).__name__)
            remedy = "give a plain function, which may start a task"
            raise errors.ObserverInvalid(f"{name} is a coroutine function, and nothing would await it; {remedy}")

        def end() -> None:
            with self._lock:
                self._by_type[listened_to].pop(handle, None)
                if not self._by_type[listened_to]:
                    del self._by_type[listened_to]

        handle = Subscription(end)
        with self._lock:
            self._by_type[listened_to][handle] = function
        return handle

    def of(self, listened_to: type) -> tuple[Callable[..., object], ...]:
        """The functions of a type, in their order."""
        with self._lock:
            return tuple(self._by_type.get(listened_to, {}).values())


class InProcessEventBus:
    """An event bus within one process: handlers run in the caller's thread, before `publish` returns.

    A handler's error is raised after all handlers were called: it stops no other handler and is not lost.
    """

    def __init__(self) -> None:
        self._handlers = Listeners()

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Have the handler called with every event of exactly that type, after those that were subscribed before.

        Raises ObserverInvalid for a coroutine function.
        """
        return self._handlers.add(event_type, handler)

    def publish(self, event: object) -> None:
        """Give the event to all its handlers; then raise a handler's error, or a group of several."""
        failures: list[Exception] = []
        for handler in self._handlers.of(type(event)):
            try:
                handler(event)
            except Exception as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"{len(failures)} handlers of {type(event).__name__} failed", failures)


class Session:
    """The state of a conversation and related data, as slices of typed items.

    `bus`: publishes the events for the slices' reducers; a new one by default. `journal`: stores items of log slices
    before they are appended; its records are loaded when their type is registered. Raises SessionError for a value that
    is not a bus or not a journal.
    """

    def __init__(self, bus: EventBus | None = None, journal: Journal | None = None) -> None:
        _check_can("bus", bus, ("subscribe", "publish"))
        _check_can("journal", journal, ("append", "read"))
        self.bus: EventBus = InProcessEventBus() if bus is None else bus
        self._journal = journal
        given: object = journal
        self._counted = given if isinstance(given, Sized) else None
        self._journaled: int | None = None
        self._slices: dict[type, Slice[Any]] = {}
        self._observers = Listeners()
        self._untold: deque[tuple[type, tuple[Any, ...], tuple[Any, ...]]] = deque()
        self._is_telling = False
        self._lock = RLock()
        self._context = ReducerContext(self)

    @overload
    def mutate(self) -> "SessionMutator": ...
    @overload
    def mutate(self, item_type: type[Item]) -> "SliceMutator[Item]": ...
    def mutate(self, item_type: type[Item] | None = None) -> "SessionMutator | SliceMutator[Item]":
        """The mutator of one slice; without a type, the mutator of all slices."""
        return SessionMutator(self) if item_type is None else SliceMutator(self, item_type)

    def select_all(self, item_type: type[Item]) -> tuple[Item, ...]:
        """The items of a slice, in its order; () for a type that is not registered."""
        with self._lock:
            return self._slices[item_type].fold.items() if item_type in self._slices else ()

    def select_arrived(self, item_type: type[Item]) -> tuple[Item, ...]:
        """Return the items of a slice in order of arrival, evaluations by their first record; () if there is none."""
        with self._lock:
            return self._slices[item_type].fold.arrived() if item_type in self._slices else ()

    def select_last(self, item_type: type[Item]) -> Item | None:
        """Return the item of a slice that arrived last, whatever its place; None if there is none."""
        with self._lock:
            return self._slices[item_type].fold.last() if item_type in self._slices else None

    def is_registered(self, item_type: type) -> bool:
        """Whether there is a slice of that type."""
        return item_type in self._slices

    @property
    def has_journal(self) -> bool:
        """Whether there is a journal: its items of a type are loaded when the type is registered."""
        return self._journal is not None

    def observe(self, item_type: type[Item], observer: Observer[Item]) -> Subscription:
        """Have `observer(old, new)` called after each real change of a slice; the handle ends it.

        Observers are called in the order in which they were added, in the thread that made the change. An observer's
        error is logged on `sabir.session` with its name, and the change stands. While a slice is observed, each change
        of it costs two tuples of all its items. Raises ObserverInvalid for a coroutine function.
        """
        return self._observers.add(item_type, observer)

    def snapshot(self) -> Snapshot:
        """The content of all slices; raises SnapshotSerializationError for a value that would change when read back."""
        with self._lock:
            held = [(each, each.fold.arrived()) for each in self._slices.values()]
        return Snapshot(slices=tuple(each.taken(items) for each, items in held))

    def clone(self, bus: EventBus | None = None) -> "Session":
        """An independent session with the same content; observers and the journal are not copied.

        To continue in a separate journal, fork the journal in its store.
        """
        other = Session(bus)
        with self._lock:
            for item_type, held in self._slices.items():
                copy = other._slices[item_type] = Slice(item_type, held.kind, held.reducers)
                copy.fold = copy.fold_of(held.fold.arrived())
                for event_type in held.reducers:
                    other._listen(item_type, event_type)
        return other

    def _register(
        self, item_type: type[Item], event_type: type, reducer: Reducer[Item, Any], kind: SliceKind | None
    ) -> None:
        with self._lock:
            own = declared(reducer)
            held = self._slices.get(item_type) or Slice(item_type, kind or (own.kind if own else "state"), {})
            names = {name for each in self._slices.values() if each is not held for name in each.kinds}
            if shared := names & held.kinds:
                raise errors.SliceConflict(f"two classes have the stored name {min(shared)!r}; change one's stored_as")
            if not held.join(event_type, reducer, kind):
                return
            if held.kind == "log" and self._journal is not None:
                self._load(held, self._journal)
            self._slices[item_type] = held
            self._listen(item_type, event_type)
            if held.kind == "log" and held.fold.items():
                self._tell(item_type, (), held.fold.items())

    def _listen(self, item_type: type, event_type: type) -> None:
        self.bus.subscribe(event_type, lambda event: self._dispatch(item_type, event))

    def _load(self, held: Slice[Item], journal: Journal) -> None:
        position = -1
        for position, (kind, body) in enumerate(journal.read()):
            if kind not in held.kinds:
                continue
            try:
                plan = held.fold.plan(held.codec.decode(body), self._context)
            except ValueError as error:
                shown = f"record {position} of the journal, {kind}, cannot be read"
                raise errors.JournalInvalid(f"{shown}: {error}") from None
            if plan is not None:
                held.fold.commit(plan)
        if self._journaled is None:
            self._journaled = position + 1

    def _dispatch(self, item_type: type[Item], event: object) -> None:
        with self._lock:
            held = self._slices.get(item_type)
            if held is None:
                name = item_type.__name__
                remedy = f"call session.mutate({name}).register({name}, reducer) first"
                raise errors.SliceNotRegistered(f"the session has no slice {name}; {remedy}")
            is_observed = bool(self._observers.of(item_type))
            before = held.fold.items() if is_observed else ()
            if self._take(held, event) and is_observed:
                self._tell(item_type, before, held.fold.items())

    def _take(self, held: Slice[Any], event: object) -> bool:
        """Apply an event to a slice; False if it changes nothing."""
        if held.kind == "log" and type(event) is not held.item_type:
            log, name = held.item_type.__name__, type(event).__name__
            raise errors.SliceNotRegistered(f"the log of {log} takes no {name}; register a slice for {name}")
        plan = held.fold.plan(event, self._context)
        if plan is None:
            return False
        if held.kind == "log" and self._journal is not None:
            self._record(self._journal, held, event)
        held.fold.commit(plan)
        return True

    def _record(self, journal: Journal, held: Slice[Any], event: object) -> None:
        """Write an event, unless another session wrote to the same journal object: this session lacks its records."""
        if self._counted is not None and len(self._counted) != self._journaled:
            shown = f"record {self._journaled} of the journal was written by another session on the same journal"
            raise errors.RecordingFailed(f"{shown}; open the journal again, in a new session")
        try:
            body = held.codec.encode(event)
        except ValueError as error:
            shown = f"a {held.type_id} cannot be written as JSON: {error}"
            raise errors.RecordingFailed(f"{shown}; nothing changed") from None
        try:
            journal.append(held.type_id, body)
        except errors.RecordingFailed:
            raise
        except Exception as error:
            shown = f"the journal did not take a {held.type_id}: {error}"
            raise errors.RecordingFailed(f"{shown}; nothing changed") from error
        if self._journaled is not None:
            self._journaled += 1

    def _tell(self, item_type: type, old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        """Call the observers after all earlier changes were reported: an observer may change the session itself."""
        self._untold.append((item_type, old, new))
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._untold:
                told, *change = self._untold.popleft()
                for observer in self._observers.of(told):
                    try:
                        observer(*change)
                    except Exception as error:
                        name, fault = getattr(observer, "__qualname__", repr(observer)), type(error).__name__
                        shown = (name, told.__name__, fault, error)
                        logger.exception("observer %s of %s failed: %s: %s; the change stands", *shown)
        finally:
            self._is_telling = False

    def _rollback(self, snapshot: Snapshot) -> None:
        with self._lock:
            goals = self._decoded(snapshot)
            planned = [(held, goals.get(item_type, ())) for item_type, held in self._slices.items()]
            moves = [(held, held.moved_to(goal)) for held, goal in planned if held.kind == "log"]
            states = [(held, held.set_to(goal)) for held, goal in planned if held.kind == "state"]
            for held, missing in moves:
                self._advance(held, missing)
            for held, fold in states:
                before, held.fold = held.fold.items(), fold
                if before != fold.items():
                    self._tell(held.item_type, before, fold.items())

    def _advance(self, held: Slice[Any], missing: tuple[Any, ...]) -> None:
        before = held.fold.items() if missing else ()
        try:
            for item in missing:
                self._take(held, item)
        finally:
            if missing and held.fold.items() is not before:
                self._tell(held.item_type, before, held.fold.items())

    def _decoded(self, snapshot: Snapshot) -> dict[type, tuple[Any, ...]]:
        """Decode a snapshot: the items of each slice by their type, which the snapshot may call by an earlier name."""
        slices = {name: each for each in self._slices.values() for name in each.kinds}
        items: dict[type, tuple[Any, ...]] = {}
        for entry in snapshot.slices:
            restored = slices.get(entry.slice_type)
            if restored is None or restored.item_type in items:
                reason = f"the snapshot has {entry.slice_type!r}, which is not registered here, or is there twice"
                raise errors.SnapshotRestoreError(f"{reason}; register its type before the rollback")
            items[restored.item_type] = restored.decoded(entry)
        return items


def _check_can(argument: str, given: object, verbs: tuple[str, str]) -> None:
    """Refuse common wrong arguments: a store, a path, a journal in place of the bus."""
    if given is not None and not all(callable(getattr(given, verb, None)) for verb in verbs):
        cannot = f"is of type {type(given).__name__}, which cannot {' and '.join(verbs)}"
        remedy = "a journal is given as Session(journal=store.journal(name))"
        raise errors.SessionError(f"Session: {argument} {cannot}; {remedy}")


class SliceMutator(Generic[Item]):
    """Changes one slice of a session."""

    def __init__(self, session: Session, item_type: type[Item]) -> None:
        self._session = session
        self._item_type = item_type

    def register(self, event_type: type[Event], reducer: Reducer[Item, Event], kind: SliceKind | None = None) -> None:
        """Register a reducer for events of exactly that type; a second registration has no effect.

        `kind` is the kind of the slice: by default the one that the reducer declares, else a state. A log takes only
        items of its own type, and is filled here with its records in the session's journal. Raises SliceConflict if the
        slice is registered differently, JournalInvalid for a damaged journal.
        """
        self._session._register(self._item_type, event_type, reducer, kind)

    def append(self, item: Item) -> None:
        """Apply the reducer of the slice's own type to an item.

        Raises SliceNotRegistered, RecordingFailed, and the reducer's errors; the slice is unchanged then.
        """
        self._session._dispatch(self._item_type, item)

    def dispatch(self, event: object) -> None:
        """Apply the reducer of an event's type; raises the errors of `append`."""
        self._session._dispatch(self._item_type, event)


class SessionMutator:
    """Changes all slices of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def rollback(self, snapshot: Snapshot) -> None:
        """Set state slices to the snapshot's content; a slice that is not in the snapshot becomes empty.

        Logs are never set back: a longer log stays as it is, a shorter one is extended, journal first. Raises
        SnapshotRestoreError if a log and the snapshot's diverge, or if the snapshot has an unregistered slice or an
        unreadable item; nothing changed then. Raises RecordingFailed if the journal does not take an item of a log: the
        log holds the items that were taken, and no state changed.
        """
        self._session._rollback(snapshot)
