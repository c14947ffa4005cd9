"""Evaluate a prompt: send it, run the option calls, send the results, and so on. Each step is recorded and resumable.

    response = await evaluate(llm, prompt, session=session, options=[search])
    response = await evaluate(llm, prompt, session=session, options=[search], resume=True)      # in another process

    open calls? ─▶ ask ─▶ start ─▶ take and record each ─┐
        ▲                                                ▼
    record it ◀── complete ◀── budget ◀── over? ── no ───┘        a resumed evaluation starts here

The steps are written once, for sync callers and event loops. A performer does all I/O, and a sync performer never
suspends. Everything is recorded before it is used. After an error, the session knows where to continue.
"""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast

from sabir import Adapter, Message, Option, OutputInvalid, Settings, SettingsInvalid
from sabir.authoring import AgentWork, announce_work, one_line, show_arguments
from sabir.errors import OptionInvalid

from sabir_session.evaluation.approval import Approve, apply_decision, denial_result
from sabir_session.evaluation.budgets import MOST_REQUESTS, Budget, Spending
from sabir_session.evaluation.evaluations import Evaluation, OpenCall, begin_evaluation, restore_evaluation
from sabir_session.evaluation.events import CallEnded, Reader, ReplyArrived, RequestStarted, Watch
from sabir_session.evaluation.outputs import OUTPUT_OPTION, RETRIES, Outputs, Requests, count_retries, output_received
from sabir_session.evaluation.performers import CallRun, LoopPerformer, Recorder, StepPerformer, SyncPerformer
from sabir_session.evaluation.prompts import (
    OUTPUT_MODES,
    ApprovalPending,
    BudgetExhausted,
    Options,
    Output,
    OutputMode,
    Prompt,
    PromptLike,
    PromptResponse,
    Strict,
    Validator,
    as_prompt,
    sum_usages,
)
from sabir_session.record_log import enable_inner_message_recording
from sabir_session.state.session import Session

Request = TypeVar("Request")
Result = TypeVar("Result")


class EvaluationArguments(TypedDict, total=False):
    """The optional arguments of an evaluation, except SessionArguments.

    options: the options that the model may call; each needs a function.
    settings: the settings of every request, which override the adapter's settings.
    strict: the kinds of loss that raise RenderingRefused; None means the adapter's `strict`.
    budget: the limits of the evaluation; without a budget, one call of `evaluate` sends at most 50 requests.
    approve: a function that allows, denies or postpones each option call before the call runs.
    watch: a function that is called with progress events; replies are then streamed.
    retries: how often the model may correct an output that does not fit; default 2.
    output_validator: a function that may return a corrected output, or raise ValueError to refuse an output.
    output_mode: how the output is requested: "native", "call" or "text"; default None, which is "native", or "call" if
    a model accepts no schema.
    agent: the name of the agent in traces; default "", for no name.
    """

    options: Options
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: Approve | None
    watch: Watch | None
    retries: int
    output_validator: Validator[Any] | None
    output_mode: OutputMode | None
    agent: str


class SessionArguments(TypedDict, total=False):
    """The optional arguments of an evaluation for its session.

    session: the session that records every message; without a session nothing is stored.
    recorder: a coroutine function that is awaited for each write to the session, and calls the function that it gets,
    for example in a thread, so that a slow journal does not block the event loop. Observers run in that thread too.
    Without a recorder, the event loop's thread writes. Sync evaluations do not use the recorder.
    resume: True continues the last unfinished evaluation of the session, or else its last evaluation; default False.
    evaluation_id: the evaluation to resume instead; needs resume=True.
    """

    session: Session | None
    recorder: Recorder | None
    resume: bool
    evaluation_id: str | None


