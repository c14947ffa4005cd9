"""The renderings view as HTML: a form with models and settings, and one row for each span of messages."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

import sabir
from sabir.authoring import JSONValue

from sabir_cli.inspect.comparison import (
    MOST_MODELS,
    SETTING_FIELDS,
    Comparison,
    ComparisonCell,
    ComparisonRow,
    RenderedModel,
    lost_content,
)
from sabir_cli.inspect.elements import Markup, element, folded, fragment, marked_text, visible
from sabir_cli.inspect.inspection import Inspection
from sabir_cli.losses import first_words
from sabir_cli.render import Line, layout

JSON_WIDTH = 64
"""The width of a body's lines, in characters, at which an object is folded."""
MEANINGS = {
    "dropped": "not sent", "downgraded": "sent in a weaker form", "relocated": "sent at another place",
    "rewritten": "sent with other characters", "synthesized": "added for this API", "withheld": "private, not sent",
}  # fmt: skip
"""Kind of loss → what happened, in a few words."""
DEEPEST = 9
"""The greatest depth of indentation that the style has a class for."""


def renderings_view(inspection: Inspection, comparison: Comparison, query: Mapping[str, str] | None) -> Markup:
    """Return the view. `query` has the current settings for the form; None leaves the form out, for a static page."""
    columns = f"columns-{max(1, len(comparison.models))}"
    return fragment(
        None if query is None else settings_form(comparison, query),
        element("p", {"class": "hint"}, "Nothing is sent: these are the requests that would be sent.")
        if comparison.models
        else element("p", {"class": "hint"}, "Name at least one model, for example openai:gpt-5."),
        element("div", {"class": f"columns heads {columns}"}, [_column_head(model) for model in comparison.models])
        if comparison.models
        else None,
        _page_links(comparison, query),
        element(
            "ol",
            {"class": "comparison", "aria-label": "Requests, aligned by message"},
            [_row_element(inspection, comparison, row, columns, is_static=query is None) for row in comparison.rows],
        )
        if comparison.models
        else None,
    )


def settings_form(comparison: Comparison, query: Mapping[str, str]) -> Markup:
    """Return the form that renders again with other models and settings."""
    names = [*comparison.requested.models, *[""] * MOST_MODELS][: max(2, min(MOST_MODELS, len(comparison.models) + 1))]
    models = [
        _labelled(
            f"Model {number}",
            element("input", {"id": f"model-{number}", "name": "model", "value": name, "list": "known-models",
                              "placeholder": "provider:model", "spellcheck": "false", "autocomplete": "off"}),
            f"model-{number}",
        )
        for number, name in enumerate(names, 1)
    ]  # fmt: skip
    settings = [_labelled(name, _setting_input(name, query.get(name, "")), f"set-{name}") for name in SETTING_FIELDS]
    strict = element("input", {"type": "checkbox", "id": "strict", "name": "strict", "value": "true",
                               "checked": comparison.requested.strict})  # fmt: skip
    changed = any(query.get(name) for name in SETTING_FIELDS) or comparison.requested.strict
    return element(
        "form",
        {"class": "settings", "method": "get", "action": "renderings", "aria-label": "Models and settings"},
        element("div", {"class": "fields"}, models),
        element(
            "details",
            {"open": changed},
            element("summary", None, "Settings"),
            element("div", {"class": "fields"}, settings, _labelled("strict", strict, "strict")),
        ),
        element("button", {"type": "submit"}, "Render"),
        element("datalist", {"id": "known-models"}, [element("option", {"value": name}) for name in known_labels()]),
    )


def known_labels() -> list[str]:
    """Return model strings of the known models of all installed providers with a name of their own."""
    labels: list[str] = []
    for status in sabir.providers():
        if status.means_bare_name and status.state != "failed":
            try:
                rows = sabir.models(status.name)
            except sabir.SabirError:
                continue
            labels += [f"{status.name}:{row.prefix}" for row in rows if row.prefix and row.prefix[-1].isalnum()]
    return sorted(set(labels))[:400]


