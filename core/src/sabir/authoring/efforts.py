"""Choose the reasoning effort to send: the nearest one that the model's row in models.toml lists.

reasoning_effort ──▶ nearest of ModelInfo.efforts ──▶ the value to send
                               └── another value is a loss: `rewritten`; from or to `none`: `downgraded`
"Supported values are: 'low', 'medium'" ──▶ the efforts that a service names when it refuses an effort
"""

import re
from collections.abc import Collection
from typing import get_args

from sabir.base.failures import LossKind
from sabir.contract.scope import RequestScope
from sabir.vocabulary.models import ReasoningEffort

EFFORTS: tuple[ReasoningEffort, ...] = get_args(ReasoningEffort)
"""All efforts, from the least to the most."""


def nearest_effort(effort: ReasoningEffort, accepted: Collection[ReasoningEffort]) -> ReasoningEffort:
    """Return the accepted effort that is the fewest steps of EFFORTS away; if two are equally near, the
    lower effort.
    """
    return min(sorted(accepted, key=EFFORTS.index), key=lambda each: abs(EFFORTS.index(each) - EFFORTS.index(effort)))


def fit_effort(
    scope: RequestScope, *, unknown: Collection[ReasoningEffort] = EFFORTS, refused: Collection[ReasoningEffort] = ()
) -> ReasoningEffort | None:
    """Return the reasoning effort to send; None if the setting is not set or must not be sent.

    If the model does not accept the effort of the settings, return the nearest accepted effort and report a loss. If
    the model accepts no effort, return None and report a loss. `unknown` are the efforts to choose from if the model's
    efforts are not known. `refused` are efforts that the API accepts for no model.
    """
    effort: ReasoningEffort | None = scope.setting("reasoning_effort")
    info = scope.model_info
    if effort is None:
        return None
    accepted = [each for each in (unknown if info.efforts is None else info.efforts) if each not in refused]
    if not accepted:
        scope.refuse("reasoning_effort")
        return None
    nearest = nearest_effort(effort, accepted)
    if nearest != effort:
        like = f" is unknown and treated like {info.follows}, which" if info.follows else ""
        who = f"{scope.target.model or scope.target.dialect}{like}"
        reason = f"{who} accepts {', '.join(accepted)}; {nearest!r} was sent instead of {effort!r}"
        kind: LossKind = "downgraded" if "none" in (nearest, effort) else "rewritten"
        scope.losses.add(kind, reason, path="settings.reasoning_effort")
    return nearest


_ACCEPTED = re.compile(r"(?is)\bsupported (?:values|levels|efforts)\b(.*)")
"""Matches the list of supported values in an error text."""


def named_efforts(text: str) -> list[ReasoningEffort]:
    """Return the efforts that an error text lists as supported; empty if the text lists none."""
    match = _ACCEPTED.search(text)
    words = re.findall(r"[a-z]+", match[1].lower()) if match else []
    return [effort for effort in EFFORTS if effort in words]
