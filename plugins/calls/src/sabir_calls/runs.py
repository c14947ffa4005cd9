"""What the commands `sabir map` and `sabir batch` share: prompts from the rows of a file, and the costs of a run.

FILE ──read_rows──▶ rows ──prompts_of──▶ prompts ──estimate_run──▶ RunEstimate ──check_cap──▶ confirm
"""

import json
import os
import string
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import sabir
from sabir.authoring import installed_hooks, load_entry_point, one_line
from sabir.errors import SettingsInvalid

from sabir_calls.limits.estimates import TOKENS_OF_A_REPLY, estimate_tokens

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


class OverCap(Exception):
    """Raised to end the run, because the replies cost more than --cap."""


class RunCosts:
    """The sum of the costs of replies, in US dollars. If the cost of a reply is unknown, `is_known` is False."""

    def __init__(self, cap: float | None) -> None:
        self.total = Decimal(0)
        self.is_known = True
        self._cap = cap

    def add(self, reply: sabir.Reply) -> None:
        """Add the cost of a reply. Raises OverCap if the sum exceeds the cap."""
        cost = installed_hooks().cost(reply)
        self.is_known = self.is_known and cost is not None
        self.total += cost or 0
        if self._cap is not None and self.total > self._cap:
            raise OverCap

    def __str__(self) -> str:
        """Return the sum, or that it is unknown."""
        return f"cost ${self.total:.4f}" if self.is_known else "cost unknown"


def model_of(model: str | None) -> str:
    """Return the model of the flag --model or of the variable. Raises SettingsInvalid if neither is set."""
    name = model or os.environ.get(MODEL_VARIABLE)
    if not name:
        raise SettingsInvalid(f"no model is set; pass --model provider:model, or set {MODEL_VARIABLE}")
    return name


def open_adapter(model: str) -> sabir.ModelAdapter:
    """Return the model's adapter. If sabir-cli is installed, it opens the adapter as for its own commands, with the
    facts about models and the profile from the user's settings file.
    """
    for point in entry_points(group="sabir.settings", name="open_adapter"):
        adapter: sabir.ModelAdapter = load_entry_point(point)(model, None)
        return adapter
    return sabir.adapter(model)


def prompts_of(rows: Sequence[Mapping[str, Any]], prompt: str, system: str | None) -> list[list[sabir.Message]]:
    """Return the conversation of each row. Raises SettingsInvalid if a row lacks a field of the prompt."""
    return [_prompt_messages(system, _fill_prompt(prompt, row, number)) for number, row in enumerate(rows, 1)]


def read_rows(file: str) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON Lines, or of standard input. Raises SettingsInvalid for other contents."""
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


def _field_text(field: object) -> str:
    return field if isinstance(field, str) else json.dumps(field, ensure_ascii=False)


def _prompt_messages(system: str | None, text: str) -> list[sabir.Message]:
    return [*([sabir.system(system)] if system else []), sabir.user(text)]


def estimate_run(
    llm: sabir.Adapter,
    prompts: Sequence[list[sabir.Message]],
    settings: sabir.Settings | None = None,
    *,
    is_batch: bool = False,
) -> RunEstimate:
    """Return the expected tokens and cost of a run with these settings, at the prices of batches if `is_batch` is
    True.
    """
    total, costs = 0, RunCosts(cap=None)
    for each in prompts:
        rendering = llm.render(each, settings=settings)
        tokens = estimate_tokens(rendering)
        total += tokens
        costs.add(_expected_reply(rendering.target, tokens, is_batch))
    return RunEstimate(len(prompts), total, costs.total if costs.is_known else None)


def _expected_reply(target: sabir.Target, tokens: int, is_batch: bool) -> sabir.Reply:
    """Return a reply without messages whose usage is the estimate, so that a hook can compute its cost."""
    output_tokens = min(tokens, TOKENS_OF_A_REPLY)
    usage = sabir.Usage(input_tokens=tokens - output_tokens, output_tokens=output_tokens)
    fields = {name: getattr(target, name) for name in ("provider", "dialect", "endpoint", "model")}
    origin = sabir.Origin(**fields)
    return sabir.Reply(messages=(), finish_reason="stop", usage=usage, origin=origin, is_batch=is_batch)


def check_cap(estimate: RunEstimate, cap: float | None) -> None:
    """Raise SettingsInvalid if the estimate exceeds the cap, or is unknown and there is a cap."""
    if cap is None:
        return
    if estimate.cost is None:
        remedy = "install sabir-prices if it is missing, or leave --cap out"
        raise SettingsInvalid(f"--cap needs the model's prices, which are unknown; {remedy}")
    if estimate.cost > cap:
        raise SettingsInvalid(f"{estimate}, more than --cap {cap}; send fewer lines, or raise --cap")


def confirm(estimate: RunEstimate, yes: bool, is_input_used: bool) -> bool:
    """Print the estimate, ask whether to start, and return the answer. With `yes`, do not ask.

    Raises SettingsInvalid if nobody can answer.
    """
    if not yes and (is_input_used or not sys.stdin.isatty()):
        raise SettingsInvalid(f"{estimate}: nobody can confirm the start here; pass --yes")
    print_note(str(estimate))
    if yes:
        return True
    sys.stderr.write("Start? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_note(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(text + "\n")
