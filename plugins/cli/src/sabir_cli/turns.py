"""One user's turn: an evaluation, shown as it goes; recorded where a session is given.

messages ──▶ evaluate ──events──▶ text on standard output, calls, results, usage and losses beside it
                └─▶ session: every message before anything is done with it
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import sabir
from sabir_session import (
    Budget,
    BudgetExhausted,
    CallEnded,
    CallStarted,
    EvaluateArguments,
    Event,
    InnerMessage,
    ReplyArrived,
    RequestStarted,
    Session,
    TextArrived,
    evaluate,
    evaluate_sync,
)

from sabir_cli.conversation import Spoken, describe_call, describe_result, needs_loop
from sabir_cli.output import Output

MOST_REPLIES = 16
"""Replies to one turn of the user before a model that only calls options is stopped."""


@dataclass(frozen=True)
class Turn:
    """What came of a turn: the whole conversation, and each reply as it was heard; none where it was over before."""

    messages: tuple[sabir.Message, ...]
    last: Spoken
    heard: tuple[Spoken, ...]


def take_turn(
    llm: sabir.ModelAdapter,
    messages: Sequence[sabir.Message],
    options: Sequence[sabir.Option],
    output: Output,
    session: Session | None = None,
    evaluation_id: str | None = None,
) -> Turn:
    """Hear all that the model says to these messages; without any, to what a session holds of that evaluation.

    Raises OutputError for a model that does nothing but choose options, and what a call raises.
    """
    watch = _Watch(output, str(llm.target))
    earlier = 0 if session is None else sum(record.role == "assistant" for record in session.select_all(InnerMessage))
    budget = Budget(turns=earlier + MOST_REPLIES)
    asked = list(messages)
    how = EvaluateArguments(options=options, session=session, resume=not asked, budget=budget, watch=watch)
    how["evaluation_id"] = None if asked else evaluation_id
    try:
        with watch.stack:
            response = (
                asyncio.run(evaluate(llm, asked, **how)) if needs_loop(options) else evaluate_sync(llm, asked, **how)
            )
    except BudgetExhausted as stopped:
        assert stopped.response is not None  # the budget is larger than what was there
        text = f"{llm.target} called options {MOST_REPLIES} times in a row; stopped"
        raise sabir.errors.OutputError(text, stopped.response.reply) from None
    except _NobodyReads as left:
        raise left.error from None
    finally:
        output.end_line()
    last = watch.heard[-1] if watch.heard else Spoken(response.reply, 0.0)
    return Turn(response.messages, last, tuple(watch.heard))


class _NobodyReads(BaseException):
    """Standard output was closed: leaves an evaluation past whatever keeps its errors."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Watch:
    """Shows what an evaluation tells, and measures how fast text comes."""

    def __init__(self, output: Output, target: str) -> None:
        self.heard: list[Spoken] = []
        self.stack = ExitStack()
        self._output = output
        self._target = target
        self._first: float | None = None
        self._latest: float | None = None

    def __call__(self, event: Event) -> None:
        """Show one event."""
        try:
            self._show(event)
        except OSError as error:
            raise _NobodyReads(error) from None

    def _show(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._first = self._latest = None
                self._arrived = self.stack.enter_context(self._output.waiting(f"waiting for {self._target}"))
            case TextArrived(text):
                self._begin()
                self._output.write(text)
                self._latest = time.perf_counter()
            case ReplyArrived(reply):
                self._end(reply)
            case CallStarted(call):
                self._output.note(f"call   {describe_call(call)}")
            case CallEnded(_, result):
                failed = result.result is not None and result.result.is_error
                self._output.note(f"result {describe_result(result)}", "red" if failed else "dim")

    def _begin(self) -> None:
        if self._first is None:
            self._first = time.perf_counter()
            self._arrived()

    def _end(self, reply: sabir.Reply) -> None:
        self._begin()
        assert self._first is not None
        seconds = (self._latest or self._first) - self._first
        if reply.refusal and not reply.text:
            self._output.write(reply.refusal)
        self._output.end_line()
        spoken = Spoken(reply, seconds)
        self.heard.append(spoken)
        self._output.losses(reply.losses)
        self._output.note(f"usage  {spoken.summary()}")
