"""The limit of a durable call: the engine's own step, on an SQLite file with the settings that suit it.

What a step gives is the text of the batch that sabir's policy gives, ready made; so the engine writes the same bytes.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import sabir
from dbos import DBOS, DBOSConfig, Serializer
from sqlalchemy import create_engine, event

from tests.benchmarks import work
from tests.benchmarks.contenders.stepping import Stepping
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{durable}")


class Plain(Serializer):
    """Texts as they are."""

    def serialize(self, data: Any) -> str:
        """The text."""
        return data if isinstance(data, str) else work.compact(data)

    def deserialize(self, serialized_data: str) -> Any:
        """The text again."""
        return serialized_data

    def name(self) -> str:
        """Under which it stands beside what it wrote."""
        return "plain"


_open: "Steps | None" = None


@DBOS.workflow(name="benchmark")
async def body() -> None:
    """The steps of whoever is open."""
    assert _open is not None
    batch = sabir.dumps([sabir.assistant(work.reply_text())])

    async def give() -> str:
        return batch

    await _open.main(lambda: DBOS.run_step_async({"name": "step"}, give))


class Steps(Stepping):
    """A workflow."""

    def __init__(self, given: Given) -> None:
        super().__init__()

    async def start(self) -> None:
        """Begin it as a task of this event loop."""
        global _open  # noqa: PLW0603  # the engine is one in each process
        _open = self
        self.engine = create_engine(f"sqlite:///{self.path}")

        @event.listens_for(self.engine, "connect")
        def prepare(connection: Any, record: object) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

        config: DBOSConfig = {
            "name": "benchmark", "system_database_url": f"sqlite:///{self.path}",
            "system_database_engine": self.engine, "serializer": Plain(), "log_level": "WARNING",
            "application_version": "1", "executor_id": "benchmark",
            "notification_listener_polling_interval_sec": 0.01,
        }  # fmt: skip
        DBOS(config=config)
        DBOS.launch()
        self.handle = await DBOS.start_workflow_async(body)

    async def stop(self) -> None:
        """Await its end."""
        await self.handle.get_result()
        DBOS.destroy()
        self.engine.dispose()


def stepped(given: Given, steps: Steps) -> dict[str, Any]:
    """How many steps the database holds, and what the last one gave by it."""
    with closing(sqlite3.connect(steps.path)) as connection:
        query = "SELECT output FROM operation_outputs WHERE function_name = 'step' ORDER BY function_id"
        found = [text for (text,) in connection.execute(query)]
    return {"count": len(found), "texts": [message.text for message in sabir.loads(found[-1])]}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"durable_step": Steps}
EVIDENCE = {"durable_step": stepped}