class EvaluateArguments(EvaluationArguments, SessionArguments, total=False):
    """The optional arguments of `evaluate` and `evaluate_sync`: EvaluationArguments and SessionArguments together.

    options: the options that the model may call; each needs a function.
    settings: the settings of every request, which override the adapter's settings.
    strict: the kinds of loss that raise RenderingRefused; None means the adapter's `strict`.
    budget: the limits of the evaluation; without a budget, one call of `evaluate` sends at most 50 requests.
    approve: a function that allows, denies or postpones each option call before the call runs.
    watch: a function that is called with progress events; replies are then streamed.
    retries: how often the model may correct an output that does not fit; default 2.
    output_validator: a function that may return a corrected output, or raise ValueError to refuse an output.
    output_mode: how the output is requested: "native", "call" or "text"; default None, which is "native", or "call" if
    a model accepts no schema.
    agent: the name of the agent in traces; default "", for no name.
    session: the session that records every message; without a session nothing is stored.
    recorder: a coroutine function that performs each write to the session, for example in a thread. Sync evaluations do
    not use the recorder.
    resume: True continues the last unfinished evaluation of the session, or else its last evaluation; default False.
    evaluation_id: the evaluation to resume instead; needs resume=True.
    """


@show_arguments
async def evaluate(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """Send a prompt, run the option calls of each reply and send the results, until the model gives its answer.

    Return the last reply, with all messages, as a PromptResponse. Coroutine functions are awaited and other options run
    in threads, all calls of one reply at the same time. If an option raises, the model gets the error as the result.

    With `session`, every message is recorded before it is used. After a crash, `resume=True` continues, with any
    provider. Calls without a result run first, and calls with a result never run again. A finished evaluation returns
    its recorded answer without a request, unless the answer does not fit the output type now: the output is read and
    validated again, so output functions run again.

    Raises ConversationNotFound or PromptMismatch on resume; ApprovalPending for calls that wait for a person;
    BudgetExhausted before a request over the budget, or when the time is over while options run; CallsTooDeep for
    evaluations nested too deeply in options; OptionInvalid for an option that cannot run, or is missing for an open
    call; with an output, OutputError for an answer that does not fit after the last retry or because it was cut off, or
    that is a refusal; SettingsInvalid or WrongWord for wrong arguments; RecordingFailed or StoreError if the session
    cannot write or load its records; the errors of an output function or validator that `Validator` describes; and the
    adapter's errors.

    >>> import asyncio, sabir, sabir_session
    >>> response = asyncio.run(sabir_session.evaluate(sabir.adapter("echo:m"), "Hello!"))
    >>> response.text, len(response.messages)
    ('Hello!', 2)
    """
    return await _run_evaluation("evaluate", LoopPerformer, adapter, as_prompt(prompt), how)


@show_arguments
def evaluate_sync(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """Sync version of `evaluate`. Blocks the thread and runs the options one after another in the same thread.

    If `budget` limits the seconds, each option runs in its own thread instead, which is left running when the time is
    over. Raises OptionInvalid for options that are coroutine functions, and SettingsInvalid if `approve`,
    `output_validator` or an output function is a coroutine function. `recorder` is not used.

    >>> import sabir, sabir_session
    >>> sabir_session.evaluate_sync(sabir.adapter("echo:m"), "Hello!").text
    'Hello!'
    """
    return run_without_suspending(_run_evaluation("evaluate_sync", SyncPerformer, adapter, as_prompt(prompt), how))


def run_without_suspending(steps: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that never suspends, and return its result."""
    try:
        steps.send(None)
    except StopIteration as end:
        return cast("Result", end.value)
    raise AssertionError("a sync performer has suspended")


async def _run_evaluation(
    caller: str, performer_class: type[StepPerformer], adapter: Adapter, prompt: Prompt[Output], how: EvaluateArguments
) -> PromptResponse[Output]:
    """Check the arguments, run the evaluation to its end, and return the response."""
    evaluation, performer = _prepare_evaluation(caller, performer_class, adapter, prompt, how)
    output = await finish_evaluation(evaluation, performer, agent=how.get("agent", ""))
    return _build_response(evaluation, cast("Output", output))


def _build_response(evaluation: Evaluation, output: Output) -> PromptResponse[Output]:
    """Return the response of an evaluation with at least one reply."""
    return PromptResponse(
        **evaluation.heading._asdict(),
        reply=evaluation.replies[-1],
        messages=tuple(evaluation.messages),
        output=output,
        usage=sum_usages(reply.usage for reply in evaluation.replies),
    )


def _prepare_evaluation(
    caller: str, performer_class: type[StepPerformer], adapter: Adapter, prompt: Prompt[Output], how: EvaluateArguments
) -> tuple[Evaluation, StepPerformer]:
    """Check the arguments, before anything is sent, run or recorded. Return the evaluation and its performer."""
    Settings.refuse_misnamed(caller, how, tuple(EvaluateArguments.__annotations__))
    _check_types(caller, adapter, how)
    session, evaluation_id = how.get("session"), how.get("evaluation_id")
    how_to_output = how.get("output_validator"), how.get("retries", RETRIES), how.get("output_mode")
    outputs = build_outputs(prompt.output, *how_to_output)
    if session is not None:
        enable_inner_message_recording(session)
    requests = build_requests(adapter, outputs, how)
    if how.get("resume"):
        evaluation = restore_evaluation(session, prompt, requests.speaks_as, evaluation_id)
    elif evaluation_id is not None:
        raise SettingsInvalid(f"{caller}: evaluation_id= names the evaluation to resume; add resume=True")
    else:
        evaluation = begin_evaluation(prompt, requests.speaks_as)
    performer = create_performer(performer_class, session, evaluation, requests, how)
    performer.recorder = how.get("recorder")
    return evaluation, performer


def build_outputs(
    output: object,
    validator: Validator[Any] | None,
    retries: int,
    mode: OutputMode | None,
    default_mode: OutputMode | None = None,
) -> Outputs[Any] | None:
    """Return the output parser; None without output type.

    Raises SettingsInvalid for a validator without an output type, for an unknown mode, and for a mode without effect,
    because the answer is a text. A default mode may have no effect.
    """
    if output is None and validator is not None:
        raise SettingsInvalid("output_validator= needs an output to check; pass output= too (for evaluate: to Prompt)")
    if mode not in OUTPUT_MODES:
        raise SettingsInvalid(f"output_mode={one_line(repr(mode), 60)} is unknown; use 'native', 'call' or 'text'")
    if mode is not None and output in (None, str):
        raise SettingsInvalid(f"output_mode={mode!r} needs an output that is not plain text; pass output= too")
    return None if output is None else Outputs(output, validator, retries, mode or default_mode)


def build_requests(adapter: Adapter, outputs: Outputs[Any] | None, how: EvaluationArguments) -> Requests:
    """Return the adapter, options and settings of an evaluation's requests."""
    options = Option.all_of(how.get("options") or ())
    return Requests(adapter, options, outputs, how.get("settings"), how.get("strict"))


def check_functions(performer_class: type[StepPerformer], requests: Requests) -> None:
    """Raise OptionInvalid or SettingsInvalid for a function that the performer class cannot run."""
    for option in requests.functions:
        option.check_runs(asynchronous=performer_class is LoopPerformer)
    if requests.outputs is not None and requests.outputs.is_asynchronous and performer_class is not LoopPerformer:
        raise SettingsInvalid(
            "output or output_validator is a coroutine function; use the async method, or pass a sync function"
        )


def create_performer(
    performer_class: type[StepPerformer],
    session: Session | None,
    evaluation: Evaluation,
    requests: Requests,
    how: EvaluationArguments,
    reader: Reader | None = None,
) -> StepPerformer:
    """Return the performer of an evaluation. Raises OptionInvalid for an option that cannot run or is missing.

    Also raises SettingsInvalid for a coroutine function of the output with a sync performer.
    """
    check_functions(performer_class, requests)
    known = {option.name for option in requests.functions}
    calls = [each.message for each in evaluation.open_calls if not requests.has_output_name(each.message)]
    missing = sorted({call.call.option_name for call in calls} - known)
    if missing:  # the error results of these calls would be recorded, and no resume could replace them
        reason = f"evaluation {evaluation.heading.evaluation_id} has open calls of the options {', '.join(missing)}"
        remedy = "abandon the calls with follow_up(), or Conversation.drop_last()"
        raise OptionInvalid(f"{reason}; pass these options= to resume, or {remedy}")
    budget = how.get("budget") or Budget(turns=len(evaluation.dropped) + len(evaluation.replies) + MOST_REQUESTS)
    spending = Spending(budget, evaluation.update_ledger(budget))
    arguments = requests, session, spending, how.get("approve"), how.get("watch"), reader
    return performer_class(*arguments, question=evaluation.question)


def _check_types(function: str, adapter: object, how: EvaluateArguments) -> None:
    """Raise SettingsInvalid for common wrong arguments, which would fail later with an AttributeError."""
    session: object = how.get("session")
    budget: object = how.get("budget")
    if isinstance(adapter, str):
        raise SettingsInvalid(
            f"{function}: {adapter!r} is the name of a model, not an adapter; write sabir.adapter({adapter!r})"
        )
    if session is not None and not isinstance(session, Session):
        remedy = "write session=Session(journal=store.journal(name))"
        raise SettingsInvalid(f"{function}: session is of type {type(session).__name__}; {remedy}")
    if budget is not None and not isinstance(budget, Budget):
        raise SettingsInvalid(f"{function}: budget is of type {type(budget).__name__}; write Budget(turns=…)")


async def finish_evaluation(
    evaluation: Evaluation, performer: StepPerformer, *, agent: str = "", conversation_id: str = ""
) -> object:
    """Continue an evaluation until it is over and its output fits, and announce this to telemetry as an agent's work.

    `agent` is the agent's name. `conversation_id` "" means the evaluation's id. Returns the output, or None without an
    output type. Raises BudgetExhausted, ApprovalPending and OutputError.
    """
    with announce_work(AgentWork("agent", agent, conversation_id or evaluation.heading.evaluation_id)) as work:
        try:
            return await _continue_evaluation(evaluation, performer)
        except ApprovalPending:
            work.is_waiting = True
            raise
        except BudgetExhausted as error:
            if evaluation.replies:
                error.response = _build_response(evaluation, None)
            raise
        finally:
            performer.stop_options()


async def _continue_evaluation(evaluation: Evaluation, performer: StepPerformer) -> object:
    if evaluation.unrecorded:
        await performer.record(*evaluation.unrecorded)
        evaluation.unrecorded = ()
    while True:
        if evaluation.open_calls:
            await _answer_open_calls(evaluation, performer)
        elif evaluation.is_over:
            try:
                return await _read_output(evaluation, performer)
            except OutputInvalid as error:
                await _request_correction(evaluation, performer, error)
        else:
            await _request_reply(evaluation, performer)


async def _request_reply(evaluation: Evaluation, performer: StepPerformer) -> None:
    """Request the next reply, record it, and count it. Raises BudgetExhausted if a limit is reached."""
    performer.spending.check()
    if performer.must_stream:
        await performer.emit_and_wait(RequestStarted(evaluation.turn + 1, question=performer.question))
    reply = await performer.complete(
        performer.prepare_request(performer.requests.messages(evaluation.messages_to_send))
    )
    if performer.cache_watch is not None:
        performer.cache_watch.add_reply(reply)
    await performer.record(evaluation.add_reply(reply, performer.options_to_approve or ()))
    performer.spending.add(reply)
    if performer.must_stream:
        await performer.emit_and_wait(ReplyArrived(reply, question=performer.question))


async def _read_output(evaluation: Evaluation, performer: StepPerformer) -> object:
    """Return the output of the last reply, or None without an output type. Raises OutputError if it does not fit."""
    outputs, reply = performer.requests.outputs, evaluation.replies[-1]
    if outputs is None:
        return None
    return await outputs.finish(outputs.read(reply, evaluation.output_call), reply, performer.call_user)


async def _request_correction(evaluation: Evaluation, performer: StepPerformer, error: OutputInvalid) -> None:
    """Add a message that tells the model why its answer was refused. Raises the error after the last retry."""
    assert performer.requests.outputs is not None
    if count_retries(evaluation.last_turn.messages) >= performer.requests.outputs.retries:
        raise error
    await performer.record(evaluation.add_messages(performer.requests.correction(error)))


async def _answer_open_calls(evaluation: Evaluation, performer: StepPerformer) -> None:
    """Run the open calls, and record each result when it arrives. Raises ApprovalPending if calls wait for a person."""
    if evaluation.needs_approval and performer.options_to_approve is None:
        raise _approval_error(evaluation, "resume with approve=, which decides about them")
    runs: list[CallRun] = []
    outputs = [call for call in evaluation.open_calls if performer.requests.is_output(call.message)]
    for call in [call for call in evaluation.open_calls if call not in outputs]:
        asks = call.message.call.option_name in (performer.options_to_approve or ())
        decision = await performer.decide(call.message) if asks else None
        if decision is None or decision.kind == "allow":
            runs.append(CallRun(call, apply_decision(call.message, decision)))
        elif decision.kind == "deny":
            await _record_result(evaluation, performer, call, denial_result(call.message, decision))
    performer.start(runs)
    for _ in runs:
        is_recording = False
        try:
            run, result = await performer.next_result()
            is_recording = True
            await _record_result(evaluation, performer, run.open_call, result)
            is_recording = False
            await performer.wait_until_read()
        except BaseException as error:
            from asyncio import CancelledError

            late = await performer.stop()
            has_failed = is_recording and not isinstance(error, CancelledError)
            for run, result in () if has_failed else late:  # these calls ended although they were cancelled
                await _record_result(evaluation, performer, run.open_call, result)
            raise
    if len(evaluation.open_calls) > len(outputs):
        raise _approval_error(evaluation, "resume the evaluation to have approve= decide again")
    for call in outputs:  # after all other results, so that the result that ends the evaluation is the last record
        await performer.record(evaluation.add_result(call, output_received(call.message), gives_output=True))


def _approval_error(evaluation: Evaluation, remedy: str) -> ApprovalPending:
    calls = tuple(call.message for call in evaluation.open_calls if call.message.call.option_name != OUTPUT_OPTION)
    names = ", ".join(call.call.option_name for call in calls)
    evaluation_id = evaluation.heading.evaluation_id
    return ApprovalPending(
        f"option calls wait for approval: {names}; {remedy}", calls=calls, evaluation_id=evaluation_id
    )


async def _record_result(evaluation: Evaluation, performer: StepPerformer, call: OpenCall, result: Message) -> None:
    await performer.record(evaluation.add_result(call, result))
    performer.emit(CallEnded(call.message, result, question=performer.question))


@show_arguments
class MainLoop(ABC, Generic[Request, Output]):
    """Base class for programs that evaluate many requests in the same way.

    A subclass creates the prompt for a request, and `execute` evaluates the prompt.

        class Support(MainLoop[Ticket, Answer]):
            def create_prompt(self, ticket):
                return Prompt(ns="support", key="ticket", system=RULES, messages=[…], output=Answer)

        response = await Support(llm, options=[search]).execute(ticket)

    By default, each evaluation has a new session in memory. To store the messages, pass a session with a journal to
    `execute`, or override `create_session`.
    """

    def __init__(self, adapter: Adapter, **how: Unpack[EvaluationArguments]) -> None:
        """Set the adapter and the arguments of all evaluations. Raises WrongWord for an unknown argument."""
        Settings.refuse_misnamed(type(self).__name__, how, tuple(EvaluationArguments.__annotations__))
        self._adapter = adapter
        self._how = how

    @abstractmethod
    def create_prompt(self, request: Request) -> Prompt[Output]:
        """Return the prompt for a request. For a resume, return the recorded prompt, or one of its `ns` and `key`."""

    def create_session(self) -> Session:
        """Return a new session in memory for an evaluation. Override this method to return a session with a journal."""
        return Session()

    async def execute(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """Evaluate the prompt of a request, and return the response. Raises the errors of `evaluate`.

        Without `session`, `create_session` is called and its session is used.
        """
        return await evaluate(self._adapter, self.create_prompt(request), **self._arguments(where))

    def execute_sync(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """Sync version of `execute`. Blocks the thread."""
        return evaluate_sync(self._adapter, self.create_prompt(request), **self._arguments(where))

    def _arguments(self, where: SessionArguments) -> EvaluateArguments:
        where["session"] = where.get("session") or self.create_session()
        return EvaluateArguments(**self._how, **where)
