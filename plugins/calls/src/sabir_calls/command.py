"""The command `sabir map`: sends one prompt for each line of a file, and prints the answers as JSON Lines.

rows of FILE ──--prompt──▶ prompts ──estimate──▶ over --cap? ──▶ confirm ──▶ complete_many ──▶ rows with `answer`
                                                                                └── --resume: the file of the replies
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Unpack

import sabir
from sabir.authoring import one_line
from sabir.errors import SettingsInvalid

from sabir_calls.limits.limited import limited
from sabir_calls.many.many import ManyArguments, each_completed_sync
from sabir_calls.many.outcomes import Outcome, Progress
from sabir_calls.runs import (
    STDIN,
    OverCap,
    RunCosts,
    check_cap,
    confirm,
    estimate_run,
    model_of,
    open_adapter,
    print_note,
    prompts_of,
    read_rows,
)


def map_(  # noqa: PLR0913  # each parameter is a flag
    file: str = STDIN,
    /,
    *,
    prompt: str,
    model: str | None = None,
    system: str | None = None,
    output: Path | None = None,
    resume: Path | None = None,
    at_once: int = 8,
    requests: int | None = None,
    tokens: int | None = None,
    max_output_tokens: int | None = None,
    cap: float | None = None,
    yes: bool = False,
) -> int:
    """Send one prompt for each line of a file, and print the answers.

    Each line of the file is a JSON object; blank lines are skipped. Each line of the output is the same object with the
    field "answer" or "error". The estimated tokens and cost are printed first, and the command asks before it starts.

    Args:
        file: A file of JSON Lines. Without it, standard input is read.
        prompt: The prompt, with the fields of an object in braces: "Translate into French: {text}".
        model: provider:model. Default: $SABIR_MODEL.
        system: Instructions to the model.
        output: The file for the answers. By default they are printed, in the order of the lines.
        resume: A file for the replies. After an interruption, the same command sends only the remaining prompts.
        at_once: The maximum number of requests at the same time.
        requests: The maximum number of requests per minute.
        tokens: The maximum number of tokens per minute.
        max_output_tokens: The maximum length of an answer, in tokens.
        cap: US dollars. A higher estimate is refused, and higher costs stop the run. Needs the package sabir-prices.
        yes: Start without asking.
    """
    rows = read_rows(file)
    prompts = prompts_of(rows, prompt, system)
    settings = sabir.Settings(max_output_tokens=max_output_tokens)
    costs = RunCosts(cap)
    with limited(open_adapter(model_of(model)), requests=requests, tokens=tokens) as llm:
        estimate = estimate_run(llm, prompts, settings)
        check_cap(estimate, cap)
        if not confirm(estimate, yes, is_input_used=file == STDIN):
            return 1
        try:
            outcomes = _run_prompts(llm, prompts, costs, at_once=at_once, resume=resume, settings=settings)
        except OverCap:
            print_note(f"stopped: the replies cost ${costs.total:.4f}, and --cap is ${cap}")
            return 1
    _write_outcomes(rows, outcomes, output)
    failed = sum(outcome.error is not None for outcome in outcomes)
    print_note(f"{len(rows) - failed} answers, {failed} errors, {costs}")
    return 1 if failed else 0


def _run_prompts(
    llm: sabir.Adapter, prompts: Sequence[list[sabir.Message]], costs: RunCosts, **arguments: Unpack[ManyArguments]
) -> list[Outcome]:
    progress, outcomes = _ProgressLine(), list[Outcome]()
    arguments["progress"] = progress.show
    completed = each_completed_sync(llm, prompts, **arguments)
    with closing(progress), closing(completed):
        for outcome in completed:
            outcomes.append(outcome)
            if outcome.reply is not None and not outcome.is_resumed:
                costs.add(outcome.reply)
    return sorted(outcomes, key=lambda outcome: outcome.index)


class _ProgressLine:
    """Shows the progress in one line of a terminal. Without a terminal, shows nothing."""

    def show(self, progress: Progress) -> None:
        """Overwrite the line with this progress."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{one_line(str(progress), 79)}")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def _write_outcomes(rows: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome], output: Path | None) -> None:
    if output is None:
        _write_lines(rows, outcomes, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            _write_lines(rows, outcomes, file)
    except OSError as error:
        raise SettingsInvalid(f"{str(output)!r} cannot be written: {error.strerror}; pass another --output") from None


def _write_lines(rows: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome], file: IO[str]) -> None:
    for line in _output_lines(rows, outcomes):
        file.write(line + "\n")


def _output_lines(rows: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]) -> Iterator[str]:
    for row, outcome in zip(rows, outcomes, strict=True):
        result = {"answer": outcome.text} if outcome.error is None else {"error": one_line(outcome.error)}
        yield json.dumps({**row, **result}, ensure_ascii=False)
