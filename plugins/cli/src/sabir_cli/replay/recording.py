"""A recorded conversation as questions, each with the steps of its answer.

records   system · question · reply, calls · result · reply · question · reply
parts     └──── context ──┘  └──── step ────────┘ └ step ┘
          └──────────────── context of the second question ─────┘ └ step ┘
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import sabir
import sabir_session
from sabir.authoring import FinishReason
from sabir_session import InnerMessage

USER = "user"


@dataclass(frozen=True)
class AnswerStep:
    """One reply, with the results of its calls in the order of the calls. `error` is the text of a failed request."""

    messages: tuple[sabir.Message, ...] = ()
    finish_reason: FinishReason | None = None
    usage: sabir.Usage = field(default_factory=sabir.Usage)
    results: tuple[sabir.Message, ...] = ()
    error: str = ""

    @property
    def calls(self) -> tuple[sabir.Message, ...]:
        """The messages of the reply that call options."""
        return tuple(message for message in self.messages if message.call is not None)


@dataclass(frozen=True)
class RecordedQuestion:
    """One question of a recording. `context` are the messages of its first request, including the question itself.

    `steps` are the recorded replies. If a call was the typed answer, `output_option` is the name of its option, and
    `output_result` the id of the message with its result; otherwise both are "".
    """

    context: tuple[sabir.Message, ...]
    steps: tuple[AnswerStep, ...]
    output_option: str = ""
    output_result: str = ""

    @property
    def message(self) -> sabir.Message | None:
        """The last message of the user in the context, by which people recognize the question; None without one."""
        return next((message for message in reversed(self.context) if message.policy == USER), None)

    @property
    def called(self) -> set[str]:
        """The names of the called options, without the output option."""
        names = {call.call.option_name for step in self.steps for call in step.calls if call.call is not None}
        return names - {self.output_option}


def read_questions(records: Iterable[InnerMessage]) -> list[RecordedQuestion]:
    """Return the questions of a session's records that have a reply. Each evaluation is a conversation of its own."""
    by_evaluation = groupby(records, key=lambda record: record.evaluation_id)
    return [question for _, group in by_evaluation for question in _questions_of(list(group))]


def _questions_of(records: Sequence[InnerMessage]) -> list[RecordedQuestion]:
    questions: list[RecordedQuestion] = []
    is_answer = [record.is_reply or (record.role == "tool" and record.turn > 0) for record in records]
    start = 0
    while start < len(records):
        if not is_answer[start]:
            start += 1
            continue
        end = next((at for at in range(start, len(records)) if not is_answer[at]), len(records))
        answer = records[start:end]
        output = next((record for record in answer if record.gives_output), None)
        names = (output.tool_name or "", output.messages[0].id) if output and output.messages else ("", "")
        context = sabir_session.current_messages(records[:start])
        questions.append(RecordedQuestion(context, tuple(_steps_of(answer)), *names))
        start = end
    return questions


def _steps_of(records: Sequence[InnerMessage]) -> list[AnswerStep]:
    replies = [at for at, record in enumerate(records) if record.is_reply]
    ends = [*replies[1:], len(records)]
    return [_step_of(records[at], records[at + 1 : end]) for at, end in zip(replies, ends, strict=True)]


def _step_of(reply: InnerMessage, results: Sequence[InnerMessage]) -> AnswerStep:
    messages = sabir_session.current_messages([reply])
    answers = [message for record in results for message in sabir_session.current_messages([record])]
    return AnswerStep(
        messages,
        reply.finish_reason or ("option_calls" if reply.tool_calls else "stop"),
        reply.usage or sabir.Usage(),
        tuple(answers),
    )
