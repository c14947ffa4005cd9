"""The views as HTML: what stands where, and that nothing of others becomes markup."""

import json
import re
from html.parser import HTMLParser

import pytest
import sabir
from sabir_cli.inspect.cards import build_cards, pair_results
from sabir_cli.inspect.comparison import RequestedComparison, compare
from sabir_cli.inspect.documents import static_document
from sabir_cli.inspect.elements import ATTRIBUTES, element, fragment
from sabir_cli.inspect.inspection import Inspection, plain_entries

from tests.cli.inspect.samples import CONTROLS, hostile, long_conversation, png, trip

MODELS = ("openai:gpt-5", "anthropic:claude-sonnet-5", "google:gemini-3-pro", "echo:small")


def inspected(messages: list[sabir.Message]) -> Inspection:
    return Inspection("trip", "messages", plain_entries(messages))


def page(messages: list[sabir.Message], *models: str) -> str:
    return static_document(inspected(messages), RequestedComparison(models))


class Tags(HTMLParser):
    """Counts the elements of a page, and collects addresses and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, text or "") for name, text in attrs]


def test_an_element_escapes_texts_and_refuses_attributes_that_could_act() -> None:
    assert element("p", {"title": '"<'}, "<b>", fragment(element("i", None, "&"))) == (
        '<p title="&quot;&lt;">&lt;b&gt;<i>&amp;</i></p>'
    )
    for attributes in (
        {"onclick": "x"}, {"style": "x"}, {"href": "javascript:x"}, {"href": "https://a.invalid"}, {"href": "//a"},
        {"src": "data:image/svg+xml;base64,AAAA"}, {"src": "https://a.invalid/a.png"}, {"action": "https://a.invalid"},
        {"href": "data:text/html;base64,AAAA"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"is not|is neither"):
            element("a", attributes)


def test_a_hostile_history_adds_no_element_that_acts() -> None:
    """The only script is the inspector's own; every image is a raster image in the page; no address leads away."""
    text = page(hostile(), *MODELS)
    tags = Tags(text)

    assert tags.names.count("script") == tags.names.count("style") == 1
    assert not {"iframe", "svg", "object", "embed", "base", "link", "form"} & set(tags.names)
    assert {name for name, _ in tags.attributes} <= ATTRIBUTES
    addresses = [address for name, address in tags.attributes if name in ("href", "src", "action")]
    assert all(
        re.match(r"#|data:image/(png|jpeg|gif|webp);|data:application/octet-stream;", each) for each in addresses
    )
    assert "img" not in tags.names  # the false PNG is an SVG, and a download


def test_controls_are_shown_by_their_numbers() -> None:
    text = page(hostile())

    assert not any(character in text for character in "\x00\x1b\x07\u202e\u2066\U000e0041")
    assert 'title="right-to-left override">U+202E<' in text and ">U+0000<" in text and ">U+001B<" in text
    assert CONTROLS.count("\x1b") == 2


def test_a_huge_text_is_folded_and_its_page_is_bounded() -> None:
    text = page([sabir.user("z" * 3_000_000)])

    assert "Show all 3,000,000 characters" in text and "further characters are not on this page" in text
    assert len(text) < 400_000


def test_results_stand_in_the_cards_of_their_calls() -> None:
    entries = inspected(trip()).entries
    cards = build_cards(entries, pair_results([entry.message for entry in entries]))

    assert [(card.number, [each.number for each in card.results]) for card in cards] == [
        (1, []), (2, []), (3, []), (4, [7]), (5, [6]), (8, []), (9, []), (10, []),
    ]  # fmt: skip


def test_a_repeated_id_pairs_within_the_nearest_run() -> None:
    first, second = (sabir.Message(policy="llm", payload=sabir.OptionCallPayload(invocation_id="a", option_name="f"))
                     for _ in range(2))  # fmt: skip
    result = sabir.OptionResultBuilder.response_to(first).success(1)
    orphan = sabir.OptionResultBuilder.response_to(first).success(2)

    paired = pair_results([first, result, second, result, orphan])

    assert [(each.position, each.results) for each in paired] == [(0, (1,)), (2, (3,)), (4, ())]


