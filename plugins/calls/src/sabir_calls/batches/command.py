"""The command `sabir batch`: submits the prompts of a file as a batch, and prints the answers of a batch.

rows of FILE ──--prompt──▶ prompts ──estimate──▶ confirm ──▶ submit ──▶ ticket        ticket ──collect──▶ rows by key
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import sabir
from sabir.authoring import BatchStatus, one_line
from sabir.errors import SettingsInvalid

from sabir_calls.batches import batch as batches
from sabir_calls.batches.outcomes import BatchOutcome, describe_status
from sabir_calls.batches.tickets import BatchTicket
from sabir_calls.runs import (
    STDIN,
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

Action: TypeAlias = Literal["submit", "status", "collect", "cancel"]


def batch(  # noqa: PLR0913  # each parameter is a flag
    action: Action,
    source: str = STDIN,
    /,
    *,
    prompt: str | None = None,
    model: str | None = None,
    system: str | None = None,
    key: str | None = None,
    name: str = "",
    max_output_tokens: int | None = None,
    cap: float | None = None,
    yes: bool = False,
    wait: bool = False,
    output: Path | None = None,
) -> int:
    """Submit a file of prompts as a batch, or show, collect or cancel a batch.

    `sabir batch submit FILE` prints a ticket. The vendor answers within 24 hours, usually at half price. Then
    `sabir batch collect TICKET` prints one line of JSON for each prompt: its key, and "answer" or "error".

    Args:
        action: submit, status, collect or cancel.
        source: For submit: a file of JSON Lines; without it, standard input is read. Otherwise: the ticket.
        prompt: For submit: the prompt, with the fields of an object in braces: "Translate into French: {text}".
        model: For submit: provider:model. Default: $SABIR_MODEL.
        system: For submit: instructions to the model.
        key: For submit: the field with the key of each line. By default the keys are the numbers of the lines.
        name: For submit: a name for the batch. The same command with the same name does not submit again.
        max_output_tokens: For submit: the maximum length of an answer, in tokens.
        cap: For submit: US dollars. A higher estimate is refused. Needs the package sabir-prices.
        yes: For submit: do not ask before the start.
        wait: For collect: wait until the batch is over.
        output: For collect: the file for the answers. By default they are printed.
    """
    if action == "submit":
        if prompt is None:
            raise SettingsInvalid('submit needs a prompt; pass --prompt, for example "Good or bad? {text}"')
        prompts = _keyed_prompts(read_rows(source), prompt, system, key)
        settings = sabir.Settings(max_output_tokens=max_output_tokens)
        with batches.batch_of(open_adapter(model_of(model))) as opened:
            estimate = estimate_run(opened.adapter, list(prompts.values()), settings, is_batch=True)
            check_cap(estimate, cap)
            if not confirm(estimate, yes, is_input_used=source == STDIN):
                return 1
            print(opened.submit_sync(prompts, name=name, settings=settings))
        return 0
    with batches.batch_of(open_adapter(BatchTicket.parse(source).model)) as opened:
        if action == "collect":
            return _collect(opened, source, output, wait=wait)
        print(describe_status(_STATUS_OF[action](opened, source)))
    return 0


_STATUS_OF: Mapping[str, Callable[[batches.Batch, str], BatchStatus]] = {
    "status": batches.Batch.status_sync,
    "cancel": batches.Batch.cancel_sync,
}


def _keyed_prompts(
    rows: list[dict[str, Any]], prompt: str, system: str | None, key: str | None
) -> dict[str, list[sabir.Message]]:
    """Return the prompts by key. Raises SettingsInvalid for a row without the field of the key, and for equal keys."""
    prompts: dict[str, list[sabir.Message]] = {}
    for number, (row, messages) in enumerate(zip(rows, prompts_of(rows, prompt, system), strict=True), 1):
        if key is not None and key not in row:
            raise SettingsInvalid(f"line {number} has no field {key!r} for --key; the line has {', '.join(row)}")
        if (name := str(number if key is None else row[key])) in prompts:
            raise SettingsInvalid(f"line {number} repeats the key {name!r}; give each line its own key")
        prompts[name] = messages
    return prompts


def _collect(opened: batches.Batch, ticket: str, output: Path | None, *, wait: bool) -> int:
    if wait:
        opened.wait_sync(ticket)
    answers, errors, costs = 0, 0, RunCosts(cap=None)
    with _opened(output) as file, closing(opened.collect_sync(ticket)) as outcomes:
        for outcome in outcomes:
            file.write(json.dumps(_row_of(outcome), ensure_ascii=False) + "\n")
            if outcome.reply is None:
                errors += 1
            else:
                answers += 1
                costs.add(outcome.reply)
    print_note(f"{answers} answers, {errors} errors, {costs}")
    return 1 if errors else 0


def _opened(output: Path | None) -> AbstractContextManager[IO[str]]:
    """Open the file for the answers, or return standard output. Raises SettingsInvalid if it cannot be written."""
    if output is None:
        return nullcontext(sys.stdout)
    try:
        return output.open("w", encoding="utf-8")
    except OSError as error:
        raise SettingsInvalid(f"{str(output)!r} cannot be written: {error.strerror}; pass another --output") from None


def _row_of(outcome: BatchOutcome) -> dict[str, str]:
    answer = {"answer": outcome.text} if outcome.error is None else {"error": one_line(outcome.error)}
    return {"key": outcome.key, **answer}
