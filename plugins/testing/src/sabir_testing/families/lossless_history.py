"""Stored requests with contents that the dialect itself does not write: nothing disappears when they are read.

a medium as url, bytes or file ──render──▶ body ──decode_history──▶ the same medium in the same form
a list of objects + an object of an unknown type ──▶ in the next request, a loss, or the request is refused
a list of texts + one more text                  ──▶ in the next request, a loss, or the request is refused
response_format.name                             ──▶ read from the request, or a loss when it was rendered
"""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import sabir
from sabir import MediaPart, OpaquePart, Settings
from sabir.errors import HistoryInvalid, SabirError

from sabir_testing.families.decoding_laws import pure_dialect, read_back, reads_requests
from sabir_testing.families.requests import OPTIONS, QUESTION, SUN
from sabir_testing.families.stored_requests import check_change, count_usual_losses
from sabir_testing.histories.samples import INSTRUCTION, SETTINGS, medium, message_by, result_message
from sabir_testing.kit.capabilities import FORMS, MODALITIES
from sabir_testing.kit.changed_answers import renumbered
from sabir_testing.kit.failures import expect
from sabir_testing.kit.inserted_objects import SECOND, UNKNOWN_TYPE
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api
from sabir_testing.reading import JSONPath, format_path, member_at, paths_in, replace_at, strings, walk

INSTRUCTED = message_by("system", INSTRUCTION)
STRANGE = "kit-strange-text"
WORDS = ("kit-first-words", "kit-later-words")
"""The texts of the user and the model in the stored request."""


@since_api(2)
class LosslessHistoryCases(Suite):
    """The test cases of the family `laws` about contents that readers of stored requests forget."""

    family = "laws"

    def test_a_stored_medium_keeps_its_form(self, subject: AdapterUnderTest) -> None:
        """A medium that was sent as a file of the provider, by URL or as bytes is read in the same form. A file that is
        read as a plain URL would be sent to other vendors, who cannot fetch it.
        """
        for modality, form in product(MODALITIES, FORMS):
            part, mark = medium(modality, form, subject.target.provider)
            request = subject.try_render([message_by("user", "What is this?", part)])
            if request.rendering is None or request.losses or not request.contains(mark):
                continue
            decoded = read_back(subject, request.body) if reads_requests(subject) else None
            media = [each for message in decoded.messages for each in message.parts] if decoded else []
            for stored in (each for each in media if isinstance(each, MediaPart)):
                what = f"decode_history reads an {modality} that was sent as {part.form!r} as {stored.form!r}"
                expected = f"the URL {part.url[:60]!r}, not {stored.url[:60]!r}"
                remedy = "for a file, use scope.file_url" if form == "file" else "read the field that encode_turn wrote"
                request.expect(stored.url == part.url, f"{what}; expected {expected}; {remedy}")

    def test_an_unknown_object_of_a_stored_list_is_kept(self, subject: AdapterUnderTest) -> None:
        """If a list of parts, messages or options in a stored request contains an object of an unknown type, such as a
        vendor's own tool, it is in the next request or in a loss, or the request is refused (law 2). If it is read as
        an opaque part of the user's message, it is in the next request (law 3).
        """
        body, usual = _stored_request(subject)
        for path in _lists_of_objects(body) if usual is not None else ():
            changed = replace_at(body, path, [*member_at(body, path), {"type": UNKNOWN_TYPE}])
            change = f"an object of the unknown type {UNKNOWN_TYPE!r} in {format_path(path)}"
            check_change(subject, changed, usual or 0, UNKNOWN_TYPE, change)
            _check_opaque_part(subject, changed, change)

    def test_a_second_text_of_a_stored_list_is_kept(self, subject: AdapterUnderTest) -> None:
        """If a list in a stored request contains a second text, it is in the next request or in a loss, or the request
        is refused (law 2).
        """
        body, usual = _stored_request(subject)
        for path in _lists_of_objects(body) if usual is not None else ():
            elements = member_at(body, path)
            texts = [(at, name) for at, each in enumerate(elements) for name in each if each[name] in WORDS]
            for at, name in texts[:1]:
                second = {**renumbered(elements[at], len(elements)), name: SECOND}
                changed = replace_at(body, path, [*elements, second])
                check_change(subject, changed, usual or 0, SECOND, f"the last text of {format_path(path)}")

    def test_a_strange_request_is_refused_by_decision(self, subject: AdapterUnderTest) -> None:
        """If `decode_history` refuses a request in which the result of a call has lost its call, an option its name, or
        in which a number is in place of a list, the dialect raises HistoryInvalid, whose text says what is wrong, and
        not another exception. Requests of other programs may begin in the middle of a conversation.
        """
        body, usual = _stored_request(subject)
        field = subject.dialect.messages_field
        turns = [each for each in body[field] if "kit-sun" not in json.dumps(each)]
        changes = {"a result without its call": {**body, field: turns}}
        for path in _option_names_in(body):
            changes[f"an empty name in {format_path(path)}"] = replace_at(body, path, "")
            changes[f"the name 5 in {format_path(path)}"] = replace_at(body, path, 5)
        below = [path for path in paths_in(body[field], (field,)) if len(path) > 1]
        lists = [path for path in below if isinstance(member_at(body, path), list)]
        changes |= {f"the number 5 in {format_path(path)}": replace_at(body, path, 5) for path in lists}
        for change, changed in changes.items() if usual is not None else ():
            cause = getattr(_refusal_of(subject, changed), "__cause__", None)
            what = f"decode_history raises {type(cause).__name__} ({cause}) for a request with {change}; raise"
            is_decided = cause is None or isinstance(cause, SabirError)
            details = {"the request": json.dumps(changed)}
            expect(is_decided, f"{what} HistoryInvalid, or read it with a loss", details=details)

    def test_a_strange_value_of_a_field_is_kept(self, subject: AdapterUnderTest) -> None:
        """If a field of a stored request with settings has a text that the dialect does not know, or the name of an
        option is empty, the change is in the next request or in a loss, or the request is refused (law 2).
        """
        body, usual = _stored_request(subject)
        for name in SETTINGS if usual is not None else ():
            sample = Settings.model_validate({name: SETTINGS[name][0]})
            request = subject.try_render([QUESTION], OPTIONS, sample)
            sent = json.loads(request.body or b"{}")
            ordinary = count_usual_losses(subject, sent)
            for field in [each for each, text in sent.items() if isinstance(text, str) and ordinary is not None]:
                changed, change = {**sent, field: STRANGE}, f"the unknown text {STRANGE!r} in {field!r}"
                if field not in body or body[field] != sent[field]:
                    check_change(subject, changed, ordinary or 0, f'"{field}":"{STRANGE}"', change)
        for path in _option_names_in(body) if usual is not None else ():
            check_change(subject, replace_at(body, path, ""), usual or 0, '":""', f"the empty {format_path(path)}")

    def test_a_refused_field_is_named(self, subject: AdapterUnderTest) -> None:
        """If `decode_history` raises HistoryInvalid for a field of the request with a number in place of its content,
        the error names the field.
        """
        body, usual = _stored_request(subject)
        for field in body if usual is not None else ():
            error = _refusal_of(subject, {**body, field: 5})
            is_decided = error is not None and error.__cause__ is None
            what = f"decode_history raises {error} for a request with the number 5 in the field {field!r}"
            expect(not is_decided or field in str(error).partition("request of")[2], f"{what}; name the field")

    def test_the_name_of_a_schema_is_sent_or_reported(self, subject: AdapterUnderTest) -> None:
        """The name and the description of `response_format` are in the request, or a loss reports each, or the schema
        itself (law 2).
        """
        schema = SETTINGS["response_format"][0].schema_view
        shape = sabir.ResponseFormat.model_validate(
            {"name": "kit_report_name", "schema": dict(schema), "description": "kit-description"}
        )
        request = subject.request_for([QUESTION], settings=Settings(response_format=shape))
        lost = [loss.path for loss in request.losses if loss.path.startswith("settings.response_format")]
        for field, text in {"name": "kit_report_name", "description": "kit-description"}.items():
            is_reported = {"settings.response_format", f"settings.response_format.{field}"} & set(lost)
            what = f"the {field} of response_format is neither in the body nor in a loss; send it, for example as the"
            remedy = f"schema's title, or add a loss with the path 'settings.response_format.{field}'"
            request.expect(request.contains(text) or is_reported, f"{what} {remedy}")


