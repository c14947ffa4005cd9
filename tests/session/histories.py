"""Conversations as hypothesis draws them: what a session may be given, in any order, and again."""

from typing import Any

import sabir
from hypothesis import strategies as st
from sabir import Message
from sabir_session import InnerMessage, ToolCallRecord

from tests.session.support import minutes, result_message

TEXTS = st.text(max_size=12)
CALL_IDS = st.sampled_from(["x", "y", "z"])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.one_of(
    TEXTS, NUMBERS, st.sampled_from([None, True, [], {}, [[1.5, None]], {"z": {"a": [1e16, 1e-5]}}])
)
STATES = st.dictionaries(TEXTS, JSON_VALUES, min_size=1, max_size=2)
"""What a provider signs or binds to its server: any JSON object."""

PARTS = st.one_of(
    st.builds(sabir.TextPart, text=TEXTS, state=STATES),
    st.builds(sabir.ReasoningPart, text=TEXTS, state=STATES),
    st.builds(sabir.OpaquePart, dialect=st.just("acme.chat"), block=STATES),
)
ORIGINS = st.builds(sabir.Origin, provider=st.just("acme"), dialect=st.just("acme.chat"), model=TEXTS)


def said(parts: list[Any], origin: sabir.Origin | None) -> Message:
    return Message(policy="llm", origin=origin, payload=sabir.PartsPayload(parts=tuple(parts)))


def called(state: object, arguments: dict[str, object], origin: sabir.Origin | None) -> Message:
    payload = sabir.OptionCallPayload(invocation_id="x", option_name="weather", arguments=arguments, state=state)
    return Message(policy="llm", origin=origin, payload=payload)


MESSAGES = st.one_of(
    st.builds(said, st.lists(PARTS, min_size=1, max_size=2), st.none() | ORIGINS),
    st.builds(called, STATES, STATES, st.none() | ORIGINS),
)
"""Core messages with a provider's own data in every place that has room for it."""

CALLS = st.lists(
    st.builds(ToolCallRecord, call_id=CALL_IDS, name=st.just("weather"), arguments=st.just("{}")), max_size=3
).map(tuple)


NO_MESSAGES: st.SearchStrategy[tuple[Message, ...]] = st.just(())


@st.composite
def records(draw: st.DrawFn, messages: st.SearchStrategy[tuple[Message, ...]] = NO_MESSAGES) -> InnerMessage:
    role = draw(st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool", "tool"]))
    fields: dict[str, Any] = {"messages": draw(messages)}
    if role == "assistant":
        fields["tool_calls"] = draw(CALLS)
    if role == "tool":
        fields["tool_call_id"] = draw(CALL_IDS)
        fields["messages"] = (result_message(fields["tool_call_id"], fails=draw(st.booleans())),)
    return InnerMessage(
        role=role,
        content=draw(TEXTS),
        evaluation_id=draw(st.sampled_from(["a", "b", "c"])),
        sequence=draw(st.integers(0, 7)),
        created_at=minutes(draw(st.integers(0, 3))),
        **fields,
    )


def arrivals(size: int = 24) -> st.SearchStrategy[list[InnerMessage]]:
    """Records as they arrive: in any order, some of them again."""
    drawn = st.lists(records(), max_size=size, unique_by=lambda record: (record.evaluation_id, record.sequence))
    return drawn.flatmap(lambda made: st.lists(st.sampled_from(made), max_size=2 * size) if made else st.just([]))


def histories(size: int = 5) -> st.SearchStrategy[list[InnerMessage]]:
    """Records that come once each, with a provider's own data."""
    made = records(st.lists(MESSAGES, max_size=2).map(tuple))
    return st.lists(made, max_size=size, unique_by=lambda record: (record.evaluation_id, record.sequence))
