"""Requests from which nothing disappears: contents of error results, media hints, and references to stored messages.

error result + text, medium, type, retryable ──▶ in the request, or a loss
MediaRule.hints ──a valid hint──▶ another request, or a loss
vendor setting "previous_…_id" ──▶ listed in Calls.stored_by
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Any
from unittest import mock

import pytest
import sabir
from pydantic import BaseModel
from sabir import MediaPart, Message, Settings
from sabir.authoring import MediaRule, Modality, RequestScope
from sabir.errors import SabirError, SettingsInvalid

from sabir_testing.families.requests import OPTIONS, QUESTION, SUN, is_lost_message
from sabir_testing.histories.samples import medium, message_by, result_message
from sabir_testing.kit.capabilities import FORMS, MODALITIES
from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory, Suite, since_api

FAILURE = "The book lacks it."
DETAIL = "kit-detail-of-a-failure"
ERROR_FIELDS: Mapping[str, tuple[Any, Any]] = {"error_type": ("KitBusy", "KitBroken"), "retryable": (True, False)}
"""Field of an error result → two values that a request tells apart."""
HINTS: tuple[Any, ...] = ("low", "high", "auto", "kit", True, False, 1, 2, 0.5, {}, [], {"kit": "kit"}, ["kit"])
"""Values that are tried for a hint whose schema lists none."""
STORED = re.compile(r"^previous_\w*id$|^conversation(_id)?$")
"""Matches names of vendor settings that continue messages which the vendor stored."""


@since_api(2)
class LosslessRequestCases(Suite):
    """The test cases of the family `requests` about contents that adapters forget."""

    family = "requests"

    @pytest.mark.parametrize("content", ["text", *MODALITIES])
    def test_a_part_of_a_failed_result_is_sent_or_reported(self, subject: AdapterUnderTest, content: Any) -> None:
        """A text or a medium in the `parts` of an error result is in the request, complete, or a loss reports it (law
        2). A text is not joined to the error message without a separator.
        """
        part, mark = (sabir.TextPart(text=DETAIL), DETAIL) if content == "text" else _medium_of(subject, content)
        request = _request_with_failure(subject, parts=(part,))
        is_reported = request.contains(mark) or is_lost_message(request.history, request)
        what = f"the {content} part of an error result is neither in the body nor in a loss; encode the entry's pieces"
        request.expect(is_reported, f"{what} next to the error message")
        joined = FAILURE + mark
        what = f"the message and the text of an error result are joined without a separator ({joined!r}) in the body"
        request.expect(not request.contains(joined), f"{what}; put a line break between them")

    @pytest.mark.parametrize("field", ERROR_FIELDS)
    def test_a_field_of_a_failed_result_is_sent_or_reported(self, subject: AdapterUnderTest, field: str) -> None:
        """The fields `error_type` and `retryable` of an error result are in the request, or a loss reports the message
        (law 2).
        """
        one, other = (_request_with_failure(subject, **{field: content}) for content in ERROR_FIELDS[field])
        is_reported = one.body != other.body or is_lost_message(one.history, one)
        what = f"an error result has the same body whatever its {field} is, and no loss reports it; send the result's"
        one.expect(is_reported, f"{what} error_text, or add a loss")

    def test_a_hint_of_a_medium_is_sent_or_reported(self, subject: AdapterUnderTest) -> None:
        """A vendor hint that a MediaRule accepts is in the request, or a loss reports it (law 2). Core validates the
        hints; the dialect sends `scope.target.hints_of(piece)`.
        """
        for (side, modality), rule in subject.tables.media.items():
            if rule.hints is not None and side in ("user", "results"):
                for name, form in product(rule.hints.model_fields, _accepted_forms(subject, side, modality)):
                    _check_hint(subject, side, modality, form, name, rule)

    def test_a_reference_to_stored_messages_is_listed(self, subject: AdapterUnderTest) -> None:
        """A vendor setting such as `previous_response_id`, which continues messages that the vendor stored, is in
        `tables.calls.stored_by`. Otherwise results of stored calls are left out, because their calls are not in the
        request. Names are recognized by the words `previous_…id` and `conversation`.
        """
        listed = subject.tables.calls.stored_by
        for name in dict.fromkeys(name for model in vendor_models(subject) for name in model.model_fields):
            what = f"the vendor setting {name!r} seems to continue messages that the vendor stored, but is not in"
            remedy = "add it, so that results are sent without their calls, or rename the setting"
            expect(name in listed or not STORED.search(name), f"{what} tables.calls.stored_by; {remedy}")


def _medium_of(subject: AdapterUnderTest, modality: Modality) -> tuple[MediaPart, str]:
    return medium(modality, "bytes", subject.target.provider)


def _request_with_failure(subject: AdapterUnderTest, **fields: Any) -> RenderedHistory:
    """Return the request with an error result that has these fields."""
    failure = {"is_error": True, "error_type": "Failed", "error_message": FAILURE, **fields}
    history = [QUESTION, SUN, result_message("kit-call-1", **failure)]
    return subject.request_for(history, OPTIONS, Settings(unsupported_media="drop"))


def _with_medium(side: str, part: MediaPart) -> list[Message]:
    if side == "user":
        return [message_by("user", "What is this?", part)]
    return [QUESTION, SUN, result_message("kit-call-1", parts=(sabir.TextPart(text="See."), part))]


def _accepted_forms(subject: AdapterUnderTest, side: str, modality: Modality) -> Iterator[str]:
    """Yield the forms of a medium that are sent without a loss."""
    for form in FORMS:
        part, mark = medium(modality, form, subject.target.provider)
        request = subject.try_render(_with_medium(side, part), OPTIONS)
        if request.rendering is not None and not request.losses and request.contains(mark):
            yield form


def _check_hint(
    subject: AdapterUnderTest, side: str, modality: Modality, form: str, name: str, rule: MediaRule
) -> None:
    """Raise ConformanceFailure if no valid value of a hint changes the request, and no loss reports the hint."""
    part, _ = medium(modality, form, subject.target.provider)
    plain = subject.request_for(_with_medium(side, part), OPTIONS)
    hinted: list[RenderedHistory] = []
    for content in accepted_values(rule.hints, name) if rule.hints is not None else ():
        vendor = {subject.target.provider: {name: content}}
        with suppress(SettingsInvalid):
            history = _with_medium(side, MediaPart.model_validate({**part.model_dump(), "vendor": vendor}))
            hinted.append(subject.request_for(history, OPTIONS))
    is_reported = not hinted or any(each.losses or each.body != plain.body for each in hinted)
    what = f"the MediaRule of {modality} in {side!r} accepts the hint {name!r}, but the hint of a medium as {form} is"
    remedy = "send the fields of scope.target.hints_of(piece), or leave them out of MediaRule.hints"
    plain.expect(is_reported, f"{what} neither in the body nor in a loss; {remedy}")


def accepted_values(model: type[BaseModel], name: str) -> list[Any]:
    """Return values of a field that a model accepts: those that its schema lists, or some of HINTS."""
    listed = list(_enumerated(model.model_json_schema(), name))
    valid = []
    for content in listed or HINTS:
        with suppress(ValueError):
            model.model_validate({name: content})
            valid.append(content)
    return valid


def _enumerated(schema: Any, name: str) -> Iterator[Any]:
    """Yield the values that a JSON schema lists for a field."""
    pending = [schema.get("properties", {}).get(name, {})]
    while pending:
        field = pending.pop()
        yield from field.get("enum", [field["const"]] if "const" in field else [])
        pending += field.get("anyOf", [])


def vendor_models(subject: AdapterUnderTest) -> list[type[BaseModel]]:
    """Return the models of the vendor settings that the dialect reads by `scope.read_vendor`."""
    models: list[type[BaseModel]] = []
    own = RequestScope.read_vendor

    def read_vendor(scope: RequestScope, model: type[BaseModel]) -> dict[str, Any]:
        models.append(model)
        return own(scope, model)

    with mock.patch.object(RequestScope, "read_vendor", read_vendor), suppress(SabirError):
        subject.request_for([QUESTION])
    return models
