"""Requests with two of everything: no second text, medium, message or value is lost, moved or joined to the first."""

import base64
import json
from collections.abc import Iterator
from itertools import combinations

import pytest
import sabir
from sabir import Settings
from sabir.authoring import JSONValue, Modality
from sabir.errors import SettingsInvalid

from sabir_testing.families.requests import OPTIONS, QUESTION, SUN, is_lost_message
from sabir_testing.histories.samples import MEDIA_FILES, SETTINGS, call_message, message_by, result_message
from sabir_testing.kit.capabilities import MODALITIES
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory, Suite, since_api

STOPS = ("kit-stop-one", "kit-stop-two")
NEIGHBOURS = ("kit-neighbour-one", "kit-neighbour-two")
EFFORTS = ("none", "minimal", "low", "medium", "high", "max")


@since_api(2)
class CompleteRequestCases(Suite):
    """The test cases of the family `requests` about requests with several values of a kind."""

    family = "requests"

    def test_every_stop_text_is_sent_or_reported(self, subject: AdapterUnderTest) -> None:
        """If `stop` has two texts, both are in the request, or a loss reports the setting."""
        request = subject.request_for([QUESTION], settings=Settings(stop=STOPS))
        lost = [loss for loss in request.losses if loss.path.startswith("settings.stop")]
        for text in STOPS:
            what = f"the stop text {text!r}, one of {len(STOPS)}, is neither in the body nor in a loss"
            request.expect(request.contains(text) or lost, what)

    @pytest.mark.parametrize("modality", MODALITIES)
    def test_media_and_texts_keep_their_order(self, subject: AdapterUnderTest, modality: Modality) -> None:
        """Two media of a message and the texts around them are in the request, in their order, or a loss reports the
        message.
        """
        (first, first_mark), (second, second_mark) = two_media(modality)
        message = message_by("user", "kit-text-one", first, "kit-text-two", second, "kit-text-three")
        request = subject.request_for([message], settings=Settings(unsupported_media="drop"))
        marks = ("kit-text-one", first_mark, "kit-text-two", second_mark, "kit-text-three")
        places = [request.text.find(json.dumps(mark)[1:-1]) for mark in marks]
        if is_lost_message([message], request):
            return
        names = ("a text", "a medium", "a text", "a medium", "a text")
        missing = [f"{name} ({mark[-20:]})" for name, mark, at in zip(names, marks, places, strict=True) if at < 0]
        what = f"a message with two {modality} parts lacks {' and '.join(missing)} in the body, and no loss reports it"
        request.expect(not missing, what)
        what = f"the texts and {modality} parts of a message are not in their order in the body, and no loss reports it"
        request.expect(places == sorted(places), what)

    def test_a_call_comes_after_the_text_of_its_turn(self, subject: AdapterUnderTest) -> None:
        """If the model wrote a text and then called an option, the text comes first in the request."""
        turn = [message_by("llm", "kit-text-before"), call_message("kit-call-1", {"kit_word": "kit-argument"})]
        history = [QUESTION, *turn, result_message("kit-call-1", "kit-outcome"), message_by("user", "So?")]
        request = subject.request_for(history, OPTIONS)
        marks = ("kit-text-before", "kit-argument", "kit-outcome")
        places = [request.text.find(mark) for mark in marks]
        what = f"a text, the call after it and its result are not in the body in this order: {', '.join(marks)}"
        request.expect(is_lost_message(history, request) or (-1 not in places and places == sorted(places)), what)

    @pytest.mark.parametrize("speaker", ["user", "llm", "system"])
    def test_neighbouring_messages_stay_apart(self, subject: AdapterUnderTest, speaker: str) -> None:
        """The texts of two neighbouring messages of one speaker are not joined without a separator."""
        first, second = (message_by(speaker, text) for text in NEIGHBOURS)
        history = [first, second, QUESTION] if speaker == "system" else [QUESTION, first, second, QUESTION]
        request = subject.request_for(history)
        joined = "".join(NEIGHBOURS)
        what = f"the texts of two messages by {speaker!r} are joined without a separator ({joined!r}) in the body"
        request.expect(not request.contains(joined), f"{what}; put a blank line between them")

    def test_texts_of_a_result_stay_apart(self, subject: AdapterUnderTest) -> None:
        """Two texts of an option result are both in the request, or a loss reports the result, and they are not joined
        without a separator.
        """
        result = result_message("kit-call-1", parts=tuple(sabir.TextPart(text=text) for text in NEIGHBOURS))
        request = subject.request_for([QUESTION, SUN, result], OPTIONS)
        is_sent = all(map(request.contains, NEIGHBOURS)) or is_lost_message([result], request)
        request.expect(is_sent, "one of two texts of a result is neither in the body nor in a loss; send both")
        joined = "".join(NEIGHBOURS)
        what = f"two texts of a result are joined without a separator ({joined!r}) in the body"
        request.expect(not request.contains(joined), f"{what}; put a line break between them")

    @pytest.mark.parametrize("modality", ["image", "audio", "video"])
    def test_a_medium_of_an_unheard_of_type_is_not_sent(self, subject: AdapterUnderTest, modality: Modality) -> None:
        """The bytes of an image, a sound or a film of an invented MIME type are not sent, but reported. An API accepts
        a few types, which the dialect's MediaRule must name, because services refuse a request with another one.
        """
        content = base64.b64encode(b"kit, in an invented format").decode()
        part = sabir.MediaPart(modality=modality, url=f"data:{modality}/x-kit-unheard-of;base64,{content}")
        message = message_by("user", "What is this?", part)
        request = subject.request_for([message], settings=Settings(unsupported_media="drop"))
        what = f"the bytes of a medium of the type {modality}/x-kit-unheard-of are sent; name the accepted types in the"
        request.expect(not request.contains(content), f"{what} MediaRule")

    def test_two_efforts_are_not_sent_as_one(self, subject: AdapterUnderTest) -> None:
        """Two values of `reasoning_effort` without losses give different requests."""
        lossless: dict[str, RenderedHistory] = {}
        for effort in EFFORTS:
            request = subject.request_for([QUESTION], settings=Settings.model_validate({"reasoning_effort": effort}))
            if not any(loss.path.startswith("settings.reasoning_effort") for loss in request.losses):
                lossless[effort] = request
        for one, other in combinations(lossless, 2):
            what = f"reasoning_effort {one!r} and {other!r} give the same body, and no loss reports a difference"
            what = f"{what}; send different values, or report the nearest one by a 'rewritten' loss"
            lossless[other].expect(lossless[one].body != lossless[other].body, what)

    @pytest.mark.parametrize("name", SETTINGS)
    def test_a_vendor_setting_replaces_no_other_silently(self, subject: AdapterUnderTest, name: str) -> None:
        """If a vendor setting and a neutral setting have the same field in the request, and both are set, the vendor
        setting is refused, or a loss reports the neutral setting.
        """
        one, other = (Settings.model_validate({name: sample}) for sample in SETTINGS[name][:2])
        alone, changed = (subject.request_for([QUESTION], OPTIONS, settings) for settings in (one, other))
        # A cache marker in a field of another setting, such as the declared options, is not a field of its own.
        shared = json.loads(subject.request_for([QUESTION], OPTIONS).body) if name == "prompt_cache" else {}
        for field, another in _changed_fields(alone, changed):
            if field in shared:
                continue
            both = one.laid_over(Settings(vendor={subject.target.provider: {field: another}}))
            try:
                request = subject.request_for([QUESTION], OPTIONS, both)
            except (SettingsInvalid, TypeError):
                continue
            is_replaced = json.loads(request.body).get(field) != json.loads(alone.body).get(field)
            what = f"the vendor setting {field!r} replaces the setting {name!r}, and no loss reports it; raise"
            what = f"{what} SettingsInvalid, or add the loss with the path 'settings.{name}'"
            request.expect(not is_replaced or len(request.losses) > len(alone.losses), what)


def two_media(modality: Modality) -> tuple[tuple[sabir.MediaPart, str], tuple[sabir.MediaPart, str]]:
    """Return two different media of a modality as bytes, each with the text that a request with it contains."""
    suffix, mime, content = MEDIA_FILES[modality]
    longer = base64.b64encode(base64.b64decode(content) + b"\0\0\0").decode()  # readers ignore bytes after the end
    return _medium(modality, mime, f"kit-one.{suffix}", content), _medium(modality, mime, f"kit-two.{suffix}", longer)


def _medium(modality: Modality, mime: str, name: str, content: str) -> tuple[sabir.MediaPart, str]:
    url = f"data:{mime};base64,{content}"
    return sabir.MediaPart(modality=modality, url=url, mime=mime, name=name), content


def _changed_fields(one: RenderedHistory, other: RenderedHistory) -> Iterator[tuple[str, JSONValue]]:
    """Yield the fields whose value differs between two bodies, with the value in the other one."""
    before, after = json.loads(one.body), json.loads(other.body)
    yield from ((field, sent) for field, sent in after.items() if before.get(field) != sent)
