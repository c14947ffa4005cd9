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
    call_message,
    error_result,
    medium,
    message_by,
    result_message,
)
from sabir_testing.kit.capabilities import CAPABILITIES, DOWNGRADED, FORMS, FULL, MODALITIES, REFUSED, Grade
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.suite import AdapterUnderTest, RenderedHistory, Suite, since_api

WORDS = "kit-words"
QUESTION = message_by("user", "Do you know the kit's book?")
OPTIONS = (COUNT, LOOKUP)
SUN = call_message("kit-call-1", {"kit_word": "kit-sun"})
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
NATIVE = {
    "web_search": sabir.web_search(),
    "code_execution": sabir.code_execution(),
    "mcp_server": sabir.mcp_server("https://example.org/kit-mcp"),
}
OPTION_TEXTS = {"name": "lookup", "description": "Finds a word in the kit's book.", "parameters": "kit_word"}


class RequestCases(Suite):
    """The test cases of the family `requests`."""

    family = "requests"

    def test_a_request_names_its_model(self, subject: AdapterUnderTest) -> None:
        """The requested model is in the body or in the path."""
        request, model = subject.request_for([QUESTION]), subject.target.model
        path = request.rendering.path if request.rendering else ""
        is_named = model in unquote(path) or request.contains(model)
        request.expect(is_named, f"the model {model!r} is neither in the path {path!r} nor in the body; add it to one")

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_a_text_is_sent_as_it_is(self, subject: AdapterUnderTest, text: str) -> None:
        """A text is sent unchanged: not trimmed, escaped or normalized."""
        request = subject.request_for([message_by("user", text)])
        request.expect(request.contains(text), f"the text {text!r} of the user's message is not in the body unchanged")

    @pytest.mark.parametrize("speaker", ["llm", "system"])
    def test_sides_are_told_apart(self, subject: AdapterUnderTest, speaker: str) -> None:
        """Messages of the model and the system are encoded differently from user messages, or a loss reports them."""
        words, go_on = message_by(speaker, WORDS), message_by("user", "Go on.")
        history = [message_by("user", WORDS), message_by("llm", "Yes."), message_by("user", "So?"), words, go_on]
        request = subject.request_for(history)
        frames = [without_words(item) for item in subject.items(request.rendering) if WORDS in json.dumps(item)]
        is_distinct = is_lost_message([words], request) or len(frames) < 2 or frames[0] != frames[-1]
        what = f"encode_turn returns the same item for a message by {speaker!r} as for a message by 'user'"
        request.expect(is_distinct, f"{what}, and no loss reports the message; encode another role, or add a loss")

    def test_messages_keep_their_order(self, subject: AdapterUnderTest) -> None:
        """User messages, and the parts of a message, are sent in their order."""
        marks = [f"kit-turn-{at}." for at in range(6)]
        later = [message_by("user", mark) for mark in marks[2:]]
        request = subject.request_for([message_by("user", *marks[:2]), *later])
        places = [request.text.find(mark) for mark in marks]
        is_kept = places == sorted(places) and -1 not in places
        request.expect(is_kept, "six texts by 'user' are not all in the body, or not in the order of the history")

    @pytest.mark.parametrize("place", ["system", "later_system"])
    def test_instructions_are_sent_or_reported(self, subject: AdapterUnderTest, place: str) -> None:
        """A system message, at the start or in the middle, is in the request, or a loss reports it."""
        instruction, answer = message_by("system", INSTRUCTION), [message_by("llm", "Yes."), message_by("user", "So?")]
        later = [message_by("llm", "So."), message_by("user", "And?")]
        history = [QUESTION, *answer, instruction, *later] if place == "later_system" else [instruction, QUESTION]
        request = subject.request_for(history)
        grade_by_losses(subject, place, request, is_carried=request.contains(INSTRUCTION), of=instruction)

    @pytest.mark.parametrize("what", OPTION_TEXTS)
    def test_an_option_is_offered(self, subject: AdapterUnderTest, what: str) -> None:
        """The name, description and parameters of an option are in the request or in the losses."""
        request = subject.request_for([QUESTION], [LOOKUP])
        is_carried = request.contains(OPTION_TEXTS[what])
        if what == "name":
            grade_by_losses(subject, "options", request, is_carried=is_carried, path="options")
        is_reported = is_carried or any(loss.path.startswith("options") for loss in request.losses)
        fault = f"the {what} of an offered option, {OPTION_TEXTS[what]!r}, is not in the body or in a loss"
        request.expect(is_reported, fault)

    @pytest.mark.parametrize("value", VALUES)
    def test_a_call_is_sent_with_its_result(self, subject: AdapterUnderTest, value: str) -> None:
        """A call is sent with the option's name and the arguments, followed by its result: a text, an object, a list or
        a number. A loss may report the call or the result instead.
        """
        result, marks = VALUES[value]
        request = subject.request_for([QUESTION, SUN, result_message("kit-call-1", result)], [LOOKUP])
        body, is_lost = request.text, is_lost_message(request.history[1:], request)
        for mark in ("lookup", "kit-sun", *marks):
            what = f"{mark!r}, of an option call or its result, is neither in the body nor in the losses"
            request.expect(mark in body or is_lost, what)
        what = "the option result is in the body before its call; encode the call first"
        request.expect(body.find("kit-sun") < body.find(marks[0]) or is_lost, what)

    def test_parallel_calls_stay_together(self, subject: AdapterUnderTest) -> None:
        """Calls of one reply are sent together, followed by their results in the same order, or a loss reports the
        second call.
        """
        moon = call_message("kit-call-2", {"kit_word": "kit-moon"})
        results = result_message("kit-call-1", "kit-bright"), result_message("kit-call-2", "kit-pale")
        request = subject.request_for([QUESTION, SUN, moon, *results], [LOOKUP])
        marks = ("kit-sun", "kit-moon", "kit-bright", "kit-pale")
        places = [request.text.find(mark) for mark in marks]
        grade_by_losses(subject, "parallel_calls", request, is_carried=-1 not in places, of=moon)
        order = ", ".join(sorted(marks, key=request.text.find))
        what = f"two calls and their two results are in the body in the order {order}; expected {', '.join(marks)}"
        request.expect(-1 in places or places == sorted(places), what)

    def test_a_failure_is_told_apart_from_a_success(self, subject: AdapterUnderTest) -> None:
        """An error result contains the error message, or a loss reports it, and differs from a success with the same
        text.
        """
        words = "kit-no-such-word"
        request = subject.request_for([QUESTION, SUN, error_result("kit-call-1", words)], [LOOKUP])
        success = subject.request_for([QUESTION, SUN, result_message("kit-call-1", words)], [LOOKUP])
        is_reported = words in request.text or is_lost_message(request.history[1:], request)
        what = f"the error message {words!r} of a failed option is neither in the body nor in a loss"
        request.expect(is_reported, what)
        what = "an error result and a successful result with the same text give the same body, so that the model cannot"
        request.expect(request.body != success.body, f"{what} see the failure; mark the error in the encoded result")

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_is_sent_or_reported(self, subject: AdapterUnderTest, modality: Modality, form: str) -> None:
        """A medium in a user message is in the request, complete, or a loss reports it."""
        part, mark = medium(modality, form, subject.target.provider)
        message = message_by("user", "What is this?", part)
        request = subject.request_for([message], settings=Settings(unsupported_media="drop"))
        grade_by_losses(subject, f"{modality}.{form}", request, is_carried=request.contains(mark), of=message)

    @pytest.mark.parametrize("modality", MODALITIES)
    def test_a_medium_in_a_result_is_sent_or_reported(self, subject: AdapterUnderTest, modality: Modality) -> None:
        """A medium in an option result is in the request, complete, or a loss reports it."""
        part, mark = medium(modality, "bytes", subject.target.provider)
        result = result_message("kit-call-1", parts=(sabir.TextPart(text="See."), part))
        request = subject.request_for([QUESTION, SUN, result], [LOOKUP], Settings(unsupported_media="drop"))
        grade_by_losses(subject, f"results.{modality}", request, is_carried=request.contains(mark), of=result)

    @pytest.mark.parametrize("name", [name for name in SETTINGS if name != "option_choice"])
    def test_a_setting_is_sent_or_reported(self, subject: AdapterUnderTest, name: str) -> None:
        """A setting changes the request, and another value (except of `reasoning_effort` and `prompt_cache`) changes it
        in another way, or the setting is in the losses. If an API caches all prompts by itself, `prompt_cache` need not
        be sent, but a lifetime is in the losses.
        """
        request, changed = (_request_with(subject, name, value) for value in SETTINGS[name][:2])
        is_carried = request.body != changed.body
        if name == "parallel_options":  # one of its two values is the API's default
            request = changed if changed.losses else request
        else:
            is_new = request.body != _request_with(subject, name, None).body
            is_carried = is_new and (name in ("reasoning_effort", "prompt_cache") or is_carried)
        if name == "prompt_cache" and not is_carried:
            is_carried = bool(request.losses) and not _request_with(subject, name, True).losses
        grade_by_losses(subject, f"settings.{name}", request, is_carried=is_carried, path=f"settings.{name}")

    @pytest.mark.parametrize("name", ZEROS)
    def test_a_zero_is_a_value(self, subject: AdapterUnderTest, name: str) -> None:
        """The value 0 of a setting is sent or in the losses, as other values are."""
        zero: Any = 0
        request = _request_with(subject, name, zero)
        lost = [loss for loss in request.losses if loss.path == f"settings.{name}"]
        value = getattr(Settings(**{name: zero}), name)
        what = f"the setting {name}={value!r} is neither in the body nor in a loss, as if it were not set"
        is_reported = request.body != _request_with(subject, name, None).body or lost
        request.expect(is_reported, f"{what}; write `if value is not None`, not `if value`")

    @pytest.mark.parametrize("choice", CHOICES)
    def test_a_choice_of_option_is_sent_or_reported(self, subject: AdapterUnderTest, choice: str) -> None:
        """`option_choice` is in the request or in the losses (the API's default, "auto", need not be sent), and
        different choices without losses give different requests.
        """
        path = "settings.option_choice"
        settings = {each: Settings(option_choice=option_choice) for each, option_choice in CHOICES.items()}
        requests = {each: subject.request_for([QUESTION], OPTIONS, chosen) for each, chosen in settings.items()}
        lossless = {each for each, other in requests.items() if not any(loss.path == path for loss in other.losses)}
        request = requests[choice]
        is_new = request.body != subject.request_for([QUESTION], OPTIONS).body
        later = list(CHOICES)[list(CHOICES).index(choice) + 1 :]
        same = [each for each in later if {choice, each} <= lossless and requests[each].body == request.body]
        others = " and ".join(map(repr, same))
        what = f"option_choice {choice!r} gives the same body as {others}, and no loss reports a difference"
        request.expect(not (is_new and same), what)
        is_carried = is_new or choice == "auto" or "auto" not in lossless  # the API's default need not be sent
        grade_by_losses(subject, f"option_choice.{choice}", request, is_carried=is_carried, path=path)

    @pytest.mark.parametrize("kind", NATIVE)
    def test_a_native_option_is_sent_or_reported(self, subject: AdapterUnderTest, kind: str) -> None:
        """An option for a tool that the vendor runs changes the request, or a loss reports the option."""
        request = subject.request_for([QUESTION], [NATIVE[kind]])
        is_carried = request.body != subject.request_for([QUESTION]).body
        grade_by_losses(subject, f"native.{kind}", request, is_carried=is_carried, path="options")

    def test_a_function_replaces_a_missing_tool(self, subject: AdapterUnderTest) -> None:
        """If the vendor has no web search, the function in `otherwise` is offered instead."""
        if "web_search" in subject.renderer().scope.tables.native:
            return
        request = subject.request_for([QUESTION], [sabir.web_search(otherwise=COUNT)])
        is_sent = request.contains(COUNT.description) or any(loss.path == "options" for loss in request.losses)
        what = "the vendor has no web search, but the function that the option names as `otherwise` is not in the body"
        request.expect(is_sent, f"{what}; declare the options in RequestScope.options")

    def test_a_native_call_of_another_vendor_is_sent_as_text(self, subject: AdapterUnderTest) -> None:
        """A call of another vendor's own tool and its result are sent as text, and the vendor's block is not sent."""
        block = {"kit_block": "kit-block-of-another-vendor"}
        shared: dict[str, Any] = {
            "tool": "kit_search",
            "pair_id": "kit-search-1",
            "dialect": "kit.elsewhere",
            "raw": block,
        }
        call = sabir.NativeCallPart(**shared, queries=("kit-query-words",))
        page = sabir.NativeReference(url="https://example.org/kit-page", title="kit-page-title")
        pages = sabir.NativeResultPart(**shared, sources=(page,))
        answer = message_by("llm", call, pages, "Found.")
        request = subject.request_for([QUESTION, answer, message_by("user", "And?")])
        for mark in ("kit-query-words", "kit-page-title"):
            what = f"{mark!r}, of a search by another vendor's model, is neither in the body nor in the losses"
            request.expect(request.contains(mark) or is_dropped(answer, request), what)
        what = "the block of another vendor's tool is in the body; send only the pieces of Entry.pieces"
        request.expect(not request.contains("kit-block-of-another-vendor"), what)

    @pytest.mark.parametrize("name", [name for name in WIRE_SETTINGS if name != "prompt_cache"])
    def test_a_setting_is_looked_at(self, subject: AdapterUnderTest, name: str) -> None:
        """`encode_request` reads every setting from its scope, even if only to report a loss."""
        _check_read(subject, name)

    @since_api(2)
    def test_a_newer_setting_is_looked_at(self, subject: AdapterUnderTest) -> None:
        """`encode_request` reads the setting `prompt_cache`, even if only to report a loss. Adapters for an earlier
        version of the plugin contract do not know this setting.
        """
        _check_read(subject, "prompt_cache")

    def test_an_unknown_setting_of_the_vendor_is_refused(self, subject: AdapterUnderTest) -> None:
        """An unknown vendor setting in the provider's section raises SettingsInvalid, which names the setting."""
        settings = Settings(vendor={subject.target.provider: {"kit_no_such_setting": 1}})
        try:
            rendering = subject.render([QUESTION], settings=settings)
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
        rendering = subject.must_render([QUESTION])
        if subject.dialect.encode_count is None:
            subject.grade("count_tokens", REFUSED, what="Dialect.encode_count is None")
            return
        path, body = subject.dialect.encode_count(rendering.body, subject.renderer().scope)
        expect(path.startswith("/"), f"encode_count returns the path {path!r}; expected a path such as '/count'")
        count_body = json.loads(encode_json(body))
        what = "the body that encode_count returns does not contain the user's text; its tokens are not counted"
        expect("the kit's book" in json.dumps(count_body), what, details={"the body for the count": count_body})
        try:
            counted = subject.dialect.decode_count(b'{"kit": "no count"}')
        except SabirError:
            subject.grade("count_tokens", FULL)
        else:
            what = f"decode_count returns {counted!r} for a response without a count; raise ResponseInvalid"
            raise ConformanceFailure(what)


