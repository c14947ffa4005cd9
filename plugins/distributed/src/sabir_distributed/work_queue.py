"""A worker's requests: some have begun, others wait until a place is free.

    request ──a place is free──────────▶ begun ──done──▶ the first of those that wait begins
         ├─ the first time that it is sent ──▶ Busy: another worker may have a place
         └─ later ──▶ waits, the longest on its way first ──no place for a whole beat──▶ Busy: another may have one now
                        └ too many wait ──▶ Busy to the youngest

While any request waits, no place is free, so no new request overtakes it. They wait here and not at their callers
because this queue sees the callers of all processes. A request carries its age: asking again does not cost its place,
and a full queue takes it as soon as it has a younger one. So no request waits much longer than others of its age.
"""

from bisect import insort

from sabir_distributed.settings import WorkerSettings
from sabir_distributed.work import Work


class WorkQueue:
    """The requests of a worker, by their ids: so many begun, so many that wait."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self.begun: dict[str, Work] = {}
        self.waiting: list[Work] = []
        """The oldest first."""

    @property
    def has_place(self) -> bool:
        """Whether one more can begin."""
        return len(self.begun) < self._settings.concurrency

    def can_hold(self, size: int) -> bool:
        """Whether a request of so many bytes may be added, to begin or to wait; a single one always may."""
        works = self.all()
        return not works or size + sum(work.size for work in works) <= self._settings.held

    def all(self) -> list[Work]:
        """All of them, those that began first."""
        return [*self.begun.values(), *self.waiting]

    def find(self, id: str) -> Work | None:
        """The request of this id, begun or waiting."""
        begun = self.begun.get(id)
        return begun or next((work for work in self.waiting if work.request.id == id), None)

    def begin(self, work: Work) -> None:
        """Give it a place."""
        self.begun[work.request.id] = work

    def wait(self, work: Work) -> Work | None:
        """Let it wait in the order of ages; returns the request that has no room then: the youngest, perhaps itself."""
        insort(self.waiting, work, key=lambda each: each.since)
        return self.waiting.pop() if len(self.waiting) > self._settings.waiting else None

    def remove(self, work: Work) -> Work | None:
        """Remove it; returns the request that now gets its place and must begin, if any."""
        if self.begun.pop(work.request.id, None) is None:
            self.waiting.remove(work)
        elif self.waiting and self.has_place:
            following = self.waiting.pop(0)
            self.begin(following)
            return following
        return None

    def remove_overdue(self) -> list[Work]:
        """Remove and return those that have waited since this was called last."""
        overdue = [work for work in self.waiting if work.is_overdue]
        self.waiting = [work for work in self.waiting if not work.is_overdue]
        for work in self.waiting:
            work.is_overdue = True
        return overdue

    def remove_waiting(self) -> list[Work]:
        """Remove and return all that wait."""
        waiting, self.waiting = self.waiting, []
        return waiting
