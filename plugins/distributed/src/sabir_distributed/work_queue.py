"""The requests of a worker: some have begun, others wait until a place is free.

    request ──a place is free──────────▶ begun ──done──▶ the first of those that wait begins
         ├─ the first time that it is sent ──▶ Busy: another worker may have a place
         └─ later ──▶ waits, the longest on its way first ──no place for a whole beat──▶ Busy: another may have one now
                        └ too many wait ──▶ Busy to the youngest

While any request waits no place is free, so no newcomer passes it. They wait here and not at their callers because here
the callers of all processes meet. A request brings its age along: to ask again costs it no turn, and a full queue takes
it in as soon as a younger one is there. So none waits much longer than those of its age.
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
        """The longest on its way first."""

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
        """Let it wait in the order of ages; the one that has no room then: the youngest, perhaps itself."""
        insort(self.waiting, work, key=lambda each: each.since)
        return self.waiting.pop() if len(self.waiting) > self._settings.waiting else None

    def remove(self, work: Work) -> Work | None:
        """Remove it; the one that has its place now and is to begin, if any."""
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
