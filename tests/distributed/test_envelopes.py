"""What travels is JSON, packed where it is large, and comes back as it was; what cannot be read is named (RN-29)."""

import json
import os
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir import Message
from sabir.vocabulary.history import loads
from sabir_runtime.distributed import envelopes
from sabir_runtime.distributed.envelopes import (
    LARGEST,
    SCHEMA,
    Accepted,
    Alive,
    Answered,
    Busy,
    Cancelled,
    Envelope,
    Failed,
    Fault,
    Released,
    Request,
    Sought,
    Willing,
    decode_notice,
    decode_reply,
    encode,
    pack,
    unpack,
)
from sabir_runtime.distributed.errors import EnvelopeInvalid
from sabir_runtime.distributed.message_cache import KnownMessages
from sabir_testing.histories.random_histories import FOREIGN, Speakers, histories_of, invented_parts

SPEAKERS = Speakers((None, *FOREIGN), lambda origin: invented_parts(FOREIGN[0].dialect))
NEWER = """[{"schema": 1, "id": "m1", "policy": "user", "mood": null, "payload": {"kind": "parts", "parts":
    [{"kind": "smell", "of": ["rain", null], "strength": 1.5}, {"kind": "text", "text": "hm", "tone": {"low": 0}}]}}]"""
"""A message with a kind of part and with fields that this version does not know, some of them null."""


def decode_request(data: bytes) -> Request:
    return envelopes.decode_request(data, KnownMessages())


def request(*observations: Message, **changes: Any) -> Request:
    fields = {"id": "r1", "context": "Desk", "policy": "llm", "seconds_left": 5.0, **changes}
    return Request(observations=observations, **fields)


def answered(*result: Message) -> Answered:
    return Answered(id="r1", worker="w1", result=result)


@settings(max_examples=settings().max_examples // 4)
@given(histories_of(SPEAKERS), st.none() | st.lists(st.text(alphabet="abc_", min_size=1), max_size=3))
def test_messages_and_option_names_come_back_as_they_went(history: list[Message], options: list[str] | None) -> None:
    # RN-29
    there = request(*history, options=None if options is None else tuple(options))
    back = answered(*history)

    assert decode_request(encode(there)) == there
    assert decode_reply(encode(back)) == back


@pytest.mark.parametrize(
    "said",
    [
        Failed(id="", worker="w1", error=Fault(type="Boom", message="no", retryable=True, raised_by="policy")),
        Accepted(id="r1", worker="w1", every=1.0),
        Busy(id="r1", worker="w1"),
        Released(id="r1", worker="w1"),
        Willing(id="r1", worker="w1"),
        Alive(worker="w1", requests=("r1", "r2")),
        Cancelled(id="r1"),
        Sought(id="r1"),
    ],
    ids=lambda said: said.kind,
)
def test_whatever_is_said_comes_back_as_what_it_is(said: Any) -> None:
    """One inbox hears all replies, and all workers hear the last two."""
    decode = decode_notice if isinstance(said, Cancelled | Sought) else decode_reply
    assert decode(encode(said)) == said


def test_what_a_newer_writer_said_comes_back_unchanged() -> None:  # RN-29
    history = loads(NEWER)

    document = {**json.loads(encode(request(*history))), "trace": {"parent": None}}
    there = decode_request(json.dumps(document).encode())
    back = decode_reply(encode(answered(*there.observations)))

    assert json.loads(encode(there))["trace"] == {"parent": None}
    assert isinstance(back, Answered)
    assert list(back.result) == history
    assert json.loads(encode(back))["result"][0]["mood"] is None
    assert json.loads(encode(back))["result"][0]["payload"]["parts"][0] == json.loads(NEWER)[0]["payload"]["parts"][0]


@pytest.mark.parametrize(
    ("decode", "envelope"),
    [(decode_request, request()), (decode_reply, answered()), (decode_notice, Cancelled(id="r1"))],
)
@pytest.mark.parametrize("changes", [{}, {"id": {"new": "shape"}}], ids=["readable", "unreadable"])
def test_an_unknown_schema_is_refused_by_its_number(decode: Any, envelope: Envelope, changes: dict[str, Any]) -> None:
    """Whatever else is in it: the number is the reason, not what follows from it."""
    document = {**json.loads(encode(envelope)), **changes, "schema": SCHEMA + 1}

    with pytest.raises(
        EnvelopeInvalid, match=rf"has schema {SCHEMA + 1}, but this version reads schema {SCHEMA}; install versions"
    ):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b'{"kind": "answered"}', "has schema None"),
        (b'{"schema": 1, "kind": "sung", "id": "r1"}', "is not a message of schema 1"),
        (
            b'{"schema": 1, "kind": "answered", "id": "r1", "worker": "w", "result": [{"role": "user"}]}',
            "is not a message",
        ),
    ],
)
def test_what_is_no_envelope_says_why(data: bytes, reason: str) -> None:  # RN-31
    with pytest.raises(EnvelopeInvalid, match=reason):
        decode_reply(data)


@given(st.binary(max_size=40))
def test_no_bytes_crash_a_decoder(data: bytes) -> None:
    for decode in (decode_request, decode_reply, decode_notice):
        with pytest.raises(EnvelopeInvalid):
            decode(data)


LONG = b'{"text": "' + b"to be or not to be " * 1000 + b'"}'


@given(st.binary(max_size=200).map(lambda data: b"{" + data), st.integers(0, 300))
def test_what_is_packed_unpacks_to_the_same(body: bytes, compress_above: int) -> None:
    """A body is a JSON object: its brace tells it from what is compressed."""
    assert unpack(pack(body, "it", largest=1000, compress_above=compress_above)) == body


def test_many_bytes_are_compressed_where_that_makes_them_fewer() -> None:
    random = b"{" + os.urandom(500)

    assert pack(LONG, "it", largest=1 << 20, compress_above=len(LONG)) == LONG
    assert len(pack(LONG, "it", largest=1 << 20, compress_above=len(LONG) - 1)) < len(LONG) / 10
    assert unpack(pack(LONG, "it", largest=1000, compress_above=1 << 30)) == LONG
    assert pack(random, "it", largest=1000, compress_above=0) == random


@pytest.mark.parametrize("data", [b"x", b"x\x9c broken", zlib.compress(LONG)[:-5]])
def test_damaged_bytes_are_an_error_of_our_own(data: bytes) -> None:
    with pytest.raises(EnvelopeInvalid, match="message of"):
        unpack(data)


def test_a_megabyte_cannot_unpack_to_gigabytes() -> None:
    packing = zlib.compressobj(9)
    bomb = b"".join(packing.compress(bytes(1 << 20)) for _ in range(256)) + packing.flush()
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(
            EnvelopeInvalid, match=r"unpacks to more than 33,554,432 bytes; send less, or increase `largest`"
        ):
            unpack(bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 3 * LARGEST


@pytest.mark.parametrize("sent", [LONG, zlib.compress(LONG)], ids=["plain", "compressed"])
def test_a_body_may_have_exactly_so_many_bytes(sent: bytes) -> None:
    assert unpack(sent, len(LONG)) == LONG
    with pytest.raises(EnvelopeInvalid, match=f"more than {len(LONG) - 1:,}"):
        unpack(sent, len(LONG) - 1)
