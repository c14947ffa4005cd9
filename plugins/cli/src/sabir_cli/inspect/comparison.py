"""The view model of the renderings: a row for each span of messages, with a cell for each model.

    history, models, settings ──render──▶ RenderedModel: body, losses, shared prefix │ the reason of a refusal
                                     └─▶ ComparisonRow: span ─▶ items and losses of each model

Nothing is sent. The shared prefix is what this request has in common with the request for the last reply, rendered
with the unchanged settings: what a prompt cache can reuse.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import sabir
from sabir.authoring import JSONValue, encode_json, one_line

from sabir_cli.dialects import target_label
from sabir_cli.facts import open_adapter
from sabir_cli.failures import explain
from sabir_cli.inspect.alignment import MessageSpan, RequestItems, WholeRequest, item_ends, read_items, split_spans
from sabir_cli.inspect.inspection import NO_SETTINGS, Inspection
from sabir_cli.losses import explain_with

SPANS_PER_PAGE = 40
"""The number of rows of one page."""
ModelOpener: TypeAlias = Callable[[str], sabir.ModelAdapter]
"""A function that returns the adapter of a model string."""
MOST_MODELS = 4
"""The maximum number of models that are compared at once."""


@dataclass(frozen=True)
class RequestedComparison:
    """What to render: model strings, settings that replace those of the history, and the kinds of `strict`."""

    models: tuple[str, ...]
    settings: sabir.Settings = NO_SETTINGS
    strict: bool = False


@dataclass(frozen=True)
class RenderedModel:
    """The rendering for one model, or `error` with the reason why there is none.

    `shared_items` is the number of items at the beginning of the messages that the request before had too, and
    `shared_head` the names of the fields before the messages that it had too.
    """

    title: str
    rendering: sabir.Rendering | None = None
    error: str = ""
    losses: tuple[sabir.Loss, ...] = ()
    shared: str = ""
    shared_items: int = 0
    shared_head: frozenset[str] = frozenset()

    @cached_property
    def request(self) -> RequestItems:
        """The parts of the body; empty without a rendering."""
        return read_items(self.rendering) if self.rendering else RequestItems({}, "messages", [])


@dataclass(frozen=True)
class ComparisonCell:
    """The items of the body of one model that belong to a row, and the losses of the row's messages.

    `marks` are texts that replace content in these items. `first` is the position of the first item.
    """

    items: tuple[JSONValue, ...] = ()
    first: int = 0
    losses: tuple[sabir.Loss, ...] = ()
    marks: tuple[str, ...] = ()
    shared: int = 0
    note: str = ""


@dataclass(frozen=True)
class ComparisonRow:
    """One row: the messages of a span, and a cell for each model. A row without a span has the other fields of the
    requests and the losses that concern no message.
    """

    span: MessageSpan | None
    cells: tuple[ComparisonCell, ...]


@dataclass(frozen=True)
class Comparison:
    """The rows of one page. `page` counts from 1."""

    requested: RequestedComparison
    models: tuple[RenderedModel, ...]
    rows: tuple[ComparisonRow, ...]
    page: int = 1
    pages: int = 1


def compare(
    inspection: Inspection, requested: RequestedComparison, page: int = 1, open_model: ModelOpener = open_adapter
) -> Comparison:
    """Return the renderings of a conversation for several models, aligned by messages. Errors become columns.

    `open_model` returns the adapter of a model string. If it returns the same adapter again, the adapter renders only
    what it has not rendered before.
    """
    messages, spans = inspection.messages, split_spans(inspection.messages)
    pages = max(1, -(-len(spans) // SPANS_PER_PAGE))
    page = min(max(page, 1), pages)
    start = (page - 1) * SPANS_PER_PAGE
    part = spans[start : start + SPANS_PER_PAGE]
    needed = spans[max(0, start - 1) : start + SPANS_PER_PAGE]
    columns: list[RenderedModel] = []
    cells: list[list[ComparisonCell]] = []
    for name in requested.models[:MOST_MODELS]:
        column, ends = _render_model(name, inspection, requested, needed, open_model)
        first = ends[0] if start else 0
        columns.append(column)
        cells.append(_cells(column, messages, part, first, ends[1:] if start else ends))
    rows = [ComparisonRow(span, tuple(each[at + 1] for each in cells)) for at, span in enumerate(part)]
    heads = [ComparisonRow(None, tuple(each[0] for each in cells))] if page == 1 else []
    return Comparison(requested, tuple(columns), (*heads, *rows), page, pages)


def _render_model(
    name: str,
    inspection: Inspection,
    requested: RequestedComparison,
    spans: Sequence[MessageSpan],
    open_model: ModelOpener,
) -> tuple[RenderedModel, list[int]]:
    """Return the rendering for a model, and where the items of these spans end. Every error becomes the column's."""
    messages, title = inspection.messages, name
    call: dict[str, Any] = {
        "options": inspection.options,
        "settings": requested.settings.laid_over(inspection.settings),
    }
    try:
        adapter = open_model(name)
        title = target_label(adapter.target)
        rendering = adapter.render(messages, strict=requested.strict, **call)
        column = RenderedModel(title, rendering, losses=rendering.losses)
        ends = item_ends(adapter, messages, spans, WholeRequest(rendering, column.request.items), **call)
        return replace(column, **_shared_prefix(column.request, rendering, adapter, inspection)), ends
    except sabir.RenderingRefused as error:
        return RenderedModel(title, error=explain_with(error, messages), losses=error.losses), [0] * len(spans)
    except Exception as error:  # any error of a plugin's code; the other models are still shown
        return RenderedModel(title, error=one_line(explain(error), 600)), [0] * len(spans)