def test_the_copied_json_is_the_message_with_placeholders_for_media() -> None:
    (card,) = build_cards(
        plain_entries([message := sabir.user("hi \u202e", sabir.image(png()))]), pair_results([message])
    )
    fields = json.loads(card.document)
    medium = card.sections[1].medium

    assert medium is not None and fields["payload"]["parts"][1]["url"] == f"@medium-{medium.key}@"
    fields["payload"]["parts"][1]["url"] = medium.header + medium.picture.partition(",")[2]
    assert sabir.Message.model_validate(fields) == message and card.document.isascii()


def test_two_hundred_messages_are_less_than_a_megabyte() -> None:
    assert len(page(long_conversation(50), "openai:gpt-5", "google:gemini-3-pro").encode()) < 1_000_000


def test_a_static_page_carries_its_policy_and_leads_nowhere() -> None:
    text = page(trip())

    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#x27;", "'").split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:" and rules["form-action"] == "'none'"
    assert rules["script-src"].startswith("'sha256-") and "unsafe" not in policy
    assert 'name="referrer" content="no-referrer"' in text
    assert not [text for name, text in Tags(text).attributes if text.startswith(("http:", "https:", "//"))]


@pytest.mark.parametrize("model", MODELS)
def test_the_rows_of_a_comparison_have_each_item_once(model: str) -> None:
    """In every dialect, all items of the body are in the rows, in order, and a row has the texts of its messages."""
    inspection = inspected(trip())
    comparison = compare(inspection, RequestedComparison((model,)))
    (column,) = comparison.models
    assert column.rendering is not None, column.error
    cells = [(row.span, row.cells[0]) for row in comparison.rows if row.span is not None]

    assert [item for _, cell in cells for item in cell.items] == column.request.items
    for span, cell in cells:
        texts = [message.text for message in inspection.messages[span.start : span.stop] if message.text]
        body = json.dumps([*cell.items, column.request.head] if span.start == 0 else cell.items)
        assert all(text in body for text in texts)


def test_rows_of_a_later_page_are_those_of_the_whole() -> None:
    """Pages are aligned by the bytes of beginnings, which give the same rows as the first page's."""
    inspection = inspected(long_conversation(60))
    rows = [
        row
        for number in (1, 2, 3, 4, 5)
        for row in compare(inspection, RequestedComparison(("openai.chat:gpt-5",)), number).rows
        if row.span is not None
    ]

    assert [len(row.cells[0].items) for row in rows[:160]] == [1, 2, 1] * 53 + [1]
    assert sum(len(row.cells[0].items) for row in rows) == 240 == len({row.span for row in rows}) // 3 * 4


def test_losses_stand_in_the_row_of_their_message() -> None:
    comparison = compare(inspected(trip()), RequestedComparison(("openai:gpt-5", "google:gemini-3-pro")))
    (row,) = [row for row in comparison.rows if row.span is not None and row.span.start == 8]

    assert [loss.kind for loss in row.cells[0].losses] == ["downgraded"]
    assert row.cells[0].marks == ("[audio not shown: bike.wav]",) and row.cells[1].losses == ()
    text = page(trip(), "openai:gpt-5")
    assert "<mark>[audio not shown: bike.wav]</mark>" in text and "does not accept audio" in text


def test_a_changed_setting_ends_the_shared_prefix() -> None:
    """The prefix is compared with the earlier request as it was."""
    stored = compare(inspected(trip()), RequestedComparison(("anthropic:claude-sonnet-5",))).models[0]
    changed = RequestedComparison(("anthropic:claude-sonnet-5",), sabir.Settings(reasoning_effort="high"))
    broken = compare(inspected(trip()), changed).models[0]

    assert stored.shared_items and "messages" in stored.shared_head
    assert broken.shared_items == 0 and "messages" not in broken.shared_head


def test_strict_and_unknown_models_become_columns_with_the_reason() -> None:
    requested = RequestedComparison(("openai:gpt-5", "nobody:m", "echo:small"), strict=True)
    refused, unknown, _ = compare(inspected(trip()), requested).models

    assert "cannot accept" in refused.error and refused.losses and "nobody" in unknown.error
