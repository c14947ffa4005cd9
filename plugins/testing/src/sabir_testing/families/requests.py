"""What a request says: who spoke, in which order, which calls and results, which media, under which settings.

    a history of marks ──render──▶ body and losses ──▶ is each mark there, where it belongs, or in the losses?

Nothing is known here of any wire: marks are texts that stand nowhere else, and a body is searched for them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pytest
import sabir
from sabir import Message, Option, Rendering, Settings
from sabir.authoring import WIRE_SETTINGS, Modality
from sabir.errors import SabirError, SettingsInvalid

from sabir_testing.families.grading import (
    WORDS,
    body_text,
    every_string,
    grade_by_losses,
    is_forgotten,
    plain,
    without_words,
)
from sabir_testing.histories.samples import (
    CHOICES,
    COUNT,
    INSTRUCTION,
    LONG_RESULT,
    LOOKUP,
    SETTINGS,
    ZEROS,
    answered,
    answered_with,
    called,
    failed,
    medium,
    said,
)
from sabir_testing.kit.broken import Broken, expect
from sabir_testing.kit.capabilities import FORMS, FULL, MODALITIES, REFUSED
from sabir_testing.kit.suite import Subject, Suite

ASKED = said("user", "Do you know the kit's book?")
OPTIONS = (COUNT, LOOKUP)
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
    """What is rendered."""

    family = "requests"

    def test_a_request_names_its_model(self, subject: Subject) -> None:
        """The model that the user asked for is in the body or in the path."""
        rendering = subject.rendered([ASKED])
        model = subject.target.model
        expect(
            model in unquote(rendering.path) or model in "\n".join(every_string(rendering.body)),
            f"neither the path {rendering.path!r} nor the body names the model {model!r}",
            rendering=rendering,
        )

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_a_text_is_sent_as_it_is(self, subject: Subject, text: str) -> None:
        """A text reaches the wire as the same text: no trimming, no escaping of its own, no normalising."""
        history = [said("user", text)]
        rendering = subject.rendered(history)
        expect(
            any(text in each for each in every_string(rendering.body)),
            f"no string of the body holds the text {text!r} as it is",
            history=history,
            rendering=rendering,
        )

    @pytest.mark.parametrize("speaker", ["llm", "system"])
    def test_sides_are_told_apart(self, subject: Subject, speaker: str) -> None:
        """What the model or the system said is not rendered as what the user said: the model must see who spoke."""
        words = said(speaker, WORDS)
        history = [said("user", WORDS), said("llm", "Yes."), said("user", "So?"), words, said("user", "Go on.")]
        rendering = subject.rendered(history)
        frames = [without_words(item) for item in subject.items(rendering) if WORDS in json.dumps(item)]
        is_reported = any(loss.message_id == words.id for loss in rendering.losses)
        expect(
            is_reported or len(frames) < 2 or frames[0] != frames[-1],
            f"what {speaker!r} says is rendered exactly as what 'user' says, and no loss says so",
            history=history,
            rendering=rendering,
        )

    def test_messages_keep_their_order(self, subject: Subject) -> None:
        """What was said first stands first: messages of one side, and the parts of a message."""
        marks = [f"kit-turn-{at}." for at in range(6)]
        history = [said("user", marks[0], marks[1]), *(said("user", mark) for mark in marks[2:])]
        rendering = subject.rendered(history)
        told = body_text(rendering)
        places = [told.find(mark) for mark in marks]
        expect(
            places == sorted(places) and -1 not in places,
            "six texts of one side are not in the body in the order in which they were said",
            history=history,
            rendering=rendering,
        )

    @pytest.mark.parametrize("place", ["system", "later_system"])
    def test_instructions_are_sent_or_reported(self, subject: Subject, place: str) -> None:
        """A system message is in the request, at the start and in the middle; as what it may be there, losses say."""
        instruction = said("system", INSTRUCTION)
        start, middle = [instruction, ASKED], [ASKED, said("llm", "Yes."), said("user", "Go on."), instruction]
        history = start if place == "system" else [*middle, said("llm", "So."), said("user", "And?")]
        rendering = subject.rendered(history)
        grade_by_losses(
            subject,
            place,
            rendering,
            history,
            is_carried=INSTRUCTION in "\n".join(every_string(rendering.body)),
            of=instruction,
        )

    @pytest.mark.parametrize("what", OFFERED)
    def test_an_option_is_offered(self, subject: Subject, what: str) -> None:
        """What an option is called, what it does and which parameters it takes are in the request, or in the losses."""
        rendering = subject.rendered([ASKED], [LOOKUP])
        is_carried = OFFERED[what] in "\n".join(every_string(rendering.body))
        if what == "name":
            grade_by_losses(subject, "options", rendering, [ASKED], is_carried=is_carried, path="options")
        lost = [loss for loss in rendering.losses if loss.path.startswith("options")]
        expect(is_carried or lost, f"the option's {what} ({OFFERED[what]}) is not in the request", rendering=rendering)

    @pytest.mark.parametrize("value", VALUES)
    def test_a_call_is_sent_with_its_result(self, subject: Subject, value: str) -> None:
        """A call goes with its option's name and arguments, its result behind it, whatever kind of value that is."""
        result, marks = VALUES[value]
        history = [ASKED, called("kit-call-1", {"kit_word": "kit-sun"}), answered("kit-call-1", result)]
        rendering = subject.rendered(history, [LOOKUP])
        told, is_lost = body_text(rendering), _is_lost(history[1:], rendering)
        for mark in ("lookup", "kit-sun", *marks):
            expect(mark in told or is_lost, f"{mark!r} is not in the body", history=history, rendering=rendering)
        expect(
            told.find("kit-sun") < told.find(marks[0]) or is_lost,
            "the result stands before its call",
            history=history,
            rendering=rendering,
        )

    def test_parallel_calls_stay_together(self, subject: Subject) -> None:
        """Calls of one reply stand together, and their results behind them, in the order of the calls."""
        history = [
            ASKED,
            called("kit-call-1", {"kit_word": "kit-sun"}),
            called("kit-call-2", {"kit_word": "kit-moon"}),
            answered("kit-call-1", "kit-bright"),
            answered("kit-call-2", "kit-pale"),
        ]
        rendering = subject.rendered(history, [LOOKUP])
        told = body_text(rendering)
        marks = ("kit-sun", "kit-moon", "kit-bright", "kit-pale")
        places = [told.find(mark) for mark in marks]
        grade_by_losses(subject, "parallel_calls", rendering, history, is_carried=-1 not in places, of=history[2])
        expect(
            -1 in places or places == sorted(places),
            f"two calls and two results stand in the order {', '.join(sorted(marks, key=told.find))}; expected "
            f"{', '.join(marks)}",
            history=history,
            rendering=rendering,
        )

    def test_a_failure_is_told_apart_from_a_success(self, subject: Subject) -> None:
        """A result that is an error says what went wrong, and is not rendered as a success with the same words."""
        history = [ASKED, called("kit-call-1", {"kit_word": "kit-sun"}), failed("kit-call-1", "kit-no-such-word")]
        rendering = subject.rendered(history, [LOOKUP])
        success = subject.rendered([*history[:2], answered("kit-call-1", "kit-no-such-word")], [LOOKUP])
        expect(
            "kit-no-such-word" in body_text(rendering) or _is_lost(history[1:], rendering),
            "the failure's message is neither in the body nor in the losses",
            history=history,
            rendering=rendering,
        )
        expect(
            rendering.body_bytes != success.body_bytes,
            "a failed result renders exactly as a success with the same words, so that the model takes it for one",
            history=history,
            rendering=rendering,
        )

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_is_sent_or_reported(self, subject: Subject, modality: Modality, form: str) -> None:
        """A medium in a user's message is in the request, whole, or a loss says that it is not."""
        part, mark = medium(modality, form, subject.target.provider)
        message = said("user", "What is this?", part)
        rendering = subject.rendered([message], settings=Settings(unsupported_media="drop"))
        is_carried = mark in "\n".join(every_string(rendering.body))
        grade_by_losses(subject, f"{modality}.{form}", rendering, [message], is_carried=is_carried, of=message)

    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_in_a_result_is_sent_or_reported(self, subject: Subject, modality: Modality) -> None:
        """A medium in an option's result is in the request, whole, or a loss says that it is not."""
        part, mark = medium(modality, "bytes", subject.target.provider)
        result = answered_with("kit-call-1", sabir.TextPart(text="See."), part)
        history = [ASKED, called("kit-call-1", {"kit_word": "kit-sun"}), result]
        rendering = subject.rendered(history, [LOOKUP], Settings(unsupported_media="drop"))
        is_carried = mark in "\n".join(every_string(rendering.body))
        grade_by_losses(subject, f"results.{modality}", rendering, history, is_carried=is_carried, of=result)

    @pytest.mark.parametrize("name", SETTINGS)
    def test_a_setting_is_sent_or_reported(self, subject: Subject, name: str) -> None:
        """A setting changes the request as its value says, or it is in the losses."""
        one, other = SETTINGS[name]
        rendering, options = _with(subject, name, one)
        bare, changed = subject.rendered([ASKED], options), _with(subject, name, other)[0]
        is_new = rendering.body_bytes != bare.body_bytes
        is_carried = is_new and (name == "reasoning_effort" or rendering.body_bytes != changed.body_bytes)
        if name == "parallel_options":  # one of its two values is what the wire does anyway
            is_carried = rendering.body_bytes != changed.body_bytes
            rendering = changed if changed.losses else rendering
        grade_by_losses(subject, f"settings.{name}", rendering, [ASKED], is_carried=is_carried, path=f"settings.{name}")

    @pytest.mark.parametrize("name", ZEROS)
    def test_a_zero_is_a_value(self, subject: Subject, name: str) -> None:
        """Zero and False say something: they are sent, or in the losses, as any other value."""
        rendering, options = _with(subject, name, ZEROS[name])
        bare = subject.rendered([ASKED], options)
        lost = [loss for loss in rendering.losses if loss.path == f"settings.{name}"]
        expect(
            rendering.body_bytes != bare.body_bytes or lost,
            f"{name}={getattr(ZEROS[name], name)!r} changes nothing in the body and is in no loss; compare with None, "
            "not with truth",
            rendering=rendering,
        )

    @pytest.mark.parametrize("choice", CHOICES)
    def test_a_choice_of_option_is_sent_or_reported(self, subject: Subject, choice: str) -> None:
        """What the model must do with its options is in the request, or in the losses; two choices are not one."""
        path = "settings.option_choice"
        made = {each: subject.rendered([ASKED], OPTIONS, settings) for each, settings in CHOICES.items()}
        whole = {each for each, other in made.items() if not any(loss.path == path for loss in other.losses)}
        rendering, bare = made[choice], subject.rendered([ASKED], OPTIONS)
        is_new = rendering.body_bytes != bare.body_bytes
        later = list(CHOICES)[list(CHOICES).index(choice) + 1 :]
        same = [each for each in later if {choice, each} <= whole and made[each].body_bytes == rendering.body_bytes]
        expect(
            not (is_new and same),
            f"option_choice {choice!r} is rendered exactly as {' and '.join(same)}, and no loss says so",
            rendering=rendering,
        )
        is_carried = is_new or choice == "auto" or "auto" not in whole  # what the wire does anyway says nothing
        grade_by_losses(subject, f"option_choice.{choice}", rendering, [ASKED], is_carried=is_carried, path=path)

    @pytest.mark.parametrize("name", WIRE_SETTINGS)
    def test_a_setting_is_looked_at(self, subject: Subject, name: str) -> None:
        """`encode_request` takes every wire setting from its scope, if only to report it in its own words."""
        settings = CHOICES["none"] if name == "option_choice" else SETTINGS[name][0]
        forgotten = [loss for loss in subject.rendered([ASKED], OPTIONS, settings).losses if is_forgotten(loss)]
        expect(
            not forgotten,
            f"encode_request never takes the setting {name!r}; send it, or report it with scope.losses.add",
            losses=forgotten,
        )

    def test_an_unknown_setting_of_the_vendor_is_refused(self, subject: Subject) -> None:
        """Under a provider's own name stands what it knows; a misspelt setting raises SettingsInvalid that names it."""
        settings = Settings(vendor={subject.target.provider: {"kit_no_such_setting": 1}})
        try:
            rendering = subject.render([ASKED], settings=settings)
        except SettingsInvalid as error:
            expect(
                "kit_no_such_setting" in str(error),
                f"the error for an unknown setting of the vendor does not name it: {error}",
            )
            return
        raise Broken("kit_no_such_setting, a setting that no vendor has, is accepted", rendering=rendering)

    def test_a_count_is_asked_for(self, subject: Subject) -> None:
        """`encode_count` gives a path and a JSON body, or None where the vendor cannot count; no count is an error."""
        rendering = subject.rendered([ASKED])
        asked = subject.dialect.encode_count(rendering.body, subject.target)
        if asked is None:
            subject.grade("count_tokens", REFUSED, what="encode_count gives None")
            return
        path, body = asked
        expect(path.startswith("/"), f"encode_count gives the path {path!r}; expected one such as '/count'")
        expect(
            "the kit's book" in json.dumps(plain(body)),
            "what encode_count asks for does not hold the text to be counted",
            shown={"its body": plain(body)},
        )
        try:
            counted = subject.dialect.decode_count(b'{"kit": "no count"}')
        except SabirError:
            subject.grade("count_tokens", FULL)
        else:
            raise Broken(f"decode_count reads {counted!r} off an answer without a count; raise ResponseInvalid")


def _with(subject: Subject, name: str, settings: Settings) -> tuple[Rendering, Sequence[Option]]:
    """A rendering with a setting; options are offered where it speaks of them."""
    options = OPTIONS if name == "parallel_options" else ()
    return subject.rendered([ASKED], options, settings), options


def _is_lost(history: Sequence[Message], rendering: Rendering) -> bool:
    """Whether a loss is of one of these messages."""
    return bool({loss.message_id for loss in rendering.losses} & {message.id for message in history})
