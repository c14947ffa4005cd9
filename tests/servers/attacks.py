"""Answers that are small on the wire and large in memory, for each dialect, whole and streamed.

    attack(wire, size) ──▶ the bytes of a body, or of a stream, of about `size` bytes; b"" if the wire cannot say it

Each attack names the size at which it takes more than four times BOUND of memory if nothing limits it.
"""

from collections.abc import Callable, Mapping
from itertools import count, islice
from typing import NamedTuple, TypeAlias

MIB = 2**20
BOUND = 4 * MIB
"""The `body_bytes` under which the attacks are tried."""
CHAT, RESPONSES, MESSAGES, GEMINI = WIRES = (
    "openai.chat",
    "openai.responses",
    "anthropic.messages",
    "google.generate_content",
)

Build: TypeAlias = Callable[[str, int], bytes]


class Attack(NamedTuple):
    """One kind of answer: how large it is sent, and whether as a stream."""

    build: Build
    size: int
    streamed: bool = False


BODIES: Mapping[str, bytes] = {
    CHAT: b'{"id":"r","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
    b'{"role":"assistant","content":%(content)b,%(message)b"z":0}}%(choices)b],"z":%(beside)b}',
    RESPONSES: b'{"id":"r","created_at":1,"model":"m","status":"completed","output":[%(content)b],"z":%(beside)b}',
    MESSAGES: b'{"id":"r","type":"message","role":"assistant","model":"m","stop_reason":"end_turn",'
    b'"content":[%(content)b],"z":%(beside)b}',
    GEMINI: b'{"responseId":"r","modelVersion":"m","candidates":[{"index":0,"finishReason":"STOP",'
    b'"content":{"role":"model","parts":[%(content)b]}%(message)b}%(choices)b],"z":%(beside)b}',
}
"""Wire → a whole answer."""
TEXTS: Mapping[str, bytes] = {
    CHAT: b"%b",
    RESPONSES: b'{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":%b}]}',
    MESSAGES: b'{"type":"text","text":%b}',
    GEMINI: b'{"text":%b}',
}
"""Wire → content that is a text."""
EMPTY = {b"content": b'"a"', b"message": b"", b"choices": b"", b"beside": b"0"}


def body(wire: str, **fields: bytes) -> bytes:
    given = {name.encode(): value for name, value in fields.items()}
    return BODIES[wire] % {**EMPTY, b"content": TEXTS[wire] % b'"a"', **given}


def says(wire: str, text: bytes) -> bytes:
    return body(wire, content=TEXTS[wire] % text)


