"""What a worker has in hand: some requests are worked on, others stand in line until a place is free.

    request ──a place is free──────────▶ begun ──done──▶ the first in line begins
         ├─ the first time that it is sent ──▶ Busy: another worker may have a place
         └─ later ──▶ line, the longest on its way first ──no place for a whole beat──▶ Busy: another may have one now
                        └ full ──▶ Busy to the youngest

While anybody stands in line no place is free, so no newcomer passes them. They stand here and not at their callers
because here the callers of all processes meet. A request takes its age along: asking again costs it no turn, and a line
that is full lets it in as soon as somebody younger stands there. So nobody waits much longer than those of its age.
"""

from bisect import insort

from sabir_distributed.work import Work


class Hands:
    """The requests of a worker, by their ids: so many begun, so many in line."""

    def __init__(self, *, places: int, room: int, held: int) -> None:
        self._places = places
        self._room = room
        self._held = held
        self.begun: dict[str, Work] = {}
        self.line: list[Work] = []
        """The longest on its way first."""

    @property
    def has_place(self) -> bool:
        """Whether one more can begin."""
        return len(self.begun) < self._places

    def can_hold(self, size: int) -> bool:
        """Whether a request of so many bytes may be added, to begin or to stand in line; a single one always may."""
        works = self.all()
        return not works or size + sum(work.size for work in works) <= self._held

    def all(self) -> list[Work]:
        """All of them, those that began first."""
        return [*self.begun.values(), *self.line]

    def find(self, id: str) -> Work | None:
        """The request of this id, begun or in line."""
        begun = self.begun.get(id)
        return begun or next((work for work in self.line if work.request.id == id), None)

    def begin(self, work: Work) -> None:
        """Give it a place."""
        self.begun[work.request.id] = work

    def line_up(self, work: Work) -> Work | None:
        """Put it in line by its age; who has no room there then: the youngest, perhaps itself."""
        insort(self.line, work, key=lambda each: each.since)
        return self.line.pop() if len(self.line) > self._room else None

    def put_away(self, work: Work) -> Work | None:
        """Let go of it; who has its place now and is to begin, if anybody."""
        if self.begun.pop(work.request.id, None) is None:
            self.line.remove(work)
        elif self.line and self.has_place:
            following = self.line.pop(0)
            self.begin(following)
            return following
        return None

    def dismiss_tired(self) -> list[Work]:
        """Those who stood in line since this was asked last; they no longer do."""
        tired = [work for work in self.line if work.is_tired]
        self.line = [work for work in self.line if not work.is_tired]
        for work in self.line:
            work.is_tired = True
        return tired

    def dismiss_line(self) -> list[Work]:
        """All who stood in line; they no longer do."""
        line, self.line = self.line, []
        return line
