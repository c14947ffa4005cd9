"""The rows of a live check, and the plan that rendering alone gives: nothing here is sent.

ROWS ──a question of the kit, with live_settings──▶ render ──losses──▶ "not supported": no request
                                                        └── bytes ───▶ the estimate of calls and tokens
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import sabir
from sabir import Loss, Settings
from sabir.authoring import installed_hooks
from sabir.errors import RenderingRefused, SabirError

from sabir_testing.kit.asking import STREAMED, WHOLE, QuestionResult, Suffix
from sabir_testing.kit.service_questions import QUESTIONS, ServiceQuestion

ROOM = 2_048
"""The output tokens that a model gets for each question if it may reason before it answers."""
BYTES_OF_A_TOKEN = 4
TOKENS_OF_AN_IMAGE = 300
"""The input tokens that the estimate assumes for the image of 32 × 32 pixels."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{100,}={0,2}")
_SETTING = "settings."


@dataclass(frozen=True)
class CheckedRow:
    """A row of the check: a question of the kit, sent for a complete (`suffix` "") or a streamed response.

    `calls` is the usual number of requests. `setting` is the setting that the checked capability needs. The losses of
    other settings do not count, because the question works without them.
    """

    name: str
    question: str
    suffix: Suffix = WHOLE
    calls: int = 1
    setting: str = ""


ROWS: Sequence[CheckedRow] = (
    CheckedRow("text", "text"),
    CheckedRow("stream", "text", STREAMED),
    CheckedRow("call", "option_call"),
    CheckedRow("parallel calls", "parallel_calls", setting="parallel_options"),
    CheckedRow("result", "option_result"),
    CheckedRow("result with image", "option_picture"),
    CheckedRow("image", "image"),
    CheckedRow("structured output", "structured_output", setting="response_format"),
    CheckedRow("reasoning round trip", "reasoning_loop", calls=2, setting="reasoning_effort"),
    CheckedRow("wrong key", "bad_key"),
    CheckedRow("missing model", "missing_model"),
)
USAGE = "usage"
"""The last row, without a request: whether the replies of USAGE_ROWS report their tokens."""
USAGE_ROWS = ("text", "stream")
ROW_NAMES = (*(row.name for row in ROWS), USAGE)


@dataclass(frozen=True)
class PlannedRow:
    """A row with its question for one adapter. `unsupported` is the reason why the row is not sent; "" if it is sent.

    `input_tokens` is an estimate; `output_tokens` is the most that the question allows. Both are for all its calls.
    """

    row: CheckedRow
    question: ServiceQuestion
    unsupported: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def calls(self) -> int:
        """The expected number of requests."""
        return 0 if self.unsupported else self.row.calls

    def new_result(self, adapter: sabir.ModelAdapter) -> QuestionResult:
        """Return a result without replies, for the question that was not sent yet."""
        dialect = adapter.new_renderer().dialect
        return QuestionResult(self.row.question, self.row.suffix, self.question, dialect, tuple(self.question.messages))


