"""Summaries of the saved conversations, read from the store's tables without loading a conversation.

    sabir_journals ──▶ name, parent          sabir_session_records ──▶ turns, first question, last reply, time

After /drop, /retry or a fork, the first records of a conversation belong to the parent of its journal. Such a
conversation is read from all of these journals. `docs/reference/sessions-and-runs.md` documents the tables.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sabir.authoring import one_line

from sabir_cli.dialects import model_label
from sabir_cli.output import UsageError

if TYPE_CHECKING:
    import sqlite3

STORE_FILE = "chats.db"
"""The name of the store in the home folder."""
LONGEST_NAME = 120
"""Maximum length of a conversation's name in characters."""
USER = "user"
"""The policy of the user's messages."""
LAYOUT = 2
"""The version of the store's tables that this module reads."""
LONGEST_WORDS = 200
"""Maximum length of `Summary.words` in characters."""
WAIT = "wait until the other program releases it"
_POSITIONS = 1 << 32
"""The key of a record is the id of its journal times this number, plus its position in the journal."""
_Journal: TypeAlias = tuple[int, str | None, int | None, int]
"""A journal's id, name (None if it is only a parent), parent's id, and the number of its records that belong to the
parent.
"""

_ROLES = """
SELECT id, CASE substr(body, 1, 13)
  WHEN '{"role":"user' THEN 1 WHEN '{"role":"assi' THEN 2 WHEN '{"role":"tool' THEN 0 WHEN '{"role":"syst' THEN 0
  ELSE (json_extract(body, '$.role') = 'user') + 2 * (json_extract(body, '$.role') = 'assistant') END
FROM sabir_session_records
WHERE kind IN ('sabir.message', 'sabir_session:InnerMessage') AND id >= ? AND id < ? ORDER BY id
"""
"""SQL for the records in a range of keys: each key, with 1 for a question, 2 for a reply and 0 for any other record.
It compares the beginning of a record, which is faster than parsing the JSON, and parses only if the role is not there.
"""
_TEXTS = """
SELECT json_extract(last.body, '$.created_at'), json_extract(reply.body, '$.messages[0].origin'), question.body
FROM sabir_session_records last
LEFT JOIN sabir_session_records question ON question.id = ? LEFT JOIN sabir_session_records reply ON reply.id = ?
WHERE last.id = ?
"""
_JOURNALS = "SELECT id, name, parent, length FROM sabir_journals"


class Summary(NamedTuple):
    """A summary of a saved conversation: its name, the time of its last record, the model string of its last reply (""
    without a reply), the number of its questions, and the beginning of its first question.
    """

    name: str
    when: datetime
    model: str
    turns: int
    words: str


@dataclass(slots=True)
class _Counts:
    """Counts of the records of a journal: the number of questions, and the keys of the last record, the first question
    and the last reply.
    """

    last: int = 0
    questions: int = 0
    first_question: int | None = None
    last_reply: int | None = None

    def add(self, record: int, role: int) -> None:
        """Add the next record. `record` is its key, and `role` 1 for a question, 2 for a reply, 0 for any other."""
        self.last = record
        if role == 1:
            self.questions += 1
            self.first_question = self.first_question or record
        elif role == 2:
            self.last_reply = record


def read_summaries(file: Path) -> list[Summary]:
    """Return a summary of each conversation that has a question, the latest first; [] if there is no file.

    Raises UsageError for a file that cannot be read, and LookupError for tables of another version.
    """
    import sqlite3  # `sabir chats --help` needs no database

    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=10.0)) as database:
            versions = database.execute("SELECT version FROM sabir_session_schema").fetchall()
            if versions != [(LAYOUT,)]:
                raise LookupError(f"the tables have layout {versions}, not {LAYOUT}")
            database.execute("BEGIN")  # all following queries read the same state of the file
            return sorted(_query_summaries(database), key=lambda summary: summary.when, reverse=True)
    except (sqlite3.Error, ValueError) as error:
        remedy = WAIT if is_locked(error) else "restore the file from a backup, or set SABIR_HOME to another folder"
        raise UsageError(f"{str(file)!r} cannot be read: {error}; {remedy}") from None


def is_locked(error: BaseException | None) -> bool:
    """Return whether SQLite raised an error because another program has locked the file."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _query_summaries(database: "sqlite3.Connection") -> Iterator[Summary]:
    by_journal: defaultdict[int, _Counts] = defaultdict(_Counts)
    for record, role in database.execute(_ROLES, (0, 1 << 62)):
        by_journal[record // _POSITIONS].add(record, role)
    journals: dict[int, _Journal] = {row[0]: row for row in database.execute(_JOURNALS)}
    models: dict[str | None, str] = {}
    for journal_id, name, parent, _ in journals.values():
        is_forked = parent is not None and name is not None
        counts = _forked_counts(database, journals, journal_id) if is_forked else by_journal.get(journal_id)
        if name is None or counts is None or counts.first_question is None:
            continue
        keys = (counts.first_question, counts.last_reply, counts.last)
        ((when, origin, question),) = database.execute(_TEXTS, keys)
        if origin not in models:
            models[origin] = _origin_label(origin)
        yield Summary(name, datetime.fromisoformat(when), models[origin], counts.questions, _first_text(question))


def _forked_counts(database: "sqlite3.Connection", journals: Mapping[int, _Journal], journal_id: int) -> _Counts:
    """Return the counts of a journal whose first records belong to its parents."""
    key_ranges: list[tuple[int, int]] = []
    journal: int | None = journal_id
    end = _POSITIONS
    while journal is not None and end > 0:
        _, _, parent, start = journals[journal]
        if end > start:
            key_ranges.append((journal * _POSITIONS + start, journal * _POSITIONS + end))
        journal, end = parent, min(end, start)
    counts = _Counts()
    for keys in reversed(key_ranges):
        for record, role in database.execute(_ROLES, keys):
            counts.add(record, role)
    return counts


def _origin_label(origin: str | None) -> str:
    if origin is None:
        return ""
    fields: dict[str, Any] = json.loads(origin)
    return model_label(fields["provider"], fields["dialect"], fields["model"])


def _first_text(body: str) -> str:
    """Return the first text of a question, cut to one line of LONGEST_WORDS characters; "" without a text."""
    for message in json.loads(body)["messages"]:
        if message["policy"] == USER:
            text = "".join(part.get("text") or "" for part in message["payload"].get("parts", ()))
            if text.strip():
                return one_line(text, LONGEST_WORDS)
    return ""
