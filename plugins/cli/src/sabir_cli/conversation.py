"""Shows a conversation: a reply as it arrives, calls and results in a line each.

messages ──speak──▶ Spoken: the reply, and how fast it came
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sabir
from sabir.authoring import Signature, one_line

from sabir_cli.output import Output

FAILED_REASONS = frozenset({"content_filter", "error", "native_calls"})
"""Finish reasons of replies that failed; a provider's own calls are among them, for nobody here answers those."""
LONGEST_SHOWN = 300
"""Characters of an option's arguments or result that are shown."""


@dataclass(frozen=True)
class Spoken:
    """A reply, and the seconds from its first piece of text to its last."""

    reply: sabir.Reply
    seconds: float

    @property
    def rate(self) -> float | None:
        """Tokens per second after the first one; None where the provider counted none or all came at once."""
        tokens = self.reply.usage.output_tokens or 0
        return (tokens - 1) / self.seconds if tokens > 1 and self.seconds >= 0.001 else None

    @property
    def failed(self) -> bool:
        """Whether the reply is not a usable answer: refused, filtered, broken off, or waiting for other code."""
        return self.reply.refusal is not None or self.reply.finish_reason in FAILED_REASONS

    def summary(self) -> str:
        """Tokens, finish reason and speed, in one line."""
        speed = [] if self.rate is None else [f"{self.rate:.1f} tokens/s"]
        return " · ".join([str(self.reply.usage), self.reply.finish_reason, *speed])


def speak(
    llm: sabir.ModelAdapter,
    messages: Sequence[sabir.Message],
    output: Output,
    *,
    options: Sequence[sabir.Option] = (),
    settings: sabir.Settings | None = None,
    write: Callable[[str], None] | None = None,
) -> Spoken:
    """One reply, its text written as it comes (to the output, unless told otherwise).

    An interruption closes the connection.
    """
    write = write or output.write
    first: float | None = None
    try:
        with (
            llm.stream_sync(messages, options=options, settings=settings) as stream,
            output.waiting(f"waiting for {llm.target}") as arrived,
        ):
            for event in stream:
                if isinstance(event, sabir.BlockStart | sabir.BlockDelta) and first is None:
                    first = time.perf_counter()
                    arrived()
                if isinstance(event, sabir.BlockDelta) and event.kind in ("text", "refusal"):
                    write(event.text)
            reply = stream.reply()
    finally:
        output.end_line()
    now = time.perf_counter()
    return Spoken(reply, now - (now if first is None else first))


def describe_call(message: sabir.Message) -> str:
    """Return a call as Python would write it, or with the text of arguments that are not a JSON object."""
    call = message.call
    assert call is not None
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.option_name}({call.unreadable_arguments or arguments})", LONGEST_SHOWN)


def describe_result(message: sabir.Message) -> str:
    """An option's return value, or why it failed."""
    result = message.result
    assert result is not None
    if result.is_error:
        return one_line(f"{result.error_type}: {result.error_message}", LONGEST_SHOWN)
    kinds = ", ".join(part.kind for part in result.parts)
    return one_line(message.text or (f"({kinds})" if kinds else result.result_json), LONGEST_SHOWN)


def needs_loop(options: Sequence[sabir.Option]) -> bool:
    """Whether an option is asynchronous; where none is, no loop is started, so that Ctrl-C interrupts an option."""
    return any(option.function is not None and Signature.is_asynchronous(option.function) for option in options)
