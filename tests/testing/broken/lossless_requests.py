"""Dialects that send what every conversation has, and leave out contents of failures, hints and stored references.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from sabir.authoring import Frozen
from sabir.base.values import FrozenDict
from sabir.contract.dialect import Dialect
from sabir.contract.scope import RequestScope
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir_acme.settings import AcmeSettings
from sabir_testing.kit.capabilities import MODALITIES

from tests.testing.broken.requests import entries
from tests.testing.harness import Breakage, changed

PART = "test_a_part_of_a_failed_result_is_sent_or_reported"
FIELD = "test_a_field_of_a_failed_result_is_sent_or_reported"
HINT = "test_a_hint_of_a_medium_is_sent_or_reported"
REFERENCE = "test_a_reference_to_stored_messages_is_listed"


# --- error results ----------------------------------------------------------------------------------------------------


def failures(change: Callable[[Any], Any]) -> Breakage:
    """Every entry with an error result is changed."""

    def edit(entry: Any) -> Any:
        result = entry.message.result
        return change(entry) if result is not None and result.is_error else entry

    return entries(edit)


def without(kind: type) -> Breakage:
    """The parts of a kind are left out of error results."""
    return failures(
        lambda entry: entry._replace(pieces=tuple(each for each in entry.pieces if not isinstance(each, kind)))
    )


def _with(entry: Any, **fields: Any) -> Any:
    payload = entry.message.result.model_copy(update=fields)
    return entry._replace(message=entry.message.model_copy(update={"payload": payload}))


def joined(entry: Any) -> Any:
    """The text of an error result follows its message at once."""
    texts = "".join(getattr(each, "text", "") for each in entry.pieces)
    return _with(entry._replace(pieces=()), error_message=f"{entry.message.result.error_message}{texts}")


def one_type(entry: Any) -> Any:
    """Two types of errors, which no recorded question has, are one."""
    return _with(entry, error_type="Kit") if entry.message.result.error_type.startswith("Kit") else entry


def never_retried(entry: Any) -> Any:
    """An error that may be retried is sent as one that may not."""
    return _with(entry, retryable=False) if entry.message.result.retryable else entry


# --- hints ------------------------------------------------------------------------------------------------------------


class Hints(Frozen):
    """A hint of an image."""

    detail: Literal["low", "high"] | None = None


class FreeHints(Frozen):
    """A hint without a list of values."""

    weight: int | None = None


def promising_hints(side: str, hints: type[Frozen]) -> Breakage:
    """The tables accept a hint that is not sent."""

    def broken(base: Dialect) -> Dialect:
        row: Any = (side, "image")
        media = {**base.tables.media, row: replace(base.tables.media[row], hints=hints)}
        return replace(base, tables=replace(base.tables, media=media))

    return Breakage(dialect=broken)


# --- stored messages --------------------------------------------------------------------------------------------------


class Continuing(AcmeSettings):
    """Settings with a reference to stored messages."""

    previous_answer_id: str | None = None


class Conversing(AcmeSettings):
    """Settings with a stored conversation."""

    conversation: str | None = None


def referring(model: type[AcmeSettings]) -> Breakage:
    """A vendor setting refers to stored messages, and the tables do not say so."""

    def encode_request(own: Any, scope: RequestScope) -> Any:
        (name,) = model.model_fields.keys() - AcmeSettings.model_fields.keys()
        read = scope.read_vendor(model)
        rest = FrozenDict({field: each for field, each in scope.vendor.items() if field != name})
        return {**own(replace(scope, vendor=rest)), **({name: read[name]} if name in read else {})}

    return changed(encode_request=encode_request)


BROKEN: Mapping[str, Breakage] = {
    f"{PART}[text]": without(TextPart),
    f"{PART}[image]": without(MediaPart),
    f"{FIELD}[error_type]": failures(one_type),
    f"{FIELD}[retryable]": failures(never_retried),
    HINT: promising_hints("user", Hints),
    REFERENCE: referring(Continuing),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (PART, "a text is joined to the message"): failures(joined),
    (PART, "all parts are left out"): failures(lambda entry: entry._replace(pieces=())),
    (HINT, "a hint of an image in a result"): promising_hints("results", Hints),
    (HINT, "a hint without a list of values"): promising_hints("user", FreeHints),
    (REFERENCE, "a conversation"): referring(Conversing),
}
UNTRIED = frozenset(f"{PART}[{modality}]" for modality in MODALITIES if modality != "image")
"""Rows that check nothing of acme, because it accepts no such media in results, and core reports them."""
