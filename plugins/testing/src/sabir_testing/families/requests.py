"""Requests: what a request must contain, such as roles, order, calls and results, media and settings."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pytest
import sabir
from sabir import Loss, Message, Settings
from sabir.authoring import WIRE_SETTINGS, JSONValue, Modality, encode_json
from sabir.errors import RenderingRefused, SabirError, SettingsInvalid
from sabir.vocabulary.settings import NEVER_READ

from sabir_testing.histories.samples import (
    CHOICES,
    COUNT,
    INSTRUCTION,
    LONG_RESULT,
    LOOKUP,
    SETTINGS,
    ZEROS,
    answered,
    called,
    failed,
    medium,
    said,
)
from sabir_testing.kit.reports import ConformanceFailure, expect
from sabir_testing.kit.service_questions import CAPABILITIES, DOWNGRADED, FORMS, FULL, MODALITIES, REFUSED, Grade
from sabir_testing.kit.suite import AdapterUnderTest, Made, Suite

WORDS = "kit-words"
ASKED = said("user", "Do you know the kit's book?")
OPTIONS = (COUNT, LOOKUP)
SUN = called("kit-call-1", {"kit_word": "kit-sun"})
TEXTS = {
    "white space": "  two lines,\n\tthe second indented.  ",
    "markup": '<b>"bold"</b> & \\back\\slash, {braces}, [brackets], `ticks`',
    "other scripts": "नमस्ते, 世界: żółć, עולם",
    "beyond the basic plane": "🌧️👩‍🚀 and 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
}
VALUES: Mapping[str, tuple[Any, Sequence[str]]] = {
    "text": (LONG_RESULT, [LONG_RESULT]),
    "object": ({"kit_key": "kit-value"}, ["kit_key", "kit-value"]),
    "list": (["kit-first", "kit-second"], ["kit-first", "kit-second"]),
    "number": (18.25, ["18.25"]),
}
OFFERED = {"name": "lookup", "description": "Finds a word in the kit's book.", "parameters": "kit_word"}


class RequestCases(Suite):
    """The test cases of the family `requests`."""

    family = "requests"

    def test_a_request_names_its_model(self, subject: AdapterUnderTest) -> None:
        """The requested model is in the body or in the path."""
        made, model = subject.made([ASKED]), subject.target.model
        path = made.rendering.path if made.rendering else ""
        is_named = model in unquote(path) or made.holds(model)
        made.expect(is_named, f"the model {model!r} is neither in the path {path!r} nor in the body; add it to one")

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_a_text_is_sent_as_it_is(self, subject: AdapterUnderTest, text: str) -> None:
        """A text is sent unchanged: not trimmed, escaped or normalized."""
        made = subject.made([said("user", text)])
        made.expect(made.holds(text), f"the text {text!r} of the user's message is not in the body unchanged")

    @pytest.mark.parametrize("speaker", ["llm", "system"])
    def test_sides_are_told_apart(self, subject: AdapterUnderTest, speaker: str) -> None:
        """Messages of the model and of the system are encoded differently from user messages."""
        words = said(speaker, WORDS)
        history = [said("user", WORDS), said("llm", "Yes."), said("user", "So?"), words, said("user", "Go on.")]
        made = subject.made(history)
        frames = [without_words(item) for item in subject.items(made.rendering) if WORDS in json.dumps(item)]
        is_distinct = _is_lost([words], made) or len(frames) < 2 or frames[0] != frames[-1]
        what = f"encode_turn returns the same item for a message by {speaker!r} as for a message by 'user'"
        made.expect(is_distinct, f"{what}, and no loss reports the message; encode another role, or add a loss")

    def test_messages_keep_their_order(self, subject: AdapterUnderTest) -> None:
        """Messages of one side, and the parts of a message, are sent in their order."""
        marks = [f"kit-turn-{at}." for at in range(6)]
        made = subject.made([said("user", marks[0], marks[1]), *(said("user", mark) for mark in marks[2:])])
        places = [made.text.find(mark) for mark in marks]
        is_kept = places == sorted(places) and -1 not in places
        made.expect(is_kept, "six texts by 'user' are not all in the body, or not in the order of the history")

    @pytest.mark.parametrize("place", ["system", "later_system"])
    def test_instructions_are_sent_or_reported(self, subject: AdapterUnderTest, place: str) -> None:
        """A system message is in the request, at the start and in the middle. If it is sent in another role, a loss
        reports that.
        """
        instruction = said("system", INSTRUCTION)
        start, middle = [instruction, ASKED], [ASKED, said("llm", "Yes."), said("user", "Go on."), instruction]
        made = subject.made(start if place == "system" else [*middle, said("llm", "So."), said("user", "And?")])
        grade_by_losses(subject, place, made, is_carried=made.holds(INSTRUCTION), of=instruction)

    @pytest.mark.parametrize("what", OFFERED)
    def test_an_option_is_offered(self, subject: AdapterUnderTest, what: str) -> None:
        """The name, description and parameters of an option are in the request or in the losses."""
        made = subject.made([ASKED], [LOOKUP])
        is_carried = made.holds(OFFERED[what])
        if what == "name":
            grade_by_losses(subject, "options", made, is_carried=is_carried, path="options")
        is_reported = is_carried or any(loss.path.startswith("options") for loss in made.losses)
        made.expect(is_reported, f"the {what} of an offered option, {OFFERED[what]!r}, is not in the body or in a loss")

    @pytest.mark.parametrize("value", VALUES)
    def test_a_call_is_sent_with_its_result(self, subject: AdapterUnderTest, value: str) -> None:
        """A call is sent with the option's name and the arguments, followed by its result, for every type of result."""
        result, marks = VALUES[value]
        made = subject.made([ASKED, SUN, answered("kit-call-1", result)], [LOOKUP])
        body, is_lost = made.text, _is_lost(made.history[1:], made)
        for mark in ("lookup", "kit-sun", *marks):
            what = f"{mark!r}, of an option call or its result, is neither in the body nor in the losses"
            made.expect(mark in body or is_lost, what)
        what = "the option result is in the body before its call; encode the call first"
        made.expect(body.find("kit-sun") < body.find(marks[0]) or is_lost, what)

    def test_parallel_calls_stay_together(self, subject: AdapterUnderTest) -> None:
        """Calls of one reply are sent together, followed by their results in the same order."""
        moon = called("kit-call-2", {"kit_word": "kit-moon"})
        results = answered("kit-call-1", "kit-bright"), answered("kit-call-2", "kit-pale")
        made = subject.made([ASKED, SUN, moon, *results], [LOOKUP])
        marks = ("kit-sun", "kit-moon", "kit-bright", "kit-pale")
        places = [made.text.find(mark) for mark in marks]
        grade_by_losses(subject, "parallel_calls", made, is_carried=-1 not in places, of=moon)
        order = ", ".join(sorted(marks, key=made.text.find))
        what = f"two calls and their two results are in the body in the order {order}; expected {', '.join(marks)}"
        made.expect(-1 in places or places == sorted(places), what)

    def test_a_failure_is_told_apart_from_a_success(self, subject: AdapterUnderTest) -> None:
        """An error result contains the error message, and is encoded differently from a success with the same text."""
        words = "kit-no-such-word"
        made = subject.made([ASKED, SUN, failed("kit-call-1", words)], [LOOKUP])
        success = subject.made([ASKED, SUN, answered("kit-call-1", words)], [LOOKUP])
        is_reported = words in made.text or _is_lost(made.history[1:], made)
        made.expect(is_reported, f"the error message {words!r} of a failed option is neither in the body nor in a loss")
        what = "an error result and a successful result with the same text give the same body, so that the model cannot"
        made.expect(made.body != success.body, f"{what} see the failure; mark the error in the encoded result")

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_is_sent_or_reported(self, subject: AdapterUnderTest, modality: Modality, form: str) -> None:
        """A medium in a user message is in the request, complete, or a loss reports it."""
        part, mark = medium(modality, form, subject.target.provider)
        message = said("user", "What is this?", part)
        made = subject.made([message], settings=Settings(unsupported_media="drop"))
        grade_by_losses(subject, f"{modality}.{form}", made, is_carried=made.holds(mark), of=message)

    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_in_a_result_is_sent_or_reported(self, subject: AdapterUnderTest, modality: Modality) -> None:
        """A medium in an option result is in the request, complete, or a loss reports it."""
        part, mark = medium(modality, "bytes", subject.target.provider)
        result = answered("kit-call-1", parts=(sabir.TextPart(text="See."), part))
        made = subject.made([ASKED, SUN, result], [LOOKUP], Settings(unsupported_media="drop"))
        grade_by_losses(subject, f"results.{modality}", made, is_carried=made.holds(mark), of=result)

    @pytest.mark.parametrize("name", [name for name in SETTINGS if name != "option_choice"])
    def test_a_setting_is_sent_or_reported(self, subject: AdapterUnderTest, name: str) -> None:
        """A setting changes the request according to its value, or is in the losses."""
        made, changed = (_with(subject, name, value) for value in SETTINGS[name][:2])
        is_carried = made.body != changed.body
        if name == "parallel_options":  # one of its two values is the API's default
            made = changed if changed.losses else made
        else:
            is_new = made.body != _with(subject, name, None).body
            is_carried = is_new and (name == "reasoning_effort" or is_carried)
        grade_by_losses(subject, f"settings.{name}", made, is_carried=is_carried, path=f"settings.{name}")

    @pytest.mark.parametrize("name", ZEROS)
    def test_a_zero_is_a_value(self, subject: AdapterUnderTest, name: str) -> None:
        """The values 0 and False of a setting are sent or in the losses, as other values are."""
        zero: Any = 0
        made = _with(subject, name, zero)
        lost = [loss for loss in made.losses if loss.path == f"settings.{name}"]
        value = getattr(Settings(**{name: zero}), name)
        what = f"the setting {name}={value!r} is neither in the body nor in a loss, as if it were not set"
        is_reported = made.body != _with(subject, name, None).body or lost
        made.expect(is_reported, f"{what}; write `if value is not None`, not `if value`")

    @pytest.mark.parametrize("choice", CHOICES)
    def test_a_choice_of_option_is_sent_or_reported(self, subject: AdapterUnderTest, choice: str) -> None:
        """`option_choice` is in the request or in the losses, and different choices give different requests."""
        path = "settings.option_choice"
        every = {each: subject.made([ASKED], OPTIONS, Settings(option_choice=said)) for each, said in CHOICES.items()}
        whole = {each for each, other in every.items() if not any(loss.path == path for loss in other.losses)}
        made = every[choice]
        is_new = made.body != subject.made([ASKED], OPTIONS).body
        later = list(CHOICES)[list(CHOICES).index(choice) + 1 :]
        same = [each for each in later if {choice, each} <= whole and every[each].body == made.body]
        others = " and ".join(map(repr, same))
        what = f"option_choice {choice!r} gives the same body as {others}, and no loss reports a difference"
        made.expect(not (is_new and same), what)
        is_carried = is_new or choice == "auto" or "auto" not in whole  # the API's default need not be sent
        grade_by_losses(subject, f"option_choice.{choice}", made, is_carried=is_carried, path=path)

    @pytest.mark.parametrize("name", WIRE_SETTINGS)
    def test_a_setting_is_looked_at(self, subject: AdapterUnderTest, name: str) -> None:
        """`encode_request` reads every setting from its scope, even if only to report a loss."""
        settings = Settings(**{name: SETTINGS[name][0]})
        forgotten = [loss for loss in subject.rendered([ASKED], OPTIONS, settings).losses if is_forgotten(loss)]
        what = f"encode_request does not read the setting {name!r}; send the setting, or report it by scope.losses.add"
        expect(not forgotten, what, losses=forgotten)

    def test_an_unknown_setting_of_the_vendor_is_refused(self, subject: AdapterUnderTest) -> None:
        """An unknown vendor setting in the provider's section raises SettingsInvalid, which names the setting."""
        settings = Settings(vendor={subject.target.provider: {"kit_no_such_setting": 1}})
        try:
            rendering = subject.render([ASKED], settings=settings)
        except SettingsInvalid as error:
            what = "encode_request raises SettingsInvalid for the unknown vendor setting 'kit_no_such_setting', but the"
            what = f"{what} error does not name the setting: {error}"
            expect("kit_no_such_setting" in str(error), what)
            return
        what = "encode_request accepts the unknown vendor setting 'kit_no_such_setting'; raise SettingsInvalid"
        raise ConformanceFailure(what, rendering=rendering)

    def test_a_count_is_asked_for(self, subject: AdapterUnderTest) -> None:
        """`encode_count` returns a path and a JSON body, or is None. `decode_count` raises an error for an answer
        without a count.
        """
        rendering = subject.rendered([ASKED])
        if subject.dialect.encode_count is None:
            subject.grade("count_tokens", REFUSED, what="Dialect.encode_count is None")
            return
        path, body = subject.dialect.encode_count(rendering.body, subject.renderer().scope)
        expect(path.startswith("/"), f"encode_count returns the path {path!r}; expected a path such as '/count'")
        count_body = json.loads(encode_json(body))
        what = "the body that encode_count returns does not contain the user's text; its tokens are not counted"
        expect("the kit's book" in json.dumps(count_body), what, shown={"the body for the count": count_body})
        try:
            counted = subject.dialect.decode_count(b'{"kit": "no count"}')
        except SabirError:
            subject.grade("count_tokens", FULL)
        else:
            what = f"decode_count returns {counted!r} for a response without a count; raise ResponseInvalid"
            raise ConformanceFailure(what)


