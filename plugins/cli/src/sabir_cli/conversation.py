"""Show a conversation: a reply as it arrives, and one line for each option call and result.

messages ──speak──▶ TimedReply: the reply, and its speed
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sabir
from sabir.authoring import Signature, one_line

from sabir_cli.output import Output

FAILED_REASONS = frozenset({"content_filter", "error", "native_calls"})
"""Finish reasons of replies that failed. "native_calls" is one of them, because this command cannot answer calls of a
provider's own tools.
"""
LONGEST_SHOWN = 300
"""Maximum length of the shown arguments or result of an option, in characters."""


@dataclass(frozen=True)
class TimedReply:
    """A reply, and the seconds in which it arrived, from its first piece on."""

    reply: sabir.Reply
    seconds: float

    @property
    def rate(self) -> float | None:
        """Output tokens per second after the first token. None if the number of tokens is not known or less than 2, or
        if all text arrived at once.
        """
        tokens = self.reply.usage.output_tokens or 0
        return (tokens - 1) / self.seconds if tokens > 1 and self.seconds >= 0.001 else None

    @property
    def failed(self) -> bool:
        """Whether the reply is unusable: the model refused, or the finish reason is in FAILED_REASONS."""
        return self.reply.refusal is not None or self.reply.finish_reason in FAILED_REASONS

    def summary(self) -> str:
        """Return tokens, finish reason and speed in one line."""
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
) -> TimedReply:
    """Request one reply as a stream, pass its text to `write` (by default `output.write`) as it arrives, and return the
    reply and its speed.

    A refusal is text, too. An exception, such as KeyboardInterrupt, closes the connection. Raises the errors of
    `stream_sync`.
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
    return TimedReply(reply, now - (now if first is None else first))


def describe_call(message: sabir.Message) -> str:
    """Return an option call in one line as Python code, such as `add(a=1, b=2)`. Arguments that are not a JSON object
    are shown as they are.
    """
    call = message.call
    assert call is not None
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.option_name}({call.unreadable_arguments or arguments})", LONGEST_SHOWN)


def describe_result(message: sabir.Message) -> str:
    """Return an option's result in one line: its text, the kinds of its parts, its JSON value, or its error."""
    result = message.result
    assert result is not None
    if result.is_error:
        return one_line(f"{result.error_type}: {result.error_message}", LONGEST_SHOWN)
    kinds = ", ".join(part.kind for part in result.parts)
    return one_line(message.text or (f"({kinds})" if kinds else result.result_json), LONGEST_SHOWN)


def describe_native(part: sabir.NativeCallPart | sabir.NativeResultPart) -> str:
    """Return a call of a vendor's own tool, or its result, in one line."""
    return one_line(part.as_text, LONGEST_SHOWN)


def needs_loop(options: Sequence[sabir.Option]) -> bool:
    """Return whether an option's function is a coroutine function, so that calls need an event loop. Without an event
    loop, Ctrl-C also stops a running option.
    """
    functions = [each.function for option in options for each in option.answered_here]
    return any(function is not None and Signature.is_asynchronous(function) for function in functions)
