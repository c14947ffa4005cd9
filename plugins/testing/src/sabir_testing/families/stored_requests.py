"""Stored requests with everything in them: what `decode_history` reads renders to the same request again.

    a history, options and settings ──render──▶ body ──decode_history──▶ messages, options, settings ──render──▶ body

Law: both bodies are equal. A field that nobody knows, in any object of the body, is in the second body or in a loss.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from sabir import DecodedHistory, Message, Option, ReasoningPart, RefusalPart, Settings, TextPart
from sabir.authoring import JSONValue

from sabir_testing.families.decoding_laws import read_back, reads_requests
from sabir_testing.families.requests import OPTIONS, QUESTION, SUN
from sabir_testing.histories.samples import (
    CHOICES,
    INSTRUCTION,
    SETTINGS,
    call_message,
    error_result,
    medium,
    message_by,
    result_message,
)
from sabir_testing.kit.capabilities import FORMS, MODALITIES
from sabir_testing.kit.decoded_recordings import own_replies
from sabir_testing.kit.failures import describe_message, expect
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory, Suite, since_api
from sabir_testing.reading import JSONPath, format_path, member_at, paths_in, replace_at

UNKNOWN_FIELD, UNKNOWN_VALUE = "kit_unknown_field", "kit-unknown-value"
TEMPORARY: Mapping[str, Any] = {
    "is_error": True, "error_type": "KitFailure", "error_message": "kit-not-now", "retryable": True,
}  # fmt: skip
"""The outcome of a call that may succeed later."""
VARIED = ("option_choice", "reasoning_effort")
"""Settings with a feature for each of their values."""


class StoredFeature(NamedTuple):
    """The arguments of a rendering."""

    history: Sequence[Message]
    options: Sequence[Option] = ()
    settings: Settings | None = None


def _with_setting(name: str, sample: object) -> Callable[[AdapterUnderTest], StoredFeature]:
    settings = Settings.model_validate({name: sample})
    return lambda subject: StoredFeature([QUESTION], OPTIONS, settings)


def _with_medium(modality: Any, form: str) -> Callable[[AdapterUnderTest], StoredFeature]:
    def conversation(subject: AdapterUnderTest) -> StoredFeature:
        part, _ = medium(modality, form, subject.target.provider)
        return StoredFeature([message_by("user", "What is this?", part)])

    return conversation


def _with_result_medium(modality: Any) -> Callable[[AdapterUnderTest], StoredFeature]:
    def conversation(subject: AdapterUnderTest) -> StoredFeature:
        part, _ = medium(modality, "bytes", subject.target.provider)
        pictured = result_message("kit-call-1", parts=(TextPart(text="kit-picture"), part))
        return StoredFeature([QUESTION, SUN, pictured, message_by("user", "So?")], OPTIONS)

    return conversation


def _with_call(*results: Message) -> Callable[[AdapterUnderTest], StoredFeature]:
    calls = [SUN, call_message("kit-call-2", {"kit_word": "kit-moon", "a": 1, "Z": [None, {}]})][: len(results)]
    history = [message_by("system", INSTRUCTION), QUESTION, *calls, *results, message_by("user", "So?")]
    return lambda subject: StoredFeature(history, OPTIONS)


def _with_recordings(subject: AdapterUnderTest) -> StoredFeature:
    """Return a conversation with every recorded reply without calls, among them reasoning with its state."""
    history: list[Message] = []
    for reply in own_replies(subject):
        if not reply.option_calls:
            history += [message_by("user", "And?"), *reply.messages]
    return StoredFeature([*history, message_by("user", "Go on.")])


def _with_reasoning(subject: AdapterUnderTest) -> StoredFeature:
    thought = message_by(subject.adapter.speaks_as, ReasoningPart(text="kit-thought"), "No.")
    thought = thought.model_copy(update={"origin": subject.scope().origin()})
    return StoredFeature([QUESTION, thought, message_by("user", "Why?")])


def _with_refusal(subject: AdapterUnderTest) -> StoredFeature:
    refusal = message_by(subject.adapter.speaks_as, RefusalPart(text="kit-refusal"))
    refusal = refusal.model_copy(update={"origin": subject.scope().origin()})
    return StoredFeature([QUESTION, refusal, message_by("user", "Why?")])


FEATURES: Mapping[str, Callable[[AdapterUnderTest], StoredFeature]] = {
    "options": lambda subject: StoredFeature([QUESTION], OPTIONS),
    **{f"option_choice.{each}": _with_setting("option_choice", choice) for each, choice in CHOICES.items()},
    **{name: _with_setting(name, SETTINGS[name][0]) for name in SETTINGS if name not in VARIED},
    **{f"reasoning_effort.{each}": _with_setting("reasoning_effort", each) for each in SETTINGS["reasoning_effort"]},
    **{f"{each}.{form}": _with_medium(each, form) for each in MODALITIES for form in FORMS},
    **{f"{each}.undetected": _with_medium(each, "undetected") for each in MODALITIES},
    **{f"results.{each}": _with_result_medium(each) for each in MODALITIES},
    "call": _with_call(result_message("kit-call-1", {"kit_page": 1})),
    "last result": lambda subject: StoredFeature([QUESTION, SUN, result_message("kit-call-1", "kit-bright")], OPTIONS),
    "error": _with_call(error_result("kit-call-1", "kit-no-such-word")),
    "retryable error": _with_call(result_message("kit-call-1", **TEMPORARY)),
    "error of parts": _with_call(result_message("kit-call-1", parts=(TextPart(text="kit-detail"),), **TEMPORARY)),
    "parallel calls": _with_call(result_message("kit-call-1", "kit-bright"), result_message("kit-call-2", [1, None])),
    "reasoning": _with_reasoning,
    "refusal": _with_refusal,
    "replies": _with_recordings,
}
"""Feature → a conversation that uses it."""


@since_api(2)
class StoredRequestCases(Suite):
    """The test cases of the family `laws` about stored requests."""

    family = "laws"

    @pytest.mark.parametrize("feature", FEATURES)
    def test_a_stored_feature_reads_back(self, subject: AdapterUnderTest, feature: str) -> None:
        """What `decode_history` reads from a request with options, a schema, a choice, a setting, media, calls or
        reasoning renders to the same request again, if the request was rendered without losses (law 3).
        """
        conversation = FEATURES[feature](subject)
        request = subject.try_render(*conversation)
        if request.rendering is None or request.losses or not reads_requests(subject):
            return  # not everything was sent, so not everything can be read
        decoded = read_back(subject, request.body)
        what = f"decode_history raises HistoryInvalid for a request with {feature}, which its own dialect rendered"
        request.expect(decoded is not None, what)
        assert decoded is not None
        again = _render_again(subject, decoded)
        what = f"the messages, options and settings that decode_history returns for a request with {feature} render to"
        details = {"what decode_history returned": _describe(decoded), "the other request": json.dumps(again)}
        request.expect(again == json.loads(request.body), f"{what} another request", details=details)

    def test_every_field_of_a_request_has_a_name(self, subject: AdapterUnderTest) -> None:
        """No object of a request has a field whose name is empty. This is tested with requests of many features."""
        for feature, conversation in FEATURES.items():
            request = subject.try_render(*conversation(subject))
            unnamed = [path for path in paths_in(json.loads(request.body or b"null")) if path and path[-1] == ""]
            where = " and ".join(format_path(path[:-1]) or "the body itself" for path in unnamed)
            what = f"a field of a request with {feature} has an empty name, in {where}"
            request.expect(not unnamed, f"{what}; name the field")

    def test_unknown_fields_of_nested_objects_are_kept(self, subject: AdapterUnderTest) -> None:
        """A field that `decode_history` does not know, in any object of a request, is in the next request or in a loss,
        or the request is refused (law 2).
        """
        if not reads_requests(subject):
            return
        body = _body_of_many_features(subject)
        usual = count_usual_losses(subject, body) or 0
        for path in paths_in(body):
            if isinstance(member_at(body, path), dict):
                check_unknown_field(subject, body, path, usual)

    def test_a_loss_of_a_stored_request_names_its_place(self, subject: AdapterUnderTest) -> None:
        """The path of each loss that `decode_history` returns begins with a field of the request. The test adds an
        unknown field to each object of a request, and puts a number in place of each text.
        """
        if not reads_requests(subject):
            return
        body = _body_of_many_features(subject)
        for path in paths_in(body):
            member = member_at(body, path)
            if isinstance(member, dict | str):
                other = 5 if isinstance(member, str) else {**member, UNKNOWN_FIELD: UNKNOWN_VALUE}
                _check_places(subject, replace_at(body, path, other))


def _body_of_many_features(subject: AdapterUnderTest) -> Any:  # any JSON value
    moon, answer = call_message("kit-call-2", {"kit_word": "kit-moon"}), result_message("kit-call-1", {"kit_page": 1})
    calls = [SUN, answer, moon, result_message("kit-call-2", **TEMPORARY)]
    history = [QUESTION, message_by("llm", "Yes."), QUESTION, *calls, message_by("user", "So?")]
    return json.loads(subject.must_render(history, OPTIONS, Settings(max_output_tokens=5001)).body_bytes)


def _check_places(subject: AdapterUnderTest, body: Mapping[str, JSONValue]) -> None:
    decoded = read_back(subject, body)
    for loss in decoded.losses if decoded else ():
        what = f"decode_history returns a loss with the path {loss.path!r}; begin it with a field of the request"
        expect(re.split(r"[.\[]", loss.path)[0] in body, what, details={"the request": json.dumps(body)})


def _render_again(subject: AdapterUnderTest, decoded: DecodedHistory) -> JSONValue:
    again = subject.render(decoded.messages, decoded.options, decoded.settings)
    body: JSONValue = json.loads(again.body_bytes) if again else None
    return body


def count_usual_losses(subject: AdapterUnderTest, body: JSONValue) -> int | None:
    """Return the number of losses of reading a request and of rendering what was read; None if it is refused."""
    decoded = read_back(subject, body)
    return None if decoded is None else len([*decoded.losses, *_try_again(subject, decoded).losses])


def check_unknown_field(
    subject: AdapterUnderTest, body: JSONValue, path: JSONPath, usual: int, field: str = UNKNOWN_FIELD
) -> None:
    """Raise ConformanceFailure if `decode_history` ignores an unknown field in the object at a path of a request."""
    changed = replace_at(body, path, {**member_at(body, path), field: UNKNOWN_VALUE})
    where = format_path(path) or "the body itself"
    check_change(subject, changed, usual, UNKNOWN_VALUE, f"the unknown field {field!r} in {where}")


def check_change(subject: AdapterUnderTest, changed: JSONValue, usual: int, text: str, change: str) -> None:
    """Raise ConformanceFailure if `decode_history` ignores a change of a request, which contains this text.

    `usual` is the number of losses without the change: a further one is taken to report the change.
    """
    decoded = read_back(subject, changed)
    if decoded is None:
        return
    again = _try_again(subject, decoded)
    is_reported = len([*decoded.losses, *again.losses]) > usual
    what = f"decode_history ignores {change} of a request; refuse the request, keep the change, or return a loss"
    details = {"the request": json.dumps(changed), "what decode_history returned": _describe(decoded)}
    expect(text in again.body.decode() or is_reported, what, details=details)


def _try_again(subject: AdapterUnderTest, decoded: DecodedHistory) -> RenderedHistory:
    return subject.try_render(decoded.messages, decoded.options, decoded.settings)


def _describe(decoded: DecodedHistory) -> str:
    options = [f"option {option.name}" for option in decoded.options]
    settings = f"settings {decoded.settings!r}"
    return "\n".join([*map(describe_message, decoded.messages), *options, settings])