def _with(subject: AdapterUnderTest, name: str, value: Any) -> Made:
    """Return a rendering with a setting. Options are offered if the setting is about options."""
    return subject.made([ASKED], OPTIONS if name == "parallel_options" else (), Settings(**{name: value}))


def _is_lost(history: Sequence[Message], made: Made) -> bool:
    """Return whether a loss names one of these messages."""
    return bool({loss.message_id for loss in made.losses} & {message.id for message in history})


def without_words(item: JSONValue) -> JSONValue:
    """Return an item without WORDS: its role and structure remain."""
    if isinstance(item, Mapping):
        return {key: without_words(each) for key, each in item.items()}
    if isinstance(item, list | tuple):
        return [without_words(each) for each in item][:1]
    return None if isinstance(item, str) and WORDS in item else item


def is_forgotten(loss: Loss) -> bool:
    """Return whether the loss says that the dialect never read the setting."""
    return loss.reason.endswith(NEVER_READ)


def grade_by_losses(
    subject: AdapterUnderTest,
    capability: str,
    made: Made,
    *,
    is_carried: bool,
    of: Message | None = None,
    path: str = "",
) -> None:
    """Record the grade of a capability: FULL without losses, DOWNGRADED with losses, REFUSED if it is not sent.

    The losses are those of the message `of`, or with a path that begins with `path`. Raises ConformanceFailure if the
    content is neither sent nor reported, or if the suite declares another grade.
    """
    lost = [loss for loss in made.losses if (loss.path.startswith(path) if of is None else loss.message_id == of.id)]
    if any(map(is_forgotten, made.losses)):
        return  # test_a_setting_is_looked_at reports it
    sample = f"{capability} ({CAPABILITIES[capability]})"
    made.expect(is_carried or lost, f"{sample} is neither in the body nor in the losses; send it, or add a loss")
    is_another = any(loss.kind != "rewritten" for loss in lost)  # rewritten: same meaning, other characters
    seen: Grade = REFUSED if not is_carried else DOWNGRADED if is_another else FULL
    if seen is REFUSED:
        kinds = ", ".join(sorted({loss.kind for loss in made.losses}))
        what = f"{sample} is not in the body, but strict=True does not refuse the request, because the kind of loss is"
        what = f"{what} {kinds}; add the loss with the kind 'dropped'"
        made.expect(_is_refused(made, str(subject.target)), what)
    what = "; ".join(loss.reason for loss in lost)
    subject.grade(capability, seen, what=what, history=made.history, rendering=made.rendering)


def _is_refused(made: Made, target: str) -> bool:
    """Return whether `strict=True` refuses a request with these losses."""
    try:
        RenderingRefused.check(made.losses, True, target)
    except RenderingRefused:
        return True
    return False
