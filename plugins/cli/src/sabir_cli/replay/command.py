"""`sabir replay`: ask a model the questions of a recorded conversation again, and show what differs.

STORE, NAME ──▶ recorded questions ──┬── --model ──▶ the model's steps ──┐
                                     ├── --against ▶ another recording ──┼──▶ differences, exit code
                                     └── neither ──▶ its own recording ──┘

Each question is asked after the recorded messages before it, so a difference in one answer does not change the next
questions. Options never run.
"""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NoReturn

import sabir
import sabir_session
from cyclopts import Parameter
from cyclopts.validators import Number
from pydantic import TypeAdapter
from sabir.authoring import one_line
from sabir_session import PostgresStore, SQLiteStore, Store

from sabir_cli import inputs
from sabir_cli.chat.command import NO_CALL_FLAGS, CallFlags
from sabir_cli.chat.summaries import STORE_FILE
from sabir_cli.config import Defaults
from sabir_cli.exits import Exit
from sabir_cli.facts import open_adapter
from sabir_cli.losses import loss_describer
from sabir_cli.output import Output, UsageError
from sabir_cli.replay.costs import confirm, cost_of, estimate, may_cost, require_key
from sabir_cli.replay.differences import PERCENT, find_differences, find_question_difference
from sabir_cli.replay.recording import RecordedQuestion, read_questions
from sabir_cli.replay.report import QuestionReport, report_lines, summary_line
from sabir_cli.replay.running import ReplayedQuestion, recorded_answers, replay_question

URL_MARK = "://"


def replay(
    store: Annotated[str, Parameter(help="A store: a file or URL. Or the name of a conversation of `sabir chat`.")],
    name: Annotated[str | None, Parameter(help="The conversation in the store. Default: its only one.")] = None,
    /,
    *,
    model: Annotated[
        str | None, Parameter(name=["-m", "--model"], help="provider:model to ask. Default: the recording itself.")
    ] = None,
    against: Annotated[
        str | None, Parameter(help="Compare with this conversation of the store, without a model.")
    ] = None,
    option: inputs.OptionFlags = None,
    call_flags: CallFlags = NO_CALL_FLAGS,
    usage: Annotated[
        float,
        Parameter(validator=Number(gte=0), help="Show tokens that differ by more than this percentage and by 50."),
    ] = PERCENT,
    yes: Annotated[bool, Parameter(negative="", help="Start without asking.")] = False,
    as_json: inputs.JSONFlag = False,
) -> int:
    """Ask a model the questions of a recorded conversation again, and show what differs.

    Each question is asked after the recorded messages before it. Options
    do not run: a call gets the recorded result of an equal call, and a call
    without one stops its question. Declare the options with --option.

    The exit code is 1 if anything differs. Without --model, the recording
    is replayed with its own replies, which shows whether it is complete.
    """
    output = Output(machine=as_json)
    if model is not None and against is not None:
        raise UsageError("--model and --against exclude each other; remove one of them")
    options = inputs.load_options(option)
    with ExitStack() as stack:
        opened, name = _open(stack, store, name)
        questions = _load_questions(opened, name)
        if against is not None:
            return _report(output, _against(questions, _load_questions(opened, against), usage), as_json)
        if model is None:
            replays = (replay_question(question, recorded_answers(question)) for question in questions)
            return _report(output, _reports(questions, replays, usage), as_json)
        llm = stack.enter_context(open_adapter(model, call_flags.base_url))
        arguments = _call_arguments(questions, options, call_flags, llm)
        require_key(llm)
        if may_cost(llm) and not confirm(model, estimate(llm, questions), output, yes=yes):
            return Exit.FAILED
        asker = _ModelAsker(llm, arguments, output, len(questions))
        if may_cost(llm):
            stack.callback(asker.print_cost)
        return _report(output, _reports(questions, map(asker.replay, questions), usage), as_json, model)


class _ModelAsker:
    """Asks a model the questions, shows the losses of the requests, and adds up the costs."""

    def __init__(self, llm: sabir.ModelAdapter, arguments: dict[str, Any], output: Output, total: int) -> None:
        self._llm, self._arguments, self._output, self._total = llm, arguments, output, total
        self._replies: list[sabir.Reply] = []
        self._number = 0

    def replay(self, question: RecordedQuestion) -> ReplayedQuestion:
        self._number += 1
        with self._output.waiting(f"question {self._number} of {self._total} …"):
            replayed = replay_question(question, self._ask, self._arguments["options"])
        self._replies += replayed.replies
        messages = [*question.context, *(message for step in replayed.steps for message in step.messages)]
        for reply in replayed.replies:
            self._output.losses(reply.losses, loss_describer(messages))
        return replayed

    def _ask(self, messages: Sequence[sabir.Message]) -> sabir.Reply:
        return self._llm.complete_sync(messages, **self._arguments)

    def print_cost(self) -> None:
        cost = cost_of(self._replies)
        paid = "cost unknown" if cost is None else f"${cost:.4f}"
        self._output.note(f"{len(self._replies)} replies of {self._llm.target}, {paid}")


