"""Bytes as one NATS message: unchanged, or compressed (zlib) if they are many; too large ones are refused.

{…}  ──at most `compress_above`──▶ {…}             JSON begins with a brace,
{…}  ──more──────────────────────▶ x…              zlib with an x (RFC 1950): the first byte tells them apart
"""

import zlib

from sabir_distributed.errors import EnvelopeInvalid, PayloadTooLarge

LARGEST = 32 * 1024 * 1024
"""Bytes that a received message may unpack to, unless settings say otherwise."""
_LEVEL = 1
_ZLIB = b"x"


def pack(body: bytes, what: str, *, largest: int, compress_above: int) -> bytes:
    """The body as it is sent; raises PayloadTooLarge if even its compressed form exceeds the server's limit.

    `largest` is the server's `max_payload`: https://docs.nats.io/running-a-nats-service/configuration#limits
    """
    if len(body) <= compress_above and len(body) <= largest:
        return body
    packed = zlib.compress(body, _LEVEL)
    if len(packed) > largest:
        remedy = "raise max_payload in the server's configuration, or send media as URLs"
        raise PayloadTooLarge(
            f"the {what} has {len(body):,} bytes, {len(packed):,} compressed; the server carries {largest:,}; {remedy}"
        )
    return packed if len(packed) < len(body) or len(body) > largest else body


def unpack(data: bytes, largest: int = LARGEST) -> bytes:
    """The body of a received message.

    Raises EnvelopeInvalid if it is damaged, or has more than `largest` bytes: no more are unpacked.
    """
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, largest + 1) if data[:1] == _ZLIB else data
    except zlib.error as error:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes cannot be decompressed: {error}") from None
    if len(body) > largest:
        remedy = "send less, or give both sides' settings more `largest`"
        raise EnvelopeInvalid(f"message of {len(data):,} bytes unpacks to more than {largest:,}; {remedy}")
    if body is not data and not stream.eof:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes is cut off")
    return body
