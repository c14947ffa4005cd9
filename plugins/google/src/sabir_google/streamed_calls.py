"""Option calls whose arguments arrive in pieces. Each piece contains the path of a value, and sets or extends it.

    {"name": …, "willContinue": true}                           begins a call
    {"partialArgs": [{"jsonPath": "$.a[0].b", "stringValue": …}], "willContinue": true}
                                                                sets a value; the pieces of a string are joined
    a piece without `willContinue`, which may be empty          ends the call

The arguments of a call that has not ended become a text that is not valid JSON, so that nobody runs the call.
https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sabir.authoring import (
    DecodeScope,
    Fields,
    JSONValue,
    list_or_empty,
    object_or_empty,
    one_line,
    text_or_empty,
    without_fields,
)
from sabir.errors import ResponseInvalid

ArgumentPath: TypeAlias = tuple[str | int, ...]
"""The steps from the arguments to a value: field names and array indices."""

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\[(['"])((?:(?!\3)[^\\]|\\.)*)\3\]""")
_MAX_STEPS = 100
"""The maximum number of steps in a path."""
_VALUE_TYPES: Mapping[str, tuple[type, ...]] = {
    "stringValue": (str,),
    "numberValue": (int, float),
    "boolValue": (bool,),
    "nullValue": (str, type(None)),
}
"""Field of a piece → the accepted types of its value. If the field is `nullValue`, the value is null."""
_NON_VALUE_FIELDS = frozenset({"jsonPath", "willContinue"})
_PIECE_FIELDS = ("args", "partialArgs", "willContinue")


def join_calls(parts: Iterable[Any], scope: DecodeScope) -> list[Any]:
    """Return the parts. The pieces of each call are joined into one part. Raises ResponseInvalid for pieces that do not
    match.
    """
    joined: list[Any] = []
    last: StreamedFunctionCall | None = None
    for part in parts:
        if last is not None and last.is_continued_by(part):
            last.add(part)
        elif is_piece(part):
            last = StreamedFunctionCall(scope)
            last.add(part)
            joined.append(last)
        else:
            joined.append(part)
    return [each.build() if isinstance(each, StreamedFunctionCall) else each for each in joined]


def is_piece(part: JSONValue) -> bool:
    """Return whether a part is a call that continues in later parts, or whose arguments arrive in pieces."""
    call = object_or_empty(object_or_empty(part).get("functionCall"))
    return call.get("willContinue") is True or bool(call.get("partialArgs"))


class StreamedFunctionCall:
    """One call while its pieces arrive. `is_complete` is True after its last piece."""

    __slots__ = ("_arguments", "_call", "_part_fields", "_scope", "_strings", "_text", "is_complete")

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._part_fields: dict[str, Any] = {}
        self._call: dict[str, Any] = {}
        self._arguments: dict[str, Any] = {}
        self._strings: dict[ArgumentPath, list[str]] = {}
        self._text = _ArgumentsText()
        self.is_complete = False

    def is_continued_by(self, part: JSONValue) -> bool:
        """Return whether a part is a further piece of this call: a call without a different name or id. After the last
        piece, only an empty piece continues the call.
        """
        call = object_or_empty(part).get("functionCall")
        if not isinstance(call, dict):
            return False
        if self.is_complete:
            return not any(call.values())
        return all(text_or_empty(call.get(name)) in ("", self._call.get(name, "")) for name in ("name", "id"))

    def add(self, part: Fields) -> str:
        """Add a piece. Return the JSON text that it added to the arguments; "" if that text is not known yet.

        Raises ResponseInvalid for a piece with an invalid path or value.
        """
        call = object_or_empty(part["functionCall"])
        self._part_fields |= without_fields(part, "functionCall")
        self._call |= {name: value for name, value in call.items() if name not in _PIECE_FIELDS and value}
        if self.is_complete:
            return ""
        more = [self._set_argument((name,), value) for name, value in object_or_empty(call.get("args")).items()]
        more += [self._add_partial_arg(object_or_empty(piece)) for piece in list_or_empty(call.get("partialArgs"))]
        self.is_complete = call.get("willContinue") is not True
        return "".join([*more, self._text.end()] if self.is_complete else more)

    def build(self) -> Fields:
        """Return the part as if the call had arrived in one piece. If the call has not ended, its `args` are an
        incomplete JSON text.
        """
        for path, pieces in self._strings.items():
            holder: Any = self._arguments
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = "".join(pieces)
        arguments = self._arguments if self.is_complete else _compact_json(self._arguments)[:-1]
        return {**self._part_fields, "functionCall": {**self._call, "args": arguments}}

    def _add_partial_arg(self, piece: Fields) -> str:
        """Set or extend the value of one item of `partialArgs`. Return the JSON text that the arguments grow by."""
        json_path = piece.get("jsonPath")
        if not piece.keys() - _NON_VALUE_FIELDS:
            return ""
        for name, kinds in _VALUE_TYPES.items():
            if name in piece and type(piece[name]) in kinds:
                if path := _parse_path(text_or_empty(json_path)):
                    return self._set_argument(path, None if name == "nullValue" else piece[name])
                raise self._invalid_piece(json_path, "is not a JSON path such as $.a[0].b")
        raise self._invalid_piece(json_path, f"has no valid value in any of the fields {', '.join(_VALUE_TYPES)}")

    def _set_argument(self, path: ArgumentPath, value: Any) -> str:
        """Set the value at a path, or append to the string at this path.

        Return the JSON text that this adds to the arguments; "" if a value arrived out of order. Raises ResponseInvalid
        if the path does not fit the arguments.
        """
        holder: Any = self._arguments
        newest, last = len(path), len(path) - 1  # indices of the first step that is new, and of the last step
        for index, step in enumerate(path):
            if isinstance(step, str) and isinstance(holder, dict):
                is_new = step not in holder
            elif isinstance(step, int) and isinstance(holder, list) and step <= len(holder):
                is_new = step == len(holder)
            else:
                raise self._invalid_piece(path, "does not fit the arguments so far")
            if is_new:
                newest = min(newest, index)
                if isinstance(holder, list):
                    holder.append(None)
                holder[step] = None if index == last else {} if isinstance(path[index + 1], str) else []
            holder = holder if index == last else holder[step]
        earlier = holder[path[last]]
        if earlier is not None and not (isinstance(earlier, str) and isinstance(value, str)):
            raise self._invalid_piece(path, "does not fit the arguments so far")
        if isinstance(value, str):
            self._strings.setdefault(path, [earlier] if isinstance(earlier, str) else []).append(value)
        else:
            self._strings.pop(path, None)
        holder[path[last]] = value
        return self._text.add(path, value, newest)

    def _invalid_piece(self, path: JSONValue, why: str) -> ResponseInvalid:
        problem = f"streamed arguments of {self._call.get('name')!r} at {one_line(ascii(path), 80)}, which {why}"
        return self._scope.invalid_answer(f"{problem}: send the request again")


