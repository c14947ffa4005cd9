"""Records of the benchmark's conversation, and how every contender that keeps them grows: written once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import sabir
from sabir_session import InnerMessage, ToolCallRecord

from tests.benchmarks import work
from tests.benchmarks.contenders.messages import message_of
from tests.benchmarks.work import Entry

ROLES = {"system": "system", "user": "user", "call": "assistant", "text": "assistant", "result": "tool"}
BATCH = work.BATCH
KEPT = 512
"""So many records tell what one takes on the disk: a database grows by whole pages."""

Append = Callable[[Any], object]


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

    def __init__(self, size: int, begin: Callable[[], Append], form: Callable[[InnerMessage], Any]) -> None:
        self.size, self.begin, self.form = size, begin, form
        self.most = size + max(BATCH, size // 10)
        self.entries = work.conversation((self.most + KEPT + BATCH) // 4 * 4)
        self.base = self.formed(0, size)
        self.count = self.most

    def formed(self, start: int, end: int) -> list[Any]:
        """Records of these places."""
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
        """Append them, each by itself."""
        append = self.append
        for record in self.fresh:
            append(record)
        return self

    def taken(self, count: int, kept: Callable[[], int]) -> dict[str, float]:
        """What a record takes, over so many more: bytes kept and written. Then it begins anew, untimed."""
        more = self.formed(self.count, self.count + count)
        kept_before, written_before = kept(), bytes_written()
        for record in more:
            self.append(record)
        written, grown = bytes_written() - written_before, kept() - kept_before
        self.count = self.most
        self.renew()
        return {"bytes": grown / count, "written": written / count}


def bytes_written() -> int:
    """What this process has given to the system to write; 0 where the system does not say."""
    account = Path("/proc/self/io")
    lines = account.read_text("ascii").splitlines() if account.exists() else []
    return next((int(line.partition(":")[2]) for line in lines if line.startswith("wchar")), 0)
