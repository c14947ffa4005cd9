"""Bytes as one NATS message: as they are, or compressed where they are many (zlib); what is too large is refused.

{…}  ──at most `compress_above`──▶ {…}             JSON begins with a brace,
{…}  ──more──────────────────────▶ x…              zlib with an x (RFC 1950): nothing else has to say which it is
"""

import zlib

from sabir_distributed.errors import EnvelopeInvalid, PayloadTooLarge

LARGEST = 1 << 30
"""Bytes that a received message may unpack to."""
_LEVEL = 1
_ZLIB = 0x78


def pack(body: bytes, what: str, *, largest: int, compress_above: int) -> bytes:
    """The body as it is sent; PayloadTooLarge where the server would not carry even its compressed form.

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


def unpack(data: bytes) -> bytes:
    """The body of a received message; EnvelopeInvalid where it was damaged or unpacks to more than `LARGEST`."""
    if not data or data[0] != _ZLIB:
        return data
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, LARGEST)
    except zlib.error as error:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes cannot be decompressed: {error}") from None
    if not stream.eof:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes is cut off, or unpacks to more than {LARGEST:,}")
    return body
