"""How far an evaluation is: what was said, which calls have no result yet, and whether it is over.

    records of a session ──restore──┐
                                    ├──▶ Conversation ── take(reply), settle(call, result) ──▶ records
    opening of a prompt ────begin───┘

Both begin with records, so that there is one way to go on: that of an evaluation which was interrupted.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple
from uuid import uuid4

from sabir import Message, Reply
from sabir.constructors import as_messages
from sabir_session import (
    InnerMessage,
    Session,
    enable_inner_message_recording,
    get_inner_messages,
    get_latest_evaluation_id,
)

from sabir_runtime.outcomes import ConversationNotFound, PromptMismatch
from sabir_runtime.prompt import Output, Prompt
from sabir_runtime.records import Clerk, Heading, messages_of, reply_of


class OpenCall(NamedTuple):
    """A call without a result: its position among its reply's, the place of its result, whether it may have run.

    `key` names it for good: by its reply's record, which two forks share only if it was there before they parted.
    """

    position: int
    message: Message
    sequence: int
    key: str
    is_resume: bool


class Conversation:
    """One evaluation, as its records tell it. `unrecorded` are those of them that the session does not hold yet."""

    def __init__(
        self, heading: Heading, records: Sequence[InnerMessage], unrecorded: Sequence[InnerMessage], *, is_resume: bool
    ) -> None:
        self.heading = heading
        self.unrecorded = tuple(unrecorded)
        self.replies = [reply_of(record) for record in records if is_reply(record)]
        end = len(records)
        while end and records[end - 1].role == "tool":
            end -= 1
        self._said = [message for record in records[:end] for message in messages_of(record)]
        self._settled, waiting = _matched(records[end - 1], records[end:]) if end else ({}, {})
        following = 1 + max(record.sequence for record in records)
        self.open: list[OpenCall] = []
        for position, (call, sequence) in waiting.items():
            self.open.append(OpenCall(position, call, sequence, _key(records[end - 1], position), is_resume))
            following = max(following, sequence + 1)
        self.clerk = Clerk(heading, following, max(record.turn for record in records))
        self._ends_with_reply = is_reply(records[-1])
        self._settle_all()

    @property
    def messages(self) -> list[Message]:
        """All messages so far, results in the order of their calls."""
        return [*self._said, *(message for _, message in sorted(self._settled.items()))]

    @property
    def turn(self) -> int:
        """How many replies have come."""
        return self.clerk.turn

    @property
    def is_over(self) -> bool:
        """Whether the last thing that happened is a reply that asks for nothing (D-17)."""
        if not self._ends_with_reply or self.open:
            return False
        last = self.replies[-1]
        return not last.option_calls and last.finish_reason != "paused"

    def take(self, reply: Reply) -> InnerMessage:
        """A reply has come: its record, which is to be kept before any of its calls runs (WI-25)."""
        record = self.clerk.reply(reply)
        self.replies.append(reply)
        self._said += reply.messages
        self.open = [
            OpenCall(position, call, record.sequence + 1 + position, _key(record, position), is_resume=False)
            for position, call in enumerate(reply.option_calls)
        ]
        self._ends_with_reply = True
        return record

    def settle(self, call: OpenCall, result: Message) -> InnerMessage:
        """A call has its result: the record of that, which is to be kept at once (WI-26)."""
        self.open.remove(call)
        self._settled[call.position] = result
        self._settle_all()
        return self.clerk.result(result, call.sequence)

    def _settle_all(self) -> None:
        """Once all calls have their results, these follow them in the calls' order (WI-44)."""
        if self._settled and not self.open:
            self._said += [message for _, message in sorted(self._settled.items())]
            self._settled = {}
            self._ends_with_reply = False


