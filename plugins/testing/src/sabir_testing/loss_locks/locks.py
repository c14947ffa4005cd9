"""A lock file: the losses of conversations at models, as text that `git diff` shows well.

    history, target ──render──▶ LockedLoss … ──between──▶ LossChanges: new │ gone │ moved │ unchanged
                                                  ▲
    losses.lock ──read_lock──▶ LockContents ───────┘        LockContents ──write_lock──▶ losses.lock

A loss is the same loss if its kind, path and reason are equal. If only the number of its message differs, it has moved,
because messages were added or removed before it. Message ids are not compared, because programs may create new ones in
each run.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import sabir
from sabir.authoring import CallArguments, OptionLike, one_line, replace_file
from sabir.errors import RenderingRefused, SettingsInvalid

FORMAT = 1
"""The version of the file's format."""
REFUSED = "refused"
"""The kind of the line for a conversation of which nothing can be sent. All other kinds are kinds of `sabir.Loss`."""


class LockedLoss(NamedTuple):
    """A loss as a lock file stores it. `message` is the number of its message, from 1; 0 if it concerns no message."""

    message: int
    path: str
    kind: str
    reason: str

    def __str__(self) -> str:
        """Return one line: the message's number, the path, the kind and the reason."""
        place = ", ".join(filter(None, (f"message {self.message}" if self.message else "", self.path)))
        return f"{place or 'the request'}: {self.kind}: {self.reason}"


