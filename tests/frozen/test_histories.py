"""Histories and snapshots of older versions: loaded, rendered for every dialect, continued, and rolled back to."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir_session import Session, Snapshot, enable_inner_message_recording, evaluate_sync, unfinished_evaluations
from sabir_testing import ScriptedAdapter

from tests.frozen import readable
from tests.frozen.programs import WEATHER, Note, Plan, Town
from tests.frozen.writing.conversations import ANTHROPIC, register

FILES = ("history.json", "history.jsonl", "newer.json", "newer.jsonl")
DIALECTS = sorted(f"{status.name}.{dialect}" for status in sabir.providers() for dialect in status.dialects)


def objects(text: str) -> list[Any]:
    """The messages of a history as plain data, in either form."""
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n") if line]


def strings(value: Any) -> Iterator[str]:
    """Every string in a request's body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


@pytest.mark.parametrize("name", FILES)
def test_histories_read_as_they_were_written(folder: Path, name: str) -> None:
    messages = sabir.load(folder / "histories" / name)

    readable.check(
        readable.read_json(folder / "expected" / "histories" / f"{name}.json.gz"), readable.of_history(messages)
    )
    assert {part.kind for message in messages for part in message.parts} >= {
        "text", "media", "reasoning", "refusal", "opaque",
    }  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_signatures_are_read_where_they_were_written(folder: Path, name: str) -> None:
    """Of parts and of calls; a field under another name would be kept, and never sent back."""
    path = folder / "histories" / name
    read = [
        plain.state
        for message in sabir.load(path)
        for plain in (*message.parts, message.call)
        if plain is not None and getattr(plain, "state", None) is not None
    ]
    payloads = [each["payload"] for each in objects(path.read_text("utf-8"))]
    holders = [each for payload in payloads for each in (*(payload.get("parts") or ()), payload) if each]
    written = [each["state"] for each in holders if "state" in each]

    assert readable.plain(read) == written and len(written) == 4


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("name", FILES)
def test_histories_are_appended_to_and_keep_what_is_unknown(folder: Path, tmp_path: Path, name: str, form: str) -> None:
    """In both forms, whatever form they had."""
    path = tmp_path / f"continued.{form}"
    messages = sabir.load(folder / "histories" / name)
    sabir.save(path, [*messages, sabir.user("Still there?")])

    before, after = objects((folder / "histories" / name).read_text("utf-8")), objects(path.read_text("utf-8"))
    readable.check(before, after[:-1])
    assert sabir.load(path)[:-1] == messages
    assert sabir.load(path)[-1].text == "Still there?"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", FILES)
def test_histories_render_for_every_dialect(folder: Path, name: str, dialect: str) -> None:
    """Each text is in the body, or a loss names its message; the bytes are the same each time."""
    messages = [*sabir.load(folder / "histories" / name), sabir.user("Still there?")]
    adapter = sabir.adapter(f"{dialect}:any-model")
    rendering = adapter.render(messages, options=Town().options)
    sent, lost = list(strings(json.loads(rendering.body_bytes))), {loss.message_id for loss in rendering.losses}

    missing = [each.text for each in messages if each.text and each.id not in lost and not _is_in(each, sent)]
    assert not missing
    assert any("Still there?" in text for text in sent)
    assert adapter.render(messages, options=Town().options).body_bytes == rendering.body_bytes


def _is_in(message: sabir.Message, sent: list[str]) -> bool:
    texts = [part.text for part in message.parts if part.kind == "text"]
    return all(any(text in each for each in sent) for text in texts)


def restored(folder: Path, name: str) -> tuple[Session, Snapshot]:
    """A new session that was rolled back to a frozen snapshot."""
    session = Session()
    enable_inner_message_recording(session)
    register(session)
    snapshot = Snapshot.from_json((folder / "snapshots" / f"{name}.json").read_text("utf-8"))
    session.mutate().rollback(snapshot)
    return session, snapshot


@pytest.mark.parametrize("name", ["finished", "waiting"])
def test_snapshots_read_as_they_were_written(folder: Path, name: str) -> None:
    """A new snapshot of the session that was rolled back has the same content."""
    session, snapshot = restored(folder, name)
    written = readable.read_json(folder / "expected" / "snapshots" / f"{name}.json.gz")

    readable.check(written, readable.of_snapshot(snapshot))
    again = sorted(readable.of_snapshot(session.snapshot()), key=json.dumps)
    readable.check(sorted(readable.of_snapshot(snapshot), key=json.dumps), again)


def test_a_session_goes_on_from_a_snapshot_and_back_to_it(folder: Path) -> None:
    """A rollback sets the state back; a log stays as long as it became."""
    session, snapshot = restored(folder, "finished")
    session.mutate(Plan).append(Plan("Oslo"))
    session.mutate(Note).append(Note("later"))
    session.mutate().rollback(snapshot)

    assert session.select_all(Plan) == (Plan("Rome", ("pack", "go")),)
    assert [note.text for note in session.select_all(Note)] == ["before the trip", "after the trip", "later"]


def test_an_evaluation_in_a_snapshot_is_resumed(folder: Path) -> None:
    session, _ = restored(folder, "waiting")
    town, llm = Town(), ScriptedAdapter("Done.", model=ANTHROPIC)
    assert len(unfinished_evaluations(session)) == 1
    response = evaluate_sync(
        llm, WEATHER, session=session, options=town.options, approve=lambda call: "allow", resume=True
    )

    assert (response.text, town.ran) == ("Done.", ["book_room Oslo"])
    assert not unfinished_evaluations(session)
