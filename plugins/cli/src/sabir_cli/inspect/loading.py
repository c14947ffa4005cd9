"""Read the conversation to inspect from a file, a store, or a saved conversation's name.

    SQLite file           ──copy──▶ Store ──▶ records ──▶ messages with times, tokens and costs
    JSON, JSON Lines      ──▶ messages · the output of import, chat or demo with --json · a vendor's stored request
    YAML of a recording   ──▶ recordings
    anything else         ──▶ the name of a conversation that `sabir chat` saved; nothing: the last one

A store is copied before it is opened, because opening may upgrade its tables, and the inspector changes no file.
"""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import sabir
import sabir_session
from sabir import DecodedHistory
from sabir.authoring import decode_json, encode_json
from sabir_session import InnerMessage, SQLiteStore

from sabir_cli.chat.summaries import STORE_FILE, Summary, read_summaries
from sabir_cli.folders import home_folder
from sabir_cli.imports import as_requests, read_values
from sabir_cli.inputs import model_rows, read_bytes
from sabir_cli.inspect.inspection import InspectedMessage, Inspection, inspect_reply, plain_entries
from sabir_cli.inspect.recordings import Candidates, as_recording, is_recording
from sabir_cli.output import UsageError
from sabir_cli.providers import spoken_dialects
from sabir_cli.render import read_import_output

SQLITE_START = b"SQLite format 3\0"
MOST_NAMES = 8
"""The maximum number of names that an error lists."""


def load_inspection(source: str | None, name: str | None = None) -> Inspection:
    """Return the conversation in a file, or the saved conversation of this name; None means the last saved one.

    `name` chooses a conversation in a store. Raises UsageError if there is no such file or conversation, and
    HistoryInvalid, which names the file, if the file cannot be read.
    """
    if source is None:
        return _load_saved(name)
    if source != "-" and not Path(source).exists() and _is_saved(source):
        return _load_saved(source)
    content = read_bytes(source, "a conversation")
    title = "standard input" if source == "-" else Path(source).name
    if content.startswith(SQLITE_START):
        return _load_store(Path(source), name)
    if name is not None:
        raise UsageError(f"--name chooses a conversation in a store, but {title!r} is not a store; remove --name")
    try:
        if is_recording(content):
            return as_recording(title, content, recognise)
        return _load_history(title, content)
    except sabir.errors.HistoryInvalid as error:
        raise sabir.errors.HistoryInvalid(f"{title!r}: {error}") from None


def _is_saved(name: str) -> bool:
    return any(summary.name == name for summary in _saved_summaries())


def _saved_summaries() -> list[Summary]:
    """Return the summaries of the saved conversations. Raises UsageError if another version wrote the tables."""
    try:
        return read_summaries(home_folder() / STORE_FILE)
    except LookupError as error:
        raise UsageError(f"{error}; `sabir chats` upgrades the tables of an earlier version") from None


def _load_saved(name: str | None) -> Inspection:
    file = home_folder() / STORE_FILE
    if name is None:
        summaries = _saved_summaries()
        if not summaries:
            raise UsageError("no conversation is saved yet; name a file, or begin a conversation with `sabir chat`")
        name = summaries[0].name
    return _load_store(file, name)


def _load_store(file: Path, name: str | None) -> Inspection:
    """Return a conversation in a store. Raises UsageError if it does not exist, or if `name` is None and the store has
    several.
    """
    with tempfile.TemporaryDirectory(prefix="sabir-inspect-") as folder:
        copy = Path(folder) / STORE_FILE
        _copy_store(file, copy)
        with closing(SQLiteStore(copy)) as store:
            name = _choose_name(file, store.names(), name)
            session = sabir_session.Session(journal=store.journal(name))
            sabir_session.enable_inner_message_recording(session)
            records = sabir_session.get_inner_messages(session)
    entries = tuple(entry for record in records for entry in _record_entries(record))
    return Inspection(name, f"saved in {file.name}", entries)


def _copy_store(file: Path, copy: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=10.0)) as original,
            closing(sqlite3.connect(copy)) as target,
        ):
            original.backup(target)
    except sqlite3.Error as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error}; restore the file from a backup") from None