@dataclass(frozen=True)
class LockEntry:
    """The losses of one conversation at one target.

    `settings` and `plugin` (the provider's package and its version) are for people only. They are not compared.
    """

    losses: tuple[LockedLoss, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    plugin: str = ""


@dataclass(frozen=True)
class LossChanges:
    """The differences between the losses of a rendering and those in the lock file, for one conversation and target.

    `new` losses fail a check. `gone` losses are in the file only. `moved` losses have another message number now; each
    is a pair of the loss in the file and the loss now.
    """

    history: str
    target: str
    new: tuple[LockedLoss, ...]
    gone: tuple[LockedLoss, ...]
    moved: tuple[tuple[LockedLoss, LockedLoss], ...]
    unchanged: int = 0

    @classmethod
    def between(cls, history: str, target: str, locked: LockEntry, now: LockEntry) -> "LossChanges":
        """Return the differences between the losses in the file and the losses now. Equal losses are counted."""
        before, after = Counter(locked.losses), Counter(now.losses)
        gone, new = sorted((before - after).elements()), sorted((after - before).elements())
        moved: list[tuple[LockedLoss, LockedLoss]] = []
        for loss in [*new]:
            earlier = next((each for each in gone if each._replace(message=loss.message) == loss), None)
            if earlier is not None:
                moved.append((earlier, loss))
                gone.remove(earlier)
                new.remove(loss)
        return cls(history, target, tuple(new), tuple(gone), tuple(moved), (before & after).total())

    def new_lines(self) -> list[str]:
        """Return one line for each new loss, with the target, the conversation, and a loss that it replaces."""
        return [f"new loss at {self.target}: {self.history}, {loss}{self._earlier(loss)}" for loss in self.new]

    def stale_lines(self) -> list[str]:
        """Return one line for each line of the file that is out of date, without failing a check."""
        replaced = {(loss.message, loss.path) for loss in self.new}
        gone = (loss for loss in self.gone if (loss.message, loss.path) not in replaced)
        moved = (f"message {one.message} is now message {two.message}" for one, two in self.moved)
        return [
            *(f"no longer lost at {self.target}: {self.history}, {loss}" for loss in gone),
            *(f"moved at {self.target}: {self.history}, {text}" for text in dict.fromkeys(moved)),
        ]

    def _earlier(self, loss: LockedLoss) -> str:
        earlier = [each for each in self.gone if (each.message, each.path) == (loss.message, loss.path)]
        return f" (was {earlier[0].kind}: {earlier[0].reason})" if earlier else ""


LockContents = dict[str, dict[str, LockEntry]]
"""The contents of a lock file: the name of a conversation → the model string of a target → its losses."""


def find_entry(
    adapter: sabir.Adapter,
    messages: Iterable[sabir.Message],
    options: Iterable[OptionLike] = (),
    settings: sabir.Settings | None = None,
) -> LockEntry:
    """Render a conversation, and return its losses as the entry of a lock file. Nothing is sent.

    If nothing of the conversation can be sent, the entry has a line of the kind REFUSED. Raises the other errors of
    `render`.
    """
    messages = tuple(messages)
    arguments: CallArguments = {"options": tuple(options), "settings": settings, "strict": False}
    try:
        losses: Sequence[sabir.Loss] = adapter.render(messages, **arguments).losses
        refusal = []
    except RenderingRefused as error:
        losses, refusal = error.losses, [LockedLoss(0, "", REFUSED, "nothing of the conversation can be sent")]
    numbers = {message.id: number for number, message in enumerate(messages, 1)}
    locked = [LockedLoss(numbers.get(each.message_id, 0), each.path, each.kind, each.reason) for each in losses]
    settings_document = settings.model_dump(mode="json", exclude_defaults=True) if settings else {}
    return LockEntry(tuple(sorted([*refusal, *locked])), settings_document, _plugin_of(adapter))


def check_entry(lock: LockContents, file: Path, history: str, target: str, now: LockEntry, update: str) -> LossChanges:
    """Compare losses with the file's entry. Raises SettingsInvalid if there is none; `update` is the remedy."""
    entry = lock.get(history, {}).get(target)
    if entry is None:
        raise SettingsInvalid(f"{file.name} has no losses of {history} at {target}; {update}")
    return LossChanges.between(history, target, entry, now)


def read_lock(file: Path, update: str) -> LockContents:
    """Return the contents of a lock file. Raises SettingsInvalid if there is no file, or if it is not a lock file.

    `update` is the remedy, such as "run with --update".
    """
    try:
        document = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise SettingsInvalid(f"there is no lock file {str(file)!r}; {update} to create it") from None
    except OSError as error:
        raise SettingsInvalid(f"{str(file)!r} cannot be read: {error.strerror}; choose another lock file") from None
    except ValueError as error:
        raise SettingsInvalid(f"{str(file)!r} is not JSON: {one_line(error)}; {_restore(update)}") from None
    version = document.get("sabir-losses") if isinstance(document, dict) else None
    if version is not None and version != FORMAT:
        raise SettingsInvalid(f"{str(file)!r} has the format {version}, not {FORMAT}; upgrade sabir-testing")
    try:
        return {
            history: {target: _as_entry(fields) for target, fields in targets.items()}
            for history, targets in document["histories"].items()
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        raise SettingsInvalid(f"{str(file)!r} is not a lock file of losses; {_restore(update)}") from None


def _restore(update: str) -> str:
    return f"restore it, or delete it and {update}"


def write_lock(file: Path, lock: LockContents) -> None:
    """Write a lock file, with one line for each loss. An existing file is replaced.

    Raises SettingsInvalid if the file cannot be written.
    """
    try:
        replace_file(file.resolve(), lock_text(lock))
    except OSError as error:
        raise SettingsInvalid(f"{str(file)!r} cannot be written: {error.strerror}; choose another lock file") from None


def lock_text(lock: LockContents) -> str:
    """Return the text of a lock file: JSON whose names are sorted, and with one line for each loss."""
    histories = {history: {target: _document(lock[history][target]) for target in lock[history]} for history in lock}
    return f"{_json_text({'sabir-losses': FORMAT, 'histories': histories})}\n"


def _json_text(node: Any, indent: str = "") -> str:  # any JSON
    """Return JSON in which an object without further objects or arrays is one line."""
    children = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    if not any(isinstance(child, dict | list) for child in children):
        return json.dumps(node, ensure_ascii=False)
    inner = f"{indent}  "
    if isinstance(node, list):
        lines = [_json_text(child, inner) for child in node]
    else:
        names = node if "histories" in node or "losses" in node else sorted(node)
        lines = [f"{json.dumps(name, ensure_ascii=False)}: {_json_text(node[name], inner)}" for name in names]
    opening, closing = "[]" if isinstance(node, list) else "{}"
    return opening + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}{closing}"


def _document(entry: LockEntry) -> dict[str, Any]:  # any JSON
    losses = [{name: content for name, content in loss._asdict().items() if content} for loss in sorted(entry.losses)]
    return {"plugin": entry.plugin, "settings": dict(entry.settings), "losses": losses}


def _as_entry(fields: Mapping[str, Any]) -> LockEntry:
    losses = tuple(map(_as_loss, fields["losses"]))
    return LockEntry(losses, dict(fields.get("settings", {})), str(fields.get("plugin", "")))


def _as_loss(fields: Mapping[str, Any]) -> LockedLoss:
    message, path = fields.get("message", 0), fields.get("path", "")
    kind, reason = fields["kind"], fields["reason"]
    if not (isinstance(message, int) and all(isinstance(text, str) for text in (path, kind, reason))):
        raise ValueError
    return LockedLoss(message, path, kind, reason)


def _plugin_of(adapter: sabir.Adapter) -> str:
    """Return the provider's package and its version; "" for a provider that the program registered."""
    points = entry_points(group="sabir.providers", name=adapter.target.provider)
    return next((f"{point.dist.name} {point.dist.version}" for point in points if point.dist is not None), "")
