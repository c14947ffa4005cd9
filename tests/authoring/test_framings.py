"""Framings of streams other than server-sent events: newline-delimited JSON, and AWS's binary frames."""

import json
import struct
import zlib
from dataclasses import replace
from itertools import pairwise

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.authoring import DecodeScope, EventFrames, Framing, JSONLines, ServerEvent
from sabir.errors import ResponseInvalid
from sabir.reading.incoming import StreamState
from sabir_echo.dialect import PLAIN

TARGET = sabir.Target(provider="echo", dialect="echo.plain", model="m", endpoint="echo:")

VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(["\u2028", "\u0085", "\r", "a\r\nb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def read(framing: Framing, data: bytes, cuts: list[int]) -> list[ServerEvent]:
    """Return the events of data that arrives in chunks."""
    ends = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    events = [event for start, end in pairwise(ends) for event in framing.feed(data[start:end])]
    return [*events, *framing.close()]


@given(
    values=st.lists(VALUES, max_size=5),
    blank=st.sampled_from([b"", b"\n", b" \t\r\n"]),
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    cuts=st.lists(st.integers(0, 10_000)),
)
def test_lines_are_the_values_in_any_chunks(values: list[object], blank: bytes, end: bytes, cuts: list[int]) -> None:
    """The characters U+2028 and U+0085 are sent unescaped and end no line."""
    lines = [json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") for value in values]
    reader = JSONLines()
    events = read(reader, (b"\n" + blank).join(lines) + end, cuts)

    assert [json.loads(event.data) for event in events if "\ufffd" not in event.data] == [
        value for value, line in zip(values, lines, strict=True) if "\ufffd" not in line.decode("utf-8", "replace")
    ]
    assert (reader.kept, len(events)) == (0, len(values))


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_invalid_bytes_are_replaced_as_in_server_sent_events(size: int) -> None:
    data = b'{"a": "\xff"}\n{"b": "\xc3\xa9"}'
    reader = JSONLines()
    events = read(reader, data, [*range(0, len(data), size)])

    assert [event.data for event in events] == ['{"a": "\ufffd"}', '{"b": "é"}']
    assert reader.was_invalid


@pytest.mark.parametrize("size", [7, 64, 4096])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_long_line_exceeds_the_bound_of_an_event(end: bytes, size: int) -> None:
    """Also a line without end."""
    dialect = replace(PLAIN, framings={"application/x-ndjson": JSONLines})
    bounds = sabir.Bounds(event_bytes=1000)
    state = StreamState(dialect, DecodeScope(TARGET, "llm", bounds=bounds, content_type="application/x-ndjson"))
    data = b'{"text": "' + b"x" * 2000 + b'"}' + end
    with pytest.raises(ResponseInvalid, match="event_bytes"):
        for start in range(0, len(data), size):
            list(state.feed(data[start : start + size]))


def frame(payload: bytes, name: bytes = b":event-type", value: bytes = b"chunk") -> bytes:
    """Return a frame with one header. https://smithy.io/2.0/aws/amazon-eventstream.html"""
    headers = bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    return prelude + headers + payload + struct.pack(">I", zlib.crc32(prelude + headers + payload))


def frames() -> EventFrames:
    return EventFrames(lambda headers, payload: ServerEvent(payload.decode("latin-1"), headers[":event-type"]))


@given(payloads=st.lists(st.binary(max_size=40), max_size=4), cuts=st.lists(st.integers(0, 10_000)))
def test_frames_are_the_events_in_any_chunks(payloads: list[bytes], cuts: list[int]) -> None:
    events = read(frames(), b"".join(map(frame, payloads)), cuts)

    assert events == [ServerEvent(payload.decode("latin-1"), "chunk") for payload in payloads]


@given(at=st.integers(0, 10_000), flip=st.integers(1, 255), cuts=st.lists(st.integers(0, 10_000)))
def test_a_changed_byte_is_refused_in_one_line_in_any_chunks(at: int, flip: int, cuts: list[int]) -> None:
    """The events before the changed frame are returned."""
    first, changed = frame(b"first"), bytearray(frame(b'{"text": "second"}'))
    at %= len(changed)
    changed[at] ^= flip
    reader = frames()
    assert reader.feed(first) == [ServerEvent("first", "chunk")]
    with pytest.raises(ResponseInvalid, match="of the stream has a wrong checksum") as raised:
        read(reader, bytes(changed), cuts)

    assert "\n" not in str(raised.value)
    assert ("prelude" in str(raised.value)) == (at < 12)