def follow_up(session: Session, *messages: Message) -> None:
    """Let the latest evaluation of a session go on with what is said next: a resume then answers it.

        follow_up(session, sabir.user("And tomorrow?"))
        response = await evaluate(llm, prompt, session=session, resume=True)

    So a chat costs one record a message, however long it is. Calls that have no result by then are abandoned, as in
    any conversation whose user goes on. Raises ConversationNotFound where nothing was recorded, RecordingFailed where
    the session cannot record.
    """
    enable_inner_message_recording(session)
    evaluation_id = get_latest_evaluation_id(session)
    if evaluation_id is None:
        raise ConversationNotFound("the session holds no messages; evaluate a prompt to begin a conversation")
    records = get_inner_messages(session, evaluation_id)
    heading = Heading(evaluation_id, records[0].prompt_ns, records[0].prompt_key)
    clerk = Conversation(heading, records, (), is_resume=True).clerk
    for record in clerk.following(as_messages(messages)):
        session.mutate(InnerMessage).append(record)


def is_reply(record: InnerMessage) -> bool:
    """Whether a record is a provider's answer in this evaluation, and not one that its prompt quotes."""
    return record.role == "assistant" and record.turn > 0


def _key(asked: InnerMessage, position: int) -> str:
    return f"{asked.message_id}/{position}"


def _matched(
    asked: InnerMessage, results: Sequence[InnerMessage]
) -> tuple[dict[int, Message], dict[int, tuple[Message, int]]]:
    """Results by the position of their calls, and the calls without one with the places of theirs.

    A result answers the call whose place it has; in records that were written elsewhere, the first of its id (UP-13).
    What answers none stays behind all others.
    """
    calls = [message for message in messages_of(asked) if message.kind == "option_call"]
    waiting = {position: (call, asked.sequence + 1 + position) for position, call in enumerate(calls)}
    settled: dict[int, Message] = {}
    for record in results:
        same = [
            position
            for position, (call, _) in waiting.items()
            if call.call is not None and call.call.invocation_id == record.tool_call_id
        ]
        placed = [position for position in same if waiting[position][1] == record.sequence]
        position = next(iter(placed or same), len(calls) + len(settled))
        waiting.pop(position, None)
        settled[position] = messages_of(record)[0]
    taken = {record.sequence for record in results}
    behind = count(max(taken, default=0) + 1)
    free = {place: (call, next(behind) if at in taken else at) for place, (call, at) in waiting.items()}
    return settled, free


def begin(prompt: Prompt[Output], speaks_as: str) -> Conversation:
    """A new evaluation (WI-09); nothing of it is recorded yet."""
    heading = Heading(str(uuid4()), prompt.ns, prompt.key)
    records = tuple(Clerk(heading).opening(prompt.opening(), speaks_as))
    return Conversation(heading, records, records, is_resume=False)


def restore(session: Session | None, prompt: Prompt[Output], speaks_as: str) -> Conversation:
    """The latest evaluation of a session, as far as it came (WI-37, WI-42).

    Raises ConversationNotFound where there is none, PromptMismatch where it was another prompt's. What of the opening
    had no time to be recorded is taken from the prompt.
    """
    evaluation_id = None if session is None else get_latest_evaluation_id(session)
    if session is None or evaluation_id is None:
        where = "there is no session" if session is None else "the session holds no messages"
        raise ConversationNotFound(f"no conversation to resume: {where}; evaluate without resume=True to begin one")
    records = get_inner_messages(session, evaluation_id)
    recorded = (records[0].prompt_ns, records[0].prompt_key)
    if recorded != (prompt.ns, prompt.key):
        raise PromptMismatch(
            f"the recorded prompt is {_named(*recorded)}, this one is {_named(prompt.ns, prompt.key)}; "
            "resume with the recorded one, or begin anew"
        )
    heading = Heading(evaluation_id, *recorded)
    missing: tuple[InnerMessage, ...] = ()
    if not any(map(is_reply, records)):
        missing = tuple(Clerk(heading).opening(prompt.opening(), speaks_as))[len(records) :]
    return Conversation(heading, (*records, *missing), missing, is_resume=True)


def _named(ns: str, key: str) -> str:
    return repr(f"{ns}:{key}") if ns or key else "without a name"
