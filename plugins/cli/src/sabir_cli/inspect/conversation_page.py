"""The conversation view as HTML: a summary, and a timeline of cards, in pages."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from sabir.authoring import encode_json

from sabir_cli.inspect.cards import (
    CardSection,
    Medium,
    MessageCard,
    PairedMessage,
    build_cards,
    indented_json,
    pair_results,
)
from sabir_cli.inspect.elements import Markup, element, folded, fragment
from sabir_cli.inspect.inspection import Inspection, ReplyFigures

CARDS_PER_PAGE = 200
"""The number of cards of one page of the server. A static page has all cards."""
LONGEST_CODE = 2_000
"""Number of characters of JSON or another code that are shown at first."""
SIDES = {"user": "User", "assistant": "Model", "system": "System", "option": "Option", "call": "Model"}
"""Side of a message → its name for people."""

KINDS = {"call": "Calls", "error": "Error", "native": "Native", "unknown": "Unknown", "refusal": "Refusal"}
"""Kind of a section → the word before its title."""


def conversation_view(inspection: Inspection, page: int | None = 1) -> Markup:
    """Return the view of a page, which counts from 1; None means all cards."""
    paired = pair_results(inspection.messages)
    pages = 1 if page is None else max(1, -(-len(paired) // CARDS_PER_PAGE))
    number = 1 if page is None else min(max(page, 1), pages)
    part = paired if page is None else paired[(number - 1) * CARDS_PER_PAGE : number * CARDS_PER_PAGE]
    cards = build_cards(inspection.entries, part)
    return fragment(
        summary(inspection),
        page_links(number, pages, "above"),
        element(
            "ol",
            {"class": "timeline", "aria-label": "Messages"},
            [card_element(card) for card in cards],
        )
        if cards
        else element("p", {"class": "hint"}, "The conversation has no messages."),
        page_links(number, pages, "below"),
    )


def page_of(paired: Sequence[PairedMessage], number: int) -> int:
    """Return the page with the message of this number."""
    for index, each in enumerate(paired):
        if number - 1 in (each.position, *each.results):
            return index // CARDS_PER_PAGE + 1
    return 1


def summary(inspection: Inspection) -> Markup:
    """Return the figures of the whole conversation."""
    figures = [entry.figures for entry in inspection.entries if entry.figures is not None]
    models = dict.fromkeys(
        f"{origin.provider}:{origin.model}" for entry in inspection.entries if (origin := entry.message.origin)
    )
    rows = [("Messages", f"{len(inspection.entries):,}"), ("Models", "\n".join(models) or "not known")]
    if figures:
        rows += [
            ("Tokens", _token_total(figures)),
            ("Prompt cache", cache_total(figures)),
            ("Cost", cost_total(figures)),
        ]
    times = [entry.when for entry in inspection.entries if entry.when is not None]
    if times:
        first, last = f"{min(times):%Y-%m-%d %H:%M}", f"{max(times):%Y-%m-%d %H:%M}"
        rows.append(("Time", f"{first} UTC" if first == last else f"{first} – {last} UTC"))
    terms = [element("div", None, element("dt", None, name), element("dd", None, text)) for name, text in rows]
    notes = [element("li", None, folded(note, 400)) for note in inspection.notes]
    return fragment(
        element("dl", {"class": "summary"}, terms),
        element("ul", {"class": "notes", "aria-label": "Notes"}, notes) if notes else None,
        request_details(inspection),
    )


def request_details(inspection: Inspection) -> Markup | None:
    """Return the options and settings of a stored request, folded; None if it has neither."""
    settings = inspection.settings.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    pieces = [
        element(
            "div",
            {"class": "section call"},
            element(
                "p", {"class": "title"}, element("strong", None, option.name), " ", folded(option.description, 400)
            ),
            _code_element(indented_json(option.parameters_json)),
        )
        for option in inspection.options
    ]
    if settings:
        pieces.append(element("div", {"class": "section"}, element("p", {"class": "title"}, "Settings"),
                              _code_element(indented_json(encode_json(settings)))))  # fmt: skip
    count = len(inspection.options)
    label = f"{count} option{'' if count == 1 else 's'}{' and settings' if settings else ''}"
    return element("details", {"class": "request"}, element("summary", None, label), pieces) if pieces else None


def _code_element(text: str) -> Markup:
    return element("pre", {"tabindex": "0"}, element("code", None, folded(text, LONGEST_CODE)))


def _token_total(figures: Sequence[ReplyFigures]) -> str:
    read = sum(each.usage.input_tokens or 0 for each in figures)
    written = sum(each.usage.output_tokens or 0 for each in figures)
    return f"{read:,} in, {written:,} out"


def cache_total(figures: Sequence[ReplyFigures]) -> str:
    """Return what is known of the prompt cache, in one line."""
    known = [each.usage for each in figures if each.usage.cache_read_tokens is not None]
    if not known:
        return "not reported"
    cached, whole = sum(each.cache_read_tokens or 0 for each in known), sum(each.input_tokens or 0 for each in known)
    share = f" ({cached / whole:.0%})" if whole else ""
    return f"{cached:,} of {whole:,} input tokens{share}"


def cost_total(figures: Sequence[ReplyFigures]) -> str:
    """Return the cost of all replies with a known cost."""
    costs = [each.cost for each in figures if each.cost is not None]
    if not costs:
        return "not known"
    rest = "" if len(costs) == len(figures) else f", without {len(figures) - len(costs)} of {len(figures)} replies"
    return f"{dollars(sum(costs, Decimal(0)))}{rest}"


def dollars(cost: Decimal) -> str:
    """Return a cost in US dollars with at least two significant digits."""
    digits = 2 if cost >= 1 or not cost else 1 - cost.adjusted()
    return f"${cost:.{digits}f}"


def page_links(number: int, pages: int, place: str) -> Markup | None:
    """Return the links to other pages; None if there is only one page."""
    if pages == 1:
        return None
    before: dict[str, str | bool] = {"href": f"conversation?page={number - 1}", "rel": "prev", "data-previous": True}
    after: dict[str, str | bool] = {"href": f"conversation?page={number + 1}", "rel": "next", "data-next": True}
    return element(
        "nav",
        {"class": "pages", "aria-label": f"Pages, {place} the messages"},
        element("a", before, "← Previous") if number > 1 else element("span", {"class": "off"}, "← Previous"),
        element("span", None, f"Page {number} of {pages}"),
        element("a", after, "Next →") if number < pages else element("span", {"class": "off"}, "Next →"),
        element(
            "form",
            {"method": "get", "action": "conversation", "class": "jump"},
            element("label", {"for": f"jump-{place}"}, "Message"),
            element("input", {"id": f"jump-{place}", "name": "message", "type": "number", "min": "1"}),
            element("button", {"type": "submit"}, "Go"),
        ),
    )


def card_element(card: MessageCard) -> Markup:
    """Return a card as a list item, with its results."""
    entry = card.entry
    classes = f"card {card.side}{' follows' if card.follows else ''}"
    heading = f"{card.speaker}, message {card.number}"
    return fragment(
        element("li", {"class": "divider"}, element("h2", None, entry.heading)) if entry.heading else None,
        element(
            "li",
            {"class": classes},
            element(
                "article",
                {"id": card.anchor, "tabindex": "-1", "aria-label": heading, "data-message": str(card.number)},
                _card_header(card),
                [section_element(section) for section in card.sections],
                [_result_element(result) for result in card.results],
                _waiting_note(card),
                _card_footer(card),
            ),
        ),
    )


def _card_header(card: MessageCard) -> Markup:
    when = element("span", {"class": "when"}, f"{card.entry.when:%H:%M:%S}") if card.entry.when else None
    role = SIDES.get(card.side, "")
    name = card.speaker if card.side not in ("user", "system", "call", "assistant") else role
    return element(
        "header",
        None,
        element("span", {"class": "speaker"}, name),
        element("span", {"class": "origin"}, card.origin) if card.origin else None,
        when,
        element("a", {"class": "number", "href": f"#{card.anchor}", "aria-label": f"Link to message {card.number}"},
                f"{card.number}"),
        copy_buttons(card),
    )  # fmt: skip


def copy_buttons(card: MessageCard) -> Markup | None:
    """Return the buttons that copy a message; None if it is too long to be on the page twice."""
    if not card.document:
        return None
    return element(
        "span",
        {"class": "copy"},
        [
            element(
                "button",
                {"type": "button", "data-copy": form, "aria-label": f"Copy message {card.number} as {label}"},
                label,
            )
            for form, label in (("json", "JSON"), ("python", "Python"))
        ],
        element("template", None, card.document),
    )


def section_element(section: CardSection) -> Markup:
    """Return one section of a message."""
    if section.kind == "media" and section.medium is not None:
        return medium_element(section.medium)
    if section.kind == "reasoning":
        inner = text_element(section) if section.text else element("p", {"class": "hint"}, "The text is hidden.")
        label = fragment("Reasoning ", element("span", {"class": "hint"}, section.title))
        return element("details", {"class": "reasoning"}, element("summary", None, label), inner)
    if section.kind == "citation":
        quoted = element("q", None, folded(section.text, 300)) if section.text else None
        return element("p", {"class": "citation"}, "Source: ", section.title, " " if quoted else None, quoted)
    title = element(
        "p",
        {"class": "title"},
        element("span", {"class": "kind"}, KINDS[section.kind]) if section.kind in KINDS else None,
        element("strong", None, section.title),
    )
    return element(
        "div",
        {"class": f"section {section.kind}"},
        title if section.title else None,
        text_element(section) if section.text else None,
        [section_element(part) for part in section.parts],
    )


def text_element(section: CardSection) -> Markup:
    """Return a section's text: as code, or as paragraphs with the writer's direction and line breaks."""
    if section.is_code:
        return _code_element(section.text)
    return element("div", {"class": "text", "dir": "auto"}, folded(section.text))


def medium_element(medium: Medium) -> Markup:
    """Return a medium: an image if a browser may show it, else a download, else its address as text."""
    size = "" if medium.size is None else f" · {medium.size:,} bytes"
    caption = element("figcaption", None, medium.label, size)
    marks = {"data-medium": medium.key, "data-header": medium.header}
    if medium.picture:
        return element("figure", None, element("img", {"src": medium.picture, "alt": medium.label, **marks}), caption)
    if medium.download:
        link = {"href": medium.download, "download": f"medium-{medium.key}.bin", **marks}
        return element("figure", {"class": "file"}, caption, element("a", link, "Save the bytes"))
    return element("figure", {"class": "file"}, caption, element("code", None, folded(medium.stated, 300)))


def _result_element(card: MessageCard) -> Markup:
    return element(
        "div",
        {"class": "answer", "id": card.anchor, "data-message": str(card.number)},
        _card_header(card),
        [section_element(section) for section in card.sections],
    )


def _waiting_note(card: MessageCard) -> Markup | None:
    if card.entry.message.call is not None and not card.results:
        return element("p", {"class": "hint"}, "This call has no result.")
    if card.entry.message.result is not None:
        return element("p", {"class": "hint"}, "The call of this result is not in the conversation.")
    return None


def _card_footer(card: MessageCard) -> Markup | None:
    losses = [element("li", {"class": f"loss {loss.kind}"}, element("strong", None, loss.kind), f" {loss.path}: ",
                      folded(loss.reason, 400)) for loss in card.entry.losses]  # fmt: skip
    figures = None if card.figures is None else [*_figure_texts(card.figures)]
    if not (losses or figures):
        return None
    return element(
        "footer",
        None,
        element("ul", {"class": "losses", "aria-label": "Losses"}, losses) if losses else None,
        element("p", {"class": "figures"}, [element("span", None, text) for text in figures]) if figures else None,
    )


def _token_count(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


def _figure_texts(figures: ReplyFigures) -> Iterator[str]:
    usage = figures.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        yield f"{_token_count(usage.input_tokens)} in · {_token_count(usage.output_tokens)} out"
    if usage.reasoning_tokens:
        yield f"{usage.reasoning_tokens:,} reasoning"
    if usage.cache_read_tokens is not None:
        whole = f" of {usage.input_tokens:,}" if usage.input_tokens else ""
        yield f"cache: {usage.cache_read_tokens:,}{whole} read"
    if figures.shared:
        yield figures.shared
    if usage.cache_write_tokens:
        yield f"cache: {usage.cache_write_tokens:,} written"
    if figures.cost is not None:
        yield dollars(figures.cost)
    if figures.finish_reason:
        yield figures.finish_reason.replace("_", " ")
