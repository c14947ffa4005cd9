"""The parts of a call: decoding, rendering, sending, what is held, and histories at rest."""

from tests.benchmarks.goals import SDKS, adds_at_most, at_most, faster, field_at_most, gate, takes_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import STUB, Row, across
from tests.benchmarks.work import AGENTS, CALLERS, GEMINI_3, PLAIN, Given

OPENAI, OTHERS = ("openai.chat", "openai.responses"), ("anthropic.messages", "google.generate_content")
LARGE = (1000,)

ROWS = (
    Row(
        name="decode",
        title="Decode text and five calls",
        what="The bytes of an answer become the library's own reply.",
        unit="µs a reply",
        cases=across((0,)),
        curve="bars",
        goals=(at_most(2, "limit", "≤ 2 × the limit"), faster(5, SDKS, "≥ 5 × faster than the SDK's own objects")),
    ),
    Row(
        name="render",
        title="Render afresh",
        what="A history that was never rendered becomes the wire's messages; peers' mapping alone, without a request.",
        unit="µs a message",
        figure=lambda record: record["cpu"] / record["size"] / 1e3,
        cases=(
            *across((10, 100, 1000), talk=AGENTS),
            *across((10, 100, 1000), talk=PLAIN),
            *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
            *across(LARGE, OTHERS[1:], talk=PLAIN, other_model=GEMINI_3),
        ),
        quick=(
            *across(LARGE, talk=AGENTS),
            *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
            *across(LARGE, talk=PLAIN),
        ),
        curve="sizes",
        pace=Pace(rounds=7, most_seconds=1.5),
        goals=(
            takes_at_most(7, "≤ 7 µs a message for OpenAI's wires, N=1000", sizes=LARGE, wires=OPENAI, by_message=True),
            gate(takes_at_most(8, "≤ 8 µs there", sizes=LARGE, wires=OPENAI, by_message=True)),
            takes_at_most(
                8, "≤ 8 µs a message for Anthropic and Google, N=1000", sizes=LARGE, wires=OTHERS, by_message=True
            ),
            gate(takes_at_most(9.5, "≤ 9.5 µs there", sizes=LARGE, wires=OTHERS, by_message=True)),
        ),
    ),
    Row(
        name="render_warm",
        title="Append two messages",
        what="One turn of two messages is appended to N that were rendered before; the hand loop renders them all.",
        unit="µs a request",
        cases=(*across((10, 100, 1000, 5000), talk=AGENTS), *across((10, 100, 1000, 5000), talk=PLAIN)),
        quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)),
        contenders=("limit", "kept", "sabir"),
        curve="sizes",
        goals=(
            takes_at_most(85, "≤ 85 µs, N=1000", sizes=LARGE),
            gate(takes_at_most(100, "≤ 100 µs, N=1000", sizes=LARGE)),
        ),
    ),
    Row(
        name="shared",
        title="Callers that share a history",
        what=f"One adapter rendered a history of N messages; {CALLERS} callers each add a message of their own to it, "
        "and render it once, one after the other. The hand loop renders all of it each time.",
        unit="µs a request",
        cases=(*across((100, 1000), talk=AGENTS), *across((100, 1000), talk=PLAIN)),
        quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)),
        contenders=("limit", "sabir"),
        pace=Pace(rounds=7, most_seconds=2.0),
        goals=(takes_at_most(400, "≤ 400 µs, N=1000", sizes=LARGE),),
    ),
    Row(
        name="send",
        title="Call beyond its rendering",
        what="A rendering of N messages, which was made before, goes to a server on this machine by the client that "
        "the plugin makes: the whole of `send`, less what decoding takes of an answer that just came; with "
        "decoding; and the connection alone, from bytes to bytes. Beside it the same bytes, ready made, posted "
        "by httpx2, which gives bytes too.",
        unit="µs CPU beyond rendering and decoding",
        figure=lambda record: record["sending"] / 1e3,
        cases=across((10,), url=STUB, talk=PLAIN),
        contenders=("raw", "sabir"),
        also=(
            ("µs CPU beyond rendering", lambda record: record["beyond"] / 1e3),
            ("µs CPU of the connection alone", lambda record: record["posting"] / 1e3),
        ),
        goals=(gate(adds_at_most(0, "raw", "not more than raw httpx2", clock="sending")),),
    ),
    Row(
        name="memory",
        title="Memory",
        what="5,000 messages rendered for three dialects: bytes that adapters and renderings hold, by tracemalloc, "
        "over the bytes of the three requests.",
        unit="× the requests' bytes",
        figure=lambda record: record["held"] / record["json"],
        cases=(Given("three dialects", 5000),),
        quick=(Given("three dialects", 500),),
        contenders=("sabir",),
        goals=(field_at_most(3, "≤ 3 × the bytes of their JSON", lambda record: record["held"] / record["json"]),),
    ),
    Row(
        name="history",
        title="Read a history",
        what="10,000 stored messages become messages; the limit is one pydantic validation by models of the same "
        "shape.",
        unit="µs a message",
        figure=lambda record: record["cpu"] / record["size"] / 1e3,
        cases=(Given("at rest", 10000),),
        quick=(Given("at rest", 1000),),
        contenders=("limit", "sabir"),
        goals=(at_most(2, "limit", "≤ 2 × one pydantic validation of the same JSON"),),
    ),
)
