"""A dialect is a value: what it leaves out is said where it is asked for."""

import dataclasses

import pytest
from sabir.authoring import EventFrames
from sabir.contract.dialect import Dialect, ServerEventReader
from sabir.contract.scope import DecodeScope
from sabir.contract.turns import Tables
from sabir.errors import HistoryInvalid, ResponseInvalid
from sabir.vocabulary.settings import Target
from sabir_testing.histories.invented_dialects import INLINE

TARGET = Target(provider="acme", dialect="acme.wire", model="m-1")
SCOPE = DecodeScope(TARGET)
EVENT_STREAM = "application/vnd.acme.eventstream"
BARE = Dialect(
    name="acme.wire",
    tables=Tables(),
    path=lambda target: f"/{target.model}",
    encode_turn=INLINE.encode_turn,
    encode_request=INLINE.encode_request,
    decode=INLINE.decode,
)


def test_a_dialect_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BARE.name = "acme.other"  # type: ignore[misc]
    assert dataclasses.replace(BARE, name="acme.other").path is BARE.path


def test_what_a_dialect_leaves_out_is_an_error_that_says_so() -> None:
    with pytest.raises(HistoryInvalid, match=r"^acme\.wire cannot read stored requests; store histories"):
        BARE.decode_history(b"{}", SCOPE)
    with pytest.raises(ResponseInvalid, match=r"^acme\.wire has no streams; call complete\(\)"):
        BARE.decoder(SCOPE)
    with pytest.raises(ResponseInvalid, match="this dialect cannot count tokens"):
        BARE.decode_count(b"7")
    assert BARE.encode_count is None
    assert BARE.family("m-1") == "m-1"


def test_a_stream_has_the_path_of_a_whole_answer_unless_another_is_named() -> None:
    assert BARE.path_of(TARGET, streaming=True) == "/m-1"
    assert dataclasses.replace(BARE, stream_path=lambda target: "/s").path_of(TARGET, streaming=True) == "/s"


def test_an_answers_content_type_decides_its_framing() -> None:
    framed = dataclasses.replace(BARE, framings={EVENT_STREAM: lambda: EventFrames(lambda headers, payload: None)})

    assert isinstance(framed.framing("text/event-stream; charset=utf-8"), ServerEventReader)
    assert isinstance(framed.framing(f"{EVENT_STREAM.upper()}; x=1"), EventFrames)
    assert (
        framed.is_framed(EVENT_STREAM)
        and not framed.is_framed("text/event-stream")
        and not BARE.is_framed(EVENT_STREAM)
    )
