"""Stored requests with everything in them: what `decode_history` reads renders to the same request again.

    a history, options and settings ──render──▶ body ──decode_history──▶ messages, options, settings ──render──▶ body

Law: both bodies are equal. A field that nobody knows, in any object of the body, is in the second body or in a loss.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from sabir import DecodedHistory, Loss, Message, Option, ReasoningPart, Settings
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
from sabir_testing.kit.capabilities import MODALITIES
from sabir_testing.kit.decoded_recordings import own_replies
from sabir_testing.kit.failures import describe_message, expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api
from sabir_testing.reading import JSONPath

UNKNOWN_FIELD, UNKNOWN_VALUE = "kit_unknown_field", "kit-unknown-value"
VARIED = ("option_choice", "reasoning_effort")
"""Settings of which each value is a feature of its own."""


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


FEATURES: Mapping[str, Callable[[AdapterUnderTest], StoredFeature]] = {
    "options": lambda subject: StoredFeature([QUESTION], OPTIONS),
    **{f"option_choice.{each}": _with_setting("option_choice", choice) for each, choice in CHOICES.items()},
    **{name: _with_setting(name, SETTINGS[name][0]) for name in SETTINGS if name not in VARIED},
    **{f"reasoning_effort.{each}": _with_setting("reasoning_effort", each) for each in SETTINGS["reasoning_effort"]},
    **{f"{each}.{form}": _with_medium(each, form) for each in MODALITIES for form in ("bytes", "url", "file")},
    "call": _with_call(result_message("kit-call-1", {"kit_page": 1})),
    "error": _with_call(error_result("kit-call-1", "kit-no-such-word")),
    "parallel calls": _with_call(result_message("kit-call-1", "kit-bright"), result_message("kit-call-2", [1, None])),
    "reasoning": _with_reasoning,
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

    def test_unknown_fields_of_nested_objects_are_kept(self, subject: AdapterUnderTest) -> None:
        """A field that `decode_history` does not know, in any object of a request, is in the next request or in a loss,
        or the request is refused (law 2).
        """
        if not reads_requests(subject):
            return
        answer = result_message("kit-call-1", {"kit_page": 1})
        history = [QUESTION, message_by("llm", "Yes."), QUESTION, SUN, answer, message_by("user", "So?")]
        body = json.loads(subject.must_render(history, OPTIONS, Settings(max_output_tokens=5001)).body_bytes)
        unchanged = read_back(subject, body)
        usual = _losses(subject, unchanged) if unchanged else []
        for path in _object_paths(body, ()):
            _check_nested_field(subject, body, path, len(usual))


def _losses(subject: AdapterUnderTest, decoded: DecodedHistory) -> list[Loss]:
    """Return the losses of reading a request and of rendering what was read."""
    again = subject.try_render(decoded.messages, decoded.options, decoded.settings)
    return [*decoded.losses, *again.losses]


def _render_again(subject: AdapterUnderTest, decoded: DecodedHistory) -> JSONValue:
    again = subject.render(decoded.messages, decoded.options, decoded.settings)
    body: JSONValue = json.loads(again.body_bytes) if again else None
    return body


def _check_nested_field(subject: AdapterUnderTest, body: Any, path: JSONPath, usual: int) -> None:
    """Raise ConformanceFailure if `decode_history` ignores an unknown field in the object at a path of a request.

    `usual` is the number of losses without the field: a further one is taken to be of the field.
    """
    changed = deepcopy(body)
    holder = changed
    for step in path:
        holder = holder[step]
    holder[UNKNOWN_FIELD] = UNKNOWN_VALUE
    decoded = read_back(subject, changed)
    if decoded is None:
        return
    is_reported = len(_losses(subject, decoded)) > usual
    is_kept = UNKNOWN_VALUE in json.dumps(_render_again(subject, decoded))
    where = "".join(f"[{step!r}]" for step in path) or "the body itself"
    what = f"decode_history ignores the unknown field {UNKNOWN_FIELD!r} in {where} of a request; keep the field, or"
    details = {"the request": json.dumps(changed), "what decode_history returned": _describe(decoded)}
    expect(is_kept or is_reported, f"{what} return a loss that names it", details=details)


def _object_paths(document: Any, path: JSONPath) -> Iterator[JSONPath]:
    """Yield the paths of all objects in a JSON value, the value's own first."""
    if isinstance(document, dict):
        yield path
    is_list = isinstance(document, list)
    steps: Any = document.items() if isinstance(document, dict) else enumerate(document) if is_list else ()
    for step, member in steps:
        yield from _object_paths(member, (*path, step))


def _describe(decoded: DecodedHistory) -> str:
    options = [f"option {option.name}" for option in decoded.options]
    settings = f"settings {decoded.settings!r}"
    return "\n".join([*map(describe_message, decoded.messages), *options, settings])
