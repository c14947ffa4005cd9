"""Scan a JSON text that arrives in pieces, and say what is complete and what is open.

    {"city": "Rome", "stays": [{"name": "Ri     root {      closed: ("city", '"Rome"')
                                                   └ open "stays": [      └ open {      └ open "name": the text Ri

Law: every character is scanned once. The text of a value is joined once when the value ends, so a character is copied
once for each container around it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from pydantic_core import from_json

MOST_DEPTH = 64
"""The most nested containers of a text. A deeper text is broken."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[-+.\w]*")
_CHARACTERS = re.compile(
    r'(?:[^"\\\x00-\x1f]++'
    r'|\\["\\/bfnrt]'
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
"""Complete characters of a JSON string: plain characters, escapes, and pairs of surrogates."""
_LONGEST_ESCAPE = len(r"\ud83d\ude00")
_PAIRS = {"{": "}", "[": "]"}

State: TypeAlias = Literal["search", "value", "first", "key", "first key", "colon", "after", "text", "scalar", "over"]


class ClosedValue(NamedTuple):
    """A complete value in a container: its key ("" in an array), and its JSON text."""

    key: str
    text: str


class OpenText:
    """A string that has not ended. `text` is the decoded characters so far."""

    def __init__(self) -> None:
        self._text = ""
        self._new: list[str] = []
        self.source: list[str] = ['"']

    def add(self, characters: str) -> None:
        """Add complete characters in their JSON form. Raises ValueError for an invalid escape."""
        self.source.append(characters)
        self._new.append(from_json(f'"{characters}"') if "\\" in characters else characters)

    @property
    def text(self) -> str:
        """The decoded characters so far."""
        if self._new:
            self._text = "".join((self._text, *self._new))
            self._new = []
        return self._text


class OpenContainer:
    """An object or array that has not ended.

    `closed` are its complete values in order, `child` the open value, and `key` the key of the open value. `bracket` is
    "{" or "[".
    """

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket
        self.closed: list[ClosedValue] = []
        self.key = ""
        self.child: OpenContainer | OpenText | None = None
        self.source: list[str] = [bracket]


class JSONScanner:
    """Scans one JSON object or array. `searches` means that other text may precede the object, which begins with "{".

    `root` is the outermost container, or None before it begins. `text` is its text when it is complete, else None.
    `is_broken` is True after text that is not JSON, if the scanner does not search. `most_values` bounds the values.
    """

    def __init__(self, *, searches: bool, most_values: int) -> None:
        self.root: OpenContainer | None = None
        self.text: str | None = None
        self.is_broken = False
        self.scanned = 0
        self._searches = searches
        self._values_left = most_values
        self._state: State = "search" if searches else "value"
        self._stack: list[OpenContainer] = []
        self._open_text = OpenText()
        self._scalar: list[str] = []
        self._escape = ""

    def feed(self, piece: str) -> None:
        """Scan the next piece of the text."""
        rest, at = self._escape + piece, 0
        self._escape = ""
        self.scanned += len(piece)
        while at < len(rest) and self._state != "over":
            if self._state not in ("text", "scalar", "search"):
                at = self._skip_blanks(rest, at)
                if at == len(rest):
                    break
            try:
                at = _STEPS[self._state](self, rest, at)
            except ValueError:
                self._break()

    def _skip_blanks(self, rest: str, at: int) -> int:
        match = _SPACE.match(rest, at)
        return match.end() if match else at

    def _break(self) -> None:
        """Give up this root. A scanner that searches looks for another object."""
        self._stack, self.root = [], None
        self._state = "search" if self._searches else "over"
        self.is_broken = not self._searches

    def _search(self, rest: str, at: int) -> int:
        start = rest.find("{", at)
        return self._begin_container("{", start) if start >= 0 else len(rest)

    def _begin_value(self, rest: str, at: int) -> int:
        character = rest[at]
        if character in _PAIRS:
            return self._begin_container(character, at)
        if not self._stack:
            raise ValueError("the root is not an object or array")
        if character == '"':
            self._open_text = self._stack[-1].child = OpenText()
            self._state = "text"
            return at + 1
        if not (character.isalnum() or character == "-"):
            raise ValueError("no value")
        self._scalar, self._state = [], "scalar"
        return at

    def _begin_container(self, bracket: str, at: int) -> int:
        if len(self._stack) == MOST_DEPTH:
            raise ValueError("too deep")
        container = OpenContainer(bracket)
        if self._stack:
            self._stack[-1].child = container
        else:
            self.root = container
        self._stack.append(container)
        self._state = "first key" if bracket == "{" else "first"
        return at + 1

    def _begin_first_value(self, rest: str, at: int) -> int:
        return self._end_container(at) if rest[at] == "]" else self._begin_value(rest, at)

    def _begin_first_key(self, rest: str, at: int) -> int:
        return self._end_container(at) if rest[at] == "}" else self._begin_key(rest, at)

    def _begin_key(self, rest: str, at: int) -> int:
        if rest[at] != '"':
            raise ValueError("no key")
        self._open_text = OpenText()
        self._state = "text"
        return at + 1

    def _read_colon(self, rest: str, at: int) -> int:
        if rest[at] != ":":
            raise ValueError("no colon")
        self._stack[-1].source.append(":")
        self._state = "value"
        return at + 1

    def _read_after(self, rest: str, at: int) -> int:
        container = self._stack[-1]
        if rest[at] == _PAIRS[container.bracket]:
            return self._end_container(at)
        if rest[at] != ",":
            raise ValueError("neither a comma nor an end")
        container.source.append(",")
        self._state = "key" if container.bracket == "{" else "value"
        return at + 1

    def _scan_text(self, rest: str, at: int) -> int:
        match = _CHARACTERS.match(rest, at)
        end = match.end() if match else at
        if end > at:
            self._open_text.add(rest[at:end])
        if end == len(rest):
            return end
        if rest[end] == '"':
            self._end_text()
            return end + 1
        if rest[end] == "\\" and len(rest) - end < _LONGEST_ESCAPE:
            self._escape = rest[end:]
            return len(rest)
        raise ValueError("neither a character nor an escape")

    def _end_text(self) -> None:
        container, ended = self._stack[-1], self._open_text
        ended.source.append('"')
        if container.child is ended:
            self._end_value("".join(ended.source))
            return
        container.key = ended.text
        container.source += ended.source
        self._state = "colon"

    def _read_scalar(self, rest: str, at: int) -> int:
        match = _SCALAR.match(rest, at)
        end = match.end() if match else at
        self._scalar.append(rest[at:end])
        if end < len(rest):  # more digits could follow otherwise
            text = "".join(self._scalar)
            from_json(text)
            self._end_value(text)
        return end

    def _end_container(self, at: int) -> int:
        container = self._stack.pop()
        container.source.append(_PAIRS[container.bracket])
        self._end_value("".join(container.source))
        return at + 1

    def _end_value(self, text: str) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            raise ValueError("too many values")
        if not self._stack:
            self.text, self._state = text, "over"
            return
        container = self._stack[-1]
        container.closed.append(ClosedValue(container.key, text))
        container.source.append(text)
        container.child = None
        self._state = "after"


_STEPS: Mapping[State, Callable[[JSONScanner, str, int], int]] = {
    "search": JSONScanner._search,
    "value": JSONScanner._begin_value,
    "first": JSONScanner._begin_first_value,
    "key": JSONScanner._begin_key,
    "first key": JSONScanner._begin_first_key,
    "colon": JSONScanner._read_colon,
    "after": JSONScanner._read_after,
    "text": JSONScanner._scan_text,
    "scalar": JSONScanner._read_scalar,
}
"""State → the method that scans from a position and returns the next position."""


def find_json(text: str, most_values: int) -> str:
    """Return the first complete JSON object in a text. Without one, return the text from the last "{" that could begin
    one, or the complete text.
    """
    scanner = JSONScanner(searches=True, most_values=most_values)
    scanner.feed(text)
    if scanner.text is not None:
        return scanner.text
    return text if scanner.root is None else "".join(_open_source(scanner.root))


def _open_source(container: OpenContainer) -> list[str]:
    """Return the text of an open container so far, for the error of its validation."""
    child = container.child
    inner = [] if child is None else child.source if isinstance(child, OpenText) else _open_source(child)
    return [*container.source, *inner]
