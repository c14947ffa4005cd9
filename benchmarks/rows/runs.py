"""What outlives a call: managers, policies, checkpoints, durable and remote calls, actors and threads."""

import math

from benchmarks.goals import adds_at_most, at_most, faster, field_at_most, gate, grows_at_most
from benchmarks.interleave import Pace
from benchmarks.rows.row import Row, all_together
from benchmarks.servers import NATS, POSTGRES
from benchmarks.work import Given

ENDS = (1, 10000)
LONGEST = (10, 20000)
THAN_A_DUMP = {"SQLite": ("dump",)}

RUNS = (
    Row(
        name="conversation", title="Question to a long conversation",
        what="One more question to a conversation of N messages, answered at once in the process; sabir's is kept in "
        "SQLite under a budget, pydantic-ai's agent is given `message_history` and keeps nothing. sabir's figures are "
        "apart, each the least of ten questions: rendering, which copies the kept bytes and compares each message by "
        "identity; sending and decoding, which hands these bytes to the HTTP client; and all that the conversation "
        "itself does. All sizes are interleaved.",
        unit="ms CPU a question", figure=lambda record: record["cpu"] / 1e6,
        cases=tuple(Given("openai.chat", size) for size in (10, 1000, 20000)),
        quick=(Given("openai.chat", 10), Given("openai.chat", 1000)),
        contenders=("sabir_conversation", "pydantic_ai"), measure=all_together,
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=tuple((f"ms CPU a question, sabir: {title}", lambda record, name=name: record.get(name, math.nan) / 1e6)
            for name, title in (("beyond", "the conversation"), ("render", "rendering"), ("send", "sending"))),
        goals=(
            grows_at_most(1.3, LONGEST, "without rendering and sending: 20,000 messages ≤ 1.3 × 10", field="beyond"),
            grows_at_most(1.3, LONGEST, "with rendering and sending: 20,000 messages ≤ 1.3 × 10"),
            faster(1, {"openai.chat": ("pydantic_ai",)}, "not slower than pydantic-ai's agent"),
        ),
    ),
    Row(
        name="ask", title="Question to a short conversation",
        what="Questions to conversations of at most N questions, answered at once in the process, in turn: what a "
        "conversation in memory adds to `complete` with a list of messages; and what a SQLite store adds to such a "
        "conversation, beside the two rows of the same bytes, each inserted and committed by hand after a question. "
        "Each is the difference of the least of ten questions.",
        unit="µs CPU a question", figure=lambda record: record["beyond"] / 1e3,
        cases=(Given("in memory", 11), Given("SQLite", 11)), contenders=("sabir_conversation",), column="questions",
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("µs CPU of the two rows", lambda record: record.get("rows", math.nan) / 1e3),),
        goals=(
            gate(field_at_most(120, "in memory: adds ≤ 120 µs to `complete`", unit="µs",
                figure=lambda record: record["beyond"] / 1e3 if "rows" not in record else None)),
            gate(field_at_most(1.5, "in SQLite: adds ≤ 1.5 × the bare rows of the same bytes",
                lambda record: record["beyond"] / record["rows"] if "rows" in record else None)),
        ),
    ),
    Row(
        name="append", title="Append to a manager with roles",
        what="One instruction is added to a manager of N messages, which then gives all its messages for an adapter; "
        "core's own is one message appended to a list, and a copy of the list. All sizes are interleaved.",
        unit="µs an append", cases=(Given("in memory", 10), Given("in memory", 100), Given("in memory", 1000)),
        contenders=("bare_append", "sabir_roles"), measure=all_together,
        goals=(
            grows_at_most(1.5, (10, 1000), "constant: at 1,000 messages ≤ 1.5 × at 10"),
            adds_at_most(250, "bare_append", "adds ≤ 250 µs to core's own append"),
        ),
    ),
    Row(
        name="policy", title="Call of a policy in memory",
        what="A bound policy that chooses a ready text, called by the untraced runner in memory; the limit awaits the"
        " same coroutine function.",
        unit="µs a call", cases=(Given("no options", 10), Given("three options", 10)),
        contenders=("limit", "sabir_runtime"),
        goals=(adds_at_most(2, "limit", "adds ≤ 2 µs to a plain await of the same coroutine function"),),
    ),
    Row(
        name="checkpoint", title="Checkpoint of a message",
        what="One record of one message is appended to a session that holds N, with a journal in SQLite; the limit is"
        " one INSERT of the same text. Beside it, N=1,000 written as one JSON text each time. All sizes are "
        "interleaved.",
        unit="µs CPU a record", cases=(Given("SQLite", 1), Given("SQLite", 1000), Given("SQLite", 10000)),
        contenders=("bare_row", "sabir_runtime", "dump"), curve="sizes", measure=all_together,
        pace=Pace(rounds=15, most_seconds=20.0),
        also=(
            ("µs a record elapsed", lambda record: record["wall"] / 1e3),
            ("bytes kept for a record", lambda record: record["bytes"]),
            ("bytes written for a record", lambda record: record["written"]),
        ),
        goals=(
            at_most(1.5, "bare_row", "≤ 1.5 × one bare row"),
            grows_at_most(1.2, ENDS, "constant: at 10,000 records ≤ 1.2 × at 1"),
            grows_at_most(1.05, ENDS, "constant: bytes kept, at 10,000 ≤ 1.05 × at 1", field="bytes"),
            faster(100, THAN_A_DUMP, "≥ 100 × less time than a dump, N=1,000", sizes=(1000,)),
            faster(100, THAN_A_DUMP, "≥ 100 × fewer bytes written than by a dump, N=1,000", sizes=(1000,),
                clock="written"),
        ),
    ),
    Row(
        name="durable_step", title="Call in a durable run",
        what="A bound call in a run on SQLite, whose policy chooses a ready text; the limit is the engine's own step,"
        " which gives the same text.",
        unit="ms a call elapsed", figure=lambda record: record["wall"] / 1e6, cases=(Given("SQLite", 10),),
        contenders=("bare_step", "sabir_durable"), pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("ms CPU a call", lambda record: record["cpu"] / 1e6),),
        goals=(at_most(1.2, "bare_step", "≤ 1.2 × the engine's own step", clock="wall"),),
    ),
    Row(
        name="remote", title="Call of a remote policy",
        what="A bound call with N observations, the last one new each time, whose policy runs at the one worker, one "
        "by one or 32 at once; the limit sends and answers the same bytes by NATS's own client, and neither "
        "reads nor writes them.",
        unit="ms a call elapsed", figure=lambda record: record["wall"] / 1e6,
        cases=tuple(Given("one worker", size, NATS, at_once) for size in (1, 10) for at_once in (1, 32)),
        quick=(Given("one worker", 10, NATS), Given("one worker", 10, NATS, 32)),
        contenders=("bare_request", "sabir_distributed"), concurrencies=True,
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("ms CPU of the caller a call", lambda record: record["cpu"] / 1e6),),
        goals=tuple(at_most(1.5, "bare_request", f"≤ 1.5 × a bare NATS request, N={size}", sizes=(size,),
            clock="wall", concurrency=1) for size in (1, 10)),
    ),
    Row(
        name="throughput", title="Ten thousand remote calls",
        what="Bound calls with ten messages each, 32 at once, whose policy runs at four workers, all on the same "
        "cores as the caller; the limit sends and answers the same bytes by NATS's own client.",
        unit="requests a second", figure=lambda record: 1e9 / record["wall"],
        cases=(Given("four workers", 10000, NATS, 32),), quick=(Given("four workers", 1000, NATS, 32),),
        contenders=("bare_request", "sabir_distributed"), column="calls", pace=Pace(rounds=5, most_seconds=60.0),
        also=(
            ("ms until the reply, median", lambda record: record["median"] / 1e6),
            ("ms until the reply, 99th percentile", lambda record: record["p99"] / 1e6),
        ),
    ),
)  # fmt: skip


