"""Joins the events of a stream that belong to one output item, so that the item has the most complete texts.

A Passage is the position of a text in an item.

    …delta ─▶ pieces ┐
    …done  ─▶ text   ┴▶ StreamedItem.texts ─┐
    output_item.added ─▶ announced          ├─ complete_item ─▶ the item, and the passages with conflicting texts
    output_item.done, final response ───────┘

Some endpoints send a text, or a call's arguments, in only one of these events, and leave it empty in the others. If one
text continues another, it is more complete. Otherwise, the two texts conflict, and the later event counts.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sabir.authoring import (
    BlockKind,
    Fields,
    JSONValue,
    decode_json,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)
from sabir.errors import NotJSON


class Passage(NamedTuple):
    """The position of a text in an item: the item's field and, if the field is a list, the part's type and index.

    `part` is "" if the field itself is the text.
    """

    field: str
    part: str = ""
    position: int = 0

    def __str__(self) -> str:
        """Return the path within the item, such as "content[0]"."""
        return f"{self.field}[{self.position}]" if self.part else self.field


class TextTarget(NamedTuple):
    """The passage to which the text of an event belongs, with position 0, and the kind of the block for the text.

    `kind` is None if the text does not appear in a block before the item has ended.
    """

    passage: Passage
    position: str = ""
    """The event's field with the part's position; "" if the passage is not in a list."""
    kind: BlockKind | None = None


_TARGETS: Mapping[str, TextTarget] = {
    "output_text": TextTarget(Passage("content", "output_text"), "content_index", "text"),
    "refusal": TextTarget(Passage("content", "refusal"), "content_index", "refusal"),
    "reasoning_summary_text": TextTarget(Passage("summary", "summary_text"), "summary_index", "reasoning"),
    "reasoning_text": TextTarget(Passage("content", "reasoning_text"), "content_index", "reasoning"),
    "function_call_arguments": TextTarget(Passage("arguments"), kind="option_call"),
    "custom_tool_call_input": TextTarget(Passage("input")),
    "mcp_call_arguments": TextTarget(Passage("arguments")),
    "code_interpreter_call_code": TextTarget(Passage("code")),
}
DELTAS = {f"response.{name}.delta": source for name, source in _TARGETS.items()}
"""Type of an event → the target of the text in its `delta`."""
DONE = {f"response.{name}.done": source for name, source in _TARGETS.items()}
"""Type of an event with the complete text of a passage → the target of the text."""
PARTS_DONE: Mapping[str, str] = {
    "response.content_part.done": "content_index",
    "response.reasoning_summary_part.done": "summary_index",
}
"""Type of an event with a complete part → the event's field with the part's position."""
_PART_TEXTS: Mapping[str, str] = {
    "output_text": "text",
    "refusal": "refusal",
    "summary_text": "text",
    "reasoning_text": "text",
}
"""Type of a part → its field with the text."""
_PART_LISTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "message": {"content": ("output_text", "refusal")},
    "reasoning": {"summary": ("summary_text",), "content": ("reasoning_text",)},
}
"""Type of an item → its fields that are lists of parts → the types of the parts that contain text."""
_TEXT_FIELDS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "mcp_call": "arguments",
    "code_interpreter_call": "code",
    "image_generation_call": "result",
}
"""Type of an item → its field that is a text, such as a call's arguments."""
_ANNOUNCED_FIELDS = ("type", "id", "call_id", "name", "namespace", "caller", "role")
"""Fields that are read from `output_item.added`, because later events may lack them. The other fields of this event may
be incomplete.
"""


@dataclass(slots=True)
class StreamedItem:
    """One item while its events arrive. `announced` contains the fields that identify the item, `pieces` the texts of
    deltas, and `complete_texts` the texts of events with a complete text.
    """

    announced: Fields = field(default_factory=dict)
    pieces: dict[Passage, list[str]] = field(default_factory=dict)
    complete_texts: dict[Passage, str] = field(default_factory=dict)

    def announce(self, item: Fields) -> None:
        """Store the fields that identify an item."""
        self.announced = {**self.announced, **{name: item[name] for name in _ANNOUNCED_FIELDS if item.get(name)}}

    def add_text(self, event: Fields, target: TextTarget) -> None:
        """Store the complete text of a passage, and the name of a call if no earlier event contained the name."""
        passage = passage_of(event, target)
        self.complete_texts[passage] = text_or_empty(event.get(_PART_TEXTS.get(passage.part, passage.field)))
        if not passage.part and not self.announced.get("name"):
            self.announce({"name": text_or_empty(event.get("name"))})

    def add_part(self, event: Fields, position: JSONValue) -> None:
        """Store the text of a complete part. Parts of an unknown type are ignored."""
        part = object_or_empty(event.get("part"))
        kind = text_or_empty(part.get("type"))
        for lists in _PART_LISTS.values():
            for name, kinds in lists.items():
                if kind in kinds:
                    passage = Passage(name, kind, position if isinstance(position, int) else 0)
                    text = text_or_empty(part.get(_PART_TEXTS[kind]))
                    self.complete_texts[passage] = text or self.complete_texts.get(passage, "")

    def texts(self) -> Iterator[tuple[Passage, str]]:
        """Yield the complete texts and the joined texts of deltas with their passages, ordered by position. A passage
        can occur twice.
        """
        joined = {passage: "".join(pieces) for passage, pieces in self.pieces.items()}
        yield from sorted((*self.complete_texts.items(), *joined.items()), key=lambda each: each[0].position)

    def build(self) -> dict[str, Any]:
        """Return the item, if no event contains the complete item. Return {} if its type is not known."""
        kinds = (text_or_empty(self.announced.get("type")), *(_item_type(passage) for passage, _ in self.texts()))
        kind = next(filter(None, kinds), "")
        return complete_item({"type": kind}, {}, self)[0] if kind else {}


