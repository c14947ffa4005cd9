"""State beside a text, a medium, a refusal or a call goes back to its maker, or is told of as withheld (law 2)."""

import json
from dataclasses import replace

import pytest
from sabir.base.failures import Loss
from sabir.contract.turns import Tables
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message, OptionCallPayload, Origin
from sabir.vocabulary.parts import KnownPart, MediaPart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Target
from sabir_testing.histories.invented_dialects import HOISTED, INLINE, toy, toy_target
from sabir_testing.histories.samples import message_by, result_message

ABROAD = Origin(provider="acme", dialect="acme.wire", model="m")
HOME = Origin(provider="toy", dialect=INLINE.name, model="m-1")
SEAL = {"signature": "sealed"}
TEXT = TextPart(text="x", state=SEAL)


def spoken(*parts: KnownPart, origin: Origin | None = ABROAD, policy: str = "llm") -> Message:
    return message_by(policy, *parts).model_copy(update={"origin": origin})


def chosen(origin: Origin | None = ABROAD) -> list[Message]:
    call = OptionCallPayload(invocation_id="c", option_name="weather", state=SEAL)
    return [Message(policy="llm", origin=origin, payload=call), result_message("c", "rain", "weather")]


def lost(*history: Message) -> list[tuple[str, str, str]]:
    """Kind, path and message of what a made-up wire loses; no state may be in its body without its maker."""
    rendering = Renderer(INLINE, toy_target(INLINE)).render(history)
    is_told = any(loss.kind == "withheld" for loss in rendering.losses)
    assert ("sealed" in rendering.body_bytes.decode()) is not is_told
    return [(loss.kind, loss.path, loss.message_id) for loss in rendering.losses]


def test_state_of_a_text_and_a_call_from_elsewhere_is_withheld() -> None:
    answer, (call, result) = spoken(TextPart(text="a"), TEXT, TextPart(text="b"), TEXT), chosen()

    assert lost(message_by("user", "?"), answer, call, result) == [
        ("withheld", "parts[1].state", answer.id),
        ("withheld", "parts[3].state", answer.id),
        ("withheld", "payload.state", call.id),
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"provider": "acme"}, "acme toy.inline m-1; the provider was 'acme', and is 'toy'"),
        ({"dialect": "toy.other"}, "toy toy.other m-1; the dialect was 'toy.other', and is 'toy.inline'"),
        ({"endpoint": "https://b"}, "toy toy.inline m-1; the endpoint was 'https://b', and is 'https://a'"),
        ({"model": "k-2"}, "toy toy.inline k-2; the model was 'k-2', and is 'm-1'"),
        (None, "which is unknown, because the message has no origin"),
    ],
)
def test_a_withheld_state_is_told_by_its_maker_and_by_what_is_another_here(
    changed: dict[str, str] | None, told: str
) -> None:
    target = toy_target(INLINE).model_copy(update={"endpoint": "https://a"})
    origin = None if changed is None else HOME.model_copy(update={"endpoint": "https://a", **changed})
    [loss] = Renderer(INLINE, target).render([spoken(TEXT, origin=origin)]).losses

    assert loss.reason == f"the signed state is only sent back to its origin, {told}"


@pytest.mark.parametrize(("model", "lost"), [("m-1", []), ("old-1", ["endpoint"])])
def test_endpoints_that_a_dialect_says_are_one_place_read_each_others_state(model: str, lost: list[str]) -> None:
    """By model: what some models sign everywhere alike, others read at their own endpoint alone."""

    def place(endpoint: str, model: str) -> str:
        return endpoint if model.startswith("old") else endpoint.replace("eu.", "")

    wire = replace(INLINE, place=place)
    target = Target(provider="toy", dialect=wire.name, model=model, endpoint="https://a.example")
    origin = HOME.model_copy(update={"endpoint": "https://eu.a.example", "model": model})
    losses = Renderer(wire, target).render([spoken(TEXT, origin=origin)]).losses

    assert [word for loss in losses for word in ("endpoint", "model") if f"the {word} was" in loss.reason] == lost


