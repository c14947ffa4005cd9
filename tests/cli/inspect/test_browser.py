"""The page in a real browser: both views, the keyboard alone, a hostile history, 10,000 messages, 400 pixels.

nox -s browser        SABIR_BROWSER=/usr/bin/chromium pytest tests/cli/inspect/test_browser.py
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir_cli.inspect.comparison import RequestedComparison
from sabir_cli.inspect.documents import static_document
from sabir_cli.inspect.inspection import Inspection, plain_entries

from tests.cli.inspect.samples import hostile, long_conversation, png, trip
from tests.cli.inspect.test_server import Site, serving

MODELS = ("openai:gpt-5", "anthropic:claude-sonnet-5", "google:gemini-3-pro")


def inspected(messages: list[sabir.Message]) -> Inspection:
    return Inspection("A trip", "messages", plain_entries(messages))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser that SABIR_BROWSER names."""
    program = os.environ.get("SABIR_BROWSER")
    if not program:
        pytest.skip("SABIR_BROWSER names no browser; nox -s browser sets it")
    from playwright.sync_api import sync_playwright

    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses to sandbox the superuser's pages
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """A tab that collects what a hostile page would do: dialogs, requests to elsewhere, errors of the policy."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )
    page = context.new_page()
    page.dialogs, page.addresses, page.complaints = [], [], []
    page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: page.addresses.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    yield page
    context.close()


@pytest.fixture
def site(chromium: Any) -> Iterator[Site]:
    with serving(inspected(trip()), *MODELS) as running:
        yield running


def assert_inert(tab: Any, own: str) -> None:
    foreign = [address for address in tab.addresses if not address.startswith((own, "data:"))]
    assert (tab.dialogs, foreign, tab.complaints) == ([], [], [])


def test_the_conversation_shows_images_pairs_and_folded_reasoning(tab: Any, site: Site) -> None:
    tab.goto(f"{site.url}conversation")

    assert tab.locator("article").count() == 8
    assert tab.locator("#m-2 img").evaluate("image => image.naturalWidth") == 8
    assert "clear" in tab.locator("#m-4 .answer#m-7").inner_text()
    assert not tab.locator("#m-3 details .text").is_visible()
    tab.locator("#m-3 summary").click()
    assert tab.locator("#m-3 details .text").inner_text() == "An open ridge, low sun."
    assert_inert(tab, site.url)


def test_a_changed_setting_is_rendered_at_once(tab: Any, site: Site) -> None:
    tab.goto(f"{site.url}renderings")
    assert tab.locator(".heads h2").all_inner_texts() == [*MODELS]
    boxes = [tab.locator("#r-9 .cell").nth(index).bounding_box() for index in range(3)]
    assert len({box["y"] for box in boxes}) == 1 and boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]
    assert tab.locator("#r-9 mark").count() == 2

    tab.get_by_text("Settings", exact=True).click()
    with tab.expect_navigation():
        tab.get_by_label("reasoning_effort").select_option("high")

    assert "reasoning_effort=high" in tab.url and tab.get_by_label("reasoning_effort").input_value() == "high"
    assert '"effort": "high"' in tab.locator("#r-0 .cell").first.inner_text()
    assert_inert(tab, site.url)


def test_the_keyboard_alone_reaches_everything(tab: Any, site: Site) -> None:
    """Tab first reaches the link that skips the banner; j and k go from message to message; Enter unfolds."""
    tab.goto(f"{site.url}conversation")
    focused = "document.activeElement.closest('article')?.id ?? document.activeElement.className"

    tab.keyboard.press("Tab")
    assert tab.evaluate(focused) == "skip" and tab.locator(".skip").bounding_box()["x"] >= 0
    tab.keyboard.press("Enter")
    for key, place in (("j", "m-1"), ("j", "m-2"), ("j", "m-3"), ("k", "m-2"), ("j", "m-3")):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == place and tab.url.endswith(f"#{place}")
    order = []
    for _ in range(4):
        tab.keyboard.press("Tab")
        order.append(tab.evaluate("document.activeElement.textContent"))
        style = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid"
    assert order[:3] == ["3", "JSON", "Python"] and order[3].startswith("Reasoning")
    tab.keyboard.press("Enter")
    assert tab.locator("#m-3 details").get_attribute("open") is not None


def test_a_message_is_copied_as_json_and_as_python(tab: Any, tmp_path: Path) -> None:
    """Also from a file without any network, with the bytes of its image and every character."""
    message = sabir.user('Zoë \u202e 😀 \\ "quoted" \U000e0041', sabir.image(png(), name="a.png"))
    page = tmp_path / "page.html"
    page.write_text(static_document(inspected([message]), RequestedComparison(())), "utf-8")
    tab.context.set_offline(True)
    tab.goto(page.as_uri())

    tab.keyboard.press("j")
    assert tab.url.endswith("page.html#m-1") and tab.complaints == []
    tab.get_by_role("button", name="Copy message 1 as JSON").click()
    assert tab.get_by_role("status").inner_text() == "Copied as JSON"
    assert sabir.Message.model_validate(json.loads(tab.evaluate("navigator.clipboard.readText()"))) == message
    tab.get_by_role("button", name="Copy message 1 as Python").click()
    tab.wait_for_function("document.getElementById('status').textContent === 'Copied as Python'")
    names: dict[str, Any] = {}
    exec(tab.evaluate("navigator.clipboard.readText()"), names)
    assert names["message"] == message


def test_a_hostile_history_stays_inert(tab: Any, tmp_path: Path) -> None:
    """No dialog, no request and no violation of the policy, on the server and in a file."""
    with serving(inspected(hostile()), *MODELS, "echo:small") as site:
        for view in ("conversation", "renderings"):
            tab.goto(f"{site.url}{view}")
            for summary in tab.locator("summary").all():
                summary.click()
            tab.wait_for_timeout(200)
            assert tab.title().endswith("sabir inspect")
        assert_inert(tab, site.url)
        tab.addresses.clear()
    page = tmp_path / "page.html"
    page.write_text(static_document(inspected(hostile()), RequestedComparison(MODELS)), "utf-8")
    tab.goto(page.as_uri())
    tab.wait_for_timeout(200)
    assert tab.locator("script").count() == 1 and tab.locator("iframe, svg, img").count() == 0
    assert_inert(tab, page.as_uri())


def test_ten_thousand_messages_open_within_two_seconds(tab: Any) -> None:
    """From the request to the last painted message of the first page; j at its end continues on the next page."""
    with serving(inspected(long_conversation(2_500))) as site:
        started = time.perf_counter()
        tab.goto(f"{site.url}conversation")
        tab.locator("article").last.wait_for(state="attached")
        elapsed = time.perf_counter() - started
        print(f"10,000 messages: {elapsed:.2f} s")
        assert elapsed < 2

        last = tab.locator("article").last.get_attribute("id")
        tab.goto(f"{site.url}conversation#{last}")
        with tab.expect_navigation(url="**page=2"):
            tab.keyboard.press("j")
        started = time.perf_counter()
        tab.goto(f"{site.url}conversation?message=9998")
        assert tab.url.endswith("page=38#m-9998") and time.perf_counter() - started < 2
        box = tab.locator("#m-9998").bounding_box()
        assert 0 <= box["y"] < 900


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_makes_the_page_scroll_sideways(tab: Any, site: Site, scheme: str) -> None:
    tab.emulate_media(color_scheme=scheme)
    for width in (400, 720, 1280, 1920):
        tab.set_viewport_size({"width": width, "height": 900})
        for view in ("conversation", "renderings?strict=true", "renderings"):
            tab.goto(f"{site.url}{view}")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, view)


CONTRAST = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => numbers(color).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      const parts = numbers(color);
      if (parts.length === 3 || parts[3] === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.matches("script, style, template, option")) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faint.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  const fields = [...document.querySelectorAll("input:not([type=hidden]), select")];
  const unnamed = fields.filter((field) => !field.labels.length);
  return { faint: [...new Set(faint)], unnamed: unnamed.length };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_and_every_field_a_label(tab: Any, site: Site, scheme: str) -> None:
    """WCAG 2.2, level AA: at least 4.5 to 1."""
    tab.emulate_media(color_scheme=scheme)
    for view in ("conversation", "renderings?strict=true&model=echo:small&model=openai:gpt-5", "renderings"):
        tab.goto(f"{site.url}{view}")
        for summary in tab.locator("summary").all():
            summary.click()
        assert tab.evaluate(CONTRAST) == {"faint": [], "unnamed": 0}, view
