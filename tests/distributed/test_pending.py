"""What a caller does with what it hears: wait on, pause, hand over, give up; and that it takes one answer."""

import asyncio
from typing import TypeAlias

import pytest
import sabir
from sabir_runtime.distributed import CallSettings, NoWorkers, RequestTimedOut, WorkerLost
from sabir_runtime.distributed.caller import NoSubscriber, PendingRequest
from sabir_runtime.distributed.envelopes import (
    Accepted,
    Answered,
    Busy,
    Ending,
    Failed,
    Fault,
    Released,
    Reply,
    Willing,
)

from tests.distributed.support import QUICK, soon, until

ANSWER = Answered(id="r1", worker="w1", result=(sabir.assistant("done"),))
OTHER = Answered(id="r1", worker="w2", result=(sabir.assistant("done again"),))
FAILED = Failed(id="r1", worker="w1", error=Fault(type="Boom", message="no", raised_by="policy"))
BUSY, RELEASED = Busy(id="r1", worker="w1"), Released(id="r1", worker="w1")
ACCEPTED = Accepted(id="r1", worker="w1", every=0.01)
WILLING = Willing(id="r1", worker="w2")


Script: TypeAlias = tuple[Reply | NoSubscriber | Exception, ...]


class Workers:
    """Says to the n-th sending what the script has for it: replies, at once and in order."""

    def __init__(self, *script: Script, settings: CallSettings = QUICK) -> None:
        self.pending = PendingRequest("r1", "Desk", "llm", settings)
        self.left: list[float] = []
        self.waited: list[float] = []
        self.sent_to: list[str] = []
        self._script = list(script)

    async def send(self, pending: PendingRequest, left: float) -> None:
        self.left.append(left)
        self.waited.append(pending.waited)
        self.sent_to.append("who?" if pending.seeks_worker else pending.chosen_worker or "any")
        for reply in self._script.pop(0) if self._script else ():
            pending.add_reply(pending.sending, reply)

    async def carry(self) -> Ending:
        return await soon(self.pending.send_until_ended(self.send))

    @property
    def sent(self) -> int:
        return len(self.left)


NOBODY = NoSubscriber()
LATER = {"acceptance": 1000.0, "silence": 1000.0}
HASTY = {"acceptance": 0.02, "patience": 0.0}
ENDED: dict[str, tuple[list[Script], dict[str, float], list[str]]] = {
    "an answer": ([(ANSWER,)], {}, ["any"]),
    "a failure": ([(FAILED,)], {}, ["any"]),
    "two answers": ([(ANSWER, OTHER)], {}, ["any"]),
    "all are busy, which is no attempt": ([*[(BUSY,)] * 4, (ANSWER,)], {"attempts": 1}, ["any"] * 5),
    "nobody is there yet": ([*[(NOBODY,)] * 4, (ANSWER,)], {"attempts": 1}, ["any"] * 5),
    "the busy prove that there are some": (
        [(NOBODY,), (BUSY,), (NOBODY,), (BUSY,), (NOBODY,), (BUSY,), (ANSWER,)], {"patience": 0.05}, ["any"] * 7,
    ),
    "one is silent": ([(), (WILLING,), (ANSWER,)], {}, ["any", "who?", "w2"]),
    "one leaves, and no time is spent": ([(ACCEPTED, RELEASED), (WILLING,), (ANSWER,)], LATER, ["any", "who?", "w2"]),
    "none is willing": ([(), (), (BUSY,), (ANSWER,)], {"acceptance": 0.02}, ["any", "who?", "any", "any"]),
    "the willing one filled up": (
        [(), (WILLING,), (BUSY,), (WILLING,), (ANSWER,)], HASTY, ["any", "who?", "w2", "who?", "w2"],
    ),
    "the willing one left, which says nothing of others": (
        [(), (WILLING,), (NOBODY,), (WILLING,), (ANSWER,)], HASTY, ["any", "who?", "w2", "who?", "w2"],
    ),
}  # fmt: skip
"""What is said to each sending, settings other than the usual, and to whom it is sent."""


