"""Evaluating a prompt: ask, answer the option calls, ask again; recorded at each step, resumed where it stopped.

    response = await evaluate(llm, prompt, session=session, options=[search])
    response = await evaluate(llm, prompt, session=session, options=[search], resume=True)      # in another process

    open calls? ─▶ ask ─▶ start ─▶ take and record each ─┐
        ▲                                                ▼
    record it ◀── complete ◀── budget ◀── over? ── no ───┘        a resumed one enters here too

The steps are written once, for synchronous callers and event loops: a performer does all I/O, and a synchronous one
never suspends. Everything is recorded before it is used. Errors pass through, and the session says where to continue.
"""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast

from sabir import Adapter, Message, Option, OutputInvalid, Settings, SettingsInvalid
from sabir.authoring import show_arguments
from sabir.errors import OptionInvalid

from sabir_session.evaluation import people
from sabir_session.evaluation.budgets import MOST_REQUESTS, Budget, Spending
from sabir_session.evaluation.evaluations import Evaluation, OpenCall, begin, restore
from sabir_session.evaluation.outputs import OUTPUT_OPTION, RETRIES, Outputs, Requests, received, tries
from sabir_session.evaluation.perform import LoopPerformer, Performer, Run, SyncPerformer
from sabir_session.evaluation.prompts import (
    ApprovalPending,
    BudgetExhausted,
    Options,
    Output,
    Prompt,
    PromptLike,
    PromptResponse,
    Strict,
    Validator,
    as_prompt,
    total,
)
from sabir_session.records import enable_inner_message_recording
from sabir_session.state.session import Session

Request = TypeVar("Request")
Result = TypeVar("Result")


class EvaluationArguments(TypedDict, total=False):
    """How prompts are evaluated; every argument is optional.

    The model may choose `options`, each with a function to run. `settings` and `strict` apply to every request.
    `budget` limits the spending; without one, each call of `evaluate` makes 50 requests at most. `approve` is called
    before an option call runs. `watch` receives progress events; replies are streamed then. Where an answer
    does not fit the output's type, or `output_validator` refuses it by a ValueError, the model is told why and asked
    again, `retries` times at most (2).
    """

    options: Options
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: people.Approve | None
    watch: people.Watch | None
    retries: int
    output_validator: Validator[Any] | None


class SessionArguments(TypedDict, total=False):
    """Where one prompt is evaluated; every argument is optional.

    `session` records every message at once; without one, nothing is kept. `resume` continues the session's latest
    evaluation, or the one that `evaluation_id` names. `recorder` is awaited for each write to the session and calls the
    function that it gets, for example in a thread, so that a slow journal does not block the event loop; observers of
    the session are called there too. Without one, the loop's own thread writes. `evaluate_sync` does not use it.
    """

    session: Session | None
    recorder: people.Recorder | None
    resume: bool
    evaluation_id: str | None


class EvaluateArguments(EvaluationArguments, SessionArguments, total=False):
    """The optional arguments of `evaluate` and `evaluate_sync`: EvaluationArguments and SessionArguments together.

    options: options that the model may call; each needs a function.
    settings: settings of every request, laid over the adapter's.
    strict: kinds of loss that refuse a rendering, for every request.
    budget: limits of the spending; without a budget, at most 50 requests.
    approve: called before each option call; it may deny the call.
    watch: called with progress events; replies are streamed then.
    retries: how often the model may correct an output that does not fit (2).
    output_validator: refuses an output by raising ValueError.
    session: records every message; without a session nothing is stored.
    resume: continue the session's latest evaluation (False).
    evaluation_id: the evaluation to continue instead of the latest.
    """


