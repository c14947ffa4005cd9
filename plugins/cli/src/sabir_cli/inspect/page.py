"""The complete HTML document: head, policy, style, script and navigation around a view.

    style, script ──sha256──▶ Content-Security-Policy: nothing loads, and nothing runs but this style and this script

The policy is in the document too, so that a static file on a disk has it.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from sabir_cli.inspect.elements import Markup, element, fragment, trusted, visible


@cache
def read_asset(name: str) -> str:
    """Return a file of this package's folder `static`."""
    return (files("sabir_cli.inspect") / "static" / name).read_text("utf-8")


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def content_policy(*, may_submit: bool) -> str:
    """Return the Content-Security-Policy. With `may_submit`, forms may be sent to the page's own server."""
    rules = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": _hash_source(read_asset("inspect.css")),
        "script-src": _hash_source(read_asset("inspect.js")),
        "form-action": "'self'" if may_submit else "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def response_headers() -> Mapping[str, str]:
    """Return the headers of every response of the server."""
    return {
        "Content-Security-Policy": f"{content_policy(may_submit=True)}; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def document(title: str, source: str, sections: Sequence[tuple[str, Markup]], *, current: str = "") -> str:
    """Return an HTML document with sections, each with its heading. `title` and `source` describe the conversation.

    On a server, `current` names the page: "conversation" or "renderings". Without it, the document is a static file.
    """
    may_submit = bool(current)
    head = element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": content_policy(may_submit=may_submit)}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "robots", "content": "noindex"}),
        element("title", None, visible(f"{title} · sabir inspect")),
        element("style", None, trusted(read_asset("inspect.css"))),
    )
    body = element(
        "body",
        None,
        element("a", {"class": "skip", "href": "#content"}, "Skip to the messages"),
        _banner(title, source, sections, current),
        element("main", {"id": "content", "tabindex": "-1"}, [_section(*each) for each in sections]),
        element("p", {"id": "status", "role": "status", "class": "status"}, ""),
        element("script", None, trusted(read_asset("inspect.js"))),
    )
    return f"<!DOCTYPE html>\n{element('html', {'lang': 'en'}, head, body)}\n"


def _banner(title: str, source: str, sections: Sequence[tuple[str, Markup]], current: str) -> Markup:
    names = ("conversation", "renderings") if current else tuple(name for name, _ in sections)
    links = [
        element(
            "a",
            {"href": name if current else f"#{name}", "class": "current" if name == current else ""},
            name.capitalize(),
        )
        for name in names
    ]
    return element(
        "header",
        {"class": "banner"},
        element("div", None, element("h1", {"dir": "auto"}, title), element("p", {"class": "hint"}, source)),
        element("nav", {"aria-label": "Views"}, links) if len(links) > 1 else None,
        element(
            "p",
            {"class": "keys hint"},
            fragment(element("kbd", None, "j"), " ", element("kbd", None, "k"), " next and previous"),
        ),
    )


def _section(name: str, view: Markup) -> Markup:
    return element("section", {"id": name, "class": "view", "aria-label": name.capitalize()}, view)
