"""The picture of `sabir threads` in the documentation: what the command shows of threads that are made here.

events, on a clock that stands ──▶ a store ──▶ list, watch ──▶ docs/how-to/threads.svg
"""

import io
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid5

from rich.console import Console
from sabir_actors import AEIOUY, ThreadEvent, ThreadView, command, thread_display
from sabir_actors.data import PhaseOutput
from sabir_actors.state import EventKind
from sabir_session import Session, SQLiteStore, append_item

from tests.docs.pages import DOCS

PICTURE = DOCS / "how-to" / "threads.svg"
WIDTH = 80
MOMENT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
"""What the clock says."""
THREADS = (
    ("Shall I repot my fern before the winter?", "completed", 6, 840.0),
    ("Why do the leaves of my monstera turn yellow?", "failed", 1, 610.0),
    ("Which plants grow in the shade of a north wall?", "paused", 2, 300.0),
    ("How do I get rid of fungus gnats without poison, and what draws them?", "started", 3, 12.4),
    ("What is moss?", "queued", 0, 3.2),
)
"""What was asked, what happened last, how many phases are done, and how many seconds ago that was."""
WATCHED = 3
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 16px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich draws it, without a font that would be loaded from elsewhere."""


def picture() -> str:
    """The list of all threads, and one that is watched, as a terminal shows them."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder, patch.object(thread_display, "now", lambda: MOMENT):
        path = Path(folder) / "threads.db"
        with SQLiteStore(path) as store:
            for number, (asked, last, done, age) in enumerate(THREADS):
                session = Session(journal=store.journal(f"thread:{_id(number)}"))
                session.mutate(ThreadEvent).register(ThreadEvent, append_item)
                for event in _events(number, asked, last, done, age):
                    session.mutate(ThreadEvent).append(event)
        with redirect_stdout(io.StringIO()) as listed:
            command.threads(store=f"sqlite:///{path}")
        view = ThreadView()
        for event in _events(WATCHED, *THREADS[WATCHED]):
            view.apply(event)
        console.print("[bold]$ sabir threads[/]", highlight=False)
        console.print(listed.getvalue(), markup=False, highlight=False)
        console.print(f"[bold]$ sabir threads watch {_id(WATCHED)[:4]}[/]", highlight=False)
        console.print(thread_display.table_of(view, WIDTH))
    return console.export_svg(title="sabir threads", code_format=FORMAT, unique_id="threads")


def _id(number: int) -> str:
    return str(uuid5(UUID(int=0), str(number)))


def _events(number: int, asked: str, last: str, done: int, age: float) -> Iterator[ThreadEvent]:
    said = {"thread_id": _id(number), "user_id": "me", "initial_input": asked, "chain": "aeiou-y"}
    end = MOMENT - timedelta(seconds=age)

    def event(what: EventKind, before: float, **data: Any) -> ThreadEvent:
        return ThreadEvent(what=what, at=end - timedelta(seconds=before), data=data)

    yield event("created", 100.0 - number, **said, phases=list(AEIOUY))
    yield event("started", 0.0 if last == "queued" else 90.0, by=None, run=f"{_id(number)}.1")
    if last != "queued":
        yield event("taken", 89.0, by="a worker")
    for at, name in enumerate(AEIOUY[:done]):
        output = PhaseOutput(response="…", confidence=(0.8, 0.75, 0.9)[at % 3]).model_dump(mode="json")
        usage = {"model": "openai:gpt-5", "input_tokens": 212 + 340 * at, "output_tokens": 318 + 17 * at}
        seconds = 4.1 + 0.7 * at
        yield event("phase_done", 0.0, phase_type=name, output=output, processing_time=seconds, usage=usage)
    if last == "completed":
        yield event("completed", 0.0)
    if last == "paused":
        yield event("paused", 0.0)
    if last == "failed":
        yield event("failed", 0.0, error_message="no")
