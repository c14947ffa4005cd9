"""Law 2, nothing is lost silently: one loss is one thing that the target cannot take as it was."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from sabir.base.errors import SabirError, SettingsInvalid
from sabir.base.models import Frozen

LossKind: TypeAlias = Literal["dropped", "downgraded", "relocated", "rewritten", "synthesized", "withheld"]
"""dropped: left out · downgraded: rendered as something lesser · relocated: at another place ·
rewritten: same meaning, other characters · synthesized: added, because the wire demands it ·
withheld: provider-bound state is not sent, but the content beside it is."""
Strict: TypeAlias = Collection[LossKind] | bool
"""Kinds of loss that refuse a rendering; True stands for dropped and downgraded."""

KINDS: tuple[LossKind, ...] = get_args(LossKind)


class Loss(Frozen):
    """One compromise of a rendering or a decoding.

    `message_id` names the message (empty for a setting or an option), `path` the place within it or within the
    request (`parts[1]`, `settings.seed`), `reason` says why in the target's words.
    """

    kind: LossKind
    message_id: str = ""
    path: str = ""
    reason: str

    def __str__(self) -> str:
        """The loss in one line."""
        where = f"{self.message_id[:8]} {self.path}".strip()
        return f"{self.kind}: {where}: {self.reason}" if where else f"{self.kind}: {self.reason}"


class RenderingRefused(SabirError):
    """A rendering has losses that `strict` refuses, or nothing of it is left to send; `losses` lists them."""

    def __init__(self, message: str, losses: Sequence[Loss]) -> None:
        super().__init__(message)
        self.losses = tuple(losses)

    @classmethod
    def check(cls, losses: Iterable[Loss], strict: Strict, target: object) -> None:
        """Raise it if any loss is of a kind that `strict` names; SettingsInvalid for a word that is no kind."""
        kinds = strict_kinds(strict) if strict else ()
        met = [loss for loss in losses if loss.kind in kinds] if kinds else []
        if met:
            more = f" (and {len(met) - 1} more)" if len(met) > 1 else ""
            raise cls(f"{target} would lose something: {met[0]}{more}; relax strict or change it", met)


def strict_kinds(strict: Strict) -> frozenset[str]:
    """The kinds that `strict` refuses; raises SettingsInvalid for a name that is no kind."""
    if isinstance(strict, bool):
        return frozenset({"dropped", "downgraded"} if strict else ())
    kinds = {strict} if isinstance(strict, str) else set(strict)
    unknown = sorted(str(kind) for kind in kinds.difference(KINDS))
    if unknown:
        raise SettingsInvalid(f"strict names {', '.join(unknown)}; kinds of loss are {', '.join(KINDS)}")
    return frozenset(kinds)