class _ArgumentsText:
    """Builds the JSON text of arguments piece by piece, as long as the values arrive in the order of the text."""

    __slots__ = ("_at", "_in_string")

    def __init__(self) -> None:
        self._at: ArgumentPath | None = ()
        """The path of the last value in the text; None after a value arrived out of order."""
        self._in_string = False

    def add(self, path: ArgumentPath, value: JSONValue, newest: int) -> str:
        """Return the text that a value adds. `newest` is the index of the first step of its path that is new."""
        if self._in_string and path == self._at and isinstance(value, str):
            return _compact_json(value)[1:-1]
        is_next = newest < len(path) and (not self._at or newest < len(self._at))
        if self._at is None or not is_next or path[:newest] != self._at[:newest]:
            self._at = None
            return ""
        text = self._closing_marks(newest) + ("," if self._at else "{")
        for index, step in enumerate(path[newest:]):
            opening = ("{" if isinstance(step, str) else "[") if index else ""
            text += opening + (f"{_compact_json(step)}:" if isinstance(step, str) else "")
        self._at, self._in_string = path, isinstance(value, str)
        return text + (_compact_json(value)[:-1] if self._in_string else _compact_json(value))

    def end(self) -> str:
        """Return the closing quote and brackets of the text; "" if a value arrived out of order."""
        if self._at is None:
            return ""
        return f"{self._closing_marks(0)}}}" if self._at else "{}"

    def _closing_marks(self, depth: int) -> str:
        """Return the quote and the brackets that close the last value down to `depth` steps of its path."""
        steps = reversed((self._at or ())[depth + 1 :])
        return ('"' if self._in_string else "") + "".join("}" if isinstance(step, str) else "]" for step in steps)


def _parse_path(json_path: str) -> ArgumentPath:
    """Return the steps of a JSON path; () if it is not a path to one value."""
    steps = [*_STEP.finditer(json_path, 1)]
    is_path = json_path == "$" + "".join(step[0] for step in steps) and len(steps) <= _MAX_STEPS
    try:
        return tuple(map(_read_step, steps)) if is_path else ()
    except ValueError:  # an escape that JSON does not know
        return ()


def _read_step(match: re.Match[str]) -> str | int:
    """Return the field name or the array index of a step. Raises ValueError for an escape that JSON does not know."""
    name, index, quote, quoted = match.groups()
    if quote is None:
        return name or int(index)
    if quote == "'":
        quoted = quoted.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{quoted}"', strict=False))


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
