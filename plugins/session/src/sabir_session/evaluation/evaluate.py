"""Evaluating a prompt: ask, answer the option calls, ask again; recorded at each step, resumed where it stopped.

    response = await evaluate(llm, prompt, session=session, options=[search])
    response = await evaluate(llm, prompt, session=session, options=[search], resume=True)      # in another process

`evaluate` and `evaluate_sync` are one script, with two performers.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypedDict, Unpack, cast

from sabir import Adapter, Option, Settings, SettingsInvalid
from sabir.authoring import CallArguments, OptionLike, Strict
from sabir.errors import OptionInvalid

from sabir_session.evaluation.approval import Approve
from sabir_session.evaluation.budgets import MOST_REQUESTS, Budget, Spending
from sabir_session.evaluation.conversation import Conversation
from sabir_session.evaluation.errors import BudgetExhausted
from sabir_session.evaluation.evaluations import begin, restore
from sabir_session.evaluation.perform import LoopPerformer, Performer, WaitingPerformer
from sabir_session.evaluation.progress import Watch
from sabir_session.evaluation.prompts import Output, Prompt, PromptLike, PromptResponse, as_prompt, total
from sabir_session.evaluation.script import evaluated, to_its_end
from sabir_session.records.queries import enable_inner_message_recording
from sabir_session.state.session import Session


class EvaluationArguments(TypedDict, total=False):
    """How prompts are evaluated; every argument is optional.

    The model may choose `options`, each with a function to run. `settings` and `strict` apply to every request.
    `budget` limits the spending; without one, each call of `evaluate` makes 50 requests at most. `approve` is called
    before an option call runs. `watch` receives progress events; replies are streamed then.
    """

    options: Iterable[OptionLike]
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: Approve | None
    watch: Watch | None


class SessionArguments(TypedDict, total=False):
    """Where one prompt is evaluated; every argument is optional.

    `session` records every message at once; without one, nothing is kept. `resume` continues the session's latest
    evaluation, or the one that `evaluation_id` names.
    """

    session: Session | None
    resume: bool
    evaluation_id: str | None


class EvaluateArguments(EvaluationArguments, SessionArguments, total=False):
    """How and where one prompt is evaluated."""


async def evaluate(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """Ask, answer the calls of each reply, and ask again, until a reply has no calls; that reply is the response.

    Options that are coroutine functions are awaited, others run in threads; the calls of one reply run at once. Their
    failures are results, which the model sees. With `session`, everything is recorded before it is used;
    after a crash, `resume=True` continues under any provider: calls without a result run first, calls with one never
    run again, and a finished evaluation answers from its records.
    The loop's own thread writes to the session, and waits while the journal stores a record.

    Raises ConversationNotFound and PromptMismatch on resume, ApprovalPending for calls that wait for a person,
    BudgetExhausted before a request beyond the budget and when its time is over while options run, CallsTooDeep for
    evaluations nested too deeply in options, OptionInvalid for an option that cannot run, OutputError for a reply that
    does not fit the prompt's type, RecordingFailed if the session cannot record, and the adapter's errors.
    """
    asked = as_prompt(prompt)
    conversation, io = _prepared("evaluate", LoopPerformer, adapter, asked, how)
    with _told(conversation):
        await evaluated(conversation, io)
    return _ended(conversation, asked)


def evaluate_sync(
    adapter: Adapter, prompt: PromptLike[Output], **how: Unpack[EvaluateArguments]
) -> PromptResponse[Output]:
    """As `evaluate`, waiting: options run one after another, and none may be a coroutine function.

    They run in this thread; with a limit of seconds each runs in its own thread, which is left when the time is over.
    """
    asked = as_prompt(prompt)
    conversation, io = _prepared("evaluate_sync", WaitingPerformer, adapter, asked, how)
    with _told(conversation):
        to_its_end(evaluated(conversation, io))
    return _ended(conversation, asked)


@contextmanager
def _told(conversation: Conversation) -> Iterator[None]:
    """A context that adds the response so far to a BudgetExhausted raised in it."""
    try:
        yield
    except BudgetExhausted as error:
        if conversation.replies:
            error.response = _response(conversation, None)
        raise


def _ended(conversation: Conversation, prompt: Prompt[Output]) -> PromptResponse[Output]:
    """The response of a finished evaluation; raises OutputError if it does not fit the prompt's type."""
    if prompt.output is None:
        return _response(conversation, cast("Output", None))
    return _response(conversation, conversation.replies[-1].parse(prompt.output))


def _response(conversation: Conversation, output: Output) -> PromptResponse[Output]:
    heading = conversation.heading
    return PromptResponse(
        prompt_ns=heading.prompt_ns,
        prompt_key=heading.prompt_key,
        evaluation_id=heading.evaluation_id,
        reply=conversation.replies[-1],
        messages=tuple(conversation.messages),
        output=output,
        usage=total(reply.usage for reply in conversation.replies),
    )


def _prepared(
    function: str, made: type[Performer], adapter: Adapter, prompt: Prompt[Output], how: EvaluateArguments
) -> tuple[Conversation, Performer]:
    """Check everything that can be wrong before anything is asked, run or recorded."""
    Settings.refuse_misnamed(function, how, _KNOWN)
    _check_types(function, adapter, how)
    session = how.get("session")
    options = Option.all_of(how.get("options") or ())
    for option in options:
        option.check_runs(asynchronous=function == "evaluate")
    if session is not None:
        enable_inner_message_recording(session)
    speaks_as = str(getattr(adapter, "speaks_as", "llm"))
    conversation = _conversation(function, prompt, speaks_as, how)
    if how.get("resume"):
        _check_open_calls(conversation, options)
    spending = Spending(how.get("budget") or Budget(turns=len(conversation.replies) + MOST_REQUESTS))
    call = CallArguments(options=options, settings=prompt.laid_under(how.get("settings")), strict=how.get("strict"))
    return conversation, made(adapter, session, options, call, spending, how.get("approve"), how.get("watch"))


def _conversation(function: str, prompt: Prompt[Output], speaks_as: str, how: EvaluateArguments) -> Conversation:
    evaluation_id = how.get("evaluation_id")
    if how.get("resume"):
        return restore(how.get("session"), prompt, speaks_as, evaluation_id)
    if evaluation_id is not None:
        raise SettingsInvalid(f"{function}: evaluation_id names what a resume goes on with; add resume=True")
    return begin(prompt, speaks_as)


def _check_open_calls(conversation: Conversation, options: Sequence[Option]) -> None:
    """Refuse a resume without the options of its pending calls: these would end in permanent errors."""
    called = {call.message.call.option_name for call in conversation.open}
    if missing := sorted(called.difference(option.name for option in options)):
        calls = f"calls of evaluation {conversation.heading.evaluation_id} wait for {', '.join(missing)}"
        raise OptionInvalid(f"{calls}; resume with options= that hold them, or abandon the calls with follow_up()")


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


_KNOWN = tuple(EvaluateArguments.__annotations__)
