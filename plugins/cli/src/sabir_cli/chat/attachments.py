"""Attachments of a message: media and texts, from files or URLs.

--image sky.jpg   --audio …   --document …      the flag tells the kind of medium
--file notes.md                                 the file's name tells the kind: image, sound, video, PDF, else text
"""

import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import sabir
from cyclopts import Parameter

from sabir_cli.inputs import read_bytes
from sabir_cli.output import UsageError


def attach(kind: str, source: str) -> "sabir.MediaPart | sabir.TextPart":
    """Return the message part for a file or URL. `kind` is a `sabir.authoring.Modality`, or "file" to guess the kind
    from the name.

    With "file", a URL of an unknown kind is a document, and a file of an unknown kind becomes a text part with its name
    and content. Raises UsageError for a text file that cannot be read or is not UTF-8 text, and MediaRefused for media
    that `sabir` refuses, for example a missing file.
    """
    from sabir.authoring import Modality  # imported here, so that `sabir chat --help` appears fast

    is_url = source.startswith(("http://", "https://", "data:", "provider-file:"))
    source = source if is_url else str(Path(source).expanduser())
    if kind != "file":
        return _media_part(kind, source)
    mime = mimetypes.guess_type(source)[0] or ""
    guessed = mime.partition("/")[0]
    if guessed in get_args(Modality):
        return _media_part(guessed, source)
    if is_url or mime == "application/pdf":
        return sabir.document(source)
    data = read_bytes(source, "a FILE")
    try:
        return sabir.TextPart(text=f"{Path(source).name}:\n{data.decode('utf-8-sig')}\n")
    except UnicodeDecodeError:
        raise UsageError(
            f"the kind of {source!r} is not known from its name, and it is not UTF-8 text; "
            "attach it with --image, --audio or --document instead of --file"
        ) from None


def _media_part(kind: str, source: str) -> "sabir.MediaPart":
    """Call the function of `sabir` that is named like the kind, for example `sabir.image`."""
    part: sabir.MediaPart = getattr(sabir, kind)(source)
    return part


@Parameter(name="*")
@dataclass(frozen=True)
class AttachmentFlags:
    """The flags that attach files, and an earlier conversation, to the first message."""

    image: Annotated[list[str] | None, Parameter(negative="", help="URL or file of an image; repeatable.")] = None
    audio: Annotated[list[str] | None, Parameter(negative="", help="URL or file of a sound; repeatable.")] = None
    document: Annotated[
        list[str] | None, Parameter(negative="", help="URL or file of a document, such as a PDF; repeatable.")
    ] = None
    file: Annotated[
        list[str] | None,
        Parameter(negative="", help="URL or file of an image, sound, video or document, or a text file; repeatable."),
    ] = None

    history: Annotated[
        str | None,
        Parameter(name="--from", help="Start with the messages in this file (JSON of `sabir import` or /save)."),
    ] = None

    def messages(self) -> "list[sabir.Message]":
        """Return the messages in the file --from; [] without this flag. Raises UsageError if the file cannot be read,
        and HistoryInvalid if it is not a conversation.
        """
        if self.history is None:
            return []
        from sabir.errors import HistoryInvalid

        try:
            return sabir.loads(read_bytes(self.history, "a history"))
        except HistoryInvalid as error:
            raise HistoryInvalid(f"--from {self.history!r}: {error}") from None

    def parts(self) -> "Iterator[sabir.MediaPart | sabir.TextPart]":
        """Yield a message part for each attached file or URL. Raises what `attach` raises."""
        for kind in ("image", "audio", "document", "file"):
            for source in getattr(self, kind) or ():
                yield attach(kind, source)