@dataclass(frozen=True)
class Estimate:
    """The requests and tokens of a plan. `cost` is in US dollars; None if the price is unknown."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: Decimal | None

    def __str__(self) -> str:
        """Return one line."""
        cost = "cost unknown" if self.cost is None else f"at most ${self.cost:.4f}"
        tokens = f"about {self.input_tokens:,} input and at most {self.output_tokens:,} output tokens"
        return f"{self.calls} calls, {tokens}, {cost}"


def live_settings(adapter: sabir.ModelAdapter) -> Mapping[str, Settings]:
    """Return the settings that `sabir check` uses in place of the kit's own: question → Settings.

    A model that may reason gets more output tokens. Set them as `settings` of a suite that replays the cassettes of
    `sabir check --save`.
    """
    if adapter.new_renderer().scope.model_info.reasoning is False:
        return {}
    questions = dict.fromkeys(row.question for row in ROWS)
    return {
        name: Settings(max_output_tokens=max(ROOM, QUESTIONS[name].settings.max_output_tokens or 0))
        for name in questions
    }


def plan(adapter: sabir.ModelAdapter, only: Sequence[str] = ()) -> list[PlannedRow]:
    """Return the plan of a check, without the row USAGE. `only` are names of rows; without them, all rows."""
    settings = live_settings(adapter)
    return [_plan_row(adapter, row, settings) for row in ROWS if not only or row.name in only]


def estimate(adapter: sabir.ModelAdapter, rows: Sequence[PlannedRow]) -> Estimate:
    """Return the expected calls and tokens of a plan, and the price of these tokens if it is known."""
    read, written = sum(row.input_tokens for row in rows), sum(row.output_tokens for row in rows)
    target, usage = adapter.target, sabir.Usage(input_tokens=read, output_tokens=written)
    fields = {name: getattr(target, name) for name in ("provider", "dialect", "endpoint", "model")}
    expected = sabir.Reply(messages=(), finish_reason="stop", usage=usage, origin=sabir.Origin(**fields))
    return Estimate(sum(row.calls for row in rows), read, written, installed_hooks().cost(expected))


def _plan_row(adapter: sabir.ModelAdapter, row: CheckedRow, settings: Mapping[str, Settings]) -> PlannedRow:
    question = QUESTIONS[row.question]
    if row.question in settings:
        question = replace(question, settings=settings[row.question].laid_over(question.settings))
    planned = PlannedRow(row, question)
    if question.fault == "wrong_key" and not needs_key(adapter):
        return replace(planned, unsupported=f"{adapter.target.provider} does not require a key")
    try:
        rendering = adapter.render(list(question.messages), options=question.options, settings=question.settings)
    except RenderingRefused as refused:
        return replace(planned, unsupported=_first_reason(refused.losses) or str(refused))
    except SabirError as error:  # an invalid setting for this provider
        return replace(planned, unsupported=str(error))
    is_decisive = _decisive(adapter, planned)
    if reason := _first_reason(loss for loss in rendering.losses if is_decisive(loss)):
        return replace(planned, unsupported=reason)
    text, images = _BASE64.subn(b"", rendering.body_bytes)
    read = len(text) // BYTES_OF_A_TOKEN + images * TOKENS_OF_AN_IMAGE
    most = 0 if question.expects else question.settings.max_output_tokens or ROOM
    return replace(planned, input_tokens=read * row.calls, output_tokens=most * row.calls)


def needs_key(adapter: sabir.ModelAdapter) -> bool:
    """Return whether the provider has a secret credential that it cannot do without."""
    return any(each.secret and each.default is None for each in adapter.provider.credentials)


def _first_reason(losses: "Iterator[Loss] | Sequence[Loss]") -> str:
    return next((f"{loss.kind} {loss.path}: {loss.reason}" for loss in losses), "")


def _decisive(adapter: sabir.ModelAdapter, planned: PlannedRow) -> Callable[[Loss], bool]:
    """Return a function that tells whether a loss means that the row's capability is not supported.

    A lost setting counts only if it is the row's own. `parallel_options` counts only if False is sent: an API without
    the field may still return parallel calls.
    """
    setting, question = planned.row.setting, planned.question

    def is_lost_always() -> bool:
        off = question.settings.model_copy(update={"parallel_options": False})
        losses = adapter.render(list(question.messages), options=question.options, settings=off).losses
        return any(loss.path == f"{_SETTING}{setting}" for loss in losses)

    def is_decisive(loss: Loss) -> bool:
        if loss.kind not in ("dropped", "downgraded"):
            return False
        if not loss.path.startswith(_SETTING):
            return True
        is_own = bool(setting) and loss.path.startswith(f"{_SETTING}{setting}")
        return is_own and not (setting == "parallel_options" and is_lost_always())

    return is_decisive