def _shared_prefix(
    request: RequestItems, rendering: sabir.Rendering, adapter: sabir.ModelAdapter, inspection: Inspection
) -> dict[str, Any]:  # fields of RenderedModel
    """Return the fields of a RenderedModel on what the request shares with the request for the last reply; {} if there
    was none.
    """
    messages = inspection.messages
    replies = [position for position, message in enumerate(messages) if message.origin or message.policy == "llm"]
    while len(replies) > 1 and replies[-2] == replies[-1] - 1:  # the messages of one reply
        replies.pop()
    if not replies or replies[-1] == 0:
        return {}
    try:
        before = adapter.render(messages[: replies[-1]], options=inspection.options, settings=inspection.settings)
    except sabir.SabirError:
        return {}
    shared, fields = rendering.shared_prefix(before), rendering.prompt_fields
    field, _, index = shared.changed.partition("[")
    if not shared.changed:
        head, items = frozenset(fields), min(len(read_items(before).items), len(request.items))
    else:
        head = frozenset(fields[: fields.index(field)] if field in fields else ())
        items = int(index.rstrip("]")) if field == fields[-1] and index else 0
    end = f"up to {shared.changed}" if shared.changed else "all of that request"
    text = f"≈ {shared.tokens:,} tokens shared with the request for message {replies[-1] + 1}: {end}"
    return {"shared": text, "shared_items": items, "shared_head": head}


def _cells(
    column: RenderedModel,
    messages: Sequence[sabir.Message],
    spans: Sequence[MessageSpan],
    first: int,
    ends: Sequence[int],
) -> list[ComparisonCell]:
    """Return the cells of a column: first the request's other fields, then one for each span."""
    items = column.request.items
    by_message: dict[str, list[sabir.Loss]] = {}
    for loss in column.losses:
        by_message.setdefault(loss.message_id, []).append(loss)
    known = {message.id for message in messages}
    rest = tuple(loss for loss in column.losses if loss.message_id not in known)
    cells = [ComparisonCell((column.request.head,) if column.rendering else (), losses=rest)]
    for span, end in zip(spans, ends, strict=True):
        part = messages[span.start : span.stop]
        losses = tuple(loss for message in part for loss in by_message.get(message.id, ()))
        shared = min(max(column.shared_items - first, 0), end - first)
        note = "" if end > first or column.rendering is None else _where(column, part, losses)
        cells.append(ComparisonCell(tuple(items[first:end]), first, losses, _marks(part, losses), shared, note))
        first = end
    return cells


def _where(column: RenderedModel, messages: Sequence[sabir.Message], losses: Sequence[sabir.Loss]) -> str:
    """Return where messages without items of their own are in the request."""
    if all(message.policy == "system" for message in messages):
        text = next((message.text for message in messages if message.text), "")
        for name, content in column.request.head.items():
            if text and encode_json(text)[1:-1] in encode_json(content):
                return f"Sent in the field {name!r}."
    if any(loss.kind in ("dropped", "withheld") for loss in losses):
        return "Nothing of this is sent."
    return "Sent in the same item as the messages after it."


def _marks(messages: Sequence[sabir.Message], losses: Sequence[sabir.Loss]) -> tuple[str, ...]:
    """Return the texts that replace lost media in a request, as JSON writes them."""
    lost = {loss.message_id for loss in losses}
    placeholders = (
        part.placeholder
        for message in messages
        if message.id in lost
        for part in message.parts
        if isinstance(part, sabir.MediaPart)
    )
    return tuple(encode_json(text)[1:-1] for text in placeholders)


def lost_content(loss: sabir.Loss, message: sabir.Message) -> str:
    """Return the content that a loss concerns, in a few words; "" if its path names no part."""
    if not loss.path.startswith("parts["):
        return ""
    digits = loss.path[len("parts[") :].partition("]")[0]
    if not digits.isdecimal() or int(digits) >= len(message.parts):
        return ""
    part = message.parts[int(digits)]
    if isinstance(part, sabir.MediaPart):
        return one_line(" ".join(filter(None, (part.modality, part.name, part.prompt_hint))), 80)
    text = getattr(part, "text", "") or getattr(part, "as_text", "") or part.kind
    return one_line(str(text), 80)


SETTING_FIELDS: Mapping[str, tuple[str, ...]] = {
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "prompt_cache": ("true", "5m", "1h"),
    "parallel_options": ("true", "false"),
    "media_labels": ("true", "false"),
    "unsupported_media": ("placeholder", "drop"),
    "max_output_tokens": (),
    "temperature": (),
    "option_choice": (),
}
"""Setting that the page can change → its values; () for a text."""


def read_settings_query(query: Mapping[str, str]) -> sabir.Settings:
    """Return the settings in the query of a URL. Raises SettingsInvalid for an invalid value."""
    words: Mapping[str, Any] = {"true": True, "false": False}
    fields: dict[str, Any] = {}
    for name in SETTING_FIELDS:
        text = query.get(name, "").strip()
        if text:
            fields[name] = words.get(text, text)
    for name, kind in (("max_output_tokens", int), ("temperature", float)):
        if name in fields:
            try:
                fields[name] = kind(fields[name])
            except ValueError:
                raise sabir.errors.SettingsInvalid(
                    f"{name}={one_line(str(fields[name]), 40)!r} is not a number; write a number"
                ) from None
    return sabir.Settings(**fields)