def _stored_request(subject: AdapterUnderTest) -> tuple[Any, int | None]:
    """Return a request with instructions, texts, a call, a result and options, and the number of losses of reading it;
    None if it is refused.
    """
    history = [INSTRUCTED, message_by("user", WORDS[0]), message_by("llm", WORDS[1]), QUESTION, SUN]
    history += [result_message("kit-call-1", "kit-bright"), message_by("user", "So?")]
    body = json.loads(subject.must_render(history, OPTIONS).body_bytes)
    return body, count_usual_losses(subject, body) if reads_requests(subject) else None


def _lists_of_objects(body: Any) -> Iterator[JSONPath]:
    """Yield the paths of the lists of objects in a request."""
    for path in paths_in(body):
        elements = member_at(body, path)
        if isinstance(elements, list) and elements and all(isinstance(each, Mapping) for each in elements):
            yield path


def _option_names_in(request: Any) -> list[JSONPath]:
    """Return the paths of the option's name in a request: where it is declared, and called."""
    return [leaf.path for leaf in walk(request) if leaf.value == OPTIONS[0].name and not leaf.is_name and leaf.path]


def _refusal_of(subject: AdapterUnderTest, request: Any) -> HistoryInvalid | None:
    """Return the error with which `decode_history` refuses a request; None if it reads the request."""
    try:
        pure_dialect(subject).decode_history(request)
    except HistoryInvalid as error:
        return error
    return None


def _check_opaque_part(subject: AdapterUnderTest, request: Any, change: str) -> None:
    """Raise ConformanceFailure if a request is read with an opaque part of the user that the next request lacks."""
    decoded = read_back(subject, request)
    parts = [part for each in decoded.messages if each.policy == "user" for part in each.parts] if decoded else []
    if decoded is None or not any(
        UNKNOWN_TYPE in strings(each.block) for each in parts if isinstance(each, OpaquePart)
    ):
        return
    again = subject.try_render(decoded.messages, decoded.options, decoded.settings)
    what = f"decode_history reads {change} of a request as an opaque part, but the next request does not contain it"
    again.expect(again.contains(UNKNOWN_TYPE), f"{what}; accept opaque parts of the side 'user' in Roles.native")
