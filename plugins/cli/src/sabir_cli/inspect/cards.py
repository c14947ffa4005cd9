"""The view model of the conversation: one card for each message, and an option's result in the card of its call.

    entries ──pair──▶ call + result ──▶ MessageCard: speaker, time, sections, figures, the message as JSON

The text of a section is not escaped: `conversation_page` does this.
"""

import base64
import re
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from urllib.parse import unquote_to_bytes

import sabir
from sabir.authoring import Part, decode_json, encode_json

from sabir_cli.dialects import model_label
from sabir_cli.inspect.elements import RASTER, escaped_json
from sabir_cli.inspect.inspection import InspectedMessage, ReplyFigures
from sabir_cli.render import layout

SectionKind: TypeAlias = Literal[
    "text", "reasoning", "refusal", "media", "call", "result", "error", "native", "citation", "opaque", "unknown"
]
RASTER_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp",
}  # fmt: skip
"""The first bytes of an image → the type under which it is shown. Only such images are shown."""
JSON_COLUMNS = 80
"""The width, in characters, at which JSON is folded."""
LONGEST_JSON = 400_000
"""Maximum length of a message's JSON, in characters without media, that a page contains for copying."""
MEDIUM = "@medium-{}@"
"""What replaces a medium's data URL in a message's JSON on the page. The page's script puts the data back."""


@dataclass(frozen=True)
class Medium:
    """A medium of a message. `picture` is the address of an image that a browser may show, else "". `download` is
    the address of its bytes as a download, else "". `stated` is the address that the message states, or its beginning.
    `key` is the number of the message and of the part, and `header` the beginning of the original data URL.
    """

    key: str
    label: str
    stated: str
    header: str = ""
    picture: str = ""
    download: str = ""
    size: int | None = None


@dataclass(frozen=True)
class CardSection:
    """One part of a message: its kind, a title, a text, and for a medium the medium. `is_code` is True for JSON and
    other text for machines. `parts` are the parts of a result.
    """

    kind: SectionKind
    title: str = ""
    text: str = ""
    is_code: bool = False
    medium: Medium | None = None
    parts: tuple["CardSection", ...] = ()


@dataclass(frozen=True)
class MessageCard:
    """One message as it is shown. `number` counts from 1, and `results` are the results of a call.

    `follows` is True if the message before has the same speaker, so that its name need not be repeated.
    """

    number: int
    entry: InspectedMessage
    speaker: str
    side: str
    origin: str
    sections: tuple[CardSection, ...]
    document: str
    results: tuple["MessageCard", ...] = ()
    follows: bool = False

    @property
    def anchor(self) -> str:
        """The card's place on the page, which stays the same: "m-12"."""
        return f"m-{self.number}"

    @property
    def figures(self) -> ReplyFigures | None:
        """The figures of the reply that ends with this message."""
        return self.entry.figures


@dataclass(frozen=True)
class PairedMessage:
    """The position of a message, and for a call the positions of its results."""

    position: int
    results: tuple[int, ...] = ()


def pair_results(messages: Sequence[sabir.Message]) -> list[PairedMessage]:
    """Return the messages that get a card, in order: all except results whose call comes before.

    A result answers the first unanswered call with its id, in the nearest earlier run of calls that has one.
    """
    results: dict[int, list[int]] = {}
    runs: list[dict[str, list[int]]] = []
    nested: set[int] = set()
    is_in_run = False
    for position, message in enumerate(messages):
        if message.call is not None:
            if not is_in_run:
                runs.append({})
            runs[-1].setdefault(message.call.invocation_id, []).append(position)
            is_in_run = True
            continue
        is_in_run = False
        if message.result is not None and (call := _take_call(runs, message.result.invocation_id)) is not None:
            results.setdefault(call, []).append(position)
            nested.add(position)
    cards = (position for position in range(len(messages)) if position not in nested)
    return [PairedMessage(position, tuple(results.get(position, ()))) for position in cards]


def _take_call(runs: list[dict[str, list[int]]], invocation_id: str) -> int | None:
    while runs and not runs[-1]:
        runs.pop()
    for run in reversed(runs):
        if positions := run.get(invocation_id):
            call = positions.pop(0)
            if not positions:
                del run[invocation_id]
            return call
    return None


def build_cards(entries: Sequence[InspectedMessage], paired: Sequence[PairedMessage]) -> list[MessageCard]:
    """Return the cards of these messages, which may be those of one page."""
    cards: list[MessageCard] = []
    for each in paired:
        results = tuple(build_card(position, entries[position]) for position in each.results)
        card = replace(build_card(each.position, entries[each.position]), results=results)
        follows = bool(cards) and not card.entry.heading and _speaks_again(cards[-1], card)
        cards.append(replace(card, follows=follows))
    return cards


def _speaks_again(before: MessageCard, card: MessageCard) -> bool:
    return (before.speaker, before.origin, before.figures) == (card.speaker, card.origin, None)


def build_card(position: int, entry: InspectedMessage) -> MessageCard:
    """Return the card of one message without its results."""
    message = entry.message
    return MessageCard(
        number=position + 1,
        entry=entry,
        speaker=message.policy,
        side=_side(message),
        origin=origin_label(message),
        sections=tuple(_sections(message, position + 1)),
        document=copied_document(message, position + 1),
    )


def _side(message: sabir.Message) -> str:
    if message.kind in ("option_call", "option_result"):
        return "call" if message.kind == "option_call" else "option"
    hint = str(message.role_hint_for_llm or "")
    by_policy = {"user": "user", "system": "system", "llm": "assistant"}.get(message.policy, "")
    return hint if hint in ("user", "system", "assistant") else by_policy or ("assistant" if message.origin else "user")


