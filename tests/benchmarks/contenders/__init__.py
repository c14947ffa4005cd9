"""One module a contender, each imported only by its worker, in an environment of its own.

A module imports the standard library, its own library and `tests.benchmarks.work`, and has

    REQUIREMENTS: tuple[str, ...]     a literal, read without importing: what pip installs; "{core}", "{openai}", …
                                      stand for the workspace's packages
    TASKS: dict[str, Callable[[Given], Callable[[], object]]]
                                      a task makes everything ready and returns what is timed, without arguments.
                                      ValueError: "does not do this wire"; it is left out without a word more
    EVIDENCE: dict[str, Callable[[Given, Any], object]]
                                      optional: what the timed function returned → the evidence of the table below;
                                      not timed, so that nothing is converted while the clock runs
    IMPORTED: str                     optional: source that imports it, before anything is made ready
    imports(given) -> tuple[str, str] optional: source that makes the provider ready, and source that goes on to the
                                      first answer of the stub at given.url; both run in a fresh process

What is timed may have three attributes: `renew`, called before each run outside the timing, makes what a run uses up;
`units` (1 where absent) says how many operations one run is: events, calls; `close` ends what was started for it. Where
a run returns {"figures": {name: figure}, …}, the medians of these over all rounds are kept too.

`given.talk` says which conversation: work.entries_of(given) has it as its wire does. In the agents' one a user's entry
may have "image", a data URL; a call or a text may have "reasoning", {"text", "seal"}, which must go back, or
"elsewhere": another provider's reply, whose reasoning (None where it has none) must not. A contender that cannot
express one of these there sends something else, is noticed by the checks, and is named with what it sent.

Without `given.url` a call goes through an in-process transport, else to the stub at that URL (http://127.0.0.1:port,
no path: add "/v1" where the SDK wants it). Each call offers work.OPTIONS.

task         size      evidence
render       messages  the wire's request, or the part of it that holds system and messages: a mapping, or its JSON
render_warm  messages  the same; limits and sabir alone
shared       messages  a list of the same, one for each of work.last_messages(); limits and sabir alone
send         messages  {"text": what the last answer says or is, "figures": {"beyond", "sending", "posting"}: the
                       nanoseconds of a call beyond its rendering, the same without its decoding, and of bytes for
                       bytes}; the stub answers; sabir and raw alone
call         messages  (the body as it reached the transport, the reply's text); the body is b"" where a stub took it
loop         turns     {"messages": how many there are at the end, "body": the last request's body (b"" with a stub),
                       "turns": the CPU nanoseconds of each turn}; starts with work.start(); turn n, from 0, is
                       answered with work.reply_with_calls(wire, range(n, n + 1), ""), its result is work.result(n)
decode       -         work.found(wire, text, [(id, name, arguments), …]) of work.reply_with_calls(wire)
stream       events    work.found(…) of what the stub's stream said; the stub knows how many events it sends
loopback     messages  the reply's text, a list of them where concurrency is 32; units = calls
memory       messages  {"held": bytes held after rendering, "json": bytes of the bodies}; sabir alone
history      messages  how many were read
append       messages  {"count": how many there are after one more, "text": of the last one}
policy       messages  the text that the policy chose, by the wire's options
checkpoint   records   {"count": how many are kept, "bodies": the JSON texts of the last work.BATCH, read back,
                       "bytes", "written": what one record takes of the file, and what is written for it};
                       units = work.BATCH
durable_step messages  {"count": steps in the database, "texts": of the last one}; units = work.STEPS
remote       messages  {"count": replies, "texts": what they said, each once}; given.url is a NATS server's
throughput   requests  the same
actor_message -        the text of the response
actor_phase  -         {"phases": those that were done, "text": of the last one}; units = phases; no rows in memory
actor_heartbeat threads {"together": how many were in progress at once, "completed", "phases": how often each asked,
                       "begun": how many asked for their first before any asked for its last}
actor_workers workers  {"completed": threads, "workers": how many processes ran them}; given.url is a Postgres server's
actor_memory threads   {"held": bytes, "states": state → how many threads have it}

`doing`, `stepping`, `asking` (standard library), `transport` (httpx2), `messages` (core), `recording` (sabir_session),
`threads` (sabir_actors) write once what several do: loops, concurrent calls, open runs, other processes, the in-process
transport, records, a model that is ready.
"""
