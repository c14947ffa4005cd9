"""Send the rows of a plan one after the other, and keep what was answered and paid, also if Ctrl-C ends the run.

PlannedRow ──send_recorded──▶ QuestionResult ──the question's own check──▶ RowResult: ok │ failed
    └── unsupported ─────────────────────────────────────────────────────▶ RowResult: not supported
"""

import ipaddress
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import sabir
from sabir import Reply
from sabir.authoring import KeySource, installed_hooks, one_line

from sabir_testing.cassettes import CassetteFailed, recording
from sabir_testing.kit.asking import QuestionResult, secret_keys, send_recorded
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.live.questions import USAGE, USAGE_ROWS, PlannedRow, needs_key
from sabir_testing.scrubbing import Scrubbing

Outcome: TypeAlias = Literal["ok", "failed", "not supported", "interrupted"]


@dataclass(frozen=True)
class RowResult:
    """The result of one row. `reason` says in one line why it is not "ok".

    `tokens` are the tokens that the replies reported, and `cost` their price in US dollars; None if unknown. A row
    without replies costs 0, unless it was interrupted. `saved` is the path of the cassette; None if there is none.
    """

    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    calls: int = 0
    tokens: int | None = 0
    cost: Decimal | None = Decimal(0)
    saved: Path | None = None
    note: str = ""
    """Why the exchanges of a row were not saved; "" if they were, or need not be."""


class _NotSaved(Exception):
    """Raised inside of `recording`, so that the exchanges of a failed row are not written."""


@dataclass
class LiveCheck:
    """One run of a check. `results` has the rows that are finished, and the interrupted one.

    `save` is the folder for cassettes; None to save nothing. `server` describes the service in their provenance.
    """

    adapter: sabir.ModelAdapter
    rows: Sequence[PlannedRow]
    save: Path | None = None
    server: str = ""
    with_usage: bool = True
    results: list[RowResult] = field(default_factory=list)
    interrupted: bool = False
    _replies: dict[str, Reply] = field(default_factory=dict)

    def run(self, begin: Callable[[str], None] = lambda name: None) -> Iterator[RowResult]:
        """Send the questions, and yield the result of each row. Ctrl-C ends the run; then `interrupted` is True.

        `begin` is called with the name of a row before its first request.
        """
        for row in self.rows:
            if not row.unsupported:
                begin(row.row.name)
            self.results.append(self._run_row(row))
            yield self.results[-1]
            if self.interrupted:
                return
        if self.with_usage:
            self.results.append(self._check_usage())
            yield self.results[-1]

    def _run_row(self, planned: PlannedRow) -> RowResult:
        name, received = planned.row.name, list[Reply]()
        if planned.unsupported:
            return RowResult(name, "not supported", one_line(planned.unsupported))
        start, path = time.monotonic(), None
        outcome: Outcome = "ok"
        reason = note = ""
        calls = planned.calls
        try:
            with ExitStack() as stack:
                path = self._record(planned, stack)
                answered = send_recorded(self.adapter, planned.new_result(self.adapter), received=received)
                calls = len(answered.exchanges) or len(received) or 1
                reason = _fault(answered)
                if reason and path is not None:
                    raise _NotSaved
        except _NotSaved:
            path, note = None, "not saved, because it failed"
        except CassetteFailed as error:
            path, note = None, f"not saved: {one_line(error)}"
        except KeyboardInterrupt:
            self.interrupted, path = True, None
            outcome, reason, calls = "interrupted", "the service may charge for the interrupted call", len(received) + 1
        if received:
            self._replies[name] = received[-1]
        outcome = "failed" if outcome == "ok" and reason else outcome
        tokens, cost = tokens_of(received), cost_of(received)
        return RowResult(name, outcome, reason, time.monotonic() - start, calls, tokens, cost, path, note)

    def _record(self, planned: PlannedRow, stack: ExitStack) -> Path | None:
        """Begin to record the row's exchanges, and return the path of its cassette; None without `save`."""
        if self.save is None:
            return None
        path = self.save / f"{planned.row.question}{planned.row.suffix}.yaml"
        scrub = Scrubbing(secrets=tuple(secret_keys(self.adapter)))
        stack.enter_context(recording(path, self._provenance(), scrub=scrub))
        return path

    def _provenance(self) -> Mapping[str, str]:
        provider = self.adapter.target.provider
        status = next((each for each in sabir.providers() if each.name == provider and each.distribution), None)
        client = f"{status.distribution} {status.version}" if status else f"the registered provider {provider}"
        today = datetime.now(UTC).date().isoformat()
        return {
            "server": self.server or server_of(self.adapter),
            "version": "not reported",
            "model": self.adapter.model,
            "date": today,
            "client": client,
        }

    def _check_usage(self) -> RowResult:
        replies = {name: self._replies[name] for name in USAGE_ROWS if name in self._replies}
        if not replies:
            return RowResult(USAGE, "failed", f"there is no reply of {' or '.join(USAGE_ROWS)} to read it from")
        missing = [name for name, reply in replies.items() if not reply.usage.total_tokens]
        reason = f"the reply of {' and of '.join(missing)} reports no number of tokens" if missing else ""
        return RowResult(USAGE, "failed" if reason else "ok", reason)


def _fault(answered: QuestionResult) -> str:
    """Return in one line what is wrong with the result of a question; "" if it is as expected."""
    expected, error = answered.question.expects, answered.error
    if expected is not None:
        if error is None:
            return f"the service answered; expected an error, {expected.__name__}"
        return "" if isinstance(error, expected) else f"expected {expected.__name__}, got {one_line(error)}"
    if error is not None:
        return one_line(error)
    try:
        expect(answered.replies, "the service sent no reply")
        answered.question.check(answered.replies)
    except ConformanceFailure as failure:
        return one_line(failure.what)
    return ""


def tokens_of(replies: Sequence[Reply]) -> int | None:
    """Return the sum of the tokens of replies; None if one of them does not report its tokens."""
    counts = [reply.usage.total_tokens for reply in replies]
    return None if None in counts else sum(count or 0 for count in counts)


def cost_of(replies: Sequence[Reply]) -> Decimal | None:
    """Return the price of replies in US dollars; None if the price of one of them is unknown."""
    costs = [installed_hooks().cost(reply) for reply in replies]
    return None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0))


def require_key(adapter: sabir.ModelAdapter) -> None:
    """Raise CredentialsMissing if the provider needs a key and there is none."""
    if needs_key(adapter):
        KeySource(adapter.provider.name, adapter.access.api_key, adapter.provider.credentials).read()


def server_of(adapter: sabir.ModelAdapter) -> str:
    """Return the `server` for the provenance of a cassette. An endpoint on this machine or in a private network is not
    a vendor's.
    """
    host = urlsplit(adapter.target.endpoint).hostname or ""
    try:
        is_public = not ipaddress.ip_address(host).is_private
    except ValueError:
        is_public = "." in host
    own = f"{adapter.target.provider}'s own service"
    return own if is_public else "a service on this machine or a private network, not a vendor's own service"
