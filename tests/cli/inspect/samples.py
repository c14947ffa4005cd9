"""Conversations to inspect: a realistic one, a hostile one, and a long one."""

import base64
import struct
import zlib

import sabir

MARKUP = (
    '<script>alert(\'x\')</script><img src=x onerror=alert(1)>" onmouseover="alert(2)" '
    "</template></details></pre></script><iframe src='http://leak.invalid/'></iframe>"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"><script>alert(4)</script></svg>'
CONTROLS = "\x1b[31mred \x1b]0;title\x07 \u202egnp.exe\u2066 nul:\x00 tag:\U000e0041"


def png(width: int = 8, height: int = 8) -> bytes:
    """A valid PNG of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + b"\x5a\x80\xa0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def origin(dialect: str, model: str) -> sabir.Origin:
    endpoint = sabir.dialect(dialect).target.endpoint
    return sabir.Origin(provider=dialect.partition(".")[0], dialect=dialect, endpoint=endpoint, model=model)


def said(text: str, by: sabir.Origin | None = None, *more: sabir.ReasoningPart) -> sabir.Message:
    return sabir.Message(policy="llm", origin=by, payload=sabir.PartsPayload(parts=(*more, sabir.TextPart(text=text))))


def called(name: str, number: str, by: sabir.Origin | None = None, **arguments: object) -> sabir.Message:
    payload = sabir.OptionCallPayload(invocation_id=number, option_name=name, arguments=arguments)
    return sabir.Message(policy="llm", origin=by, payload=payload)


def answered(call: sabir.Message, value: object) -> sabir.Message:
    return sabir.OptionResultBuilder.response_to(call).success(value)


def trip() -> list[sabir.Message]:
    """Two models, an image, parallel calls with results in the other order, reasoning, and a sound that most lose."""
    first, second = origin("openai.responses", "gpt-5"), origin("anthropic.messages", "claude-sonnet-5")
    weather = called("weather", "call-1", first, city="Bolzano")
    trains = called("trains", "call-2", first, start="Verona")
    thought = sabir.ReasoningPart(text="An open ridge, low sun.", state={"id": "rs_1", "encrypted_content": "abc"})
    return [
        sabir.system("Plan trips by train."),
        sabir.user("Is this walk possible on Saturday?", sabir.image(png(), name="ridge.png")),
        said("I will check.", first, thought),
        weather,
        trains,
        answered(trains, [{"train": "EC 86"}]),
        answered(weather, {"sky": "clear"}),
        said("Yes, take the EC 86.", first),
        sabir.user("And my bike?", sabir.audio(b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(60), name="bike.wav")),
        said("I cannot hear the recording.", second),
    ]


def hostile() -> list[sabir.Message]:
    """Markup, scripts, a false PNG and controls in every place that a stored message has for a text."""
    data = base64.b64encode(SVG).decode()
    media = (
        sabir.MediaPart(modality="image", url=f"data:image/png;base64,{data}", mime="image/png", name=MARKUP),
        sabir.MediaPart(modality="image", url="https://leak.invalid/track.png"),
        sabir.MediaPart(modality="document", url=f"data:text/plain;base64,{data}", name="../../passwd.html"),
    )
    citation = sabir.Citation(kind="page", url="javascript:alert(5)", title=MARKUP, cited_text=MARKUP)
    parts = (
        sabir.ReasoningPart(text=MARKUP),
        sabir.RefusalPart(text=MARKUP),
        sabir.OpaquePart(dialect=MARKUP[:40], block={MARKUP: MARKUP}),
        sabir.NativeCallPart(tool=MARKUP[:30], queries=(MARKUP,)),
        sabir.TextPart(text=CONTROLS, citations=(citation,)),
    )
    by = sabir.Origin(provider="openai", dialect="openai.chat", endpoint=MARKUP, model=MARKUP)
    call = called(MARKUP[:50], "c1", by, **{MARKUP: MARKUP})
    return [
        sabir.system(MARKUP),
        sabir.Message(policy="user", payload=sabir.PartsPayload(parts=media)),
        sabir.Message(policy=MARKUP[:60], payload=sabir.PartsPayload(parts=parts)),
        call,
        answered(call, {"big": "y" * 1_000_000, MARKUP: [MARKUP]}),
        sabir.user("z" * 400_000 + MARKUP),
    ]


def long_conversation(turns: int) -> list[sabir.Message]:
    """Four messages for each turn."""
    messages: list[sabir.Message] = []
    for number in range(turns):
        call = called("weather", f"c{number}", city=f"town {number}")
        messages += [
            sabir.user(f"Question {number}: what is the weather in town {number}? " + "word " * 15),
            call,
            answered(call, {"sky": "clear", "low": number}),
            said(f"Answer {number}: clear. " + "word " * 25),
        ]
    return messages