@pytest.mark.parametrize("case", ENDED)
async def test_it_is_sent_until_the_first_end(case: str) -> None:
    """What a policy raised is no reason to ask another; a worker that was silent may only have been slow."""
    script, changes, sent_to = ENDED[case]
    workers = Workers(*script, settings=QUICK.model_copy(update=changes))

    assert await workers.carry() is script[-1][0]
    assert workers.sent_to == sent_to
    assert workers.left == sorted(workers.left, reverse=True)
    assert workers.pending.may_run_elsewhere == ("who?" in sent_to)


async def test_the_first_word_that_a_worker_is_busy_costs_no_pause() -> None:
    """Asked again, it stands in line there: only then is it on its way for more than no time."""
    workers = Workers((BUSY,), (ANSWER,))
    asking = asyncio.ensure_future(workers.carry())
    for _ in range(3):  # turns of the event loop, of which a pause would take none
        await asyncio.sleep(0)

    assert workers.sent == 2
    assert await asking is ANSWER
    assert workers.waited[0] == 0 < workers.waited[1]


@pytest.mark.parametrize("first", [(), (NOBODY,)], ids=["the last one died", "there was none"])
async def test_nobody_for_longer_than_the_patience_is_an_error(first: tuple[NoSubscriber, ...]) -> None:
    workers = Workers(first, *[(NOBODY,)] * 99)

    with pytest.raises(
        NoWorkers, match=r"policy 'llm' of 'Desk': no worker serves it, and none started within 0.3 s; start one"
    ):
        await workers.carry()


async def test_after_so_many_attempts_the_worker_is_lost() -> None:
    """A request that kills its workers must not kill all of them."""
    script: list[Script] = [(ACCEPTED,), (WILLING,), (ACCEPTED,), (WILLING,), (ACCEPTED,)]
    workers = Workers(*script, settings=QUICK.model_copy(update={"silence": 0.02}))

    with pytest.raises(WorkerLost, match="3 workers in turn did not finish it, the last was w1; check whether"):
        await workers.carry()
    assert workers.sent_to == ["any", "who?", "w2", "who?", "w2"]
    assert workers.pending.may_run_elsewhere


async def test_a_slow_worker_is_given_three_of_its_own_beats() -> None:
    """A worker says how often it beats; a caller that expects more would hand over what is in good hands."""
    workers = Workers((Accepted(id="r1", worker="w1", every=0.1),), settings=QUICK.model_copy(update={"silence": 0.01}))
    loop = asyncio.get_running_loop()
    loop.call_later(0.2, workers.pending.add_reply, 1, ANSWER)

    assert await workers.carry() is ANSWER
    assert workers.sent == 1


async def test_pauses_end_with_the_time_of_a_call() -> None:
    workers = Workers(*[(BUSY,)] * 99, settings=CallSettings(timeout=0.1))

    with pytest.raises(RequestTimedOut, match="no worker had accepted it"):
        await workers.carry()


async def test_a_late_answer_of_the_first_counts_while_the_second_is_asked() -> None:
    workers = Workers((), (WILLING,), (BUSY,), settings=QUICK.model_copy(update={"acceptance": 0.02}))
    asyncio.get_running_loop().call_later(0.03, workers.pending.add_reply, 1, ANSWER)

    assert await workers.carry() is ANSWER


async def test_what_was_said_about_an_earlier_sending_does_not_disturb_the_latest() -> None:
    """A worker that wakes up and says that it is busy speaks of a request that another has by now."""
    workers = Workers((), (WILLING,), (), settings=QUICK.model_copy(update={"acceptance": 0.05}))
    waiting = asyncio.ensure_future(workers.carry())
    await until(lambda: workers.sent == 3)

    workers.pending.add_reply(1, BUSY)
    await asyncio.sleep(0)
    assert workers.pending._reply is None
    workers.pending.add_reply(3, ANSWER)

    assert await waiting is ANSWER
    assert workers.sent == 3