def origin_label(message: sabir.Message) -> str:
    """Return the model string of the model that produced the message, or ""."""
    origin = message.origin
    if origin is None:
        return ""
    label = model_label(origin.provider, origin.dialect, origin.model or "?")
    reported = origin.reported_model
    return f"{label} (reported as {reported})" if reported and reported != origin.model else label


def _sections(message: sabir.Message, number: int) -> Iterator[CardSection]:
    """Yield the sections of a message. `number` is its number."""
    parts = tuple(
        section for index, part in enumerate(message.parts) for section in part_sections(part, f"{number}-{index}")
    )
    if (call := message.call) is not None:
        text = call.unreadable_arguments or indented_json(call.arguments_json)
        cut = " (cut off)" if call.cut_off else " (invalid arguments)" if call.invalid_arguments else ""
        yield CardSection("call", f"{call.option_name}{cut}", text, is_code=True)
    elif (result := message.result) is not None:
        if result.is_error:
            yield CardSection("error", result.error_type or "error", result.error_message or "", parts=parts)
        elif parts:
            yield CardSection("result", result.option_name, parts=parts)
        else:
            plain = result.plain_result()
            text = plain if isinstance(plain, str) else indented_json(result.result_json)
            yield CardSection("result", result.option_name, text, is_code=not isinstance(plain, str))
    elif message.kind == "unknown":
        text = indented_json(encode_json(message.model_dump(mode="json", exclude_none=True)["payload"]))
        yield CardSection("unknown", "a message of a newer version of sabir", text, is_code=True)
    else:
        yield from parts


def part_sections(part: Part, key: str) -> Iterator[CardSection]:
    """Yield the section of a part, and one for each of its citations. `key` identifies the part on the page."""
    if isinstance(part, sabir.TextPart):
        yield CardSection("text", text=part.text)
        for citation in part.citations:
            words = (citation.title, citation.url, citation.file_id)
            yield CardSection("citation", " · ".join(word for word in words if word), citation.cited_text or "")
    elif isinstance(part, sabir.ReasoningPart):
        signed = "" if part.state_json is None else " · signed state is stored"
        yield CardSection("reasoning", f"{len(part.text):,} characters{signed}", part.text)
    elif isinstance(part, sabir.RefusalPart):
        yield CardSection("refusal", "The model refused", part.text)
    elif isinstance(part, sabir.MediaPart):
        yield CardSection("media", medium=medium_of(part, key))
    elif isinstance(part, sabir.NativeCallPart | sabir.NativeResultPart):
        kind = "call" if part.kind == "native_call" else "result"
        yield CardSection("native", f"{part.tool} · {kind} of the vendor's own tool", part.as_text)
    elif isinstance(part, sabir.OpaquePart):
        yield CardSection("opaque", f"Block of {part.dialect}", indented_json(part.block_json), is_code=True)
    else:
        yield CardSection("unknown", "Part of a newer version", indented_json(part.document_json), is_code=True)


def indented_json(text: str) -> str:
    """Return JSON text with small objects on one line, or unchanged if it is not JSON."""
    try:
        lines = layout(decode_json(text), JSON_COLUMNS, is_shortened=False)
    except (ValueError, RecursionError, sabir.SabirError):
        return text
    return "\n".join(" " * line.indent + line.text for line in lines)


def medium_of(part: sabir.MediaPart, key: str) -> Medium:
    """Return a medium as it is shown. Only a raster image, recognised by its first bytes, gets an address to show."""
    words = [part.modality, part.name or "", part.prompt_hint or "", part.mime or ""]
    label = " · ".join(word for word in words if word)
    if part.form != "data":
        return Medium(key, label, part.url)
    try:
        parsed = part.data_url()
        encoded = re.sub(r"\s+", "", parsed.base64)
        content = base64.b64decode(encoded, validate=True)
    except (sabir.SabirError, Base64Error, ValueError):
        content = unquote_to_bytes(part.url.partition(",")[2])
        encoded = base64.b64encode(content).decode()
        parsed = None
    mime = raster_type(content) if part.modality == "image" else ""
    download = f"data:application/octet-stream;base64,{encoded}"
    picture = f"data:{mime};base64,{encoded}" if mime else ""
    if picture and not RASTER.fullmatch(picture):
        picture = ""
    if not part.mime and parsed is not None:
        label = f"{label} · {parsed.mime}"
    header = f"data:{parsed.type if parsed is not None else ''};base64,"
    return Medium(key, label, f"{part.url[:60]}…", header, picture, "" if picture else download, len(content))


def raster_type(content: bytes) -> str:
    """Return the type of a raster image, recognised by its first bytes; "" for anything else, such as an SVG."""
    for start, mime in RASTER_TYPES.items():
        if content.startswith(start) and (mime != "image/webp" or content[8:12] == b"WEBP"):
            return mime
    return ""


def copied_document(message: sabir.Message, number: int) -> str:
    """Return the message as JSON for copying, with numbered placeholders for data URLs. "" if it is too long.

    `number` is the message's number, with which the placeholders begin.
    """
    fields = message.model_dump(mode="json", exclude_none=True, by_alias=True)
    parts = fields.get("payload", {}).get("parts")
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, Mapping) and part.get("kind") == "media" and str(part.get("url"))[:5].lower() == "data:":
            part["url"] = MEDIUM.format(f"{number}-{index}")  # type: ignore[index]  # a dict that was just dumped
    text = encode_json(fields)
    return "" if len(text) > LONGEST_JSON else escaped_json(text)
