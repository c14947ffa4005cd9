"""The hand-over matrix: what each dialect makes of each feature of a conversation, found by rendering it.

    feature ──conversation──▶ every dialect ──▶ native, or the kind of loss and a note with its reason

Rendered for the model that tests/laws/replies.py names for each dialect, as its own provider.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sabir
from sabir.base.failures import Loss
from sabir.discovery import default_registry
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.models import find_model
from sabir.vocabulary.parts import Citation, KnownPart, MediaPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Settings

from tests.laws.replies import BODIES, ELSEWHERE, MODELS, PICTURE, decoded, said, target_of

FOREIGN = Origin(provider="acme", dialect="acme.wire", endpoint="https://acme.example", model="m")
PDF = "data:application/pdf;base64,JVBERi0xLjQK"
WAV = "data:audio/wav;base64,UklGRiQAAABXQVZF"
MP4 = "data:video/mp4;base64,AAAAGGZ0eXBtcDQy"
Conversation = Sequence[Message]
Feature = Callable[[str], Conversation]
"""A dialect's name → a conversation that has the feature as that dialect meets it."""
BOUNDED = Settings(max_output_tokens=1000)
"""The matrix is of messages: a wire that wants a maximum has one."""


def _media(modality: Any, url: str) -> Feature:
    def make(dialect: str) -> Conversation:
        provider = dialect.partition(".")[0]
        part = MediaPart(modality=modality, url=url.replace("{provider}", provider))
        return [Message(policy="user", payload=PartsPayload(parts=(TextPart(text="?"), part)))]

    return make


def _foreign(*parts: KnownPart) -> Feature:
    message = Message(policy="llm", origin=FOREIGN, payload=PartsPayload(parts=(*parts, TextPart(text="So."))))
    return lambda dialect: [said("user", "?"), message, said("user", "!")]


def _call(invocation_id: str = "call_1", name: str = "weather", **fields: Any) -> Message:
    payload = OptionCallPayload(invocation_id=invocation_id, option_name=name, **fields)
    return Message(policy="llm", origin=FOREIGN, payload=payload)


def _result(invocation_id: str = "call_1", name: str = "weather", **fields: Any) -> Message:
    payload = OptionResultPayload(invocation_id=invocation_id, option_name=name, **fields)
    return Message(policy=name, payload=payload)


def _answered(call: Message, **fields: Any) -> Feature:
    chosen = call.call
    assert chosen is not None
    return lambda dialect: [said("user", "?"), call, _result(chosen.invocation_id, chosen.option_name, **fields)]


def _own(kind: str, *, endpoint: str | None = None, abroad: bool = False) -> Feature:
    """The first answer of a dialect that holds a part of that kind: its own, or another's."""

    def make(dialect: str) -> Conversation:
        others = [each for each in BODIES if each.partition(".")[0] != dialect.partition(".")[0]]
        for maker in others if abroad else [dialect]:
            for reply in decoded(maker, endpoint):
                if any(_has(part, kind) for message in reply for part in message.parts):
                    calls = [each.call for each in reply if each.call]
                    results = [_result(call.invocation_id, call.option_name, result="x") for call in calls]
                    return [said("user", "?"), *reply, *results, *([] if results else [said("user", "!")])]
        return []

    return make


def _has(part: Any, kind: str) -> bool:
    return bool(part.kind == "text" and part.citations) if kind == "citations" else bool(part.kind == kind)


def _plain(*speakers: str) -> Feature:
    return lambda dialect: [said(policy, f"{policy} {number}") for number, policy in enumerate(speakers)]


