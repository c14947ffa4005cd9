"""Calls, whole: in the process, and to a server on this machine; and their parts: decoding, rendering, sending …"""

from benchmarks.goals import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    SDKS,
    adds_at_most,
    at_most,
    faster,
    field_at_most,
    gate,
    takes_at_most,
    turns_ratio,
)
from benchmarks.interleave import Pace
from benchmarks.rows.row import Row, across
from benchmarks.servers import STUB
from benchmarks.work import AGENTS, CALLERS, GEMINI_3, PLAIN, Given

SLOW = OPENAI | GOOGLE
MOST_WIRES = ("openai.chat", "anthropic.messages", "google.generate_content")
LONG = (500,)
LEAN = ("sabir", "anthropic_sdk", "lm15", "limit")

WHOLE = (
    Row(
        name="call", title="Complete call",
        what="A history that was never rendered goes out by the HTTP client, whose transport answers in the process.",
        unit="ms CPU a call", figure=lambda record: record["cpu"] / 1e6,
        cases=(*across((10, 100, 1000), talk=AGENTS), *across((10, 100, 1000), talk=PLAIN)),
        quick=(*across((10, 1000), talk=AGENTS), *across((10, 1000), talk=PLAIN)), curve="sizes",
        pace=Pace(most_seconds=2.0),
        goals=(
            gate(faster(4, SLOW, "≥ 4 × faster than the typed calls of OpenAI and Google, N=10", sizes=(10,))),
            gate(faster(18, SLOW, "≥ 18 × faster than the typed calls of OpenAI and Google, N=1000", sizes=(1000,))),
            faster(1.1, ANTHROPIC, "≥ 1.1 × faster than Anthropic's typed call, N=10 and 100", sizes=(10, 100)),
            faster(1, ANTHROPIC, "not slower than Anthropic's typed call, N=1000", sizes=(1000,)),
        ),
    ),
    Row(
        name="loop", title="Agent loop",
        what="From two messages on, so many turns of two messages each, through an in-process transport. As agents "
        "have it, two replies of five bring reasoning, and the user shows an image after five turns. That loop, "
        "and 500 turns, are of sabir, the SDKs and the limits alone: libraries on an SDK take what it takes, a "
        "minute and more.",
        unit="ms CPU in all", figure=lambda record: record["cpu"] / 1e6,
        cases=(*across((100, *LONG), MOST_WIRES, talk=AGENTS), *across((100, *LONG), MOST_WIRES, talk=PLAIN)),
        quick=(*across((60,), MOST_WIRES, talk=AGENTS), *across((60,), MOST_WIRES, talk=PLAIN)), column="turns",
        curve="turns", pace=Pace(round_seconds=0.2, rounds=5, most_seconds=4.0),
        goals=(

            gate(faster(320, {"openai.chat": ("openai_sdk",)}, "≥ 320 × faster than OpenAI's SDK, 500 turns",
                sizes=LONG)),
            gate(faster(11, ANTHROPIC, "≥ 11 × faster than Anthropic's SDK, 500 turns", sizes=LONG)),
            gate(faster(290, GOOGLE, "≥ 290 × faster than Google's SDK, 500 turns", sizes=LONG)),
            field_at_most(2, "turn 500 ≤ 2 × turn 50", turns_ratio),
        ),
    ),
    Row(
        name="fresh", title="Complete call over loopback",
        what="A history that was never rendered goes to a server on this machine, which answers at once.",
        unit="µs CPU a call", cases=across((10, 100, 1000), url=STUB, talk=PLAIN),
        quick=across((10,), MOST_WIRES, STUB, talk=PLAIN), contenders=LEAN, pace=Pace(rounds=11, most_seconds=2.0),
        goals=(
            gate(at_most(1.8, "lm15", "≤ 1.8 × lm15, N=10 and 100", sizes=(10, 100))),
            at_most(1.3, "lm15", "≤ 1.3 × lm15, N=10 and 100", sizes=(10, 100)),
            gate(at_most(1.0, "lm15", "≤ 1.0 × lm15, N=1000", sizes=(1000,))),
            gate(at_most(1.0, "anthropic_sdk", "≤ 1.0 × Anthropic's SDK, N=1000", sizes=(1000,))),
            at_most(0.8, "lm15", "≤ 0.8 × lm15, N=1000", sizes=(1000,)),
        ),
    ),
    Row(
        name="stub_loop", title="Agent loop over loopback",
        what="From two messages on, so many turns of two messages each, at a server on this machine.",
        unit="ms CPU in all", figure=lambda record: record["cpu"] / 1e6, column="turns",
        cases=across((20, 100, 500), MOST_WIRES, STUB, talk=PLAIN), contenders=("sabir", "lm15"),
        quick=across((20,), MOST_WIRES, STUB, talk=PLAIN), pace=Pace(round_seconds=0.2, rounds=7, most_seconds=4.0),
        goals=tuple(
            goal for turns, gated, aimed in ((20, 1.8, 1.3), (100, 1.0, 0.7), (500, 0.5, 0.3)) for goal in (
                gate(at_most(gated, "lm15", f"≤ {gated} × lm15, {turns} turns", sizes=(turns,))),
                at_most(aimed, "lm15", f"≤ {aimed} × lm15, {turns} turns", sizes=(turns,)),
            )
        ),
    ),
    Row(
        name="loopback", title="Calls through a loopback stub",
        what="Ten messages a call, to a server on this machine that answers at once; 1 waiting client, or 32 async "
        "calls.",
        unit="requests a second", figure=lambda record: 1e9 / record["wall"],
        cases=(*across((10,), MOST_WIRES, STUB), *across((10,), MOST_WIRES, STUB, 32)),
        quick=(*across((10,), MOST_WIRES[:1], STUB), *across((10,), MOST_WIRES[:1], STUB, 32)), concurrencies=True,
        curve="bars", pace=Pace(rounds=7, most_seconds=2.0),
        goals=(

            faster(0.7, dict.fromkeys(MOST_WIRES, ("limit",)), "≥ 0.7 × raw httpx2's requests a second", clock="wall"),
            faster(3, {"openai.chat": ("openai_sdk",)}, "≥ 3 × the openai SDK's typed call", clock="wall"),
        ),
    ),
    Row(
        name="stream", title="Stream",
        what="Two thousand server-sent events, each a chunk of its own, become one reply; CPU of the client's process.",
        unit="µs CPU an event", cases=across((2000,), url=STUB), quick=across((500,), url=STUB), column="events",
        curve="bars", pace=Pace(rounds=7, most_seconds=2.0),
        goals=(
            at_most(1.5, "limit", "≤ 1.5 × the limit"), faster(5, OPENAI, "≥ 5 × faster than the openai SDK"),
            faster(1.3, {"anthropic.messages": ("anthropic_sdk",)}, "≥ 1.3 × faster than the anthropic SDK"),
            gate(at_most(1.0, "lm15", "≤ 1.0 × lm15")), at_most(0.8, "lm15", "≤ 0.8 × lm15"),
        ),
    ),
)  # fmt: skip


