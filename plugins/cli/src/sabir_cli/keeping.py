"""One user's turn, an evaluation shown as it goes; and where a conversation of `sabir chat` is kept.

    messages ──▶ evaluate ──events──▶ text on standard output, calls, results, usage and losses beside it

Kept ── turn(message) ──▶ Turn           drop_last() takes the last one back
 │              --history FILE   saved after each turn; a failed turn leaves it as it was; in memory without FILE
 └─ Recorded    --session FILE   each message the moment it is there; --resume finishes what was interrupted
                                 chat ─┬─ · ─ · ─ turn     a log is never erased: removed turns stay in it,
                                       └─ chat-2 ─ turn    and a fork from before them continues (one row)
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import sabir
import sabir_session
from sabir.authoring import SyncClosing

from sabir_cli.conversation import Spoken, describe_call, describe_result, needs_loop
from sabir_cli.output import Output, UsageError

MOST_REPLIES = 16
"""Replies to one turn of the user before a model that only calls options is stopped."""
SYSTEM, USER = "system", "user"
"""The policies of instructions and of the user's messages."""
JOURNAL = "chat"
"""The name of the one conversation in a session's file; "chat-2" continues from before its removed turns."""

NOTHING_SAID = "nothing was said in this conversation yet; there is nothing to take back"


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
    session: sabir_session.Session | None = None,
    evaluation_id: str | None = None,
) -> Turn:
    """Hear all that the model says to these messages; without any, to what a session holds of that evaluation.

    Raises OutputError for a model that does nothing but choose options, and what a call raises.
    """
    records = session.select_all(sabir_session.InnerMessage) if session is not None else ()
    earlier = sum(record.role == "assistant" for record in records)
    asked = list(messages)
    watch = _Watch(output, llm.target)
    how = sabir_session.EvaluateArguments(
        options=options,
        session=session,
        resume=not asked,
        evaluation_id=None if asked else evaluation_id,
        budget=sabir_session.Budget(turns=earlier + MOST_REPLIES),
        watch=watch,
    )
    try:
        with watch:
            if needs_loop(options):
                response = asyncio.run(sabir_session.evaluate(llm, asked, **how))
            else:
                response = sabir_session.evaluate_sync(llm, asked, **how)
    except sabir_session.BudgetExhausted as stopped:
        assert stopped.response is not None  # the budget is larger than what was there
        text = f"{llm.target} called options {MOST_REPLIES} times in a row; stopped"
        raise sabir.errors.OutputError(text, stopped.response.reply) from None
    except _NobodyReads as left:
        raise left.error from None
    last = watch.heard[-1] if watch.heard else Spoken(response.reply, 0.0)
    return Turn(response.messages, last, tuple(watch.heard))


