"""What a prompt cache could read for each reply: the beginning that its request shares with the request before.

    request of reply 1   system user                                 ┐
    request of reply 2   system user reply 1 result                  ┴─▶ shared: all of request 1

The requests are rendered again from the stored messages, for the model that answered. A saved conversation has no
options and settings, so the figure is an estimate for the messages. The vendor's own number stands next to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sabir

from sabir_cli.dialects import model_label
from sabir_cli.facts import open_adapter
from sabir_cli.inspect.inspection import InspectedMessage, Inspection

MOST_BYTES = 20_000_000
"""Sum of the sizes of the rendered requests, in bytes, after which no more are compared."""


@dataclass(frozen=True)
class AnsweredRequest:
    """A reply in a conversation: the positions of its first and last message, its origin and its usage."""

    start: int
    end: int
    origin: sabir.Origin
    usage: sabir.Usage


def with_cache_proof(inspection: Inspection) -> Inspection:
    """Return the conversation with `shared` in the figures of its replies. Replies of models whose provider is not
    installed get none.
    """
    entries = list(inspection.entries)
    before: AnsweredRequest | None = None
    adapters: dict[str, sabir.ModelAdapter | None] = {}
    total = 0
    for reply in answered_requests(entries):
        label = model_label(reply.origin.provider, reply.origin.dialect, reply.origin.model)
        if label not in adapters:
            adapters[label] = _open_if_installed(label)
        adapter = adapters[label]
        if before is not None and adapter is not None and total < MOST_BYTES:
            shared, size = _describe_shared(inspection, adapter, before, reply)
            total += size
            figures = entries[reply.end].figures
            if figures is not None:
                entries[reply.end] = replace(entries[reply.end], figures=replace(figures, shared=shared))
        before = reply
    return replace(inspection, entries=tuple(entries))


def answered_requests(entries: Sequence[InspectedMessage]) -> list[AnsweredRequest]:
    """Return the replies with figures and an origin, in order."""
    replies: list[AnsweredRequest] = []
    for end, entry in enumerate(entries):
        origin = entry.message.origin
        if entry.figures is not None and origin is not None and origin.model:
            start = end
            while start and entries[start - 1].message.origin == origin and entries[start - 1].figures is None:
                start -= 1
            replies.append(AnsweredRequest(start, end, origin, entry.figures.usage))
    return replies


def _open_if_installed(label: str) -> sabir.ModelAdapter | None:
    try:
        return open_adapter(label)
    except sabir.SabirError:
        return None


def _describe_shared(
    inspection: Inspection, adapter: sabir.ModelAdapter, before: AnsweredRequest, reply: AnsweredRequest
) -> tuple[str, int]:
    """Return the shared beginning in a few words, and the size of the rendered requests."""
    names = ("provider", "dialect", "endpoint", "model")
    changed = next((name for name in names if getattr(before.origin, name) != getattr(reply.origin, name)), "")
    if changed:
        return f"another {changed} than before", 0
    try:
        earlier, later = (
            adapter.render(inspection.messages[: each.start], options=inspection.options, settings=inspection.settings)
            for each in (before, reply)
        )
    except sabir.SabirError:
        return "", 0
    shared = later.shared_prefix(earlier, before.usage)
    end = f", up to {shared.changed}" if shared.changed else ""
    return f"≈ {shared.tokens:,} shared with the request before{end}", len(earlier.body_bytes) + len(later.body_bytes)