def passage_of(event: Fields, target: TextTarget) -> Passage:
    """Return the passage of an event's text, with the position that the event names (default 0)."""
    position = event.get(target.position) if target.position else 0
    if not isinstance(position, int) or position == 0:
        return target.passage
    return target.passage._replace(position=position)


def texts_of(item: Fields) -> dict[Passage, str]:
    """Return the texts of an item that are not empty, by their passages."""
    kind = text_or_empty(item.get("type"))
    texts: dict[Passage, str] = {}
    if name := _TEXT_FIELDS.get(kind):
        texts[Passage(name)] = text_or_empty(item.get(name))
    for name, kinds in _PART_LISTS.get(kind, {}).items():
        for position, part in enumerate(map(object_or_empty, list_or_empty(item.get(name)))):
            if (part_kind := text_or_empty(part.get("type"))) in kinds:
                texts[Passage(name, part_kind, position)] = text_or_empty(part.get(_PART_TEXTS[part_kind]))
    return {passage: value for passage, value in texts.items() if value}


def awaits_final_response(item: Fields) -> bool:
    """Return whether an item that ended must wait for the final response, because its text is missing.

    An option call, and an item without a type, always waits, because a call must not run with arguments that the final
    response contradicts.
    """
    kind = text_or_empty(item.get("type"))
    if kind in ("", "function_call"):
        return True
    return (kind in _TEXT_FIELDS or kind in _PART_LISTS) and not texts_of(item)


def complete_item(item: Fields, earlier: Fields, streamed: StreamedItem) -> tuple[dict[str, Any], list[Passage]]:
    """Return a copy of the item, completed from earlier events, and the passages with conflicting texts.

    `earlier` is an earlier form of the same item, or {}. `streamed` contains the texts of the item's other events.
    """
    fields = dict(item)
    for earlier_fields in (earlier, streamed.announced):
        fields |= {name: value for name, value in earlier_fields.items() if fields.get(name) in (None, "", [], {})}
    texts = texts_of(fields)
    fields_with_texts = {passage.field for passage in texts}
    conflicts: list[Passage] = []
    for passage, value in (*texts_of(earlier).items(), *streamed.texts()):
        # An endpoint may stream reasoning as one kind of passage and repeat it in the item as the other.
        is_listed = not fields_with_texts or passage.field in fields_with_texts
        if not value or not is_listed or not _has_passage(text_or_empty(fields.get("type")), passage):
            continue
        best, is_conflict = choose_text(texts.get(passage, ""), value, is_json=passage.field == "arguments")
        is_conflict = is_conflict or (best != texts.get(passage) and not _set_text(fields, passage, best))
        conflicts += [passage] if is_conflict and passage not in conflicts else []
        texts[passage] = best
    return fields, conflicts


def choose_text(later: str, earlier: str, *, is_json: bool = False) -> tuple[str, bool]:
    """Return the more complete of two texts, and whether they conflict. If they conflict, return the later text.

    With `is_json`, texts are compared as JSON objects. If only one text is a JSON object, return that text, even if the
    texts conflict and it is the earlier text.
    """
    if is_json:
        objects = _read_object(later), _read_object(earlier)
        if objects[0] is not None and objects[1] is not None:
            if objects[1].items() <= objects[0].items():
                return later, False
            is_more = objects[0].items() <= objects[1].items()
            return (earlier, False) if is_more else (later, True)
        if objects[0] is not None or objects[1] is not None:
            chosen, other = (later, earlier) if objects[1] is None else (earlier, later)
            return chosen, not chosen.startswith(other)
    if later.startswith(earlier):
        return later, False
    return (earlier, False) if earlier.startswith(later) else (later, True)


def _read_object(arguments: str) -> dict[str, str] | None:
    """Return the members of a JSON object, each as canonical JSON. None if the text is not a JSON object."""
    with suppress(NotJSON):
        if isinstance(value := decode_json(arguments), dict):
            return {name: encode_json(member, sort_keys=True) for name, member in value.items()}
    return None


def _has_passage(kind: str, passage: Passage) -> bool:
    """Return whether items of the type `kind` have a text at such a passage."""
    if passage.part:
        return passage.part in _PART_LISTS.get(kind, {}).get(passage.field, ())
    return _TEXT_FIELDS.get(kind) == passage.field


def _item_type(passage: Passage) -> str:
    """Return the type of the items that have parts of the passage's type. "" for a passage that is not in a list."""
    kinds = [kind for kind, lists in _PART_LISTS.items() if passage.part in lists.get(passage.field, ())]
    return kinds[0] if kinds else ""


def _set_text(fields: dict[str, Any], passage: Passage, value: str) -> bool:
    """Set the text of a passage. Return False if the item has a part of another type there, or too few parts.

    If one part before the passage is missing, add an empty part, because some endpoints count from 1.
    """
    name, kind, position = passage
    if not kind:
        fields[name] = value
        return True
    parts = list(list_or_empty(fields.get(name)))
    if not 0 <= position <= len(parts) + 1:
        return False
    extra: dict[str, Any] = {"annotations": []} if kind == "output_text" else {}
    while len(parts) <= position:
        parts.append({"type": kind, _PART_TEXTS[kind]: "", **extra})
    part = object_or_empty(parts[position])
    if part.get("type") != kind:
        return False
    parts[position] = {**part, _PART_TEXTS[kind]: value}
    fields[name] = parts
    return True