def _check_read(subject: AdapterUnderTest, name: str) -> None:
    """Raise ConformanceFailure if `encode_request` does not read the setting `name` from its scope."""
    settings = Settings(**{name: SETTINGS[name][0]})
    unread = [loss for loss in subject.must_render([QUESTION], OPTIONS, settings).losses if is_unread(loss)]
    what = f"encode_request does not read the setting {name!r}; send the setting, or report it by scope.losses.add"
    expect(not unread, what, losses=unread)


def _request_with(subject: AdapterUnderTest, name: str, value: Any) -> RenderedHistory:
    """Return a rendering with a setting. Options are offered for `parallel_options` and `prompt_cache` only, and the
    history for `prompt_cache` begins with closed turns.
    """
    is_cache = name == "prompt_cache"
    history = [QUESTION, message_by(subject.adapter.speaks_as, "On page 12."), QUESTION] if is_cache else [QUESTION]
    options = OPTIONS if is_cache or name == "parallel_options" else ()
    return subject.request_for(history, options, Settings(**{name: value}))


def is_lost_message(history: Sequence[Message], request: RenderedHistory) -> bool:
    """Return whether a loss names one of these messages."""
    return bool({loss.message_id for loss in request.losses} & {message.id for message in history})


def is_dropped(message: Message, request: RenderedHistory) -> bool:
    """Return whether a loss says that a part of the message was not sent."""
    return any(loss.message_id == message.id and loss.kind == "dropped" for loss in request.losses)


