"""Stored requests whose next rendering is equal, although `decode_history` understood them wrongly or not at all.

setting ──render──▶ body ──decode_history──▶ is it the same setting, or a field that only this vendor knows?
body with one list replaced by a text, or with an unknown field in a medium ──▶ refused, reported, or still there
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from sabir import DecodedHistory, MediaPart, Message, Settings
from sabir.errors import SettingsInvalid

from sabir_testing.families.decoding_laws import read_back, reads_requests
from sabir_testing.families.lossless_requests import accepted_values, vendor_models
from sabir_testing.families.requests import OPTIONS, QUESTION, SUN
from sabir_testing.families.stored_requests import (
    FEATURES,
    TEMPORARY,
    UNKNOWN_FIELD,
    check_change,
    check_unknown_field,
    count_usual_losses,
)
from sabir_testing.histories.samples import CHOICES, SETTINGS, medium, message_by, result_message
from sabir_testing.kit.capabilities import FORMS, MODALITIES
from sabir_testing.kit.failures import describe_message
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory, Suite, since_api
from sabir_testing.reading import JSONPath, format_path, member_at, paths_in, replace_at, strings, walk, without_member

STRANGE = "kit-strange-text"
"""The text that replaces a list."""
NAMES_OF_MEDIA = ("name", "filename", "title")
"""Fields in which APIs have the name of a medium."""
ERROR_FIELDS = ("error_type", "error_message", "retryable")
"""The fields of an error that a stored request may lack."""


@since_api(2)
class StoredMeaningCases(Suite):
    """The test cases of the family `laws` about the meaning of stored requests."""

    family = "laws"

    @pytest.mark.parametrize("setting", [name for name in SETTINGS if name != "reasoning_effort"])
    def test_a_stored_setting_is_read_as_the_setting(self, subject: AdapterUnderTest, setting: str) -> None:
        """If a neutral setting changes a request and is no loss, `decode_history` reads the same setting from it, not a
        field in `extra_body` that only this vendor knows.
        """
        for sample in SETTINGS[setting][:2] if setting != "option_choice" else SETTINGS[setting]:
            _check_setting(subject, setting, Settings.model_validate({setting: sample}))

    def test_a_stored_vendor_setting_is_read_as_the_setting(self, subject: AdapterUnderTest) -> None:
        """If a vendor setting changes a request and is no loss, `decode_history` reads its field as the vendor setting
        or a neutral one, not as a field in `extra_body`, which is sent unchecked.
        """
        plain = subject.request_for([QUESTION])
        for name, content in _vendor_samples(subject) if reads_requests(subject) else ():
            settings = Settings(vendor={subject.target.provider: {name: content}})
            with suppress(SettingsInvalid, TypeError):
                request = subject.request_for([QUESTION], settings=settings)
                body, before = json.loads(request.body), json.loads(plain.body)
                decoded = read_back(subject, body) if not request.losses else None
                changed = [field for field in body if body[field] != before.get(field)]
                extra = [field for field in changed if decoded and field in _extra_fields(decoded)]
                what = f"decode_history reads the field {', '.join(extra)} of the vendor setting {name}={content!r} as"
                request.expect(
                    not extra, f"{what} a field in extra_body; set History.vendor_model, or read the setting"
                )

    def test_a_stored_message_is_read_as_what_it_is(self, subject: AdapterUnderTest) -> None:
        """If a request was rendered without losses, `decode_history` reads as many media, refusals, calls, results,
        system messages and options as were sent, and no result without parts as parts. Read as opaque parts or as
        fields of this vendor, they could not be sent to other vendors.
        """
        for feature, decoded, request in _features_read(subject):
            sent, read = _count_kinds(request.history), _count_kinds(decoded.messages)
            if feature == "error of parts":  # APIs without a place for errors have its message among the texts
                sent, read = ({**counts, "result of parts": 0} for counts in (sent, read))
            what = f"decode_history reads a request with {feature}, which has {sent or 'no media and no calls'}, as"
            details = {"what decode_history returned": [*map(describe_message, decoded.messages)]}
            request.expect(read == sent, f"{what} {read or 'messages without them'}", details=details)
            if not feature.startswith("option_choice"):  # APIs without a choice offer no option, or one
                offered, options = len(FEATURES[feature](subject).options), len(decoded.options)
                what = f"decode_history reads {options} options from a request with {feature}, which has {offered}"
                request.expect(options == offered, f"{what}; read the declarations")

    def test_stored_messages_of_the_model_have_its_origin(self, subject: AdapterUnderTest) -> None:
        """The messages of the model that `decode_history` returns have the provider, dialect and model of the target in
        their origin, and other messages have no origin. The origin decides where state may be sent.
        """
        answer, target = result_message("kit-call-1", {"kit_page": 1}), subject.target
        history = [QUESTION, message_by("llm", "Yes."), QUESTION, SUN, answer, message_by("user", "So?")]
        request = subject.request_for(history, OPTIONS)
        if (decoded := read_back(subject, request.body)) is None:
            return
        for message in decoded.messages:
            origin = message.origin
            is_model = message.policy == subject.adapter.speaks_as
            expected = (target.provider, target.dialect, target.model) if is_model else None
            actual = (origin.provider, origin.dialect, origin.model) if origin else None
            what = f"decode_history reads a message by {message.policy!r} with the origin {actual}; expected {expected}"
            request.expect(actual == expected, what, details={"the message": describe_message(message)})

    def test_a_stored_request_is_read_without_losses(self, subject: AdapterUnderTest) -> None:
        """Reading a request that was rendered without losses reports no losses: the fields that the dialect writes are
        the fields that it knows.
        """
        for feature, decoded, request in _features_read(subject):
            what = f"decode_history reports losses of a request with {feature} that its own dialect rendered: "
            request.expect(not decoded.losses, what + "; ".join(map(str, decoded.losses)))

    def test_no_stored_field_is_read_twice(self, subject: AdapterUnderTest) -> None:
        """A field that `decode_history` reads into messages, options or settings is not in `extra_body` too, where it
        would replace what a program changes later. So without `extra_body`, the next request lacks its fields.
        """
        for feature, decoded, request in _features_read(subject):
            body, bare = json.loads(request.body), _render_read(subject, decoded, is_bare=True)
            for name in [each for each in _extra_fields(decoded) if bare.get(each) == body.get(each)]:
                without = read_back(subject, without_member(body, (name,)))
                is_read = without is None or _render_read(subject, without) != body
                what = f"decode_history reads {name!r} of a request with {feature} twice, the second time into"
                request.expect(not is_read, f"{what} extra_body; name it among the fields that are known")

    def test_the_order_of_stored_fields_does_not_matter(self, subject: AdapterUnderTest) -> None:
        """`decode_history` reads the fields of a request in any order, because a JSON object has none: with the fields
        in reverse order, it reads the same settings and options, and what it reads renders to the same request.
        """
        for feature, usual, request in _features_read(subject):
            body = json.loads(request.body)
            decoded = read_back(subject, dict(reversed(body.items())))
            one, other = (_settings_and_options(each) if each else None for each in (usual, decoded))
            what = f"decode_history reads other settings or options from a request with {feature} if the fields of the"
            remedy = "body are in another order; name the fields that others depend on in History.early"
            request.expect(one == other, f"{what} {remedy}", details={"in reverse order": other})
            again = None if decoded is None else subject.render(decoded.messages, decoded.options, decoded.settings)
            what = (
                f"what decode_history reads from a request with {feature} renders to another request if the fields of"
            )
            is_same = again is not None and json.loads(again.body_bytes) == body
            details = {"the other request": again.body_bytes if again else "none"}
            request.expect(is_same, f"{what} the body are in another order", details=details)

    @pytest.mark.parametrize("field", ERROR_FIELDS)
    def test_a_stored_error_may_lack_a_field(self, subject: AdapterUnderTest, field: str) -> None:
        """`decode_history` also accepts the error of a call if the request has no `error_type`, or does not say whether
        another call may succeed. Requests of other programs often lack these fields. A request without the message may
        be refused, but no type or message is read as "".
        """
        history = [QUESTION, SUN, result_message("kit-call-1", **TEMPORARY), message_by("user", "So?")]
        request = subject.request_for(history, OPTIONS)
        body = json.loads(request.body)
        for path in _places_of(body, TEMPORARY[field]) if reads_requests(subject) else ():
            decoded = read_back(subject, without_member(body, path))
            what = f"decode_history raises HistoryInvalid for the error of a call without {format_path(path)}"
            is_read = decoded is not None or field == "error_message"
            request.expect(is_read, f"{what}; read it with a default for {field}")
            results = [message.result for message in decoded.messages if message.result] if decoded else []
            is_empty = any(each.is_error and getattr(each, field) == "" for each in results)
            what = f"decode_history reads the error of a call without {format_path(path)} with an empty {field}"
            request.expect(not is_empty, f"{what}; use another default")

    def test_unknown_fields_of_stored_media_are_kept(self, subject: AdapterUnderTest) -> None:
        """A field that `decode_history` does not know, in any object of a message with a medium, is in the next request
        or in a loss, or the request is refused (law 2). So is the name of a medium as bytes.
        """
        for modality, form in product(MODALITIES, FORMS):
            part, mark = medium(modality, form, subject.target.provider)
            request = subject.try_render([message_by("user", "What is this?", part)])
            if mark not in request.body.decode():
                continue
            body = json.loads(request.body)
            if (usual := count_usual_losses(subject, body)) is None:
                continue
            for path in _paths_below_messages(subject, body, dict):
                for field in (UNKNOWN_FIELD, *(NAMES_OF_MEDIA if form == "bytes" else ())):
                    check_unknown_field(subject, body, path, usual, field)

    def test_a_text_in_place_of_a_list_is_not_read(self, subject: AdapterUnderTest) -> None:
        """If a stored request has a text where the API has a list, `decode_history` refuses the request, reports a
        loss, or keeps the text. A reader that loops over the text reads its letters.
        """
        history = [QUESTION, SUN, result_message("kit-call-1", {"kit_page": 1}), message_by("user", "So?")]
        request = subject.request_for(history, OPTIONS)
        body = json.loads(request.body)
        if (usual := count_usual_losses(subject, body)) is None:
            return
        for path in _paths_below_messages(subject, body, list):
            change = f"a text in place of the list {format_path(path)}"
            check_change(subject, replace_at(body, path, STRANGE), usual, STRANGE, change)


def _features_read(subject: AdapterUnderTest) -> Iterator[tuple[str, DecodedHistory, RenderedHistory]]:
    """Yield what is read from each conversation of FEATURES that is rendered without losses."""
    for feature, conversation in FEATURES.items() if reads_requests(subject) else ():
        request = subject.try_render(*conversation(subject))
        if request.rendering is not None and not request.losses and (decoded := read_back(subject, request.body)):
            yield feature, decoded, request


def _extra_fields(decoded: DecodedHistory) -> list[str]:
    """Return the names of the fields that only this vendor knows."""
    settings = decoded.settings
    return [name for fields in (settings.extra_body, *settings.extra_body_for.values()) for name in fields]


def _render_read(subject: AdapterUnderTest, decoded: DecodedHistory, *, is_bare: bool = False) -> dict[str, Any]:
    """Return the next request for what was read, {} if there is none; with `is_bare`, without `extra_body`."""
    none = {name: getattr(Settings(), name) for name in ("extra_body_json", "extra_body_for_json")}
    settings = decoded.settings.model_copy(update=none if is_bare else {})
    again = subject.render(decoded.messages, decoded.options, settings)
    body: dict[str, Any] = json.loads(again.body_bytes) if again else {}
    return body


def _check_setting(subject: AdapterUnderTest, setting: str, sample: Settings) -> None:
    """Raise ConformanceFailure if a setting is sent, and `decode_history` reads another one or none."""
    request = subject.try_render([QUESTION], OPTIONS, sample)
    plain = subject.try_render([QUESTION], OPTIONS)
    others = (plain.body, subject.try_render([QUESTION]).body)  # the second as choice "none" may do
    if request.rendering is None or request.losses or request.body in others or not reads_requests(subject):
        return
    if sample.option_choice == CHOICES["named"] and not _names_more(request, plain, CHOICES["named"]):
        return  # the API has no such choice, and gets only this option
    decoded = read_back(subject, request.body)
    expected, actual = getattr(sample, setting), decoded and getattr(decoded.settings, setting)
    if setting == "response_format" and actual:  # some APIs have no field for the name
        expected, actual = expected.schema_view["properties"], actual.schema_view.get("properties")
    what = f"decode_history reads a request with {setting}={expected!r} as {setting}={actual!r}"
    details = {"the settings that decode_history returned": repr(decoded and decoded.settings)}
    request.expect(actual == expected, f"{what}; return the setting", details=details)


def _vendor_samples(subject: AdapterUnderTest) -> Iterator[tuple[str, object]]:
    """Yield the names of the vendor settings, each with the first of their values that the dialect accepts."""
    for model in vendor_models(subject):
        for name in model.model_fields:
            yield from ((name, content) for content in accepted_values(model, name)[:1])


def _names_more(request: RenderedHistory, plain: RenderedHistory, name: str) -> bool:
    """Return whether a request contains a text more often than another request."""
    one, other = ([*strings(json.loads(each.body))].count(name) for each in (request, plain))
    return one > other


def _settings_and_options(decoded: DecodedHistory) -> tuple[Any, list[str]]:
    """Return the settings as JSON, whose fields have no order, and the names of the options."""
    return json.loads(decoded.settings.model_dump_json()), [option.name for option in decoded.options]


def _places_of(body: Any, content: object) -> Iterator[JSONPath]:
    """Yield the paths of the fields in a request that have this text or boolean."""
    for leaf in walk(body):
        is_field = bool(leaf.path) and isinstance(leaf.path[-1], str) and not leaf.is_name
        if is_field and type(leaf.value) is type(content) and leaf.value == content:
            yield leaf.path


def _count_kinds(history: Sequence[Message]) -> dict[str, int]:
    """Return the numbers of media of each modality, of reasoning and refusals, of calls, of results and of system
    messages.
    """
    parts = [part for message in history for part in message.parts]
    counts = Counter[str](part.modality for part in parts if isinstance(part, MediaPart))
    counts.update(part.kind for part in parts if part.kind in ("reasoning", "refusal"))
    counts.update(message.kind for message in history if message.kind != "parts")
    counts.update("system message" for message in history if message.policy == "system")
    results = [message.result for message in history if message.result]
    counts.update("result of parts" for each in results if each.parts)
    return dict(sorted(counts.items()))


def _paths_below_messages(subject: AdapterUnderTest, body: Any, kind: type) -> Iterator[JSONPath]:
    """Yield the paths of the objects or lists in the messages of a request."""
    field = subject.dialect.messages_field
    for path in paths_in(body[field], (field,)):
        if len(path) > 1 and isinstance(member_at(body, path), kind):
            yield path