OTHERS = ("anthropic.messages", "google.generate_content")
LARGE = (1000,)

PARTS = (
    Row(
        name="decode", title="Decoding a text and five calls",
        what="The bytes of an answer become the library's own reply.", unit="µs a reply", cases=across((0,)),
        curve="bars",
        goals=(at_most(2, "limit", "≤ 2 × the limit"), faster(5, SDKS, "≥ 5 × faster than the SDK's own objects")),
    ),
    Row(
        name="render", title="First rendering",
        what="A history that was never rendered becomes the wire's messages; peers' mapping alone, without a request.",
        unit="µs a message", figure=lambda record: record["cpu"] / record["size"] / 1e3,
        cases=(
            *across((10, 100, 1000), talk=AGENTS), *across((10, 100, 1000), talk=PLAIN),
            *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
            *across(LARGE, OTHERS[1:], talk=PLAIN, other_model=GEMINI_3),
        ),
        quick=(
            *across(LARGE, talk=AGENTS), *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
            *across(LARGE, talk=PLAIN),
        ),
        curve="sizes", pace=Pace(rounds=7, most_seconds=1.5),
        goals=(

            takes_at_most(7, "≤ 7 µs a message for OpenAI's APIs, N=1000", sizes=LARGE, wires=[*OPENAI],
                by_message=True),
            gate(takes_at_most(8, "≤ 8 µs a message for OpenAI's APIs, N=1000", sizes=LARGE, wires=[*OPENAI],
                by_message=True)),
            takes_at_most(8, "≤ 8 µs a message for Anthropic and Google, N=1000", sizes=LARGE, wires=OTHERS,
                by_message=True),
            gate(takes_at_most(9.5, "≤ 9.5 µs a message for Anthropic and Google, N=1000", sizes=LARGE, wires=OTHERS,
                by_message=True)),
        ),
    ),
    Row(
        name="render_warm", title="Appending two messages",
        what="One turn of two messages is appended to N that were rendered before; the hand loop renders them all.",
        unit="µs a request",
        cases=(*across((10, 100, 1000, 5000), talk=AGENTS), *across((10, 100, 1000, 5000), talk=PLAIN)),
        quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)), contenders=("limit", "kept", "sabir"),
        curve="sizes",
        goals=(
            takes_at_most(85, "≤ 85 µs, N=1000", sizes=LARGE),
            gate(takes_at_most(100, "≤ 100 µs, N=1000", sizes=LARGE)),
        ),
    ),
    Row(
        name="shared", title="Callers that share a history",
        what=f"One adapter rendered a history of N messages; {CALLERS} callers each add a message of their own to it, "
        "and render it once, one after the other. The hand loop renders all of it each time.",
        unit="µs a request", cases=(*across((100, 1000), talk=AGENTS), *across((100, 1000), talk=PLAIN)),
        quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)), contenders=("limit", "sabir"),
        pace=Pace(rounds=7, most_seconds=2.0), goals=(takes_at_most(400, "≤ 400 µs, N=1000", sizes=LARGE),),
    ),
    Row(
        name="send", title="Sending a rendering",
        what="A rendering of N messages, which was made before, goes to a server on this machine by the client that "
        "the plugin makes: the whole of `send`, less what decoding takes of an answer that just came; with "
        "decoding; and the connection alone, from bytes to bytes. Beside it the same bytes, ready made, posted "
        "by httpx2, which gives bytes too.",
        unit="µs CPU beyond rendering and decoding", figure=lambda record: record["sending"] / 1e3,
        cases=across((10,), url=STUB, talk=PLAIN), contenders=("raw", "sabir"),
        also=(
            ("µs CPU beyond rendering", lambda record: record["beyond"] / 1e3),
            ("µs CPU of the connection alone", lambda record: record["posting"] / 1e3),
        ),
        goals=(gate(adds_at_most(0, "raw", "not more CPU time than posting with httpx2", clock="sending")),),
    ),
    Row(
        name="memory", title="Memory",
        what="5,000 messages rendered for three dialects: bytes that adapters and renderings hold, by tracemalloc, "
        "over the bytes of the three requests.",
        unit="× the requests' bytes", figure=lambda record: record["held"] / record["json"],
        cases=(Given("three dialects", 5000),), quick=(Given("three dialects", 500),), contenders=("sabir",),
        goals=(field_at_most(3, "≤ 3 × the bytes of their JSON", lambda record: record["held"] / record["json"]),),
    ),
    Row(
        name="create", title="Creating a message",
        what="A thousand messages are made: a user's text by a builder, an option call, and an option's result.",
        unit="µs a message", cases=tuple(Given(kind, 0) for kind in ("text", "call", "result")),
        contenders=("sabir", "lm15"),
        goals=(
            gate(takes_at_most(9, "≤ 9 µs", sizes=(0,))), takes_at_most(6, "≤ 6 µs", sizes=(0,)),
        ),
    ),
    Row(
        name="message_memory", title="Memory of a text message",
        what="Texts of 60 to 200 characters as messages: bytes of each message without its text, by tracemalloc.",
        unit="bytes a message", figure=lambda record: record["held"] / record["size"],
        cases=(Given("text", 10000),), quick=(Given("text", 1000),), contenders=("sabir", "lm15"),
        goals=(
            gate(field_at_most(1250, "≤ 1,250 bytes", lambda record: record["held"] / record["size"], unit="bytes")),
            field_at_most(1000, "≤ 1,000 bytes", lambda record: record["held"] / record["size"], unit="bytes"),
        ),
    ),
    Row(
        name="history", title="Read a history",
        what="10,000 stored messages become messages; the limit is one pydantic validation by models of the same "
        "shape.",
        unit="µs a message", figure=lambda record: record["cpu"] / record["size"] / 1e3,
        cases=(Given("at rest", 10000),), quick=(Given("at rest", 1000),), contenders=("limit", "sabir"),
        goals=(at_most(2, "limit", "≤ 2 × one pydantic validation of the same JSON"),),
    ),
)  # fmt: skip