FEATURES: Mapping[str, Mapping[str, Feature]] = {
    "Roles": {
        "system message at the start": _plain("system", "user"),
        "system message between user and assistant": _plain("user", "system", "llm", "user"),
        "system message after the assistant": _plain("user", "llm", "system", "user"),
        "conversation that begins with the assistant": _plain("llm", "user"),
        "conversation that ends with the assistant": _plain("user", "llm"),
        "nothing but system messages": _plain("system"),
    },
    "A user's media": {
        "image by URL": _media("image", "https://example.org/a.png"),
        "image as bytes": _media("image", f"data:image/png;base64,{PICTURE}"),
        "image as the provider's file": _media("image", "provider-file:{provider}/file-1"),
        "sound as bytes": _media("audio", WAV),
        "sound by URL": _media("audio", "https://example.org/a.wav"),
        "video as bytes": _media("video", MP4),
        "PDF as bytes": _media("document", PDF),
        "PDF by URL": _media("document", "https://example.org/a.pdf"),
        "text file as bytes": _media("document", "data:text/plain;base64,aGk="),
        "file of another provider": _media("document", "provider-file:acme/file-1"),
    },
    "Calls and results": {
        "call and result": _answered(_call(), result={"celsius": 18}),
        "error result": _answered(_call(), is_error=True, error_type="Boom", error_message="no"),
        "image in a result": _answered(
            _call(), parts=(TextPart(text="x"), MediaPart(modality="image", url=f"data:image/png;base64,{PICTURE}"))
        ),
        "PDF in a result": _answered(_call(), parts=(TextPart(text="x"), MediaPart(modality="document", url=PDF))),
        "id of other characters": _answered(_call("call|1/ü"), result=1),
        "id of 200 characters": _answered(_call("c" * 200), result=1),
        "option name with a space": _answered(_call(name="the weather"), result=1),
        "arguments that are no JSON": _answered(
            _call(arguments={}, raw_arguments="{]", invalid_arguments=True), result=1
        ),
        "call without a result": lambda dialect: [said("user", "?"), _call(), said("user", "!")],
        "result without a call": lambda dialect: [said("user", "?"), _result(result=1)],
        "result after a later turn": lambda dialect: [said("user", "?"), _call(), said("user", "!"), _result(result=1)],
        "result apart from its call": lambda dialect: [
            said("user", "?"), _call(), said("llm", "wait"), _result(result=1)
        ],
    },
    "What a model made": {
        "its own reasoning": _own("reasoning"),
        "another provider's reasoning": _own("reasoning", abroad=True),
        "its own calls and blocks": _own("opaque"),
        "the same from another endpoint": _own("opaque", endpoint=ELSEWHERE),
        "another provider's calls and blocks": _own("opaque", abroad=True),
        "its own citations": _own("citations"),
        "another provider's citations": _foreign(
            TextPart(text="Found. ", citations=(Citation(kind="url", url="https://example.org"),))
        ),
        "state beside another provider's text": _foreign(TextPart(text="Found. ", state={"id": "item_1"})),
        "state beside another provider's call": _answered(_call(state={"signature": "c2ln"}), result=1),
        "refusal": _foreign(RefusalPart(text="No.")),
        "another provider's image": _foreign(MediaPart(modality="image", url=f"data:image/png;base64,{PICTURE}")),
    },
}  # fmt: skip


def matrix() -> str:
    """A table for each group of features, then the reasons that the numbers stand for."""
    notes: dict[str, int] = {}
    lines: list[str] = []
    for group, features in FEATURES.items():
        head = f"| {group} | {' | '.join(f'`{name}`' for name in BODIES)} |"
        lines += [head, "|---|" + "---|" * len(BODIES)]
        for label, feature in features.items():
            cells = (_cell(name, feature, notes) for name in BODIES)
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, *(f"{number}. {reason}" for reason, number in notes.items())])


def losses_of(dialect: str, feature: Feature) -> Sequence[Loss] | None:
    """What a dialect loses of a feature; None where it has no such thing."""
    history = feature(dialect)
    if not history:
        return None
    target = target_of(dialect)
    info = find_model(default_registry.models(target.provider), MODELS[dialect])
    try:
        return (
            Renderer(sabir.dialect(dialect).dialect, target, model_info=info).render(history, settings=BOUNDED).losses
        )
    except RenderingRefused as refused:
        return refused.losses


def _cell(dialect: str, feature: Feature, notes: dict[str, int]) -> str:
    losses = losses_of(dialect, feature)
    if losses is None:
        return "–"
    found = dict.fromkeys((loss.kind, notes.setdefault(_words(loss, dialect), len(notes) + 1)) for loss in losses)
    return ", ".join(f"{kind} ({number})" for kind, number in found) or "native"


def _words(loss: Loss, dialect: str) -> str:
    """The reason without what is the same in every row: who takes it."""
    names = "|".join(map(re.escape, (dialect, f"{dialect.partition('.')[0]}:{MODELS[dialect]}", MODELS[dialect])))
    return re.sub(r"c{20,}", "cc…", re.sub(names, "…", loss.reason))
