"""The expected costs of a replay, and the question whether to start.

recorded steps ──render for the model, recorded usage──▶ ReplayEstimate ──free?──▶ start
                                                                └── paid ──▶ "Start? [y/N]", or --yes
"""

import ipaddress
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit

import sabir
from sabir.authoring import KeySource, installed_hooks

from sabir_cli.output import Output, UsageError
from sabir_cli.replay.recording import RecordedQuestion

BYTES_OF_A_TOKEN = 4
TOKENS_OF_A_REPLY = 256
"""The output tokens that the estimate assumes for a reply whose usage was not recorded."""


class ReplayEstimate(NamedTuple):
    """The expected requests and tokens of a replay. `cost` is in US dollars, or None if unknown."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost: Decimal | None

    def __str__(self) -> str:
        """Return one line, such as "about 3 requests, 1,200 input and 90 output tokens, $0.0031"."""
        cost = "cost unknown" if self.cost is None else f"${self.cost:.4f}"
        tokens = f"{self.input_tokens:,} input and {self.output_tokens:,} output tokens"
        return f"about {self.requests:,} requests, {tokens}, {cost}"


def estimate(adapter: sabir.ModelAdapter, questions: Sequence[RecordedQuestion]) -> ReplayEstimate:
    """Return the expected costs if the model answers with as many requests and tokens as the recording."""
    requests = read = written = 0
    for question in questions:
        messages = [*question.context]
        for step in question.steps:
            requests += 1
            read += step.usage.input_tokens or sum(map(_size, messages)) // BYTES_OF_A_TOKEN
            written += step.usage.output_tokens or TOKENS_OF_A_REPLY
            messages += [*step.messages, *step.results]
    usage = sabir.Usage(input_tokens=read, output_tokens=written)
    fields = {name: getattr(adapter.target, name) for name in ("provider", "dialect", "endpoint", "model")}
    expected = sabir.Reply(messages=(), finish_reason="stop", usage=usage, origin=sabir.Origin(**fields))
    return ReplayEstimate(requests, read, written, installed_hooks().cost(expected))


def _size(message: sabir.Message) -> int:
    return len(message.model_dump_json(include={"payload"}, exclude_none=True))


def require_key(adapter: sabir.ModelAdapter) -> None:
    """Raise CredentialsMissing, before the question whether to start, if the provider needs a key and there is none."""
    if _needs_key(adapter):
        KeySource(adapter.provider.name, adapter.access.api_key, adapter.provider.credentials).read()


def _needs_key(adapter: sabir.ModelAdapter) -> bool:
    return any(each.secret and each.default is None for each in adapter.provider.credentials)


def may_cost(adapter: sabir.ModelAdapter) -> bool:
    """Return whether calls may cost money: the provider requires a secret key, or its endpoint is on the internet."""
    if _needs_key(adapter):
        return True
    host = urlsplit(adapter.target.endpoint).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_private
    except ValueError:
        return "." in host


def confirm(model: str, expected: ReplayEstimate, output: Output, *, yes: bool) -> bool:
    """Print the estimate, ask whether to start, and return the answer. With `yes`, do not ask.

    Raises UsageError if nobody can answer.
    """
    if not yes and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(f"{model}: {expected}: nobody can confirm the start here; add --yes")
    output.note(f"{model}: {expected}", style="")
    if yes:
        return True
    output.err.print("Start? \\[y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def cost_of(replies: Sequence[sabir.Reply]) -> Decimal | None:
    """Return the price of replies in US dollars; None if the price of one of them is unknown."""
    costs = [installed_hooks().cost(reply) for reply in replies]
    return None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0))