def without_words(item: JSONValue) -> JSONValue:
    """Return an item without WORDS and with at most the first value of each list: its role and structure remain."""
    if isinstance(item, Mapping):
        return {key: without_words(each) for key, each in item.items()}
    if isinstance(item, list | tuple):
        return [without_words(each) for each in item][:1]
    return None if isinstance(item, str) and WORDS in item else item


def is_unread(loss: Loss) -> bool:
    """Return whether the loss says that the dialect never read the setting."""
    return loss.reason.endswith(NEVER_READ)


def grade_by_losses(
    subject: AdapterUnderTest,
    capability: str,
    request: RenderedHistory,
    *,
    is_carried: bool,
    of: Message | None = None,
    path: str = "",
) -> None:
    """Record the grade of a capability: REFUSED if it is not sent, DOWNGRADED with losses of another kind than
    "rewritten", otherwise FULL. Nothing is recorded if the dialect did not read a setting.

    The losses are those of the message `of`, or with a path that begins with `path`. Raises ConformanceFailure if the
    content is neither sent nor reported, if `strict=True` would not refuse content that is not sent, or if the suite
    declares another grade.
    """
    lost = [loss for loss in request.losses if (loss.path.startswith(path) if of is None else loss.message_id == of.id)]
    if any(map(is_unread, request.losses)):
        return  # test_a_setting_is_looked_at reports it
    sample = f"{capability} ({CAPABILITIES[capability]})"
    request.expect(is_carried or lost, f"{sample} is neither in the body nor in the losses; send it, or add a loss")
    is_another = any(loss.kind != "rewritten" for loss in lost)  # rewritten: same meaning, other characters
    seen: Grade = REFUSED if not is_carried else DOWNGRADED if is_another else FULL
    if seen is REFUSED:
        kinds = ", ".join(sorted({loss.kind for loss in request.losses}))
        what = f"{sample} is not in the body, but strict=True does not refuse the request, because the kind of loss is"
        what = f"{what} {kinds}; add the loss with the kind 'dropped'"
        request.expect(_is_refused(request, str(subject.target)), what)
    what = "; ".join(loss.reason for loss in lost)
    subject.grade(capability, seen, what=what, history=request.history, rendering=request.rendering)


def _is_refused(request: RenderedHistory, target: str) -> bool:
    """Return whether `strict=True` refuses a request with these losses."""
    try:
        RenderingRefused.check(request.losses, True, target)
    except RenderingRefused:
        return True
    return False
