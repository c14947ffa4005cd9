"""Ask one recorded question again. Options do not run: a call gets the recorded result of an equal call.

context ──ask──▶ reply ──calls?──▶ recorded results ──ask──▶ reply … ──▶ no calls: the end
                             └── a call without a recorded result: the question stops here
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sabir
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CredentialsMissing,
    ModelNotFound,
    PermissionDenied,
    QuotaExceeded,
    RenderingRefused,
)

from sabir_cli.conversation import describe_call
from sabir_cli.failures import explain
from sabir_cli.replay.differences import call_key
from sabir_cli.replay.recording import AnswerStep, RecordedQuestion

Ask: TypeAlias = Callable[[Sequence[sabir.Message]], sabir.Reply | AnswerStep]
"""A function that returns the reply to messages: a model's, or a recorded one. It may raise SabirError."""
FATAL = (AuthenticationFailed, CredentialsMissing, ModelNotFound, PermissionDenied, QuotaExceeded)
"""Errors that every further question would raise, too. They end the command."""
MOST_STEPS = 50
"""The maximum number of replies to one question, as in a conversation without a budget."""


@dataclass(frozen=True)
class ReplayedQuestion:
    """The steps of a question that was asked again. `stopped` says why it ended early; "" if it did not.

    `replies` are the replies of the model; () if a recording answered.
    """

    steps: tuple[AnswerStep, ...]
    stopped: str = ""
    replies: tuple[sabir.Reply, ...] = ()


class RecordedResults:
    """The recorded results of one question, each of which answers one call. `is_over` is True if the last answered call
    gave the typed answer. `options` are the declared options, whose schemas have the default values of arguments.
    """

    def __init__(self, question: RecordedQuestion, options: Iterable[sabir.Option] = ()) -> None:
        self.is_over = False
        self._question = question
        self._defaults = {option.name: _default_arguments(option) for option in options}
        self._unused: list[tuple[sabir.Message, sabir.Message]] = []
        for step in question.steps:
            results = {each.result.invocation_id: each for each in step.results if each.result}
            self._unused += [
                (call, results[call.call.invocation_id])
                for call in step.calls
                if call.call and call.call.invocation_id in results
            ]

    def answer(self, reply: sabir.Reply | AnswerStep) -> tuple[AnswerStep, str]:
        """Return a step with the reply and recorded results, and the first call without a result as text, or ""."""
        calls = [message for message in reply.messages if message.call is not None]
        results, missing = [], []
        for call in calls:
            answer = self._take(call)
            if answer is not None:
                results.append(answer)
            elif call.call and call.call.option_name == self._question.output_option:
                self.is_over = True  # another typed answer, which needs no result
            else:
                missing.append(describe_call(call))
        step = AnswerStep(reply.messages, reply.finish_reason, reply.usage, tuple(results), getattr(reply, "error", ""))
        return step, missing[0] if missing else ""

    def _take(self, call: sabir.Message) -> sabir.Message | None:
        """Return the first unused result of an equal call, with the id of `call`; None if there is none."""
        key = self._key(call)
        at = next((at for at, (each, _) in enumerate(self._unused) if self._key(each) == key), None)
        if at is None:
            return None
        _, recorded = self._unused.pop(at)
        self.is_over = self.is_over or recorded.id == self._question.output_result
        assert call.call is not None and recorded.result is not None
        payload = recorded.result.model_copy(update={"invocation_id": call.call.invocation_id})
        return recorded.model_copy(update={"id": sabir.Message.new_id(), "payload": payload})

    def _key(self, call: sabir.Message) -> tuple[str, Any]:
        return call_key(call, self._defaults.get(call.call.option_name) if call.call else None)


def _default_arguments(option: sabir.Option) -> dict[str, Any]:
    """Return argument → the default value in the option's schema."""
    properties = option.parameters.get("properties", {})
    named = properties.items() if isinstance(properties, Mapping) else ()
    return {name: schema["default"] for name, schema in named if isinstance(schema, Mapping) and "default" in schema}


def recorded_answers(question: RecordedQuestion) -> Ask:
    """Return a function that answers with the recorded replies of a question, one after the other."""
    steps = iter(question.steps)

    def ask(messages: Sequence[sabir.Message]) -> AnswerStep:
        step = next(steps, None)
        return AnswerStep(error="the recording has no further reply") if step is None else step

    return ask


def replay_question(question: RecordedQuestion, ask: Ask, options: Iterable[sabir.Option] = ()) -> ReplayedQuestion:
    """Ask a question again, with recorded results for its calls, and return the steps.

    `options` are the declared options, which do not run. A failed request is a step with an error, and ends the
    question. Raises the errors in FATAL.
    """
    messages, results = [*question.context], RecordedResults(question, options)
    steps: list[AnswerStep] = []
    replies: list[sabir.Reply] = []
    stopped = ""
    for _ in range(MOST_STEPS):
        try:
            reply = ask(messages)
        except FATAL:
            raise
        except (CallError, RenderingRefused) as error:
            steps.append(AnswerStep(error=f"{type(error).__name__}: {explain(error)}"))
            break
        if isinstance(reply, sabir.Reply):
            replies.append(reply)
        step, missing = results.answer(reply)
        steps.append(step)
        stopped = f"there is no recorded result for {missing}" if missing else ""
        continues = bool(step.calls) or step.finish_reason == "paused"
        if stopped or step.error or results.is_over or not continues:
            break
        messages += [*step.messages, *step.results]
    else:
        stopped = f"the answer has {MOST_STEPS} replies and is not finished"
    return ReplayedQuestion(tuple(steps), stopped, tuple(replies))
