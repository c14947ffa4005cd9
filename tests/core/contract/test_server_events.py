"""Server-sent events are cut after the WHATWG algorithm, wherever the chunks of the network fall."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.dialect import ServerEvent, ServerEventReader
from sabir.errors import ResponseInvalid


def read(*chunks: bytes) -> list[ServerEvent]:
    reader = ServerEventReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.close()


def read_naively(stream: bytes) -> list[ServerEvent]:
    """The same algorithm over the whole text at once, in the words of the standard."""
    text = stream.decode("utf-8", errors="replace").removeprefix("\ufeff")
    events: list[ServerEvent] = []
    data: list[str] = []
    name = ""
    for line in [*re.split(r"\r\n|\n|\r", text), "", ""]:
        if not line:
            if data:
                events.append(ServerEvent("\n".join(data), name))
            data, name = [], ""
        elif ":" in line:
            field, value = line.split(":", 1)
            value = value[1:] if value.startswith(" ") else value
            data = [*data, value] if field == "data" else data
            name = value if field == "event" else name
        else:
            data = [*data, ""] if line == "data" else data
            name = "" if line == "event" else name
    return events


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"]),
        (b": keep-alive\n\ndata: a\n: within\ndata: b\n\n", ["a\nb"]),
        (b"data:a\n\ndata:  a\n\n", ["a", " a"]),
        (b"data\n\n", [""]),
        (b"event: ping\n\ndata: a\n\n", ["a"]),
        (b'id: {"a": 1}\nretry: 10\nother: x\nnonsense\ndata: a\n\n', ["a"]),
        (b"data: a:b: c\n\n", ["a:b: c"]),
        *((end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""]), ["a\nb", "c"]) for end in (b"\r", b"\r\n")),
        (b"data: a", ["a"]),
        (b"data: a\n", ["a"]),
        (b"data: a\r", ["a"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b"data: \xe2\x82", ["\ufffd"]),
        (b"data: \xe2\x80\xa8\x0b\x0c\n\n", ["\u2028\x0b\x0c"]),
        (b"<html><body>502</body></html>", []),
        (b"", []),
        (b"\xef\xbb\xbf", []),
    ],
)  # fmt: skip
def test_details_of_the_standard_hold(stream: bytes, events: list[str]) -> None:
    assert events == [event.data for event in read(stream)]


def test_an_event_does_not_wait_for_the_byte_after_its_last_line_end() -> None:
    reader = ServerEventReader()

    assert [ServerEvent("a")] == reader.feed(b"data: a\r\r")
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: b\r") == []
    assert reader.feed(b"\ndata: c\r") == []
    assert [ServerEvent("b\nc")] == reader.feed(b"\n\r")
    with pytest.raises(ResponseInvalid, match="of type str; feed accepts only bytes"):
        reader.feed("data: a\n\n")  # type: ignore[arg-type]


PIECES = st.sampled_from(
    [b"data", b"event", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"data: x\n", b"event: e\n", b"\xef\xbb\xbf",
     "é€😀\u2028".encode(), b"\xff", b"\xe2\x82", b"\xf0\x9f", b"[DONE]",
     b"data: x\n\n", b"event: e\ndata: y\n\n", b"data: z\n\n\ndata: z\n\n"]
)  # fmt: skip


# A bare body is an event, which is no matter of the standard.
no_json = st.binary(max_size=6).map(lambda found: found.translate(None, b"{["))


@given(st.lists(PIECES | no_json, max_size=40), st.data())
def test_chunk_boundaries_never_matter(pieces: list[bytes], data: st.DataObject) -> None:
    """Any bytes in any chunks give what the standard's algorithm gives for the whole (law 10)."""
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12), label="cuts"))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert read_naively(stream) == read(*chunks)
    assert read_naively(stream) == read(*(stream[index : index + 1] for index in range(len(stream))))


@given(st.lists(PIECES | st.binary(max_size=6), max_size=20))
def test_invalid_utf8_is_told(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    reader = ServerEventReader()
    for index in range(len(stream)):
        reader.feed(stream[index : index + 1])
    reader.close()

    assert (stream.decode(errors="ignore").encode() != stream) == reader.was_invalid


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_bare_error_body_in_mid_stream_is_an_event(line_end: str) -> None:
    """Google breaks a stream off so; without it the user would hear of a missing end instead of the failure."""
    body = line_end.join(['{"error": {', '  "code": 503,', '  "message": "no"', "}}"])
    text = f"data: {{}}{line_end}{line_end}{body}{line_end}{line_end}data: 1{line_end}{line_end}"

    for size in (1, 7, len(text)):
        reader = ServerEventReader()
        pieces = [text[at : at + size].encode() for at in range(0, len(text), size)]
        events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()

        assert [json.loads(event.data) for event in events] == [{}, {"error": {"code": 503, "message": "no"}}, 1]


@pytest.mark.parametrize("piece", [b"data: xxxxxxxx", b"data:\n", b"data: x\n", b"{", b"event: xxxxxxxx"])
def test_what_waits_for_the_end_of_its_event_is_counted(piece: bytes) -> None:
    reader = ServerEventReader()
    for _ in range(100):
        reader.feed(b": alive\n\n")
        reader.feed(b"event: e\ndata: x\n\n")
        reader.feed(b": alive\nretry: 5\nid: 1\n")
    assert reader.kept == 0
    for _ in range(100):
        reader.feed(piece)

    assert 100 <= reader.kept <= 100 * len(piece)
