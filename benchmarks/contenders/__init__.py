"""The contenders, and the modules that they are in: each is imported by its own worker, in an environment of its own.

A module imports the standard library, its own library, `doing` and `benchmarks.work`, and has

    REQUIREMENTS: tuple[str, ...]           a literal, read without importing: what pip installs; "{core}", "{openai}",
                                            … stand for the workspace's packages
    CONTENDERS: dict[str, doing.Contender]  what each of its contenders does

A task makes everything ready for a `Given`, and returns what is timed, without arguments. ValueError says "does not do
this wire": it is left out without a word more. What the timed function returns becomes evidence untimed, by what
`evidence` has for the task, so that nothing is converted while the clock runs.

What is timed may have three attributes: `renew`, called before each run outside the timing, makes what a run uses up;
`units` (1 where absent) says how many operations one run is: events, calls; `close` ends what was started for it. Where
a run returns {"figures": {name: figure}, …}, the medians of these over all rounds are kept too.

`given.talk` says which conversation: work.entries_of(given) has it as its wire does. In the agents' one a user's entry
may have "image", a data URL; a call or a text may have "reasoning", {"text", "seal"}, which must go back, or
"elsewhere": another provider's reply, whose reasoning (None where it has none) must not. A contender that cannot
express one of these there sends something else, is noticed by the checks, and is named with what it sent.

Without `given.url` a call goes through an in-process transport, else to the stub at that URL (http://127.0.0.1:port,
no path: add "/v1" where the SDK wants it). Each call offers work.OPTIONS. Who calls a wire is a `doing.Caller`, which
has loops, concurrent calls and what is checked of them written once.

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
                       answered with answers.reply_with_calls(wire, range(n, n + 1), ""), its result is work.result(n)
decode       -         answers.found(wire, text, [(id, name, arguments), …]) of answers.reply_with_calls(wire)
stream       events    answers.found(…) of what the stub's stream said; the stub knows how many events it sends
loopback     messages  the reply's text, a list of them where concurrency is 32; units = calls
memory       messages  {"held": bytes held after rendering, "json": bytes of the bodies}; sabir alone
conversation messages  {"text": the answer to one more question or to several, "figures": {"render", "send", "beyond"}:
                       sabir's nanoseconds of rendering, of sending and decoding, and of all else, each the least of
                       ten questions}; the history is work.answered(size); units = questions
ask          questions {"text": the answers, "figures": {"beyond": nanoseconds that a conversation adds to `complete`,
                       or a store to a question, "rows": the same of two rows by hand, with a store}};
                       units = questions
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
"""

_NAMED = {
    "sabir": ("sabir", "sabir"),
    "sabir_runtime": ("runtime", "sabir"),
    "sabir_durable": ("durable", "sabir"),
    "sabir_distributed": ("distributed", "sabir"),
    "sabir_roles": ("roles", "sabir"),
    "sabir_actors": ("actors", "sabir"),
    "sabir_workers": ("workers", "sabir"),
    "sabir_conversation": ("conversation", "sabir"),
    "openai_sdk": ("openai_sdk", "openai SDK"),
    "anthropic_sdk": ("anthropic_sdk", "anthropic SDK"),
    "google_sdk": ("google_sdk", "google-genai SDK"),
    "mirascope": ("mirascope", "mirascope"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "langchain": ("langchain", "langchain"),
    "litellm": ("litellm", "litellm"),
    "any_llm": ("any_llm", "any-llm"),
    "lm15": ("lm15", "lm15"),
    "llm": ("llm", "llm"),
    "dump": ("runtime", "whole-history dump"),
    "limit": ("limit", "limit"),
    "kept": ("limit", "limit, kept prefix"),
    "raw": ("limit", "raw httpx2"),
    "floor": ("limit", "pydantic + httpx2"),
    "bare_row": ("runtime", "bare SQLite row"),
    "bare_step": ("durable", "the engine's own step"),
    "bare_request": ("distributed", "bare NATS request"),
    "bare_append": ("roles", "core's own append"),
    "bare_queues": ("actors", "two bare queues"),
    "bare_records": ("actors", "the journal's own rows"),
}
"""Every contender, in the order of the tables: whom a reader chooses between comes first, limits come last."""
MODULES = {name: module for name, (module, _) in _NAMED.items()}
LABELS = {name: label for name, (_, label) in _NAMED.items()}
OWN = tuple(name for name, label in LABELS.items() if label == "sabir")
"""sabir, with those of its packages that a row needs: what importing the first of them costs is of that one alone."""
BARE = tuple(name for name in LABELS if name.startswith("bare_"))
"""The limits of single rows."""
APART = (*OWN[1:], *BARE, "dump", "raw")
"""Who is of single rows alone."""
