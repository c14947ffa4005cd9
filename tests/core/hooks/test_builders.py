"""Builders make messages step by step, as the source document has them."""

from typing import Any

import pytest
import sabir
from sabir.errors import BuilderError, MediaRefused
from sabir.hooks.builders import MessageBuilder, OptionResultBuilder
from sabir.vocabulary.messages import RUNTIME, Message, OptionCallPayload, Origin, PartsPayload
from sabir.vocabulary.parts import MediaPart, TextPart

from tests.core.support import raises_line


def at_step(step_num: int | None, **fields: Any) -> Message:
    return Message(policy="user", step_num=step_num, payload=PartsPayload(parts=(TextPart(text="x"),)), **fields)


def a_call(step_num: int | None = 4) -> Message:
    return MessageBuilder("llm", step_num=step_num).add_option_call("search", {"query": "x"})


def test_the_source_documents_example_runs_as_written() -> None:
    """PJ-48: a parts message of media, media, text at the anchor's step, and one paired call and result."""
    urls, results = ["https://example.org/girl.png", "https://example.org/dress.png"], ["a hobbit film"]

    builder = MessageBuilder.continue_step(at_step(7))
    builder.add_option_call("search_web", {"query": "hobbit movie"})
    # ... executor runs it ...
    option_result_msg = OptionResultBuilder.response_to(builder.last_option_call).success(results)
    builder.add_image("girl wearing a hat", urls[0])
    builder.add_image("fancy dress", urls[1])
    builder.add_text("Take the dress from the second image and apply it to the person in the first image")
    message = builder.to_message()

    hints = [(part.kind, getattr(part, "prompt_hint", None)) for part in message.parts]
    assert hints == [("media", "girl wearing a hat"), ("media", "fancy dress"), ("text", None)]
    assert [part.url for part in message.parts if isinstance(part, MediaPart)] == urls
    call, result = builder.last_option_call.call, option_result_msg.result
    assert result is not None
    assert (call.option_name, call.arguments) == ("search_web", {"query": "hobbit movie"})
    assert (result.invocation_id, result.option_name, result.result) == (call.invocation_id, "search_web", results)
    assert {each.step_num for each in (message, builder.last_option_call, option_result_msg)} == {7}


def test_a_step_is_counted_from_a_message_a_number_or_nothing() -> None:
    """PJ-25 … PJ-27, D-03: an anchor without a step counts as 0 for the next one; True is no number of a step."""
    for anchor, following, same in [
        (at_step(3), 4, 3), (at_step(0), 1, 0), (at_step(None), 1, None), (3, 4, 3), (0, 1, 0), (None, 1, None),
    ]:  # fmt: skip
        assert MessageBuilder.next_step(anchor).step_num == following
        assert MessageBuilder.continue_step(anchor).step_num == same
    for wrong in ("3", True, 1.5, [at_step(3)], -1):
        with pytest.raises(BuilderError, match="a step needs a message, a step number of 0 or more, or None, not"):
            MessageBuilder.next_step(wrong)  # type: ignore[arg-type]


def test_every_message_of_a_builder_has_its_step_policy_and_hint() -> None:
    """PJ-40, PJ-42, D-07: as they were given, else "user" and none, and never the anchor's; wrong ones are refused."""
    anchor = at_step(3, role_hint_for_llm="tool").model_copy(update={"policy": "search"})
    builders = [MessageBuilder("planner", "system", 5), MessageBuilder.continue_step(anchor)]
    for builder in builders:
        builder.add_text("x")
        builder.add_option_call("search")
    made = [{(m.policy, m.role_hint_for_llm, m.step_num) for m in builder.to_messages()} for builder in builders]

    assert made == [{("planner", "system", 5)}, {("user", None, 3)}]
    with pytest.raises(BuilderError, match="needs a policy"):
        MessageBuilder("")
    builder = MessageBuilder(role_hint="robot")  # type: ignore[arg-type]
    builder.add_text("x")
    with pytest.raises(BuilderError, match="role_hint_for_llm"):
        builder.to_message()


