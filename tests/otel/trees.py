"""Spans as trees of names, in the order in which they began."""

from collections.abc import Iterable, Iterator

from opentelemetry.sdk.trace import ReadableSpan


def tree(spans: Iterable[ReadableSpan]) -> list[str]:
    """The spans' names, each indented below its parent. A span whose parent is not among the spans is a root."""
    ordered = sorted(spans, key=lambda span: span.start_time or 0)
    known = {span.get_span_context().span_id for span in ordered}
    children: dict[int | None, list[ReadableSpan]] = {}
    for span in ordered:
        parent = span.parent.span_id if span.parent and span.parent.span_id in known else None
        children.setdefault(parent, []).append(span)

    def lines(parent: int | None, depth: int) -> Iterator[str]:
        for span in children.get(parent, []):
            yield "  " * depth + span.name
            yield from lines(span.get_span_context().span_id, depth + 1)

    return list(lines(None, 0))


def trace_ids(spans: Iterable[ReadableSpan]) -> set[int]:
    """The ids of the spans' traces."""
    return {span.get_span_context().trace_id for span in spans}
