"""Build HTML from Python values, such that a text of others can never become markup.

    element("p", {"class": "note"}, "a < b", element("b", None, "c"))  ──▶  <p class="note">a &lt; b<b>c</b></p>

A `str` is escaped, and only the functions of this module create `Markup`. Attributes that could run code or load
something do not exist: `element` refuses every attribute that is not in ATTRIBUTES, and every address except places on
the page, pages of the inspector, raster images in the page, and downloads in the page.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeAlias

ATTRIBUTES = frozenset({
    "action", "alt", "aria-label", "autocomplete", "charset", "checked", "class", "content", "data-copy", "data-header",
    "data-medium", "data-message", "data-next", "data-previous", "dir", "download", "for", "href", "http-equiv", "id",
    "lang", "list", "max", "method", "min", "name", "open", "placeholder", "rel", "role", "selected", "spellcheck",
    "src", "step", "tabindex", "title", "type", "value",
})  # fmt: skip
"""The attributes that elements may have."""
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag."""
RASTER = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*")
"""The addresses of images that a browser may show: raster images only, because an SVG may contain scripts."""
DOWNLOAD = re.compile(r"data:application/octet-stream;base64,[A-Za-z0-9+/=]*")
"""The addresses of downloads. The browser saves the bytes, and never opens them."""
LINK = re.compile(r"(?:renderings|conversation)?(?:\?[\w%=&.+:~-]*)?(?:#[\w-]*)?")
"""The addresses of links: pages of the inspector, and places on a page."""
LONGEST = 4_000
"""Number of characters of a text that are shown at first."""
LONGEST_FOLDED = 200_000
"""Number of further characters that can be unfolded. A page never contains more of one text."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that control a terminal or the direction of text, that nobody can see, or that UTF-8 cannot encode."""


class Markup(str):
    """HTML text. Created only by functions of this module."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | Iterable[Markup | str | None] | None"
"""Contents of an element: markup, text that is escaped, nothing, or several of these."""


def element(name: str, attributes: Mapping[str, str | bool] | None = None, *children: Child) -> Markup:
    """Return an element. An attribute with True has no value; one with False is left out, and
    so is an empty one, except `value` and `alt`.

    Raises ValueError for an attribute or an address that the inspector does not use.
    """
    start = f"<{name}{''.join(_attribute(*pair) for pair in (attributes or {}).items())}>"
    return Markup(start) if name in VOID else Markup(f"{start}{fragment(*children)}</{name}>")


def fragment(*children: Child) -> Markup:
    """Return markup and texts one after the other, without an element around them."""
    return Markup("".join(_contents(child) for child in children))


def _contents(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    if child is None:
        return ""
    return marked_text(child) if isinstance(child, str) else "".join(_contents(each) for each in child)


def _attribute(name: str, setting: str | bool) -> str:
    if name not in ATTRIBUTES:
        raise ValueError(f"the attribute {name!r} is not one of those that the inspector uses")
    if setting is False or (setting == "" and name not in ("alt", "value")):
        return ""
    if setting is True:
        return f" {name}"
    if name == "src" and not RASTER.fullmatch(setting):
        raise ValueError(f"src={setting[:40]!r} is not a raster image in the page")
    if name in ("href", "action") and not (LINK.fullmatch(setting) or DOWNLOAD.fullmatch(setting)):
        raise ValueError(f"{name}={setting[:40]!r} is neither a place on the page nor a download in the page")
    return f' {name}="{html.escape(visible(setting))}"'


def visible(text: str) -> str:
    """Return a text in which each invisible or controlling character is replaced by its number, such as ⟨U+202E⟩."""
    return _INVISIBLE.sub(lambda match: f"⟨{code_point(match[0])}⟩", text)


def code_point(character: str) -> str:
    """Return a character's number in the notation U+202E."""
    return f"U+{ord(character):04X}"


def marked_text(text: str) -> Markup:
    """Return a text as markup. An invisible or controlling character becomes its number, with its name as a hint."""
    return Markup(_INVISIBLE.sub(_control, html.escape(text.replace("\r\n", "\n"))))


def _control(match: re.Match[str]) -> str:
    name = unicodedata.name(match[0], "control character").lower()
    return f'<span class="ctl" title="{html.escape(name)}">{code_point(match[0])}</span>'


def folded(text: str, longest: int = LONGEST) -> Markup:
    """Return a text; the part beyond `longest` characters can be unfolded. More than LONGEST_FOLDED further characters
    are left out, and a line says how many.
    """
    if len(text) <= longest + longest // 4:
        return marked_text(text)
    rest, hidden = text[longest : longest + LONGEST_FOLDED], len(text) - longest - LONGEST_FOLDED
    note = f"… {hidden:,} further characters are not on this page" if hidden > 0 else ""
    more = element(
        "details",
        {"class": "more"},
        element("summary", None, f"Show all {len(text):,} characters"),
        element("div", {"class": "rest"}, rest, element("p", {"class": "hint"}, note) if note else None),
    )
    return fragment(text[:longest], "…", more)


def escaped_json(text: str) -> str:
    r"""Return JSON text in which invisible and controlling characters are written as \uXXXX, so that a copy of the text
    contains none.
    """

    def escape(match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _INVISIBLE.sub(escape, text)


def trusted(text: str) -> Markup:
    """Return the package's own style or script as markup. Never call this with a text of others.

    Raises ValueError if the text could end its element.
    """
    if "</" in text or "<!--" in text:
        raise ValueError("a style or script must not contain </ or <!--")
    return Markup(text)
