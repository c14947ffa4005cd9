"""Everything that can be read of frozen data through public interfaces, as JSON; and how it is compared.

    writer ──▶ data, expected/*.json          test ──▶ the same data, read by the code of the checkout
                        └──────── differences() ────────┘

A newer version may add fields; it may not change or drop what was written.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sabir
from pydantic import BaseModel
from sabir_actors import ActorSystem, ThreadClient, ThreadEvent
from sabir_runtime.durable import Runs
from sabir_session import (
    Conversation,
    Session,
    Snapshot,
    Store,
    append_item,
    enable_inner_message_recording,
    get_inner_messages,
    get_pending_tool_calls,
    unfinished_evaluations,
)
from sabir_testing import ScriptedAdapter

from tests.frozen.programs import REVIEW, Note, Plan
from tests.frozen.writing.conversations import register

EVALUATIONS = ("evaluation", "evaluation-running", "evaluation-waiting", "notes", "output-running")
"""Journals that are not a conversation's."""
THREAD = "thread:"
UNSTORED = ("waits_for",)
"""Fields of a run that depend on the present workers."""
WRITER = ("schema",)
"""Fields that name the version of the writer: a newer one writes another number."""


def plain(value: Any) -> Any:
    """Models and messages as JSON values."""
    if isinstance(value, BaseModel):
        return json.loads(value.model_dump_json())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def write_json(path: Path, value: Any) -> None:
    """Write a value; compressed, since it repeats what the data holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(plain(value), sort_keys=True).encode(), mtime=0))


def read_json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def differences(written: Any, read: Any, place: str = "") -> Iterator[str]:
    """Each place where what was written is missing or is something else; fields without a value count as missing."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            if name not in WRITER and (value is not None or name in read):
                yield from differences(value, read.get(name), f"{place}.{name}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for index, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif written != read or type(written) is not type(read):
        yield f"{place}: written {written!r}, read {read!r}"


def check(written: Any, value: Any) -> None:
    """Fail with every difference between what was written and what is read."""
    __tracebackhide__ = True
    read = json.loads(json.dumps(plain(value)))  # plain strings and lists, as what was written
    faults = list(differences(written, read))
    assert not faults, "\n".join(faults[:20])


def conversations(store: Store) -> Sequence[str]:
    """The names of the conversations in a store."""
    return [name for name in store.names() if name not in EVALUATIONS and not name.startswith(THREAD)]


def of_store(store: Store) -> dict[str, Any]:
    """All journals of a store of conversations and evaluations."""
    return {
        "journals": {name: _of_journal(store, name) for name in store.names()},
        "conversations": {name: _of_conversation(store, name) for name in conversations(store)},
    }


def recorded(store: Store, name: str) -> Session:
    """The session of a journal, with the slices that were written."""
    session = Session(journal=store.journal(name))
    enable_inner_message_recording(session)
    register(session)
    return session


def _of_journal(store: Store, name: str) -> dict[str, Any]:
    return {"length": store.length(name), **of_session(recorded(store, name))}


def of_session(session: Session) -> dict[str, Any]:
    """The records and slices of a session."""
    records = get_inner_messages(session)
    ids = dict.fromkeys(record.evaluation_id for record in records)
    return {
        "records": plain(records),
        "pending": {each: plain(get_pending_tool_calls(session, each)) for each in ids},
        "unfinished": list(unfinished_evaluations(session)),
        "notes": [note.text for note in session.select_all(Note)],
        "plans": [[plan.goal, *plan.steps] for plan in session.select_all(Plan)],
    }


def _of_conversation(store: Store, name: str) -> dict[str, Any]:
    chat = Conversation(ScriptedAdapter(), keep=store, name=name)
    read = {
        "messages": [message.id for message in chat.messages],
        "texts": [message.text for message in chat.messages],
        "kinds": [message.kind for message in chat.messages],
        "unfinished": chat.unfinished,
        "usage": plain(chat.usage),
    }
    chat.close()
    return read


def of_history(messages: Sequence[sabir.Message]) -> list[dict[str, Any]]:
    """What a program reads of each message."""
    return [
        {
            "message": plain(message),
            "text": message.text,
            "kind": message.kind,
            "parts": [part.kind for part in message.parts],
            "call": message.call and [message.call.option_name, message.call.arguments_json],
            "result": message.result and [message.result.is_error, message.result.result_json],
        }
        for message in messages
    ]


def of_snapshot(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [{"kind": each.kind, "items": [json.loads(item) for item in each.items]} for each in snapshot.slices]


def of_runs(url: str) -> dict[str, Any]:
    """All runs of a durable store, with their calls."""
    with Runs(url) as runs:
        details = {each.run: runs.show(each.run) for each in runs.list()}
    read: dict[str, Any] = {name: plain(each) for name, each in sorted(details.items())}
    for each in read.values():
        for field in UNSTORED:
            each["summary"].pop(field, None)
    return read


async def of_threads(store: Store) -> dict[str, Any]:
    """The status and the events of all threads of a store, by the text that each was asked."""
    read: dict[str, Any] = {}
    async with ActorSystem(store=store, chains=[REVIEW], recovers=False) as system:
        client = ThreadClient(system)
        for name in store.names():
            thread_id = name.removeprefix(THREAD)
            session = recorded(store, name)
            session.mutate(ThreadEvent).register(ThreadEvent, append_item)
            events = session.select_all(ThreadEvent)
            read[str(events[0].data["initial_input"])] = {
                "status": plain(await client.status(thread_id)),
                "events": plain(events),
                "records": plain(get_inner_messages(session)),
                "length": store.length(name),
            }
    return dict(sorted(read.items()))