ACTORS = (
    Row(
        name="actor_message", title="Message to an actor",
        what="A request that is made, validated, handled by a simple actor and answered, through its system; the "
        "limit is two bare asyncio queues, and the same request and response, each validated once when it is "
        "made.",
        unit="µs a message", cases=(Given("in memory", 0),), contenders=("bare_queues", "sabir_actors"),
        goals=(at_most(2, "bare_queues", "≤ 2 × two bare asyncio queues and one validation each way"),),
    ),
    Row(
        name="actor_heartbeat", title="A thousand threads at once",
        what="N threads of three phases in progress together in one process, in memory, on a model that replies after"
        " 2 to 6 seconds; the actor of all threads is sent a heartbeat 10 ms after it answered the last one, "
        "until all are over.",
        unit="µs a heartbeat, median", figure=lambda record: record["median"] / 1e3,
        cases=(Given("in memory", 1000),), quick=(Given("in memory", 100),), contenders=("sabir_actors",),
        column="threads", pace=Pace(rounds=3, most_seconds=60.0),
        also=(
            ("µs a heartbeat, 99th percentile", lambda record: record["p99"] / 1e3),
            ("µs a heartbeat, before the threads start", lambda record: record["alone"] / 1e3),
            ("ms CPU a thread", lambda record: record["cpu"] / 1e6),
        ),
        goals=(
            field_at_most(10, "heartbeat meanwhile ≤ 10 × alone", lambda record: record["median"] / record["alone"]),
        ),
    ),
    Row(
        name="actor_phase", title="Phase of a thread",
        what="A thread of six phases from its start to its result, whose model has its reply ready, with a journal in"
        " SQLite and in memory alone; the limit appends to a journal of its own the very rows that such a thread"
        " wrote.",
        unit="µs CPU a phase", cases=(Given("SQLite", 6), Given("in memory", 6)),
        contenders=("bare_records", "sabir_actors"), column="phases",
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("µs a phase elapsed", lambda record: record["wall"] / 1e3),),
        goals=(at_most(4, "bare_records", "≤ 4 × writing the same journal rows"),),
    ),
    Row(
        name="actor_workers", title="Workers of threads",
        what="96 threads of two phases, whose model replies after 0.5 s, on N workers, each of which runs 8 threads "
        "at once. They share one Postgres, and the cores with it; a further process starts the threads. All are "
        "interleaved.",
        unit="threads a second", figure=lambda record: 1e9 / record["each"],
        cases=(Given("Postgres", 1, POSTGRES), Given("Postgres", 4, POSTGRES)), contenders=("sabir_workers",),
        column="workers", measure=all_together, pace=Pace(rounds=3, most_seconds=60.0),
        goals=(grows_at_most(1 / 3, (1, 4), "four workers ≥ 3 × one: a thread takes ≤ 1/3 of the time", field="each"),),
    ),
    Row(
        name="actor_memory", title="Memory of an idle thread",
        what="Bytes that N threads add to a process which has a thousand already, by tracemalloc: created and not "
        "started, without a store; or paused, with a store in SQLite, where what is left is strings that "
        "pydantic-core keeps for reading JSON, so many of a process at most.",
        unit="bytes a thread", figure=lambda record: record["held"] / record["size"],
        cases=(Given("created, in memory", 1000), Given("paused, SQLite", 1000)),
        quick=(Given("created, in memory", 100), Given("paused, SQLite", 100)), contenders=("sabir_actors",),
        column="threads",
    ),
)  # fmt: skip