class _NobodyReads(BaseException):
    """Standard output was closed: leaves an evaluation past whatever keeps its errors."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Watch(ExitStack):
    """Shows what an evaluation tells: that a reply is waited for, its text as it comes, and how fast that was."""

    def __init__(self, output: Output, target: object) -> None:
        super().__init__()
        self.callback(output.end_line)
        self.heard: list[Spoken] = []
        self._output, self._target = output, target

    def __call__(self, event: sabir_session.Event) -> None:
        """Show one event."""
        try:
            self._show(event)
        except OSError as error:
            raise _NobodyReads(error) from None

    def _show(self, event: sabir_session.Event) -> None:
        match event:
            case sabir_session.RequestStarted():
                self._times: list[float] = []
                self._arrived = self.enter_context(self._output.waiting(f"waiting for {self._target}"))
            case sabir_session.TextArrived(text):
                if not self._times:
                    self._arrived()
                self._output.write(text)
                self._times.append(time.perf_counter())
            case sabir_session.ReplyArrived(reply):
                self.heard.append(self._end(reply))
                self._output.losses(reply.losses)
                self._output.note(f"usage  {self.heard[-1].summary()}")
            case sabir_session.CallStarted(call):
                self._output.note(f"call   {describe_call(call)}")
            case sabir_session.CallEnded(_, result):
                failed = result.result is not None and result.result.is_error
                self._output.note(f"result {describe_result(result)}", "red" if failed else "dim")

    def _end(self, reply: sabir.Reply) -> Spoken:
        """The whole reply; a refusal is written where nothing else was said."""
        self._arrived()
        if reply.refusal and not reply.text:
            self._output.write(reply.refusal)
        self._output.end_line()
        return Spoken(reply, self._times[-1] - self._times[0] if self._times else 0.0)


class Kept(SyncClosing):
    """A conversation with a model: in memory, and in a history's file where one is given."""

    FORGOTTEN = "this turn is forgotten"
    """What happens to a failed turn, in words."""
    is_resumable = False
    """Whether a turn that was interrupted can be finished later."""

    def __init__(
        self, llm: sabir.ModelAdapter, options: Sequence[sabir.Option], output: Output, file: Path | None = None
    ) -> None:
        self.llm, self.options, self.output, self.file = llm, options, output, file
        if file is not None and not file.absolute().parent.is_dir():
            flag = "--session" if self.is_resumable else "--history"
            raise UsageError(f"{flag} {str(file)!r}: there is no folder {str(file.parent)!r}; make it first")
        self._read()

    def _read(self) -> None:
        self.messages = sabir.load(self.file) if self.file is not None and self.file.exists() else []

    @property
    def is_begun(self) -> bool:
        """Whether anything was said."""
        return bool(self.messages)

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn is unfinished; only recorded conversations know."""
        return False

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and hear all of the answer; a failure leaves the conversation as it was."""
        turn = take_turn(self.llm, [*self.messages, *said], self.options, self.output)
        self.messages = list(turn.messages)
        if self.file is not None:
            sabir.save(self.file, self.messages)
        return turn

    def drop_last(self) -> str:
        """Remove the user's last message and everything after it; the file is updated with the next turn.

        Returns its text. Raises UsageError if there is none.
        """
        said = [index for index, message in enumerate(self.messages) if message.policy == USER]
        if not said:
            raise UsageError(NOTHING_SAID)
        dropped, self.messages = self.messages[said[-1]], self.messages[: said[-1]]
        return dropped.text

    def close(self) -> None:
        """Nothing to close."""


class Recorded(Kept):
    """A conversation in a session's file: nothing is lost, and nothing finished runs again."""

    FORGOTTEN = "what was said is kept; --resume answers it, --drop-last or /drop takes it back"
    is_resumable = True

    def _read(self) -> None:
        assert self.file is not None
        self.store = sabir_session.SQLiteStore(self.file)
        self._open(max(map(_number, self.store.names()), default=1))

    def _open(self, number: int) -> None:
        self.number = number
        self.session = sabir_session.Session(journal=self.store.journal(_journal(number)))
        sabir_session.enable_inner_message_recording(self.session)

    @property
    def is_begun(self) -> bool:
        """Whether anything was said; a process that dies before the first message is recorded leaves instructions."""
        return self._evaluation is not None

    @property
    def _evaluation(self) -> str | None:
        """The id of the last evaluation with a user's message, which is the conversation."""
        said = [record for record in sabir_session.get_inner_messages(self.session) if record.role != SYSTEM]
        return said[-1].evaluation_id if said else None

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn is unfinished."""
        return self._evaluation in sabir_session.unfinished_evaluations(self.session)

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and get the whole answer; without a message, finish the last turn."""
        records = sabir_session.get_inner_messages(self.session)
        if said and records and (self.is_begun or said[0].policy != SYSTEM):
            sabir_session.follow_up(self.session, *said, evaluation_id=self._evaluation)
            said = ()
        return take_turn(self.llm, said, self.options, self.output, self.session, self._evaluation)

    def drop_last(self) -> str:
        """Remove the user's last message and everything after it: continue in a fork from before it."""
        said = [record for record in sabir_session.get_inner_messages(self.session) if record.role == "user"]
        if not said:
            raise UsageError(NOTHING_SAID)
        rows = self.store.journal(_journal(self.number)).read()
        at = next(at for at, (_, body) in enumerate(rows) if str(said[-1].message_id) in body)
        self.store.fork(_journal(self.number), _journal(self.number + 1), at)
        self._open(self.number + 1)
        return said[-1].content

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def _journal(number: int) -> str:
    return JOURNAL if number == 1 else f"{JOURNAL}-{number}"


def _number(name: str) -> int:
    number = name.removeprefix(f"{JOURNAL}-")
    return int(number) if number.isdecimal() else 1
