"""What a caller does with what it hears: wait on, pause, hand over, give up; and that it takes one answer."""

import asyncio

import pytest
import sabir
from sabir_runtime.distributed import CallSettings, NoWorkers, RequestTimedOut, WorkerLost
from sabir_runtime.distributed.caller import NoSubscriber, PendingRequest
from sabir_runtime.distributed.envelopes import (
    Accepted,
    Alive,
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
ALIVE = Alive(worker="w1", requests=("r1",))


class Workers:
    """Says to the n-th sending what the script has for it: replies, at once and in order."""

    def __init__(self, *script: tuple[Reply | NoSubscriber | Exception, ...], settings: CallSettings = QUICK) -> None:
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


@pytest.mark.parametrize("script", [(ANSWER,), (FAILED,), (ANSWER, OTHER)], ids=["answer", "failure", "two answers"])
async def test_the_first_end_ends_it(script: tuple[Ending, ...]) -> None:
    """One request, one reply: what the policy raised is no reason to ask another, and nobody gets two answers."""
    workers = Workers(script)

    assert await workers.carry() is script[0]
    assert workers.sent == 1
    assert not workers.pending.may_run_elsewhere


@pytest.mark.parametrize("reply", [BUSY, NoSubscriber()], ids=["busy", "nobody"])
async def test_it_is_sent_again_while_nobody_takes_it(reply: Busy | NoSubscriber) -> None:
    workers = Workers(
        (reply,), (reply,), (reply,), (reply,), (ANSWER,), settings=QUICK.model_copy(update={"attempts": 1})
    )

    assert await workers.carry() is ANSWER
    assert workers.sent == 5
    assert workers.left == sorted(workers.left, reverse=True)


async def test_the_first_word_that_a_worker_is_busy_costs_no_pause() -> None:
    """Asked again, it stands in line there: only then is it on its way for more than no time."""
    workers = Workers((BUSY,), (ANSWER,))
    asking = asyncio.ensure_future(workers.carry())
    for _ in range(3):  # turns of the event loop, of which a pause would take none
        await asyncio.sleep(0)

    assert workers.sent == 2
    assert await asking is ANSWER
    assert workers.waited[0] == 0 < workers.waited[1]


@pytest.mark.parametrize("first", [(), (NoSubscriber(),)], ids=["the last one died", "there was none"])
async def test_nobody_for_longer_than_the_patience_is_an_error(first: tuple[NoSubscriber, ...]) -> None:
    workers = Workers(first, *[(NoSubscriber(),)] * 99)

    with pytest.raises(
        NoWorkers, match=r"policy 'llm' of 'Desk': no worker serves it, and none started within 0.3 s; start one"
    ):
        await workers.carry()


async def test_a_busy_worker_proves_that_there_are_workers() -> None:
    """Patience counts from when the last one was seen, not from the first time that none was."""
    patient = QUICK.model_copy(update={"patience": 0.0})
    missing = Workers((NoSubscriber(),), (ANSWER,), settings=patient)
    with pytest.raises(NoWorkers):
        await missing.carry()

    some = QUICK.model_copy(update={"patience": 0.05})
    workers = Workers(*[(NoSubscriber(),), (BUSY,)] * 3, (ANSWER,), settings=some)

    assert await workers.carry() is ANSWER


@pytest.mark.parametrize("first", [(), (ACCEPTED, RELEASED)], ids=["silence", "leaves"])
async def test_a_worker_that_is_silent_or_leaves_gives_it_to_another(first: tuple[Reply, ...]) -> None:
    """A dead worker says nothing; for beats of one that leaves no time is spent."""
    settings = QUICK.model_copy(update={"acceptance": 1000.0, "silence": 1000.0}) if first else QUICK
    workers = Workers(first, (WILLING,), (ANSWER,), settings=settings)

    assert await workers.carry() is ANSWER
    assert workers.sent_to == ["any", "who?", "w2"]
    assert workers.pending.may_run_elsewhere  # the first may only have been slow: it is told to stop


async def test_where_none_is_willing_the_queue_group_decides() -> None:
    """All that live are full: the request waits for a place as any other does."""
    workers = Workers((), (), (BUSY,), (ANSWER,), settings=QUICK.model_copy(update={"acceptance": 0.02}))

    assert await workers.carry() is ANSWER
    assert workers.sent_to == ["any", "who?", "any", "any"]


@pytest.mark.parametrize("reply", [BUSY, NoSubscriber()], ids=["busy", "gone"])
async def test_a_willing_worker_that_filled_up_or_left_meanwhile_is_replaced(reply: Busy | NoSubscriber) -> None:
    """One that is gone is no sign that there are none: the patience is for those."""
    impatient = QUICK.model_copy(update={"acceptance": 0.02, "patience": 0.0})
    workers = Workers((), (WILLING,), (reply,), (WILLING,), (ANSWER,), settings=impatient)

    assert await workers.carry() is ANSWER
    assert workers.sent_to == ["any", "who?", "w2", "who?", "w2"]


async def test_after_so_many_attempts_the_worker_is_lost() -> None:
    """A request that kills its workers must not kill all of them."""
    script = [(ACCEPTED,), (WILLING,), (ACCEPTED,), (WILLING,), (ACCEPTED,)]
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
