"""`sabir.dialect(name).render` gives what an adapter of that name sends: quirks and models of its provider included."""

from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir import Message, Option, Settings
from sabir.errors import RenderingRefused, SettingsInvalid

from tests.laws.every import on_every
from tests.laws.histories import ORIGINS, URLS, histories
from tests.laws.targets import wires

PURE = {name: sabir.dialect(name) for name in {wire.name.partition(":")[0] for wire in wires()}}
HOMES = [origin.model_copy(update={"response_id": None}) for origin in ORIGINS if origin]
MODELS = {name: [wire for wire in wires() if wire.name.partition(":")[0] == name] for name in PURE}
AT_HOME = {name: [wire for wire in each if wire.home in HOMES] for name, each in MODELS.items()}
OPTION = Option.from_schema("weather in town", "The sky.", {"type": "object", "properties": {}})
settings = st.builds(
    Settings,
    max_output_tokens=st.sampled_from([None, 7, 1 << 20]),
    temperature=st.sampled_from([None, 0.5]),
    seed=st.sampled_from([None, 3]),
    stop=st.sampled_from([None, "END"]),
    reasoning_effort=st.sampled_from([None, "none", "low", "max"]),
    response_format=st.sampled_from([None, {"type": "object", "properties": {"a": {"type": "string"}}}]),
    media_labels=st.sampled_from([None, True]),
)


def rendered(renders: Any, history: list[Message], **how: Any) -> tuple[Any, ...]:
    try:
        rendering: sabir.Rendering = renders.render(history, **how)
    except (RenderingRefused, SettingsInvalid) as error:
        return type(error), str(error)
    return rendering.body_bytes, rendering.losses, rendering.target, rendering.path, rendering.assumptions


def test_every_provider_and_dialect_takes_part() -> None:
    listed = {name for each in sabir.providers() for name in each.names if "." in name}

    assert listed == set(PURE)
    assert any(sabir.adapter(f"{name}:m").new_renderer().scope.quirks for name in PURE)


@given(history=histories, settings=settings, options=st.sampled_from([(), (OPTION,)]), at=st.integers(0, 99))
@on_every(PURE)
def test_a_dialect_renders_what_its_adapter_sends(
    name: str, history: list[Message], settings: Settings, options: tuple[Option, ...], at: int
) -> None:
    """For one of its models, and those that spoke in the histories: bytes, losses, and what is assumed of a model."""
    how: dict[str, Any] = {"settings": settings, "options": options}
    for wire in {MODELS[name][at % len(MODELS[name])], *AT_HOME[name]}:
        sent = rendered(wire.adapter, history, **how)
        assert rendered(PURE[name], history, model=wire.name.partition(":")[2], **how) == sent


@pytest.mark.parametrize("name", PURE)
def test_a_dialect_knows_every_model_of_its_adapter(name: str) -> None:
    media = [make(url) for make, url in zip((sabir.image, sabir.image, sabir.audio), URLS, strict=False)]
    asked = [sabir.user("Hi.", *media), sabir.system("Be brief.")]
    how: dict[str, Any] = {"settings": Settings(temperature=0.5, reasoning_effort="low", max_output_tokens=7)}
    for wire in MODELS[name]:
        sent = rendered(wire.adapter, asked, **how)
        assert rendered(PURE[name], asked, model=wire.name.partition(":")[2], **how) == sent, wire.name