def _open(stack: ExitStack, store: str, name: str | None) -> tuple[Store, str]:
    """Open a store, and return it with the name of the conversation. Raises UsageError for an unknown store or name."""
    is_store = URL_MARK in store or Path(store).is_file()
    if not is_store and name is not None:
        raise UsageError(f"{store!r} is not a file; name the file of a store, or a URL such as postgresql://…")
    if URL_MARK in store and not store.startswith("sqlite:///"):
        opened: Store = stack.enter_context(PostgresStore(store))
    else:
        file = Path(store.removeprefix("sqlite:///")) if is_store else Defaults.load().home / STORE_FILE
        if not file.is_file():
            raise UsageError(f"{store!r} is not the file of a store, and no conversation of `sabir chat` is saved")
        opened = stack.enter_context(SQLiteStore(file))
    names = opened.names()
    if not is_store:
        if store not in names:
            near = difflib.get_close_matches(store, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else "`sabir chats` lists the conversations"
            raise UsageError(f"{store!r} is neither the file of a store nor a conversation of `sabir chat`; {hint}")
        name = store
    elif name is None:
        if len(names) != 1:
            choice = one_line(", ".join(map(repr, names)), 200) or "no conversation"
            raise UsageError(f"the store has {choice}; write the name of a conversation after the store")
        name = names[0]
    return opened, name


def _load_questions(store: Store, name: str) -> list[RecordedQuestion]:
    """Return the questions of a conversation. Raises UsageError if there is none of this name, or no reply in it."""
    if store.length(name) is None:
        _raise_unknown(name, store.names())
    session = sabir_session.Session(journal=store.journal(name))
    sabir_session.enable_inner_message_recording(session)
    questions = read_questions(sabir_session.get_inner_messages(session))
    if not questions:
        raise UsageError(f"the conversation {name!r} has no reply; choose a conversation that a model answered")
    return questions


def _raise_unknown(name: str, names: Sequence[str]) -> NoReturn:
    near = difflib.get_close_matches(name, names, 1)
    known = one_line(", ".join(map(repr, names)), 200) or "none"
    hint = f"did you mean {near[0]!r}?" if near else f"the store has {known}"
    raise UsageError(f"there is no conversation {name!r} in the store; {hint}")


def _call_arguments(
    questions: Sequence[RecordedQuestion],
    options: Sequence[sabir.Option],
    call_flags: CallFlags,
    llm: sabir.ModelAdapter,
) -> dict[str, Any]:  # of `complete_sync`
    """Return the options and settings of the requests. Raises UsageError if a recorded option is not declared."""
    settings = call_flags.settings(Defaults.load().settings, llm.target.provider)
    declared = [*options]
    called = sorted(set().union(*(question.called for question in questions)) - {each.name for each in options})
    if called:
        reason = f"the recording calls {', '.join(called)}, which the model must know"
        raise UsageError(f"{reason}; add --option module:function for each (they do not run)")
    if call_flags.output_type is not None:
        from sabir_cli.chat.output_types import load_output_type

        schema = TypeAdapter(load_output_type(call_flags.output_type)).json_schema()
        output_option = next((each.output_option for each in questions if each.output_option), "")
        if output_option:
            declared.append(sabir.Option.from_schema(output_option, "Gives the answer.", schema))
        else:
            settings = sabir.Settings(response_format=schema).laid_over(settings)
    elif any(question.output_option for question in questions):
        raise UsageError("the recorded answers have a type; add --output, with the type or a JSON schema")
    return {"options": declared, "settings": settings}


def _reports(
    questions: Sequence[RecordedQuestion], replays: Iterator[ReplayedQuestion], percent: float
) -> Iterator[QuestionReport]:
    for number, (question, replayed) in enumerate(zip(questions, replays, strict=True), 1):
        stops = bool(replayed.stopped)
        differences = find_differences(question.steps, replayed.steps, percent=percent, is_stopped=stops)
        yield QuestionReport(number, question, tuple(differences), replayed.stopped)


def _against(
    questions: Sequence[RecordedQuestion], others: Sequence[RecordedQuestion], percent: float
) -> Iterator[QuestionReport]:
    nothing = RecordedQuestion((), ())
    for number, (one, other) in enumerate(zip_longest(questions, others, fillvalue=nothing), 1):
        differences = find_question_difference(one, other)
        differences += find_differences(one.steps, other.steps, percent=percent)
        yield QuestionReport(number, one if one.steps else other, tuple(differences))


def _report(output: Output, reports: Iterator[QuestionReport], as_json: bool, model: str | None = None) -> int:
    """Print each question that differs as soon as it is compared, and return the exit code."""
    finished: list[QuestionReport] = []
    for report in reports:
        finished.append(report)
        if report.differs:
            output.show(*report_lines(report))
    if as_json:
        output.document({"model": model, "questions": [report.document() for report in finished]})
    else:
        output.show(summary_line(finished))
    return Exit.FAILED if any(report.differs for report in finished) else Exit.OK
