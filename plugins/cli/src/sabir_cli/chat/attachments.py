"""What goes with a message: media and texts, from files or URLs.

--image sky.jpg   --audio …   --document …      as they are named
--file notes.md                                 by its kind: an image, a sound, a video, a PDF, else a text
"""

import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

import sabir
from cyclopts import Parameter

from sabir_cli.inputs import read_bytes
from sabir_cli.output import UsageError

Modality: TypeAlias = Literal["image", "audio", "video", "document"]
"""Kinds of media, as flags and MIME types name them; `sabir` has a function of each name."""


def attach(kind: str, source: str) -> "sabir.MediaPart | sabir.TextPart":
    """Make the part of a file or a URL; `kind` is a Modality, or "file". Raises UsageError and MediaRefused."""
    is_url = source.startswith(("http://", "https://", "data:", "provider-file:"))
    source = source if is_url else str(Path(source).expanduser())
    if kind != "file":
        return _media(kind, source)
    mime = mimetypes.guess_type(source)[0] or ""
    guessed = mime.partition("/")[0]
    if guessed in get_args(Modality):
        return _media(guessed, source)
    if is_url or mime == "application/pdf":
        return sabir.document(source)
    data = read_bytes(source, "a FILE")
    try:
        return sabir.TextPart(text=f"{Path(source).name}:\n{data.decode('utf-8-sig')}\n")
    except UnicodeDecodeError:
        raise UsageError(
            f"{source!r} is neither a medium by its name nor UTF-8 text; say what it is: --image, --audio or --document"
        ) from None


def _media(kind: str, source: str) -> "sabir.MediaPart":
    part: sabir.MediaPart = getattr(sabir, kind)(source)
    return part


@Parameter(name="*")
@dataclass(frozen=True)
class Attached:
    """What goes with the first message; each may be given several times."""

    image: Annotated[list[str] | None, Parameter(negative="", help="URL or file of an image; repeatable.")] = None
    audio: Annotated[list[str] | None, Parameter(negative="", help="URL or file of a sound; repeatable.")] = None
    document: Annotated[
        list[str] | None, Parameter(negative="", help="URL or file of a document, such as a PDF; repeatable.")
    ] = None
    file: Annotated[
        list[str] | None, Parameter(negative="", help="Attach a file (image, sound, document or text); repeatable.")
    ] = None

    history: Annotated[
        str | None,
        Parameter(name="--from", help="A saved history to begin with: what `sabir import` or /save wrote."),
    ] = None

    def messages(self) -> "list[sabir.Message]":
        """The messages of the history; raises UsageError and HistoryInvalid."""
        if self.history is None:
            return []
        from sabir.errors import HistoryInvalid

        try:
            return sabir.loads(read_bytes(self.history, "a history"))
        except HistoryInvalid as error:
            raise HistoryInvalid(f"--from {self.history!r}: {error}") from None

    def parts(self) -> "Iterator[sabir.MediaPart | sabir.TextPart]":
        """The parts; raises UsageError and MediaRefused."""
        for kind in ("image", "audio", "document", "file"):
            for source in getattr(self, kind) or ():
                yield attach(kind, source)
