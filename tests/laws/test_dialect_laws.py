"""Every installed dialect with a model of its own, for laws over several of them; and what a vendor once refused."""

from collections.abc import Sequence
from functools import cache

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin, PartsPayload
from sabir.vocabulary.parts import OpaquePart, Part, ReasoningPart, TextPart

from tests.laws.oracle import check_request, validators
from tests.laws.rules import check_pairing

MODELS = {
    "openai.chat": "gpt-5",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-4-5",
    "google.generate_content": "gemini-3-flash-preview",
    "echo.plain": "small",
}
DIALECTS = tuple(MODELS)
dialects = pytest.mark.parametrize("name", DIALECTS)


@cache
def pure(name: str) -> sabir.PureDialect:
    return sabir.dialect(name)


def renderer(name: str) -> Renderer:
    target = pure(name).target.model_copy(update={"model": MODELS[name]})
    return Renderer(pure(name).dialect, target)


def render(name: str, history: Sequence[Message], kept: Renderer | None = None) -> Rendering | None:
    try:
        return (kept or renderer(name)).render(history)
    except RenderingRefused:
        return None


CLAUDE = Origin(
    provider="anthropic", dialect="anthropic.messages", endpoint="https://api.anthropic.com", model="claude-sonnet-4-5"
)
SEARCH = {"type": "server_tool_use", "id": "p1", "name": "web_search", "input": {}}
ENDS_IN_WHITE = (TextPart(text="a "), ReasoningPart(state={"type": "reasoning", "id": "rs_1"}), TextPart(text=""))
OF_THE_USER = (OpaquePart(dialect="anthropic.messages", block=SEARCH, pair_id="p1", pair="opens"),)


@dialects
@pytest.mark.parametrize("said", [("llm", CLAUDE, ENDS_IN_WHITE), ("user", None, OF_THE_USER)], ids=["white", "half"])
def test_what_was_once_refused_renders_to_what_the_vendor_accepts(
    name: str, said: tuple[str, Origin | None, tuple[Part, ...]]
) -> None:
    """Law 1, and the strict oracle of the SDK's own types; histories at random are the kit's (tests/conformance)."""
    policy, origin, parts = said
    rendering = render(name, [Message(policy=policy, origin=origin, payload=PartsPayload(parts=parts))])
    if rendering is None:
        return
    check_pairing(name, rendering.body_bytes)
    if name in validators():
        check_request(name, rendering.body_bytes)