def _labelled(label: str, control: Markup, identifier: str) -> Markup:
    return element("div", {"class": "field"}, element("label", {"for": identifier}, label), control)


def _setting_input(name: str, current: str) -> Markup:
    attributes = {"id": f"set-{name}", "name": name}
    if not (choices := SETTING_FIELDS[name]):
        kind = "text" if name == "option_choice" else "number"
        limits = {"step": "any", "min": "0"} if kind == "number" else {}
        return element("input", {**attributes, **limits, "type": kind, "value": current, "autocomplete": "off"})
    options = [element("option", {"value": ""}, "as stored")]
    options += [element("option", {"value": each, "selected": each == current}, each) for each in choices]
    return element("select", attributes, options)


def _page_links(comparison: Comparison, query: Mapping[str, str] | None) -> Markup | None:
    if comparison.pages == 1:
        return None
    if query is None:
        text = f"The first {len(comparison.rows) - 1} rows; `sabir inspect` without --html shows all."
        return element("p", {"class": "hint"}, text)
    hidden = [("model", model) for model in comparison.requested.models]
    hidden += [(name, query[name]) for name in (*SETTING_FIELDS, "strict") if query.get(name)]
    number = element("input", {"id": "page", "name": "page", "type": "number", "min": "1",
                               "max": str(comparison.pages), "value": str(comparison.page)})  # fmt: skip
    return element(
        "form",
        {"class": "pages jump", "method": "get", "action": "renderings", "aria-label": "Pages"},
        [element("input", {"type": "hidden", "name": name, "value": text}) for name, text in hidden],
        element("label", {"for": "page"}, "Page"),
        number,
        f" of {comparison.pages} ",
        element("button", {"type": "submit"}, "Go"),
    )


def _column_head(model: RenderedModel) -> Markup:
    counts = Counter(loss.kind for loss in model.losses)
    losses = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no losses"
    rendering = model.rendering
    details = [] if rendering is None else [f"POST {rendering.path}", f"{len(rendering.body_bytes):,} bytes"]
    return element(
        "section",
        {"class": "head", "aria-label": model.title},
        element("h2", None, model.title),
        element("p", {"class": "figures"}, [element("span", None, text) for text in (*details, losses)]),
        element("p", {"class": "shared-label"}, model.shared) if model.shared else None,
        [element("p", {"class": "hint"}, text) for text in (rendering.assumptions if rendering else ())],
        element("p", {"class": "refused"}, folded(model.error, 600)) if model.error else None,
    )


def _row_element(
    inspection: Inspection, comparison: Comparison, row: ComparisonRow, columns: str, *, is_static: bool
) -> Markup:
    span = row.span
    messages: Sequence[sabir.Message] = [] if span is None else inspection.messages[span.start : span.stop]
    title = "Request" if span is None else _span_title(span.start, messages)
    anchor = "r-0" if span is None else f"r-{span.start + 1}"
    pairs = zip(comparison.models, row.cells, strict=True)
    return element(
        "li",
        None,
        element(
            "article",
            {"id": anchor, "tabindex": "-1", "aria-label": visible(title)},
            element(
                "header",
                None,
                element("h3", None, title),
                _back_link(span.start + 1, is_static=is_static) if span else None,
            ),
            element("div", {"class": f"columns {columns}"}, [_cell_element(*pair, messages) for pair in pairs]),
        ),
    )


def _span_title(start: int, messages: Sequence[sabir.Message]) -> str:
    last = start + len(messages)
    numbers = f"Message {last}" if len(messages) == 1 else f"Messages {start + 1}–{last}"
    return f"{numbers} · {messages[0].policy} · {first_words(messages[0])}"


def _back_link(number: int, *, is_static: bool) -> Markup:
    address = f"#m-{number}" if is_static else f"conversation?message={number}"
    link = {"href": address, "class": "number", "aria-label": f"Show message {number}"}
    return element("a", link, "show in the conversation")