@show_arguments
async def evaluate(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """Ask, answer the calls of each reply, and ask again, until a reply has no calls; that reply is the response.

    Options that are coroutine functions are awaited, others run in threads; the calls of one reply run at once. Their
    failures are results, which the model sees. With `session`, everything is recorded before it is used;
    after a crash, `resume=True` continues under any provider: calls without a result run first, calls with one never
    run again, and a finished evaluation answers from its records: its output is read and checked again, so that a
    validator, or a function that makes the output, runs again.
    The loop's own thread writes to the session, and waits while the journal stores a record; `recorder` changes that.

    Raises ConversationNotFound and PromptMismatch on resume, ApprovalPending for calls that wait for a person,
    BudgetExhausted before a request beyond the budget and when its time is over while options run, CallsTooDeep for
    evaluations nested too deeply in options, OptionInvalid for an option that cannot run, OutputError for a reply that
    does not fit the prompt's type, RecordingFailed if the session cannot record, and the adapter's errors.
    """
    return await _evaluated("evaluate", LoopPerformer, adapter, as_prompt(prompt), how)


@show_arguments
def evaluate_sync(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """As `evaluate`, waiting: options run one after another, and none may be a coroutine function.

    They run in this thread; with a limit of seconds each runs in its own thread, which is left when the time is over.
    """
    return to_its_end(_evaluated("evaluate_sync", SyncPerformer, adapter, as_prompt(prompt), how))


def to_its_end(steps: Coroutine[Any, Any, Result]) -> Result:
    """Run steps whose performer never suspends."""
    try:
        steps.send(None)
    except StopIteration as end:
        return cast("Result", end.value)
    raise AssertionError("a performer that waits has suspended")


async def _evaluated(
    function: str, performer_class: type[Performer], adapter: Adapter, prompt: Prompt[Output], how: EvaluateArguments
) -> PromptResponse[Output]:
    """Check the arguments, run the steps, and make the response."""
    evaluation, io = _prepared(function, performer_class, adapter, prompt, how)
    return _response(evaluation, cast("Output", await proceed(evaluation, io)))


def _response(evaluation: Evaluation, output: Output) -> PromptResponse[Output]:
    """The response of an evaluation with at least one reply."""
    return PromptResponse(
        **evaluation.heading._asdict(),
        reply=evaluation.replies[-1],
        messages=tuple(evaluation.messages),
        output=output,
        usage=total(reply.usage for reply in evaluation.replies),
    )


def _prepared(
    function: str, performer_class: type[Performer], adapter: Adapter, prompt: Prompt[Output], how: EvaluateArguments
) -> tuple[Evaluation, Performer]:
    """Check everything that can be wrong before anything is asked, run or recorded."""
    Settings.refuse_misnamed(function, how, tuple(EvaluateArguments.__annotations__))
    _check_types(function, adapter, how)
    session, evaluation_id = how.get("session"), how.get("evaluation_id")
    outputs = outputs_of(prompt.output, how.get("output_validator"), how.get("retries", RETRIES))
    if session is not None:
        enable_inner_message_recording(session)
    requests = requests_of(adapter, outputs, how)
    if how.get("resume"):
        evaluation = restore(session, prompt, requests.speaks_as, evaluation_id)
    elif evaluation_id is not None:
        raise SettingsInvalid(f"{function}: evaluation_id names what a resume goes on with; add resume=True")
    else:
        evaluation = begin(prompt, requests.speaks_as)
    io = performer_of(performer_class, session, evaluation, requests, how)
    io.recorder = how.get("recorder")
    return evaluation, io


def outputs_of(output: object, validator: Validator[Any] | None, retries: int) -> Outputs[Any] | None:
    """What an evaluation must end with; None for any answer. Raises SettingsInvalid for a validator of nothing."""
    if output is None and validator is not None:
        raise SettingsInvalid("output_validator checks an output; give output= too")
    return None if output is None else Outputs(output, validator, retries)


def requests_of(adapter: Adapter, outputs: Outputs[Any] | None, how: EvaluationArguments) -> Requests:
    """With what the requests of an evaluation are made."""
    options = Option.all_of(how.get("options") or ())
    return Requests(adapter, options, outputs, how.get("settings"), how.get("strict"))


def check_functions(performer_class: type[Performer], requests: Requests) -> None:
    """Raise OptionInvalid or SettingsInvalid for a function that cannot run in that manner."""
    for option in requests.offered:
        option.check_runs(asynchronous=performer_class is LoopPerformer)
    if requests.outputs is not None and requests.outputs.is_asynchronous and performer_class is not LoopPerformer:
        raise SettingsInvalid("output or its validator is a coroutine function; await the asynchronous method")


def performer_of(
    performer_class: type[Performer],
    session: Session | None,
    evaluation: Evaluation,
    requests: Requests,
    how: EvaluationArguments,
    reader: people.Reader | None = None,
) -> Performer:
    """What performs an evaluation; raises OptionInvalid for options that cannot run, or that open calls need."""
    check_functions(performer_class, requests)
    called = {call.message.call.option_name for call in evaluation.open if not requests.is_named(call.message)}
    missing = sorted(called.difference(option.name for option in requests.offered))
    if missing:  # these would end in errors for good
        calls = f"calls of evaluation {evaluation.heading.evaluation_id} wait for {', '.join(missing)}"
        raise OptionInvalid(f"{calls}; resume with options= that hold them, or abandon the calls with follow_up()")
    budget = how.get("budget") or Budget(turns=len(evaluation.dropped) + len(evaluation.replies) + MOST_REQUESTS)
    spending = Spending(budget, evaluation.spent(budget))
    arguments = requests, session, spending, how.get("approve"), how.get("watch"), reader
    return performer_class(*arguments, question=evaluation.question)


def _check_types(function: str, adapter: object, how: EvaluateArguments) -> None:
    """Refuse common wrong arguments before they fail with an AttributeError."""
    session: object = how.get("session")
    budget: object = how.get("budget")
    if isinstance(adapter, str):
        raise SettingsInvalid(f"{function}: {adapter!r} is the name of a model; write sabir.adapter({adapter!r})")
    if session is not None and not isinstance(session, Session):
        remedy = "write session=Session(journal=store.journal(name))"
        raise SettingsInvalid(f"{function}: session is of type {type(session).__name__}; {remedy}")
    if budget is not None and not isinstance(budget, Budget):
        raise SettingsInvalid(f"{function}: budget is of type {type(budget).__name__}; write Budget(turns=…)")


async def proceed(evaluation: Evaluation, io: Performer) -> object:
    """Continue an evaluation until its last reply has no calls and its output fits; return that output.

    Without a wanted output it returns None. Raises BudgetExhausted, ApprovalPending, and OutputError.
    """
    try:
        for record in evaluation.unrecorded:
            await io.record(record)
        evaluation.unrecorded = ()
        while True:
            if evaluation.open:
                await _answer(evaluation, io)
            elif evaluation.is_over:
                try:
                    return await _output(evaluation, io)
                except OutputInvalid as error:
                    await _ask_again(evaluation, io, error)
            else:
                await _ask(evaluation, io)
    except BudgetExhausted as error:
        if evaluation.replies:
            error.response = _response(evaluation, None)
        raise
    finally:
        io.cancelled.set()


async def _ask(evaluation: Evaluation, io: Performer) -> None:
    """Ask for the next reply, and record it."""
    io.spending.check()
    await io.show(people.RequestStarted(evaluation.turn + 1, question=io.question))
    reply = await io.complete(io.take_prepared() or evaluation.sent)
    await io.record(evaluation.take(reply, io.asked_about or ()))
    io.spending.add(reply)
    await io.show(people.ReplyArrived(reply, question=io.question))


async def _output(evaluation: Evaluation, io: Performer) -> object:
    """The output of the last reply; raises OutputError for one that does not fit."""
    outputs, reply = io.requests.outputs, evaluation.replies[-1]
    if outputs is None:
        return None
    return await outputs.finish(outputs.read(reply, evaluation.output_call), reply, io.apply)


async def _ask_again(evaluation: Evaluation, io: Performer, error: OutputInvalid) -> None:
    """Tell the model why its answer was refused; raises the error if it was told often enough."""
    assert io.requests.outputs is not None
    if tries(evaluation.last_turn.messages) >= io.requests.outputs.retries:
        raise error
    await io.record(evaluation.follow(io.requests.complaint(error)))


async def _answer(evaluation: Evaluation, io: Performer) -> None:
    """Answer the open calls, recording each result at once; raises ApprovalPending for calls that must wait."""
    if evaluation.needs_approval and io.asked_about is None:
        raise _pending(evaluation, "resume with approve=, which decides")
    runs: list[Run] = []
    outputs = [call for call in evaluation.open if io.requests.is_output(call.message)]
    for call in [call for call in evaluation.open if call not in outputs]:
        asks = call.message.call.option_name in (io.asked_about or ())
        decision = await io.ask(call.message) if asks else None
        if decision is None or decision.kind == "allow":
            runs.append(Run(call, people.with_arguments(call.message, decision)))
        elif decision.kind == "deny":
            await _settle(evaluation, io, call, people.denial(call.message, decision))
    io.start(runs)
    for _ in runs:
        is_recording = False
        try:
            run, result = await io.take()
            is_recording = True
            await _settle(evaluation, io, run.open, result)
            is_recording = False
            await io.shown()
        except BaseException as error:
            from asyncio import CancelledError

            late = await io.stop()
            has_failed = is_recording and not isinstance(error, CancelledError)
            for run, result in () if has_failed else late:  # it ended although it was cancelled
                await _settle(evaluation, io, run.open, result)
            raise
    if len(evaluation.open) > len(outputs):
        raise _pending(evaluation, "resume the evaluation to ask again")
    for call in outputs:  # after all others, so that what ends the evaluation is its last record
        await io.record(evaluation.settle(call, received(call.message), gives_output=True))


def _pending(evaluation: Evaluation, remedy: str) -> ApprovalPending:
    calls = tuple(call.message for call in evaluation.open if call.message.call.option_name != OUTPUT_OPTION)
    names = ", ".join(call.call.option_name for call in calls)
    evaluation_id = evaluation.heading.evaluation_id
    return ApprovalPending(f"calls wait for approval: {names}; {remedy}", calls=calls, evaluation_id=evaluation_id)


async def _settle(evaluation: Evaluation, io: Performer, call: OpenCall, result: Message) -> None:
    await io.record(evaluation.settle(call, result))
    io.tell(people.CallEnded(call.message, result, question=io.question))


@show_arguments
class MainLoop(ABC, Generic[Request, Output]):
    """A program's own loop: evaluates the prompts that a subclass makes from requests, all in the same manner.

        class Support(MainLoop[Ticket, Answer]):
            def create_prompt(self, ticket):
                return Prompt(ns="support", key="ticket", system=RULES, messages=[…], output=Answer)

        response = await Support(llm, options=[search]).execute(ticket)

    The caller decides where a session is stored: give one with a journal, or observe it.
    """

    def __init__(self, adapter: Adapter, **how: Unpack[EvaluationArguments]) -> None:
        """The manner is that of `evaluate`; each evaluation has a session of its own."""
        Settings.refuse_misnamed(type(self).__name__, how, tuple(EvaluationArguments.__annotations__))
        self._adapter = adapter
        self._how = how

    @abstractmethod
    def create_prompt(self, request: Request) -> Prompt[Output]:
        """The prompt of a request; the same one for the same request, so that it can be resumed."""

    def create_session(self) -> Session:
        """The session of a new evaluation; a subclass may give it a journal."""
        return Session()

    async def execute(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """Evaluate a request, in a session of its own or in the one given; raises what `evaluate` raises.

        `resume` goes on with the latest evaluation of the session given, or with the one that `evaluation_id` names.
        """
        return await evaluate(self._adapter, self.create_prompt(request), **self._told(where))

    def execute_sync(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """As `execute`, waiting."""
        return evaluate_sync(self._adapter, self.create_prompt(request), **self._told(where))

    def _told(self, where: SessionArguments) -> EvaluateArguments:
        where["session"] = where.get("session") or self.create_session()
        return EvaluateArguments(**self._how, **where)