@pytest.mark.parametrize(
    ("history", "withheld"),
    [
        ([message_by("user", "?"), spoken(TEXT, origin=HOME), *chosen(HOME)], False),
        ([spoken(TEXT, origin=HOME, policy="critic")], True),
        ([spoken(MediaPart(modality="image", url="https://e.org/a.png", state=SEAL), policy="critic")], True),
        ([spoken(RefusalPart(text="No.", state=SEAL))], True),
    ],
    ids=["home", "another policy", "medium", "refusal"],
)
def test_state_goes_to_its_maker_alone(history: list[Message], withheld: bool) -> None:
    """What another policy says renders as a user's, who has no state to give back."""
    assert lost(*history) == ([("withheld", "parts[0].state", history[0].id)] if withheld else [])


def test_what_stays_behind_as_a_whole_is_told_once() -> None:
    video = MediaPart(modality="video", url="https://e.org/a.mp4", state=SEAL)
    answer = spoken(ReasoningPart(text="hm", state=SEAL), TextPart(text="", state=SEAL), video, TextPart(text="x"))

    rendering = Renderer(INLINE, toy_target(INLINE)).render([answer])

    assert [(loss.kind, loss.path) for loss in rendering.losses] == [
        ("dropped", "parts[0]"), ("dropped", "parts[1]"), ("downgraded", "parts[2]"),
    ]  # fmt: skip


def test_state_in_hoisted_instructions_and_in_results_is_withheld() -> None:
    system = spoken(TEXT, origin=None, policy="system")
    call, _ = chosen(HOME)
    result = result_message("c", name="weather", parts=(TEXT,)).model_copy(update={"origin": HOME})

    hoisted = Renderer(HOISTED, toy_target(HOISTED)).render([system, message_by("user", "?")])
    answered = Renderer(INLINE, toy_target(INLINE)).render([call, result])

    assert [(loss.kind, loss.path) for loss in hoisted.losses] == [("withheld", "parts[0].state")]
    assert [(loss.kind, loss.path, loss.message_id) for loss in answered.losses] == [
        ("withheld", "parts[0].state", result.id)
    ]
    assert json.loads(answered.body_bytes)["turns"][1]["pieces"] == [{"kind": "text", "text": "x"}]


def test_a_kept_prefix_tells_of_withheld_state_again() -> None:
    first, second, third = (message_by("user", text) for text in ("?", "!", "And?"))
    history = [first, spoken(TEXT), second, *chosen(), spoken(TEXT), third]
    kept = Renderer(INLINE, toy_target(INLINE))
    for end in range(1, len(history) + 1):
        grown = kept.render(history[:end])
        assert grown.losses == kept.new().render(history[:end]).losses

    assert [loss.kind for loss in grown.losses] == ["withheld"] * 3


@pytest.mark.parametrize(("takes", "lost"), [(True, []), (False, [("dropped", "parts[0].url")])])
def test_parameters_of_a_type_are_lost_where_the_wire_takes_none(takes: bool, lost: list[tuple[str, str]]) -> None:
    rule = MediaRule(data="audio/l16", parameters=takes)
    wire = toy("toy.sounds", Tables(media={("user", "audio"): rule}))
    sound = MediaPart(modality="audio", url="data:audio/L16;codec=pcm;rate=24000;base64,AAA=")

    losses = Renderer(wire, toy_target(wire)).render([spoken(sound, origin=None, policy="user")]).losses

    assert [(loss.kind, loss.path) for loss in losses] == lost


def test_strict_refuses_withheld_state_only_where_it_is_named() -> None:
    """Nothing that was said is missing: True stands for dropped and downgraded alone."""
    losses = [Loss(kind="withheld", reason="x")]

    RenderingRefused.check(losses, True, "toy")
    with pytest.raises(RenderingRefused):
        RenderingRefused.check(losses, {"withheld"}, "toy")