@pytest.mark.parametrize("anchored", [MessageBuilder.continue_step, MessageBuilder.next_step])
def test_a_call_that_is_anchored_on_a_models_message_is_the_models(anchored: Any) -> None:
    """PJ-04, D-07: what is said beside it stays the user's, and a policy that is given counts for both."""
    origin = Origin(provider="p", dialect="p.d")
    said = at_step(3, origin=origin).model_copy(update={"policy": "planner"})
    call = MessageBuilder("planner").add_option_call("search").model_copy(update={"origin": origin})
    for anchor, policy in ((said, "planner"), (call, "planner"), (sabir.assistant("Rome."), "llm")):
        builder = anchored(anchor)
        builder.add_text("And Oslo?")

        assert builder.add_option_call("search", {}).policy == policy
        assert builder.to_message().policy == "user"
        assert anchored(anchor, policy="user").add_option_call("search").policy == "user"
    result = OptionResultBuilder.response_to(a_call()).success("rain").model_copy(update={"origin": origin})
    for other in (sabir.user("Hi."), at_step(3), result, 3, None):
        assert anchored(other).add_option_call("search").policy == "user"


def test_parts_keep_their_order_and_every_modality_has_its_method() -> None:
    """PJ-20, PJ-35, PJ-36: each `add_…` returns what it added."""
    builder = MessageBuilder()
    added = [
        builder.add_text("one"),
        builder.add_image("a girl", "https://example.org/1"),
        builder.add_audio(None, "https://example.org/2", mime="audio/wav"),
        builder.add_text("two"),
        builder.add_video("a film", url="data:video/mp4;base64,AA==", name="film.mp4"),
        builder.add_document(prompt_hint="a page", url="provider-file:acme/file-1", id="page"),
    ]
    message = builder.to_message()

    assert list(message.parts) == added
    assert [part.modality for part in message.parts if isinstance(part, MediaPart)] == [
        "image",
        "audio",
        "video",
        "document",
    ]
    assert [part.mime for part in message.parts if isinstance(part, MediaPart)] == [None, "audio/wav", None, None]


def test_what_no_part_can_hold_is_refused_in_one_line() -> None:
    """No path, no surrogate, no unknown detail; the hint comes first, and the error shows the order (D-05)."""
    builder: Any = MessageBuilder()
    order = r"write the hint first, then the URL: add_image\(prompt_hint, url\)"
    for name, arguments, error, words in [
        ("image", ("a girl", "girl.png"), MediaRefused, "for a path or bytes use sabir.image"),
        ("image", ("https://example.org/1", "a girl"), BuilderError, order),
        ("image", ("https://example.org/1",), BuilderError, order),
        ("image", ("a girl",), BuilderError, order),
        ("image", (), BuilderError, order),
        ("text", ("a\ud800b",), BuilderError, "text: contains a lone surrogate"),
        ("text", (3,), BuilderError, "text: Input should be a valid string"),
        ("option_call", ("", {}), BuilderError, "option_name"),
        ("option_call", ("x", {"n": float("nan")}), BuilderError, "numbers must be finite"),
        ("option_call", ("x", [1]), BuilderError, "expected a JSON object"),
        ("option_call", ("x", []), BuilderError, "expected a JSON object"),
    ]:  # fmt: skip
        with raises_line(error, match=words):
            getattr(builder, f"add_{name}")(*arguments)
    with pytest.raises(BuilderError, match="'size'"):
        builder.add_image("x", "https://example.org", size=3)
    assert builder._parts == []


def test_an_option_call_is_a_message_of_its_own_under_a_new_id() -> None:
    """PJ-29, PJ-37: the last one is at hand."""
    builder = MessageBuilder("planner")
    first, second = builder.add_option_call("search", {"q": 1}), builder.add_option_call("search", {"q": 1})

    assert first.call is not None
    assert second.call is not None
    assert (first.kind, first.policy) == ("option_call", "planner")
    assert first.call.invocation_id != second.call.invocation_id
    assert builder.last_option_call is second
    with pytest.raises(BuilderError, match="no option call; add one"):
        MessageBuilder().last_option_call  # noqa: B018


