"""sabir's sessions and runners in memory, beside one row of SQLite and a dump of the whole history.

In an environment of their own: importing sabir alone is measured without them.
"""

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import sabir
from pydantic import TypeAdapter
from pydantic_core import from_json
from sabir_runtime import BaseContext, BaseRunner, InMemoryRunner
from sabir_session import InnerMessage, Session, SQLiteStore, ToolCallRecord, enable_inner_message_recording

from benchmarks import answers, work
from benchmarks.contenders.doing import OPTIONS_OFFERED, Contender, awaiting, choose
from benchmarks.contenders.messages import message_of, plain_messages
from benchmarks.work import BATCH, Entry, Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}")
ROLES = {"system": "system", "user": "user", "call": "assistant", "text": "assistant", "result": "tool"}
KEPT = 512
"""So many records tell what one takes on the disk: a database grows by whole pages."""
DUMPED = 1000
"""The only number of records that a dump is measured at: each time costs as much as there are."""
Append = Callable[[Any], object]


class Choosing(BaseContext):
    """A context whose policies choose what it holds."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(answers.reply_text())]
        for name in ("llm", *OPTIONS_OFFERED["three options"]):
            setattr(self, name, self._bind(choose))


def policy(given: Given) -> Callable[[], Any]:
    ctx: Any = Choosing(InMemoryRunner())
    observations, options = plain_messages(given.size), OPTIONS_OFFERED[given.wire]
    return awaiting(lambda: ctx.llm(observations, options))


def record_of(entry: Entry, sequence: int) -> InnerMessage:
    """The record of an entry, with all that an evaluation would write into it."""
    message, said = message_of(entry), {}
    if entry["kind"] == "call":
        called = work.compact(entry["arguments"])
        said["tool_calls"] = (ToolCallRecord(call_id=entry["id"], name=entry["name"], arguments=called),)
    if entry["kind"] == "result":
        said |= {"tool_call_id": entry["id"], "tool_name": entry["name"]}
    if entry["kind"] in ("call", "text"):
        said["finish_reason"] = "option_calls" if entry["kind"] == "call" else "stop"
        said["usage"] = sabir.Usage(input_tokens=1000 + sequence, output_tokens=40)
    return InnerMessage(
        role=ROLES[entry["kind"]], content=entry.get("text", ""), evaluation_id="outing", sequence=sequence,
        turn=sequence // 2, prompt_ns="benchmark", prompt_key="outing", messages=(message,), **said,
    )  # fmt: skip


class Appending:
    """Appends `BATCH` records a run to what holds `size` of them, and begins anew when it has grown by a tenth.

    `begin` gives what appends to a new, empty conversation; `form` makes of a record what that takes, untimed.
    """

    units = BATCH

    def __init__(self, given: Given) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "records")
        self.open()
        self.size = given.size
        self.most = self.size + max(BATCH, self.size // 10)
        self.entries = work.conversation((self.most + KEPT + BATCH) // 4 * 4)
        self.base = self.formed(0, self.size)
        self.count = self.most

    def open(self) -> None:
        """The file at `path`."""

    def begin(self) -> Append:
        raise NotImplementedError

    def form(self, record: InnerMessage) -> Any:
        return record

    def bytes_kept(self) -> int:
        return 0

    def formed(self, start: int, end: int) -> list[Any]:
        return [self.form(record_of(self.entries[place], place)) for place in range(start, end)]

    def renew(self) -> None:
        """New records; where it has grown too far, a new conversation of the first `size`."""
        if self.count + BATCH > self.most:
            self.count, self.append = self.size, self.begin()
            for record in self.base:
                self.append(record)
        self.fresh = self.formed(self.count, self.count + BATCH)
        self.count += BATCH

    def __call__(self) -> "Appending":
        append = self.append
        for record in self.fresh:
            append(record)
        return self

    def taken(self, count: int = KEPT) -> dict[str, float]:
        """What a record takes, over so many more: bytes kept and written. Then it begins anew, untimed."""
        more = self.formed(self.count, self.count + count)
        kept_before, written_before = self.bytes_kept(), bytes_written()
        for record in more:
            self.append(record)
        written, grown = bytes_written() - written_before, self.bytes_kept() - kept_before
        self.count = self.most
        self.renew()
        return {"bytes": grown / count, "written": written / count}

    def close(self) -> None:
        self.folder.cleanup()


def bytes_written() -> int:
    """What this process has given to the system to write; 0 where the system does not say."""
    account = Path("/proc/self/io")
    lines = account.read_text("ascii").splitlines() if account.exists() else []
    return next((int(line.partition(":")[2]) for line in lines if line.startswith("wchar")), 0)


class Recording(Appending):
    """A session with a journal in an SQLite file, which holds earlier conversations too."""

    def open(self) -> None:
        self.store, self.conversations = SQLiteStore(self.path), 0

    def begin(self) -> Append:
        """A session of a new conversation, appended to as programs do."""
        self.conversations += 1
        self.journal = self.store.journal(f"conversation {self.conversations}")
        session = Session(journal=self.journal)
        enable_inner_message_recording(session)
        return lambda record: session.mutate(InnerMessage).append(record)

    def bytes_kept(self) -> int:
        with closing(sqlite3.connect(self.path)) as database:
            return int(database.execute("PRAGMA page_count").fetchone()[0]) * 4096

    def evidence(self) -> dict[str, Any]:
        bodies = [body for _, body in self.journal.read()]
        return {"count": len(bodies), "bodies": bodies[-BATCH:], **self.taken()}

    def close(self) -> None:
        self.store.close()
        super().close()


class Rows(Appending):
    """One row of an SQLite file, by the standard library alone, of the text that sabir writes, made before.

    Write-ahead log, no wait for the disk, each row committed by itself, its statement prepared once.
    """

    def open(self) -> None:
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, kind TEXT, body TEXT)")

    def begin(self) -> Append:
        execute, insert = self.connection.cursor().execute, "INSERT INTO records (kind, body) VALUES ('record', ?)"
        return lambda row: execute(insert, row)

    def form(self, record: InnerMessage) -> Any:
        return (InnerMessage.model_dump_json(record),)

    def bytes_kept(self) -> int:
        return int(self.connection.execute("PRAGMA page_count").fetchone()[0]) * 4096

    def evidence(self) -> dict[str, Any]:
        (count,) = self.connection.execute("SELECT count(*) FROM records").fetchone()
        last = self.connection.execute("SELECT body FROM records ORDER BY id DESC LIMIT ?", (BATCH,)).fetchall()
        return {"count": count, "bodies": [body for (body,) in last[::-1]], **self.taken()}

    def close(self) -> None:
        self.connection.close()
        super().close()


class Dumping(Appending):
    """What a checkpoint is where nothing is appended: all records as one JSON text, written to a file each time."""

    def __init__(self, given: Given) -> None:
        if given.size != DUMPED:
            raise ValueError("it takes too long")
        self.adapter = TypeAdapter(list[InnerMessage])
        super().__init__(given)

    def begin(self) -> Append:
        """Append to a list that holds the base already, once it is dumped: the base is not dumped record by record."""
        held: list[InnerMessage] = []

        def append(record: InnerMessage) -> None:
            held.append(record)
            if len(held) > self.size:
                self.path.write_bytes(self.adapter.dump_json(held))

        return append

    def evidence(self) -> dict[str, Any]:
        stored = from_json(self.path.read_bytes())
        taken = self.taken(BATCH)
        bodies = [work.compact(body) for body in stored[-BATCH:]]
        return {"count": len(stored), "bodies": bodies, **taken, "bytes": taken["written"]}


KEPT_RECORDS = {"checkpoint": lambda given, appending: appending.evidence()}
CONTENDERS = {
    "sabir_runtime": Contender(
        {"policy": policy, "checkpoint": Recording}, {"policy": lambda given, batch: batch[-1].text, **KEPT_RECORDS}
    ),
    "bare_row": Contender({"checkpoint": Rows}, KEPT_RECORDS),
    "dump": Contender({"checkpoint": Dumping}, KEPT_RECORDS),
}