def _cell_element(model: RenderedModel, cell: ComparisonCell, messages: Sequence[sabir.Message]) -> Markup:
    by_id = {message.id: message for message in messages}
    pieces: list[Markup | None] = [_loss_element(loss, by_id.get(loss.message_id)) for loss in cell.losses]
    if not messages:
        pieces += [_head_block(model, head) for head in cell.items if isinstance(head, dict)]
    else:
        for offset, body in enumerate(cell.items):
            position = f"{model.request.field}[{cell.first + offset}]"
            tag = "shared prefix" if cell.shared and not offset else ""
            lines = [_line_element(line, cell.marks) for line in layout(body, JSON_WIDTH)]
            pieces.append(_body_block(lines, position, tag, is_shared=offset < cell.shared))
    if cell.note:
        pieces.append(element("p", {"class": "hint"}, cell.note))
    if model.rendering is None and not pieces:
        pieces.append(element("p", {"class": "hint"}, "–"))
    return element("div", {"class": "cell", "aria-label": model.title, "role": "group"}, pieces)


def _loss_element(loss: sabir.Loss, message: sabir.Message | None) -> Markup:
    content = "" if message is None else lost_content(loss, message)
    return element(
        "p",
        {"class": f"loss {loss.kind}"},
        element("strong", None, f"{loss.kind} "),
        element("span", {"class": "meaning"}, MEANINGS.get(loss.kind, "")),
        element("del" if loss.kind in ("dropped", "withheld") else "span", {"class": "lost"}, content)
        if content
        else None,
        element("span", {"class": "reason"}, element("code", None, loss.path) if loss.path else None, " ",
                folded(loss.reason, 400)),
    )  # fmt: skip


def _head_block(model: RenderedModel, head: Mapping[str, JSONValue]) -> Markup:
    """Return the fields of a request besides the messages. Neighbouring fields of the shared prefix are one block."""
    blocks: list[Markup] = []
    for is_shared, fields in groupby(head.items(), key=lambda field: field[0] in model.shared_head):
        lines = [_line_element(line, ()) for name, content in fields for line in layout_field(name, content)]
        blocks.append(_body_block(lines, "", "shared prefix" if is_shared else "", is_shared=is_shared))
    return fragment(blocks)


def _body_block(lines: Sequence[Markup], position: str, tag: str, *, is_shared: bool) -> Markup:
    """Return lines of JSON. `position` is their place in the body, and `tag` a word on them."""
    label = element("span", {"class": "place"}, position) if position else None
    word = element("span", {"class": "tag"}, tag) if tag else None
    return element(
        "div",
        {"class": f"body{' shared' if is_shared else ''}"},
        element("p", {"class": "where"}, label, word) if label or word else None,
        element("pre", None, element("code", None, lines)),
    )


def layout_field(name: str, content: JSONValue) -> list[Line]:
    """Return the lines of one field of an object."""
    first, *rest = layout(content, JSON_WIDTH)
    return [first._replace(text=f"{json.dumps(name, ensure_ascii=False)}: {first.text}"), *rest]


def _line_element(line: Line, marks: Sequence[str]) -> Markup:
    depth = min(line.indent // 2, DEEPEST)
    return element("span", {"class": f"line i{depth}" if depth else "line"}, _json_line(line.text, marks))


_KEY = re.compile(r'"(?:[^"\\]|\\.)*"(?=: )')


def _json_line(text: str, marks: Sequence[str]) -> Markup:
    """Return one line of JSON, with its first key and the marked texts as elements."""
    key = _KEY.match(text)
    start = key.end() if key else 0
    return fragment(
        element("span", {"class": "key"}, text[:start]) if start else None,
        _with_marks(text[start:], marks),
    )


def _with_marks(text: str, marks: Sequence[str]) -> Markup:
    for mark in marks:
        before, separator, after = text.partition(mark)
        if separator:
            return fragment(folded(before, 600), element("mark", None, separator), _with_marks(after, marks))
    return folded(text, 600) if len(text) > 600 else marked_text(text)
