"""The command `sabir map`: sends one prompt for each line of a file, and prints the answers as JSON Lines.

rows of FILE ──--prompt──▶ prompts ──estimate──▶ over --cap? ──▶ confirm ──▶ complete_many ──▶ rows with `answer`
                                                                                └── --resume: the file of the replies
"""

import json
import os
import string
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

import sabir
from sabir.authoring import installed_hooks, one_line
from sabir.errors import SettingsInvalid

from sabir_calls.limits.estimates import TOKENS_OF_A_REPLY, estimate_tokens
from sabir_calls.limits.limited import limited
from sabir_calls.many.many import each_completed_sync
from sabir_calls.many.outcomes import Outcome, Progress

MODEL_VARIABLE = "SABIR_MODEL"
STDIN = "-"


class RunEstimate(NamedTuple):
    """The expected tokens and cost of a run, before anything is sent. `cost` is in US dollars, or None if unknown."""

    prompts: int
    tokens: int
    cost: Decimal | None

    def __str__(self) -> str:
        """Return one line, for example "200 prompts, about 40,000 tokens, about $0.1200"."""
        cost = "cost unknown" if self.cost is None else f"about ${self.cost:.4f}"
        return f"{self.prompts:,} prompts, about {self.tokens:,} tokens, {cost}"


class _OverCap(Exception):
    """Raised to end the run, because the replies cost more than --cap."""


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
    rows = _read_rows(file)
    prompts = [_prompt_messages(system, _fill_prompt(prompt, row, number)) for number, row in enumerate(rows, 1)]
    name = model or os.environ.get(MODEL_VARIABLE)
    if not name:
        raise SettingsInvalid(f"no model is set; pass --model provider:model, or set {MODEL_VARIABLE}")
    settings = sabir.Settings(max_output_tokens=max_output_tokens)
    llm = limited(sabir.adapter(name, settings=settings), requests=requests, tokens=tokens)
    estimate = _estimate(llm, prompts)
    _check_cap(estimate, cap)
    if not _confirm(estimate, yes, is_input_used=file == STDIN):
        return 1
    costs = _RunCosts(cap)
    try:
        outcomes = _run_prompts(llm, prompts, at_once, resume, costs)
    except _OverCap:
        _print_note(f"stopped: the replies cost ${costs.total:.4f}, and --cap is ${cap}")
        return 1
    _write_outcomes(rows, outcomes, output)
    failed = sum(outcome.error is not None for outcome in outcomes)
    _print_note(f"{len(rows) - failed} answers, {failed} errors, {costs}")
    return 1 if failed else 0


class _RunCosts:
    """The sum of the costs of replies, in US dollars. If the cost of a reply is unknown, `is_known` is False."""

    def __init__(self, cap: float | None) -> None:
        self.total = Decimal(0)
        self.is_known = True
        self._cap = cap

    def add(self, reply: sabir.Reply) -> None:
        """Add the cost of a reply. Raises _OverCap if the sum exceeds the cap."""
        cost = installed_hooks().cost(reply)
        self.is_known = self.is_known and cost is not None
        self.total += cost or 0
        if self._cap is not None and self.total > self._cap:
            raise _OverCap

    def __str__(self) -> str:
        """Return the sum, or that it is unknown."""
        return f"cost ${self.total:.4f}" if self.is_known else "cost unknown"


def _run_prompts(
    llm: sabir.Adapter, prompts: Sequence[list[sabir.Message]], at_once: int, resume: Path | None, costs: _RunCosts
) -> list[Outcome]:
    progress, outcomes = _ProgressLine(), list[Outcome]()
    completed = each_completed_sync(llm, prompts, at_once=at_once, resume=resume, progress=progress.show)
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


def _read_rows(file: str) -> list[dict[str, Any]]:
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{file!r} cannot be read: {one_line(error)}; pass a file of JSON Lines") from None
    return [_parse_row(line, number) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _parse_row(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SettingsInvalid(f"line {number} is not JSON: {error}; expected one JSON object in each line") from None
    if not isinstance(row, dict):
        raise SettingsInvalid(f"line {number} is not an object; expected one JSON object in each line")
    return row


def _fill_prompt(prompt: str, row: Mapping[str, Any], number: int) -> str:
    fields = {name for _, name, _, _ in string.Formatter().parse(prompt) if name is not None}
    missing = sorted(fields - row.keys())
    if missing:
        names = ", ".join(map(repr, row)) or "no fields"
        raise SettingsInvalid(f"line {number} has no field {missing[0]!r} for --prompt; the line has {names}")
    return prompt.format_map({name: _field_text(row[name]) for name in fields})


def _field_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _prompt_messages(system: str | None, text: str) -> list[sabir.Message]:
    return [*([sabir.system(system)] if system else []), sabir.user(text)]


def _estimate(llm: sabir.Adapter, prompts: Sequence[list[sabir.Message]]) -> RunEstimate:
    total, costs = 0, _RunCosts(cap=None)
    for each in prompts:
        rendering = llm.render(each)
        tokens = estimate_tokens(rendering)
        total += tokens
        costs.add(_expected_reply(rendering.target, tokens))
    return RunEstimate(len(prompts), total, costs.total if costs.is_known else None)


def _expected_reply(target: sabir.Target, tokens: int) -> sabir.Reply:
    """Return a reply without messages whose usage is the estimate, so that a hook can compute its cost."""
    output_tokens = min(tokens, TOKENS_OF_A_REPLY)
    usage = sabir.Usage(input_tokens=tokens - output_tokens, output_tokens=output_tokens)
    fields = {name: getattr(target, name) for name in ("provider", "dialect", "endpoint", "model")}
    return sabir.Reply(messages=(), finish_reason="stop", usage=usage, origin=sabir.Origin(**fields))


def _check_cap(estimate: RunEstimate, cap: float | None) -> None:
    if cap is None:
        return
    if estimate.cost is None:
        remedy = "install sabir-prices if it is missing, or leave --cap out"
        raise SettingsInvalid(f"--cap needs the model's prices, which are unknown; {remedy}")
    if estimate.cost > cap:
        raise SettingsInvalid(f"{estimate}, more than --cap {cap}; send fewer lines, or raise --cap")


def _confirm(estimate: RunEstimate, yes: bool, is_input_used: bool) -> bool:
    if not yes and (is_input_used or not sys.stdin.isatty()):
        raise SettingsInvalid(f"{estimate}: nobody can confirm the start here; pass --yes")
    _print_note(str(estimate))
    if yes:
        return True
    sys.stderr.write("Start? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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


def _print_note(text: str) -> None:
    sys.stderr.write(text + "\n")