def _choose_name(file: Path, names: Iterable[str], name: str | None) -> str:
    known = sorted(names)
    listed = f"{', '.join(map(repr, known[:MOST_NAMES]))}{', …' if len(known) > MOST_NAMES else ''}"
    if not known:
        raise UsageError(f"{str(file)!r} has no conversations; name another file")
    if name is None and len(known) > 1:
        raise UsageError(f"{str(file)!r} has several conversations; choose one with --name: {listed}")
    if name is not None and name not in known:
        raise UsageError(f"{str(file)!r} has no conversation {name!r}; it has {listed}")
    return known[0] if name is None else name


def _record_entries(record: InnerMessage) -> Iterator[InspectedMessage]:
    """Yield the messages of a record. A reply has the record's figures."""
    if not (record.is_reply and record.messages):
        yield from (InspectedMessage(message, record.created_at) for message in record.messages)
        return
    origins = (message.origin for message in record.messages if message.origin is not None)
    reply = sabir.Reply(
        messages=record.messages,
        finish_reason=record.finish_reason or "other",
        raw_finish_reason=record.raw_finish_reason,
        usage=record.usage or sabir.Usage(),
        origin=next(origins, None) or sabir.Origin(provider="unknown", dialect="unknown"),
    )
    yield from inspect_reply(reply, record.created_at)


def _load_history(title: str, content: bytes) -> Inspection:
    """Return the conversation in JSON text: sabir's messages, the output of `sabir import --json`, or a request."""
    fault: sabir.errors.HistoryInvalid
    try:
        history = read_import_output(content)
        if history is not None:
            return _from_decoded(title, "output of sabir import", history)
        return Inspection(title, "messages", plain_entries(sabir.loads(_without_document(content))))
    except sabir.errors.HistoryInvalid as error:
        fault = error
    with suppress(sabir.errors.HistoryInvalid):
        if candidates := recognise(content):
            inspection = from_request(title, *candidates[0])
            names = " and ".join(dialect.dialect.name for dialect, _ in candidates[1:])
            note = f"{names} can read the request too; `sabir import --from` chooses a dialect"
            return replace(inspection, notes=(*inspection.notes, note)) if names else inspection
    raise fault


def _without_document(content: bytes) -> bytes:
    """Return the messages of a document of `sabir chat --json` or `sabir demo --json`, and other text unchanged."""
    with suppress(sabir.errors.NotJSON):
        fields = decode_json(content)
        messages = fields.get("messages") if isinstance(fields, dict) else None
        if messages and isinstance(messages, list) and all("payload" in each for each in messages):
            return encode_json(messages).encode()
    return content


def from_request(title: str, dialect: sabir.PureDialect, history: DecodedHistory) -> Inspection:
    """Return the conversation of a stored request, with its options and settings."""
    return _from_decoded(title, f"request of {dialect.dialect.name}", history)


def _from_decoded(title: str, source: str, history: DecodedHistory) -> Inspection:
    notes = tuple(f"importing the request: {loss}" for loss in history.losses)
    return Inspection(title, source, plain_entries(history.messages), history.options, history.settings, notes)


def recognise(content: bytes) -> Candidates:
    """Return the installed dialects that can read a request, with the request's contents, the fewest losses first,
    and among equals those whose provider knows the model. [] if no dialect can read it, or for several requests.
    """
    values = read_values(content)
    spoken, _ = spoken_dialects(sabir.providers())
    candidates: Candidates = []
    for each in spoken:
        dialect = sabir.dialect(each.speaker.full_name)
        with suppress(sabir.errors.HistoryInvalid):
            requests = as_requests(values, dialect.dialect.messages_field)
            if len(requests) == 1:
                candidates.append((dialect, dialect.decode_history(requests[0].body)))
    return sorted(candidates, key=lambda candidate: (len(candidate[1].losses), not _knows_model(*candidate)))


def _knows_model(dialect: sabir.PureDialect, history: DecodedHistory) -> bool:
    rows = model_rows(f"{dialect.target.provider}.{dialect.dialect.name.rpartition('.')[2]}")
    return any(row.prefix and history.model.startswith(row.prefix) for row in rows)
