"""Compare what a prompt cache could give with what it gave, for each request of a conversation.

    request before ──shared_prefix──▶ predicted tokens ──┐
    this request ───▶ reply ──usage.cache_read_tokens──▶ PromptCacheReport, with the first change

A miss has a cause only if something changed. Otherwise the provider's entry has expired or was evicted; nothing tells
which.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple, TypeAlias

from sabir import Adapter, Message, Option, Rendering, Reply, Settings, Usage

from sabir_session.evaluation.budgets import BudgetedAdapter
from sabir_session.evaluation.outputs import Requests

CacheOutcome: TypeAlias = Literal["hit", "changed", "missed", "short", "not stored", "first", "not reported"]
"""What became of a prompt cache.

hit: nothing changed, and tokens were read · changed: the prompt changed before its end, so at most its beginning can be
read · missed: nothing changed, but nothing was read: expired or evicted · short: nothing was read of a beginning that
is shorter than most caches store · not stored: nothing was read, and the reply before reports that nothing was stored ·
first: there was no request to compare with · not reported: the provider reports no cached tokens
"""
LEAST_TOKENS = 512
"""The shortest prompt that a vendor caches which documents such a limit (Anthropic, for its newest models)."""
_EXPLANATIONS: dict[CacheOutcome, str] = {
    "hit": "nothing changed", "changed": "{} changed", "missed": "nothing changed: expired or evicted",
    "short": "the prompt is shorter than most caches store", "not stored": "the provider stored nothing before",
    "first": "there was no earlier request", "not reported": "the provider reports no cached tokens",
}  # fmt: skip
_UNREAD = frozenset({
    "timeout", "idle", "total", "bounds", "retries", "prompt_cache", "max_output_tokens", "temperature", "top_p",
    "stop", "seed", "extra_headers", "extra_headers_for",
})  # fmt: skip
"""Settings that do not change what the model reads."""
_NO_SETTINGS = Settings()
_TOOLS, _SYSTEM = ("tools", "options", "functions"), ("system", "systemInstruction", "instructions")


@dataclass(frozen=True)
class PromptCacheReport:
    """What a prompt cache gave for an answer, against what it could give. Read it from `Answer.prompt_cache`.

    `outcome` is one of CacheOutcome. `predicted_tokens` is the greatest number of tokens that the requests have in
    common with the requests before them, and `read_tokens` the number that the provider read from its cache, or None if
    it does not report the number. `changed` names the first difference to the request before: "messages[2] (user)",
    "options['weather']", "settings.reasoning_effort", "model", or a path in the request's body. "" without a change.
    """

    outcome: CacheOutcome
    predicted_tokens: int = 0
    read_tokens: int | None = None
    changed: str = ""

    def __str__(self) -> str:
        """Return the tokens and the outcome as one line, such as "cache 1200 of 1310: nothing changed"."""
        read = "?" if self.read_tokens is None else self.read_tokens
        return f"cache {read} of {self.predicted_tokens}: {_EXPLANATIONS[self.outcome].format(self.changed)}"


class _SentRequest(NamedTuple):
    rendering: Rendering
    messages: Sequence[Message]
    requests: Requests
    settings: Settings
    usage: Usage | None = None


class CacheWatch:
    """Compares the requests of one conversation, each with the one before."""

    def __init__(self) -> None:
        self._before: _SentRequest | None = None
        self._sent: _SentRequest | None = None
        self.reports: list[PromptCacheReport] = []
        """The reports for the replies to the current question."""

    def copy(self) -> "CacheWatch":
        """Return a watch that continues from the same request, for a fork of the conversation."""
        other = CacheWatch()
        other._before = self._before
        return other

    def add_request(self, rendering: Rendering, messages: Sequence[Message], requests: Requests) -> Rendering:
        """Note a request, and return its rendering, with `reuses` if the setting `prompt_cache` is set."""
        settings = (requests.call_arguments.get("settings") or _NO_SETTINGS).laid_over(_settings_of(requests.adapter))
        if settings.prompt_cache is not None and self._before is not None:
            reuses = rendering.shared_prefix(self._before.rendering, self._before.usage)
            rendering = rendering.model_copy(update={"reuses": reuses})
        self._sent = _SentRequest(rendering, messages, requests, settings)
        return rendering

    def add_reply(self, reply: Reply) -> None:
        """Add the report for the reply to the noted request. Without a request, do nothing."""
        if (sent := self._sent) is not None:
            self.reports.append(_compare(self._before, sent, reply.usage))
            self._before, self._sent = sent._replace(usage=reply.usage), None


def summarize_reports(reports: Sequence[PromptCacheReport]) -> PromptCacheReport | None:
    """Return the report for an answer: sums of the tokens, and the first outcome of a reply that is not a hit. None
    without reports.
    """
    if len(reports) < 2:
        return reports[0] if reports else None
    first = next((report for report in reports if report.outcome not in ("hit", "first")), reports[-1])
    read = [report.read_tokens for report in reports if report.read_tokens is not None]
    predicted = sum(report.predicted_tokens for report in reports)
    return PromptCacheReport(first.outcome, predicted, sum(read) if read else None, first.changed)


def _settings_of(adapter: Adapter) -> Settings:
    while isinstance(adapter, BudgetedAdapter):
        adapter = adapter.inner
    settings = getattr(adapter, "settings", None)
    return settings if isinstance(settings, Settings) else _NO_SETTINGS


def _compare(before: _SentRequest | None, sent: _SentRequest, usage: Usage) -> PromptCacheReport:
    read = usage.cache_read_tokens
    if before is None:
        return PromptCacheReport("first", 0, read)
    shared = sent.rendering.reuses or sent.rendering.shared_prefix(before.rendering, before.usage)
    changed = _name_change(shared.changed, before, sent) if shared.changed else ""
    stored = before.usage and (before.usage.cache_write_tokens, before.usage.cache_read_tokens)
    outcome: CacheOutcome = "missed"
    if read is None:
        outcome = "not reported"
    elif changed:
        outcome = "changed"
    elif read:
        outcome = "hit"
    elif stored == (0, 0):
        outcome = "not stored"
    elif shared.tokens < LEAST_TOKENS:
        outcome = "short"
    return PromptCacheReport(outcome, shared.tokens, read, changed)


def _name_change(path: str, before: _SentRequest, sent: _SentRequest) -> str:
    """Return sabir's name for the change at a path of the body. If nothing of sabir changed there, return the path."""
    if path in ("provider", "dialect", "endpoint", "model"):
        return path
    field, messages_field = path.partition("[")[0], sent.rendering.prompt_fields[-1]
    finders = [_changed_setting, _changed_message]
    if field in (messages_field, *_SYSTEM):
        finders = [_changed_message, _changed_setting]
    elif field in _TOOLS:
        finders = [_changed_option, _changed_setting]
    return next(filter(None, (find(before, sent) for find in finders)), path)


def _changed_message(before: _SentRequest, sent: _SentRequest) -> str:
    for index, (old, new) in enumerate(zip_longest(before.messages, sent.messages)):
        if old is None:
            return ""
        if new is None or not (old is new or old.same_content(new)):
            return f"messages[{index}] ({old.policy})"
    return ""


def _changed_option(before: _SentRequest, sent: _SentRequest) -> str:
    pairs = zip_longest(*(Option.all_of(each.requests.call_arguments.get("options") or ()) for each in (before, sent)))
    return next((f"options[{(new or old).name!r}]" for old, new in pairs if old != new and (new or old)), "")


def _changed_setting(before: _SentRequest, sent: _SentRequest) -> str:
    return next((f"settings.{name}" for name in _setting_names() if _differs(name, before, sent)), "")


def _setting_names() -> Iterator[str]:
    return (field.alias or name for name, field in Settings.model_fields.items())


def _differs(name: str, before: _SentRequest, sent: _SentRequest) -> bool:
    return name not in _UNREAD and bool(getattr(before.settings, name) != getattr(sent.settings, name))
