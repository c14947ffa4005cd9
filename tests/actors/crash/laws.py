"""What holds of a thread whose processes were killed: read from its journal, and from what they noted on the way.

Whoever asks a model or runs an option notes how long the journal was: what was recorded before that is told from what
was recorded after it, whoever recorded it.

1. the thread completes, each phase done once, in order;
2. a message that was sent again is given the response that it was given first, and is recorded once;
3. a phase that was recorded as done asks its model no more;
4. an option whose result was recorded runs no more; one that runs again knows it, under the same key;
5. the records of the agents are those of a run that nothing interrupted.
"""

import json
from collections import Counter
from typing import Any

from sabir_actors import AEIOUY, ThreadEvent
from sabir_session import InnerMessage

from tests.actors.crash.programs import Told, opened
from tests.session.support import ListJournal, recording, records_of

EVENT = ThreadEvent.stored_as


class Recorded:
    """The journal of a thread: what happened, what its agents said, and at which positions."""

    def __init__(self, told: Told) -> None:
        self.told = told
        with opened(told.store) as store:
            self.lines = list(store.journal(told.journal).read())
        self.events = [
            (position, ThreadEvent.model_validate_json(body))
            for position, (kind, body) in enumerate(self.lines)
            if kind == EVENT
        ]

    @property
    def happened(self) -> list[str]:
        """What happened, in order; of phases that are done their names."""
        return [each.data["phase_type"] if each.what == "phase_done" else each.what for _, each in self.events]

    @property
    def said(self) -> Any:
        """The records of the agents, without ids and times, and whatever the thread is called."""
        session = recording(ListJournal([line for line in self.lines if not line[0].endswith(EVENT)]))
        told = json.dumps(records_of(session), default=str)
        return json.loads(told.replace(self.told.thread_id, "thread").replace(self.told.name, "my fern"))

    def phases(self) -> dict[str, int]:
        done = [(each.data["phase_type"], position) for position, each in self.events if each.what == "phase_done"]
        assert [phase for phase, _ in done] == list(AEIOUY)
        return dict(done)

    def results(self) -> dict[str, int]:
        """Key of a run of the option → where its result was recorded."""
        records = {
            position: InnerMessage.model_validate_json(body)
            for position, (kind, body) in enumerate(self.lines)
            if not kind.endswith(EVENT)
        }
        places = {(each.evaluation_id, each.sequence): position for position, each in records.items()}
        return {
            f"{each.message_id}/{index}": places[each.evaluation_id, each.sequence + 1 + index]
            for each in records.values()
            for index in range(len(each.tool_calls))
        }


def check_laws(told: Told, whole: Any) -> None:
    """The laws of one thread, after its last process ended; `whole` is what agents say that nothing interrupts."""
    recorded = Recorded(told)
    phases, results = recorded.phases(), recorded.results()
    assert recorded.happened.count("completed") == 1 and told.noted("result")[-1] == ["completed"]

    answers: dict[str, str] = {}
    assert all(answers.setdefault(message_id, answer) == answer for message_id, answer in told.noted("answers"))
    answered = Counter(each.message_id for _, each in recorded.events if each.message_id)
    assert answered == Counter(each.id for each in told.messages())

    assert [each for each in told.noted("asked") if each[-1] > phases[each[0]]] == []
    assert {phase for phase, *_ in told.noted("asked")} == set(AEIOUY)
    assert [each for each in told.noted("runs") if each[-1] > results[each[0]]] == []
    assert {key for key, *_ in told.noted("runs")} == set(results)
    seen: set[str] = set()
    for key, is_resume, *_ in told.noted("runs"):
        assert is_resume or key not in seen, "an option ran again and was not told so"
        seen.add(key)
    assert [each for each, expected in zip(recorded.said, whole, strict=True) if each != expected] == []


def said_by_agents(told: Told) -> Any:
    return Recorded(told).said
