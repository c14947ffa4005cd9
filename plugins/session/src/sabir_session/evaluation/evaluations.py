"""The evaluations of a session: begun, found again, continued.

begin(prompt)                   ─▶ a new one
restore(session, prompt)        ─▶ the latest, or the named one, as far as it came
follow_up(session, message)     ─▶ the same, with the next messages
unfinished_evaluations(session) ─▶ the names of unfinished ones
"""

import logging
from collections.abc import Sequence
from uuid import uuid4

from sabir import Message
from sabir.authoring import as_messages

from sabir_session.evaluation.conversation import Conversation, Heading, RecordWriter, messages_of
from sabir_session.evaluation.errors import ConversationNotFound, PromptMismatch
from sabir_session.evaluation.prompts import Output, Prompt
from sabir_session.records.inner_messages import InnerMessage
from sabir_session.records.queries import (
    enable_inner_message_recording,
    get_inner_messages,
    get_last_records,
    get_latest_evaluation_id,
)
from sabir_session.state.session import Session

logger = logging.getLogger("sabir")


def begin(prompt: Prompt[Output], speaks_as: str) -> Conversation:
    """A new evaluation; nothing of it is recorded yet."""
    heading = Heading(str(uuid4()), prompt.ns, prompt.key)
    records = tuple(RecordWriter(heading).opening(prompt.opening(), speaks_as))
    return Conversation(heading, records, records, is_resume=False)


def restore(
    session: Session | None, prompt: Prompt[Output], speaks_as: str, evaluation_id: str | None = None
) -> Conversation:
    """The latest evaluation of a session, or the one named, as far as it came.

    A prompt with a name is recognised by it: the recorded conversation goes on, and a changed text is logged. A prompt
    without a name must have the recorded messages, or none. Opening messages that were not recorded are taken from the
    prompt. Raises ConversationNotFound if there is no evaluation, PromptMismatch if it belongs to another prompt.
    """
    if session is None:
        remedy = "give session=, or evaluate without resume=True to begin one"
        raise ConversationNotFound(f"no conversation to resume: there is no session; {remedy}")
    records = _records_of(session, evaluation_id, "evaluate without resume=True to begin one")
    heading = _heading_of(records)
    if (heading.prompt_ns, heading.prompt_key) != (prompt.ns, prompt.key):
        recorded, given = _named(heading.prompt_ns, heading.prompt_key), _named(prompt.ns, prompt.key)
        remedy = _other_of(session, prompt) or "resume with the recorded one, or begin anew"
        raise PromptMismatch(f"the recorded prompt is {recorded}, this one is {given}; {remedy}")
    messages = prompt.opening()
    if not messages:
        return _resumed(records)
    opening = tuple(RecordWriter(heading).opening(messages, speaks_as))
    if not _begin_alike(records, opening):
        shown = f"evaluation {heading.evaluation_id} answers a prompt of another text"
        if not (prompt.ns or prompt.key):
            remedy = "resume with that prompt or an empty one, begin anew, or say more with follow_up()"
            raise PromptMismatch(f"{shown}; {remedy}")
        logger.warning("%s than %s has now; what was recorded goes on", shown, _named(prompt.ns, prompt.key))
    missing: tuple[InnerMessage, ...] = ()
    if not any(record.is_reply for record in records):
        missing = opening[len(records) :]
    return Conversation(heading, (*records, *missing), missing, is_resume=True)


def follow_up(session: Session, *messages: Message, evaluation_id: str | None = None) -> None:
    """Add the next messages to the latest evaluation of a session, or the one named: a resume answers them.

        follow_up(session, sabir.user("And tomorrow?"))
        response = await evaluate(llm, prompt, session=session, resume=True)

    So a chat costs one record a message, however long it is. Calls without a result are abandoned, as in any
    conversation that the user continues. Raises ConversationNotFound if nothing was recorded, RecordingFailed if the
    session cannot record.
    """
    enable_inner_message_recording(session)
    records = _records_of(session, evaluation_id, "evaluate a prompt to begin a conversation")
    for record in _resumed(records).writer.following(as_messages(messages)):
        session.mutate(InnerMessage).append(record)


def unfinished_evaluations(session: Session) -> tuple[str, ...]:
    """The ids of unfinished evaluations of a session, in the order in which they began.

    for evaluation_id in unfinished_evaluations(session):
        await evaluate(llm, prompt, session=session, resume=True, evaluation_id=evaluation_id)
    """
    enable_inner_message_recording(session)
    return tuple(last.evaluation_id for last in get_last_records(session) if not last.is_end)


def _records_of(session: Session, evaluation_id: str | None, remedy: str) -> tuple[InnerMessage, ...]:
    name = get_latest_evaluation_id(session) if evaluation_id is None else evaluation_id
    if name is None:
        raise ConversationNotFound(f"no conversation to resume: the session holds no messages; {remedy}")
    records = get_inner_messages(session, name)
    if not records:
        remedy = "give one of unfinished_evaluations(session), or none for the latest"
        raise ConversationNotFound(f"no conversation to resume: the session holds no evaluation {name!r}; {remedy}")
    return records


def _heading_of(records: Sequence[InnerMessage]) -> Heading:
    return Heading(records[0].evaluation_id, records[0].prompt_ns, records[0].prompt_key)


def _resumed(records: Sequence[InnerMessage]) -> Conversation:
    return Conversation(_heading_of(records), records, (), is_resume=True)


def _begin_alike(records: Sequence[InnerMessage], opening: Sequence[InnerMessage]) -> bool:
    """Whether an evaluation's recorded beginning has the contents of an opening."""
    recorded = [record for record in records if record.turn == 0]
    is_whole = len(recorded) == len(opening) or not any(record.is_reply for record in records)
    return is_whole and all(_say_alike(*map(messages_of, pair)) for pair in zip(recorded, opening, strict=False))


def _say_alike(recorded: Sequence[Message], given: Sequence[Message]) -> bool:
    """Whether messages have the same content; role hints and steps do not count."""
    said, saying = ([(message.policy, message.payload) for message in each] for each in (recorded, given))
    return said == saying


def _other_of(session: Session, prompt: Prompt[Output]) -> str:
    """A hint how to resume an earlier evaluation of this prompt; empty if there is none."""
    name = (prompt.ns, prompt.key)
    of_prompt = [last.evaluation_id for last in get_last_records(session) if (last.prompt_ns, last.prompt_key) == name]
    return f"an earlier evaluation is this prompt's: resume with evaluation_id={of_prompt[-1]!r}" if of_prompt else ""


def _named(ns: str, key: str) -> str:
    return repr(f"{ns}:{key}") if ns or key else "without a name"
