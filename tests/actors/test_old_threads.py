"""A thread that an earlier version recorded is continued."""

import asyncio

from sabir_actors import AEIOUY

from tests.actors.support import Model, events_of, system_of, tell
from tests.session.conftest import address, database, open_store, postgres
from tests.session.layouts import THREAD, write_old_store
from tests.session.support import Opener

__all__ = ["address", "database", "open_store", "postgres"]


async def test_a_thread_of_an_older_store_is_continued(address: str, open_store: Opener) -> None:
    """It goes on at the phase at which it was paused, and a duplicate of an old message has its old answer."""
    write_old_store(address)
    model = Model()
    with open_store() as store:
        before = events_of(store, THREAD)
        async with system_of(model, store) as system:
            assert (await tell(system, "PAUSE_THREAD", "pause", thread_id=THREAD)).type == "THREAD_PAUSED"
            assert events_of(store, THREAD) == before
            await tell(system, "RESUME_THREAD", "resume", thread_id=THREAD)
            while (await tell(system, "GET_THREAD_STATUS", thread_id=THREAD)).data["status"] != "completed":
                await asyncio.sleep(0.01)
        kinds = [kind for kind, _ in store.journal(f"thread:{THREAD}").read(len(before))]
        phases = [event for event in events_of(store, THREAD) if event in AEIOUY]
    assert phases == list(AEIOUY)
    assert model.asked == [phase for phase in AEIOUY if phase not in before]
    assert "sabir.thread_event" in kinds