def test_to_message_is_the_parts_alone_and_to_messages_is_everything() -> None:
    """PJ-38, PJ-39, D-06, UP-01: no call is forgotten; the parts stand where the first was added."""
    builder = MessageBuilder()
    with pytest.raises(BuilderError, match="no parts"):
        builder.to_messages()
    first = builder.add_option_call("one")
    assert builder.to_messages() == [first]
    with pytest.raises(BuilderError, match=r"no parts; .* its option calls are in to_messages\(\)"):
        builder.to_message()
    builder.add_text("a")
    before = builder.to_message()
    assert builder.to_message() is before
    second = builder.add_option_call("two")
    builder.add_text("b")

    assert builder.to_messages() == [first, builder.to_message(), second]
    assert (builder.to_message().kind, builder.to_message().text, before.text) == ("parts", "ab", "a")
    assert builder.to_message().id != before.id


def test_media_ids_are_stable_and_given_ones_are_kept() -> None:
    """PJ-41: same inputs in the same order, same ids; none is given twice."""

    def ids(*given: str | None) -> list[str | None]:
        builder = MessageBuilder()
        for each in given:
            builder.add_text("x")
            builder.add_image(None, "https://example.org", id=each)
        return [part.id for part in builder.to_message().parts if isinstance(part, MediaPart)]

    assert ids(None, None, "mine", None) == ["media-1", "media-2", "mine", "media-4"]
    assert ids(None, None) == ids(None, None)
    assert ids("media-2", None) == ["media-2", "media-3"]
    builder = MessageBuilder()
    builder.add_image("a cat", "https://example.org/cat.png")
    with pytest.raises(
        BuilderError, match=r"'media-1'.*image .*a dog.* and image .*a cat.*; the second has the id already"
    ):
        builder.add_image("a dog", "https://example.org/dog.png", id="media-1")
    assert len(builder.to_message().parts) == 1


def test_a_result_copies_the_calls_ids_name_and_step() -> None:
    """PJ-43, PJ-05: its policy is the option's unless the runtime answers."""
    call = a_call()
    builder = OptionResultBuilder.response_to(call)
    refused = OptionResultBuilder.response_to(call, policy=RUNTIME).error("cancelled", "by the user")

    assert call.call is not None
    assert (builder.invocation_id, builder.option_name) == (call.call.invocation_id, "search")
    assert (builder.success(1).policy, builder.success(1).step_num) == ("search", 4)
    assert refused.policy == "runtime"
    assert OptionResultBuilder.response_to(a_call(None)).success(1).step_num is None


def test_a_result_keeps_every_value_and_an_error_says_whether_to_try_again() -> None:
    """PJ-44, PJ-45: not again unless it is said; what no result can hold is refused in one line."""
    builder = OptionResultBuilder.response_to(a_call())
    for value in (None, 0, "", [], {}, False, {"a": [1]}):
        kept = builder.success(value).result
        assert kept is not None
        assert (kept.is_error, kept.result) == (False, value)
    for again in ({}, {"retryable": True}):
        result = builder.error("timeout", "too slow", **again).result
        assert result is not None
        assert (result.is_error, result.error_type, result.error_message) == (True, "timeout", "too slow")
        assert result.retryable is bool(again)
    for act, words in (
        (lambda: builder.success(float("inf")), "numbers must be finite"),
        (lambda: builder.error("", "x"), "needs `error_type`"),
    ):
        with pytest.raises(BuilderError, match=words):
            act()


def test_another_calls_ids_cannot_be_set() -> None:
    """PJ-46: a builder answers its call alone."""
    builder = OptionResultBuilder.response_to(a_call())
    builder.option_name, builder.invocation_id = "search", builder.invocation_id

    with pytest.raises(BuilderError, match="option_name is 'search' and cannot become 'find'"):
        builder.option_name = "find"
    with pytest.raises(BuilderError, match=r"invocation_id is .* and cannot become 'x'"):
        builder.invocation_id = "x"


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (at_step(1), "a message of kind 'parts'"),
        (OptionResultBuilder.response_to(a_call()).success(1), "a message of kind 'option_result'"),
        (OptionCallPayload(invocation_id="1", option_name="x"), "a value of type OptionCallPayload"),
        (None, "a value of type NoneType"),
    ],
)
def test_only_an_option_call_has_a_response(message: Any, found: str) -> None:
    """PJ-47."""
    with pytest.raises(BuilderError, match=f"not {found}"):
        OptionResultBuilder.response_to(message)
