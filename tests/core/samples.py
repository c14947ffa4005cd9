"""Messages of every kind: as strategies, and one of each by hand; and whether a model is what its constructor makes."""

from collections.abc import Iterator
from typing import Any, get_args

from hypothesis import strategies as st
from sabir.base.models import Frozen
from sabir.vocabulary.media import Modality
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir_testing.histories.samples import message_by, result_message

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
optional_texts = st.none() | texts
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
states = st.none() | json_objects

citations = st.builds(
    Citation, kind=names, url=optional_texts, title=optional_texts, start=st.none() | st.integers(), source=states
)
text_parts = st.builds(TextPart, text=texts, state=states, citations=st.lists(citations, max_size=2).map(tuple))
urls = st.sampled_from(["https://example.org/a?b#c", "data:image/png;base64,AAAA", "provider-file:acme/file-1"])
media_parts = st.builds(
    MediaPart,
    modality=st.sampled_from(get_args(Modality)),
    url=urls,
    mime=optional_texts,
    prompt_hint=optional_texts,
    id=optional_texts,
    name=optional_texts,
    state=states,
    vendor=st.none() | st.dictionaries(names, json_objects, max_size=2),
)
opaque_parts = st.builds(OpaquePart, dialect=names, block=json_values) | st.builds(
    OpaquePart, dialect=names, block=json_values, pair_id=names, pair=st.sampled_from(["opens", "closes"])
)
parts = (
    text_parts
    | media_parts
    | opaque_parts
    | st.builds(ReasoningPart, text=texts, state=states)
    | st.builds(RefusalPart, text=texts, state=states)
)
several_parts = st.lists(parts, min_size=1, max_size=4).map(tuple)

calls = st.builds(
    OptionCallPayload,
    invocation_id=names,
    option_name=names,
    arguments=json_objects,
    raw_arguments=optional_texts,
    invalid_arguments=st.booleans(),
    state=states,
)
successes = st.builds(OptionResultPayload, invocation_id=names, option_name=names, result=json_values) | st.builds(
    OptionResultPayload, invocation_id=names, option_name=names, parts=several_parts
)
failures = st.builds(
    OptionResultPayload,
    invocation_id=names,
    option_name=names,
    is_error=st.just(True),
    error_type=names,
    error_message=texts,
    retryable=st.none() | st.booleans(),
)
origins = st.builds(Origin, provider=names, dialect=names, endpoint=texts, model=texts, response_id=st.none() | texts)
messages = st.builds(
    Message,
    policy=names,
    role_hint_for_llm=st.sampled_from([None, "user", "assistant", "tool", "system"]),
    step_num=st.none() | st.integers(min_value=0),
    origin=st.none() | origins,
    payload=st.builds(PartsPayload, parts=several_parts) | calls | successes | failures,
)

EVERY_PART: tuple[Any, ...] = (
    TextPart(text="a", state={"k": [1]}, citations=(Citation(kind="url_citation", source={"url": "u", "at": [1, 2]}),)),
    MediaPart(modality="image", url="https://example.org", state={"k": 1}, vendor={"acme": {"detail": [1]}}),
    ReasoningPart(text="hm", state={"signature": "s"}),
    RefusalPart(text="no", state={"k": 1}),
    OpaquePart(dialect="acme.wire", block={"type": "search", "items": [{"a": 1}]}, pair_id="1", pair="opens"),
)
ORIGIN = Origin(provider="acme", dialect="acme.wire", endpoint="https://example.org", model="large", response_id="r")
EVERY_KIND: tuple[Message, ...] = (
    message_by("user", *EVERY_PART).model_copy(update={"origin": ORIGIN}),
    Message(
        policy="llm",
        payload=OptionCallPayload(invocation_id="1", option_name="f", arguments={"a": [1, {"b": 2}]}, state={"s": [1]}),
    ),
    result_message("1", {"a": [1]}, "f"),
    result_message("1", name="f", parts=EVERY_PART),
    result_message("1", name="f", is_error=True, error_type="e", error_message="m", retryable=True),
)


def models_of(value: object) -> Iterator[Frozen]:
    if isinstance(value, Frozen):
        yield value
        for name in type(value).model_fields:
            yield from models_of(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from models_of(each)


def check_constructed(value: object) -> None:
    """Every model in it has the values, their types and order, and the marks that its constructor gives it."""
    for model in models_of(value):
        kind = type(model)
        given = {kind.model_fields[name].alias or name: getattr(model, name) for name in model.model_fields_set}
        made = kind(**given)

        assert _held(model) == _held(made)
        assert model == made
        assert hash(model) == hash(made)
        assert model.model_dump_json() == made.model_dump_json()


def _held(model: Frozen) -> tuple[Any, ...]:
    fields = type(model).model_fields
    values = [(name, type(value), value) for name, value in vars(model).items() if name in fields]
    return values, model.model_fields_set, model.__pydantic_extra__, model.__pydantic_private__
