"""Limits on what a server sends, checked before Python objects are built from it.

    bytes ──message_bytes──▶ message ──message_values──▶ JSON ──tools, parts──▶ the SDK's objects ──▶ options, results

Each step needs more memory than the step before: 1 byte of JSON may become 24 bytes of dicts, and a part of 30 bytes
becomes 2,400 bytes of validated models. So each step checks its limit before the next step runs.
"""

import re
from typing import Annotated

from pydantic import Field
from sabir.authoring import Frozen, has_more_values

Count = Annotated[int, Field(gt=0, strict=True)]


class Limits(Frozen):
    """The maximum amounts that a server may send. A larger amount raises AnswerTooLarge, or ServerUnreachable while
    `options_from_mcp` connects; the message names the limit. A server process that exceeds a limit on messages is
    killed.

    Messages are limited only for a server that is passed as a command, as StdioServerParameters or as a URL. To raise a
    limit, pass `options_from_mcp(…, limits=Limits(message_bytes=64 * 2**20))`.
    """

    message_bytes: Count = 16 * 2**20
    """The maximum number of bytes of one message. Also the maximum for the names, descriptions and schemas of all
    options together.

    A message that contains characters beyond U+00FF (emoji, for instance) counts as the bytes that Python needs to
    store it: 2 or 4 for each character.
    """
    message_values: Count = 250_000
    """The maximum number of JSON values in one message: objects, arrays, and the items of both. Also the maximum number
    of lines in one server-sent event.
    """
    tools: Count = 1_000
    """The maximum number of options that the server offers, on all pages of its list together. Also the maximum number
    of pages.
    """
    parts: Count = 10_000
    """The maximum number of content blocks, and of requests for input, in one result."""


class Excesses:
    """The limits that a server exceeded during one connection, as texts for errors."""

    def __init__(self) -> None:
        self._texts: set[str] = set()  # few, because each limit has one text
        self.fatal = ""
        """The text of the exceeded limit that ended the connection; "" if no limit did."""

    def note(self, text: str) -> None:
        """Record an exceeded limit that fails one request."""
        self._texts.add(text)

    def end(self, text: str) -> None:
        """Record an exceeded limit that ends the connection."""
        self.fatal = text

    def text_in(self, message: str) -> str:
        """Return the recorded text that is contained in an error message of the SDK, or "" if there is none."""
        return next((text for text in self._texts if text in message), "")


def find_excess(message: bytearray, limits: Limits) -> str:
    """Return a text that names the limit on messages that a message exceeds, or "" if it exceeds none."""
    if len(message) > limits.message_bytes or _size(message) > limits.message_bytes:
        return excess_text("bytes in one message", "message_bytes", limits.message_bytes)
    if has_more_values(bytes(message), limits.message_values):
        return excess_text("JSON values in one message", "message_values", limits.message_values)
    return ""


def excess_text(what: str, name: str, limit: int) -> str:
    """Return a text that describes an exceeded limit, and how to raise the limit."""
    return f"the server sent more than {limit:,} {what}; to allow more, pass limits=Limits({name}=…)"


_WIDE = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")
_MEDIUM = re.compile(rb"[\xc4-\xef]|\\u(?!00)[0-9a-fA-F]{4}")
_CONTINUATION = bytes(range(0x80, 0xC0))


def _size(message: bytearray) -> int:
    """Return how many bytes Python needs for the message as text. All characters are as wide as the widest."""
    if message.isascii() and b"\\u" not in message:
        return len(message)
    width = 4 if _WIDE.search(message) else 2 if _MEDIUM.search(message) else 1
    return width * len(message.translate(None, _CONTINUATION))
