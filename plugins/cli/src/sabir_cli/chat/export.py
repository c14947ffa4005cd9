"""Write a conversation to a file: as JSON Lines or JSON, which sabir can load, or as Markdown for people.

.jsonl .json ──▶ sabir's messages        .md .markdown ──▶ a heading for each speaker, and the texts
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import sabir
from sabir.authoring import replace_file

from sabir_cli.output import UsageError

ExportFormat: TypeAlias = Literal["jsonl", "json", "markdown"]
SUFFIXES: Mapping[str, ExportFormat] = {".jsonl": "jsonl", ".json": "json", ".md": "markdown", ".markdown": "markdown"}


def format_of(path: Path) -> ExportFormat:
    """Return the format for the ending of a file's name. Raises UsageError for an ending that is not in SUFFIXES."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{str(path)!r} does not end in .jsonl, .json or .md, so its format is unknown; rename it")
    return SUFFIXES[path.suffix.lower()]


def save(path: Path, messages: "Sequence[sabir.Message]", export_format: ExportFormat | None = None) -> None:
    """Write a conversation to a file, in the format `export_format`; None means the format for the file's ending.

    An existing file is replaced. Raises UsageError for an unknown ending, or if the file cannot be written.
    """
    text = as_text(messages, export_format or format_of(path))
    try:
        replace_file(path.resolve(), text)
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror}; choose another file") from None


def as_text(messages: "Sequence[sabir.Message]", export_format: ExportFormat) -> str:
    """Return a conversation as text in the given format."""
    writers: Mapping[ExportFormat, Callable[[Sequence[sabir.Message]], str]] = {
        "jsonl": sabir.dumps_lines, "json": sabir.dumps, "markdown": as_markdown,
    }  # fmt: skip
    return writers[export_format](messages)


def as_markdown(messages: "Iterable[sabir.Message]") -> str:
    """Return a conversation as Markdown. Media are shown by their kind, name and web address, and calls and results,
    also those of the vendors' own tools, in one line each. Reasoning and opaque parts are left out.
    """
    return "\n\n".join(_markdown_paragraphs(messages)) + "\n"


def _markdown_paragraphs(messages: "Iterable[sabir.Message]") -> Iterator[str]:
    speaker = ""
    for message in messages:
        text = "\n\n".join(_message_texts(message))
        if text and message.result is None and speaker != (speaker := _speaker_name(message)):
            yield f"## {speaker}"
        if text:
            yield text


def _speaker_name(message: "sabir.Message") -> str:
    return f"{message.origin.provider}:{message.origin.model}" if message.origin else message.policy


def _message_texts(message: "sabir.Message") -> Iterator[str]:
    from sabir_cli.conversation import describe_call, describe_native, describe_result

    if message.call is not None:
        yield f"`{describe_call(message)}`"
        return
    if message.result is not None:
        yield f"> {describe_result(message)}"
        return
    for part in message.parts:
        if isinstance(part, sabir.TextPart | sabir.RefusalPart):
            yield part.text
        elif isinstance(part, sabir.NativeCallPart | sabir.NativeResultPart):
            yield f"> {describe_native(part)}"
        elif isinstance(part, sabir.MediaPart):
            address = part.url if part.url.startswith("http") else ""
            yield f"[{part.modality}{f' {part.name}' if part.name else ''}]{f'({address})' if address else ''}"