def repeated(unit: bytes, size: int) -> bytes:
    """The items of an array: `unit` and a comma, as often as the size allows, and an object at the end."""
    return (unit + b",") * (size // (len(unit) + 1)) + b"{}"


def numbered(unit: bytes, size: int) -> bytes:
    """`unit` again and again, with another number in place of each %d."""
    return b"".join(islice((unit % number for number in count()), size // len(unit)))


def beside(unit: bytes) -> Build:
    """An unknown field of the answer that holds many values."""
    return lambda wire, size: body(wire, beside=b"[" + repeated(unit, size) + b"]")


def names(wire: str, size: int) -> bytes:
    """An unknown field of the answer that holds one object with many names."""
    return body(wire, beside=b"{" + numbered(b'"%d":0,', size) + b'"z":0}')


CALLS = {
    CHAT: b'{"function":{"name":"f"}}',
    RESPONSES: b'{"type":"function_call","name":"f"}',
    MESSAGES: b'{"type":"tool_use","name":"f"}',
    GEMINI: b'{"functionCall":{"name":"f"}}',
}
PARTS = {CHAT: b'"a"', RESPONSES: b"0", MESSAGES: b"0", GEMINI: b"0"}


def calls(wire: str, size: int) -> bytes:
    many = repeated(CALLS[wire], size)
    return body(wire, message=b'"tool_calls":[%b],' % many) if wire == CHAT else body(wire, content=many)


def parts(wire: str, size: int) -> bytes:
    many = repeated(PARTS[wire], size)
    return body(wire, content=b"[%b]" % many if wire == CHAT else many)


def citations(wire: str, size: int) -> bytes:
    if wire == CHAT:
        return body(wire, message=b'"annotations":[%b],' % repeated(b"0", size))
    if wire == GEMINI:
        return body(wire, message=b',"groundingMetadata":{"groundingSupports":[%b]}' % repeated(b"{}", size))
    text, field = TEXTS[wire] % b'"a"', b"citations" if wire == MESSAGES else b"annotations"
    return body(wire, content=text.replace(b'"text":"a"', b'"text":"a","%b":[%b]' % (field, repeated(b"0", size))))


def alternatives(wire: str, size: int) -> bytes:
    unit = {CHAT: b'{"message":{"content":"a"}}', GEMINI: b'{"content":{"parts":[{"text":"a"}]}}'}.get(wire)
    return body(wire, choices=b"," + repeated(unit, size)) if unit else b""


def arguments(wire: str, size: int) -> bytes:
    text, value = b'"{\\"x\\":[%b]}"' % repeated(b"{}", size), b'{"x":[%b]}' % repeated(b"{}", size)
    call = {
        CHAT: b'{"id":"c","function":{"name":"f","arguments":%b}}' % text,
        RESPONSES: b'{"type":"function_call","call_id":"c","name":"f","arguments":%b}' % text,
        MESSAGES: b'{"type":"tool_use","id":"c","name":"f","input":%b}' % value,
        GEMINI: b'{"functionCall":{"name":"f","args":%b}}' % value,
    }[wire]
    return body(wire, message=b'"tool_calls":[%b],' % call) if wire == CHAT else body(wire, content=call)


def copies(wire: str, size: int) -> bytes:
    """A long field that is stored again with each part or citation."""
    long = b'"%b"' % (b"a" * (size // 2))
    if wire == RESPONSES:
        item = b'{"type":"message","id":%b,"content":[%b]}' % (
            long,
            repeated(b'{"type":"output_text","text":"a"}', 4000),
        )
        return body(wire, content=item)
    if wire == GEMINI:
        supports = repeated(b'{"groundingChunkIndices":[0]}', 4000)
        grounding = b'"groundingChunks":[{"web":{"title":%b}}],"groundingSupports":[%b]' % (long, supports)
        return body(wire, message=b',"groundingMetadata":{%b}' % grounding)
    return b""


def wide(wire: str, size: int) -> bytes:
    return says(wire, '"\N{GRINNING FACE}'.encode() + b"a" * size + b'"')


def wide_escape(wire: str, size: int) -> bytes:
    return says(wire, b'"\\ud83d\\ude00' + b"a" * size + b'"')


def surrogates(wire: str, size: int) -> bytes:
    return says(wire, b'"%b"' % (b"\\ud800" * (size // 6)))


def error(wire: str, size: int) -> bytes:
    return b'{"error":{"message":"a","x":[%b]}}' % repeated(b"{}", size)


def event(data: bytes) -> bytes:
    return b"data: %b\n\n" % data


OPENINGS = {
    CHAT: b"",
    RESPONSES: event(b'{"type":"response.created","response":{"id":"r","model":"m"}}'),
    MESSAGES: event(b'{"type":"message_start","message":{"id":"r","model":"m","content":[]}}')
    + event(b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'),
    GEMINI: b"",
}
DELTAS = {
    CHAT: b'{"choices":[{"delta":{"content":%b}}]}',
    RESPONSES: b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%b}',
    MESSAGES: b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%b}}',
    GEMINI: b'{"candidates":[{"content":{"parts":[{"text":%b}]}}]}',
}
ENDINGS = {
    CHAT: event(b'{"choices":[{"finish_reason":"stop"}]}') + event(b"[DONE]"),
    RESPONSES: event(b'{"type":"response.completed","response":{"id":"r","model":"m","status":"completed"}}'),
    MESSAGES: event(b'{"type":"message_stop"}'),
    GEMINI: event(b'{"candidates":[{"finishReason":"STOP"}]}'),
}


def stream(wire: str, events: bytes) -> bytes:
    return OPENINGS[wire] + events + ENDINGS[wire]


def deltas(wire: str, size: int) -> bytes:
    one = event(DELTAS[wire] % b'"ab"')
    return stream(wire, one * (size // len(one)))


def wide_event(wire: str, size: int) -> bytes:
    text = '"\N{GRINNING FACE}'.encode() + b"a" * (size // 2) + b'"'
    return stream(wire, 2 * event(DELTAS[wire] % text))


def event_beside(wire: str, size: int) -> bytes:
    return stream(wire, event(DELTAS[wire].replace(b"{", b'{"z":[%b],', 1) % (repeated(b"{}", size), b'"a"')))


def begun_calls(wire: str, size: int) -> bytes:
    unit = {
        CHAT: b'{"choices":[{"delta":{"tool_calls":[{"index":%d}]}}]}',
        RESPONSES: b'{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call"}}',
        MESSAGES: b'{"type":"content_block_start","index":9%d,"content_block":{"type":"tool_use","name":"f"}}',
        GEMINI: b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","id":"%d"}}]}}]}',
    }[wire]
    return stream(wire, numbered(event(unit), size))


def kept_fields(wire: str, size: int) -> bytes:
    """Fields that a decoder keeps until the end, a few with each event."""
    many = repeated(b"{}", 200)
    unit = {
        CHAT: b'{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[%b]}}]}' % many,
        MESSAGES: b'{"type":"content_block_delta","index":0,"delta":{"type":"x","%%d":[%b]}}' % many,
        GEMINI: b'{"candidates":[{"x%%d":[%b],"content":{"parts":[{"text":"a"}]}}]}' % many,
    }.get(wire)
    if unit is None:
        return b""
    return stream(wire, numbered(event(unit), size) if b"%d" in unit else event(unit) * (size // len(unit)))


ATTACKS: Mapping[str, Attack] = {
    "an unknown field with many empty objects": Attack(beside(b"{}"), 3 * MIB),
    "with many small objects": Attack(beside(b'{"a":0}'), 3 * MIB),
    "with deeply nested objects": Attack(beside(b'{"a":' * 60 + b"0" + b"}" * 60), 3 * MIB),
    "with many names": Attack(names, 3 * MIB),
    "many option calls": Attack(calls, MIB),
    "many parts": Attack(parts, MIB // 2),
    "many citations": Attack(citations, MIB // 4),
    "many alternatives": Attack(alternatives, MIB),
    "arguments with many values": Attack(arguments, 2 * MIB),
    "a long field that many parts share": Attack(copies, MIB),
    "a long text with one emoji": Attack(wide, 7 * MIB // 2),
    "a long text with one escaped emoji": Attack(wide_escape, 7 * MIB // 2),
    "an error with many values": Attack(error, MIB - 100),
    "a stream: an event with many values": Attack(event_beside, 2 * MIB - MIB // 4, streamed=True),
    "two long events with one emoji each": Attack(wide_event, 7 * MIB // 2, streamed=True),
    "many calls that begin": Attack(begun_calls, 7 * MIB // 2, streamed=True),
    "fields that are kept to the end": Attack(kept_fields, 7 * MIB // 2, streamed=True),
}
ORDINARY: Mapping[str, Attack] = {
    "a text of commas": Attack(lambda wire, size: says(wire, b'"%b"' % (b"," * size)), 2 * MIB),
    "a long text": Attack(lambda wire, size: says(wire, b'"%b"' % (b"a" * size)), 7 * MIB // 2),
    "many halves of surrogate pairs": Attack(surrogates, 3 * MIB // 2),
    "a long text in small pieces": Attack(deltas, 7 * MIB // 2, streamed=True),
}
"""Large answers that are accepted."""
