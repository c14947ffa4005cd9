"""The command `sabir diff`: what models lose of saved conversations, compared with a lock file. Nothing is sent.

FILE … ──read_history──▶ messages, options, settings ──find_entry for each --to──▶ losses ──▶ printed
                                                                                       └ --lock ──▶ only the changes
"""

import json as json_text
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sabir
from pydantic import ValidationError
from sabir import DecodedHistory, Settings
from sabir.authoring import decode_json, describe_validation_error, load_stored, printable
from sabir.errors import HistoryInvalid, NotJSON, SettingsInvalid

from sabir_testing.loss_locks.locks import (
    LockContents,
    LockEntry,
    LossChanges,
    check_entry,
    find_entry,
    read_lock,
    write_lock,
)

UPDATE = "run with --update"
"""The remedy for a missing or outdated lock file."""


def diff(  # each parameter is a flag
    *files: Path,
    to: list[str] | None = None,
    lock: Path | None = None,
    update: bool = False,
    setting: list[str] | None = None,
    json: bool = False,
) -> int:
    """Show what models lose of saved conversations, or check it with a lock file.

    Nothing is sent, and no key is needed. With --lock, only changes are
    printed, and the exit code is 1 if a model loses something that the
    lock file does not list.

    Args:
        files: Saved conversations, or outputs of `sabir import --json`.
        to: provider[.dialect]:model; repeatable. With --lock, the default is the targets in the lock file.
        lock: The lock file, usually losses.lock, next to the conversations.
        update: Write the losses into the lock file.
        setting: name=value: a setting of the request; value may be JSON; repeatable.
        json: Print one JSON document.
    """
    if not files:
        raise SettingsInvalid("no FILE is named; write the path of a saved conversation")
    if update and lock is None:
        raise SettingsInvalid("--update needs the file to write; add --lock losses.lock")
    contents = LockContents() if lock is None or (update and not lock.exists()) else read_lock(lock, UPDATE)
    names = {file: _name_in(lock, file) for file in files}
    targets = {file: to or sorted(contents.get(names[file], {})) for file in files}
    if without := [names[file] for file in files if not targets[file]]:
        raise SettingsInvalid(f"no target is named for {without[0]}; add --to provider:model")
    settings = _read_settings(setting or ())
    entries = {(names[file], target): _entry_of(file, target, settings) for file in files for target in targets[file]}
    if lock is None:
        _print_losses(entries, json)
        return 0
    if update:
        return _update(lock, contents, entries, json)
    changes = [check_entry(contents, lock, *names_and_target, now, UPDATE) for names_and_target, now in entries.items()]
    return _print_changes(lock, changes, json)


def _name_in(lock: Path | None, file: Path) -> str:
    """Return the name of a conversation in a lock file: its path, relative to the lock file's folder."""
    if lock is None:
        return str(file)
    return Path(os.path.relpath(file.resolve(), lock.resolve().parent)).as_posix()


def _read_settings(texts: Iterable[str]) -> Settings | None:
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        if not (name and equals):
            raise SettingsInvalid(f"--setting {text!r} has no value; write --setting NAME=VALUE")
        try:
            fields[name] = decode_json(written)
        except NotJSON:
            fields[name] = written
    return Settings(**fields) if fields else None


def _entry_of(file: Path, target: str, settings: Settings | None) -> LockEntry:
    history = read_history(file)
    both = settings.laid_over(history.settings) if settings else history.settings
    with sabir.adapter(target) as adapter:
        return find_entry(adapter, history.messages, history.options, both)


def read_history(file: Path) -> DecodedHistory:
    """Return the contents of a saved conversation, or of the output of `sabir import --json`. Raises HistoryInvalid,
    which names the file.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise HistoryInvalid(f"{str(file)!r} cannot be read: {error.strerror}; name a saved conversation") from None
    try:
        fields = decode_json(text)
    except NotJSON:  # JSON Lines, or an error that `loads` describes
        fields = None
    try:
        if isinstance(fields, dict) and fields.keys() == DecodedHistory.model_fields.keys():
            return load_stored(DecodedHistory.model_validate, fields)
        return DecodedHistory(messages=tuple(sabir.loads(text)))
    except ValidationError as error:
        raise HistoryInvalid(f"{str(file)!r}: {describe_validation_error(error)}; import the file again") from None
    except HistoryInvalid as error:
        raise HistoryInvalid(f"{str(file)!r}: {error}") from None


def _print_losses(entries: Mapping[tuple[str, str], LockEntry], as_json: bool) -> None:
    if as_json:
        _print_document([{**_place(*place), "losses": _rows(entry.losses)} for place, entry in entries.items()])
        return
    for (history, target), entry in entries.items():
        _print_lines([f"{history} at {target}: {_count(len(entry.losses), 'loss')}"])
        _print_lines(f"  {loss}" for loss in entry.losses)


def _update(lock: Path, contents: LockContents, entries: Mapping[tuple[str, str], LockEntry], as_json: bool) -> int:
    """Write the entries into the lock file, in which other entries stay, and print what changed."""
    changes = []
    for (history, target), now in entries.items():
        locked = contents.setdefault(history, {}).get(target, LockEntry(()))
        changes.append(LossChanges.between(history, target, locked, now))
        contents[history][target] = now
    write_lock(lock, contents)
    if as_json:
        _print_document([_change_document(change) for change in changes])
        return 0
    for change in changes:
        _print_lines([*change.new_lines(), *change.stale_lines()])
    total = sum(len(now.losses) for now in entries.values())
    _print_lines([f"wrote {lock}: {_count(total, 'loss')} in {_count(len(entries), 'entry')}"])
    return 0


def _print_changes(lock: Path, changes: Sequence[LossChanges], as_json: bool) -> int:
    new = [line for change in changes for line in change.new_lines()]
    stale = [line for change in changes for line in change.stale_lines()]
    if as_json:
        _print_document([_change_document(change) for change in changes])
    else:
        _print_lines([*new, *stale, *_advice(lock, changes, new, stale)])
    return 1 if new else 0


def _advice(lock: Path, changes: Sequence[LossChanges], new: Sequence[str], stale: Sequence[str]) -> Iterator[str]:
    if new:
        yield f"{_count(len(new), 'loss')} not in {lock}; change the conversation, or accept with --update"
    else:
        listed = sum(change.unchanged + len(change.moved) for change in changes)
        yield f"no new losses; {lock} lists {_count(listed, 'loss')}"
    if stale:
        yield f"{_count(len(stale), 'line')} of {lock} out of date; {UPDATE}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {_PLURALS.get(noun, f'{noun}s')}"


_PLURALS = {"loss": "losses", "entry": "entries"}


def _place(history: str, target: str) -> dict[str, str]:
    return {"history": history, "target": target}


def _rows(losses: Iterable[Any]) -> list[dict[str, Any]]:  # rows of JSON
    return [loss._asdict() for loss in losses]


def _change_document(change: LossChanges) -> dict[str, Any]:  # any JSON
    moved = [{"before": before._asdict(), "now": now._asdict()} for before, now in change.moved]
    place = _place(change.history, change.target)
    return {
        **place,
        "new": _rows(change.new),
        "gone": _rows(change.gone),
        "moved": moved,
        "unchanged": change.unchanged,
    }


def _print_document(document: Any) -> None:  # any JSON
    print(json_text.dumps(document, ensure_ascii=False, indent=2), flush=True)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(printable(line), flush=True)
