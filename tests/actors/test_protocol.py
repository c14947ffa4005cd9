"""Requests, responses and errors: what they hold, what answers them, what is refused, and how they travel."""

import pickle
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sabir_actors import (
    TYPES,
    Actor,
    ActorError,
    ActorSystem,
    ErrorCode,
    ErrorResponse,
    Message,
    Response,
    deserialize_message,
    serialize_message,
    validate_message,
)
from sabir_actors.protocol import LARGEST, AnyMessage, raise_for_error

from tests.actors.examples import MESSAGES, PAIRS, REQUESTS

NAMES = st.text(min_size=1, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=5)
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.timezones())
ENVELOPE: dict[str, Any] = {
    "id": NAMES,
    "data": OBJECTS,
    "sender": st.none() | st.text(),
    "receiver": st.none() | st.text(),
    "timestamp": TIMES,
    "correlation_id": st.none() | st.text(),
}
REQUEST = st.builds(Message, type=st.sampled_from(sorted(TYPES)) | NAMES, **ENVELOPE)
ANSWER = st.builds(Response, type=NAMES.filter(lambda name: name != "ERROR"), message_id=st.none() | NAMES, **ENVELOPE)
FAILURE = st.builds(
    ErrorResponse,
    error_message=st.text(),
    error_code=st.none() | st.sampled_from(list(map(str, ErrorCode))),
    message_id=st.none() | NAMES,
    **ENVELOPE | {"data": OBJECTS.filter(lambda data: "error_code" not in data)},
)
ANY = REQUEST | ANSWER | FAILURE


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ActorError) as caught:
        act()
    assert caught.value.code is ErrorCode.INVALID_MESSAGE
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()
    return str(caught.value)


# What a message is


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.type)
def test_the_documents_examples_are_valid_and_travel(message: AnyMessage) -> None:  # CH-01, CH-04, CH-06, CH-08, CH-09
    assert validate_message(message) is True
    for back in (deserialize_message(serialize_message(message)), pickle.loads(pickle.dumps(message))):
        assert (type(back), back) == (type(message), message)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Response(type="ERROR", data={"error_message": "no"}),
        lambda: Response(type="X", envelope="error"),
        lambda: ErrorResponse.model_validate({"data": {"error_code": "X"}}),
        lambda: ErrorResponse(error_message="no", data=[("thread_id", "t")]),  # type: ignore[arg-type]
        lambda: ErrorResponse(error_message="no", type="X"),
        lambda: Message(type=""),
        lambda: Message(type="X", datum={}),  # type: ignore[call-arg]
        lambda: Message(type="X", data=[]),  # type: ignore[arg-type]
        lambda: Message(type="X", data={"x": float("nan")}),
        lambda: Message(type="X", data={"x": object()}),
        lambda: Message(type="X", sender="\ud800"),
    ],
)
def test_what_is_no_message_cannot_be_made(make: Callable[[], object]) -> None:  # CH-01, CH-06
    with pytest.raises(ValidationError):
        make()


# What cannot change


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "type", "STOP"),
        lambda message: message.data.__setitem__("user_id", "other"),
        lambda message: message.data.clear(),
        lambda message: message.data["metadata"].update(source="other"),
        lambda message: message.data["tags"].append("c"),
        lambda message: message.data["tags"][1].pop("b"),
    ],
)
def test_nothing_of_a_message_can_be_changed(change: Callable[[Message], object]) -> None:
    """Law 11: an answer that is kept is the same each time that it is given."""
    message = Message(type="X", data={"user_id": "u", "metadata": {"source": "web"}, "tags": ["a", {"b": 1}]})
    before = serialize_message(message)

    with pytest.raises((TypeError, ValidationError)):
        change(message)
    assert serialize_message(message) == before


# What answers it


def test_every_request_names_the_type_that_answers_it() -> None:  # CH-03, CH-03a, CH-03e, D-20
    """The document's pairs, and the result that ends a thread, are all types that there are."""
    assert {request.type for request in REQUESTS} | {"THREAD_RESULT"} == set(TYPES)
    for request, response in PAIRS:
        assert request.get_response_type() == TYPES[request.type].response == response.type


# What is valid


@pytest.mark.parametrize("message_type", ["PROCESS_PHASE", "INITIALIZE_PHASE", "PREPARE_CONTEXT"])
def test_a_phase_outside_of_the_six_is_named(message_type: str) -> None:  # CH-11
    with pytest.raises(ValueError, match=r"^Invalid phase_type: dream; .* accepts action, experience, intention,"):
        validate_message(Message(type=message_type, data={"phase_type": "dream"}))


def test_a_chain_of_ones_own_has_its_own_phases() -> None:  # CH-11
    for kind, more in ((Message, {"input": "Hi"}), (Response, {"output": {"response": "Hi"}, "processing_time": 0})):
        name = "PROCESS_PHASE" if kind is Message else "PHASE_PROCESSED"
        said = {"thread_id": "t", "phase_type": "draft", **more}
        assert validate_message(kind(type=name, data=said), ("draft", "final")) is True
        with pytest.raises(ActorError, match=f"Invalid phase_type: action; {name} accepts draft, final"):
            validate_message(kind(type=name, data={**said, "phase_type": "action"}), ("draft", "final"))


class Listener(Actor):
    def __init__(self, system: ActorSystem) -> None:
        super().__init__("listener", system)
        self.handled: list[str] = []
        for name in TYPES:
            setattr(self, f"on_{name.lower()}", self._handled)

    async def _handled(self, message: Message) -> dict[str, Any]:
        self.handled.append(message.type)
        return {}


@pytest.mark.parametrize("message_type", [name for name in TYPES if name != "HEARTBEAT"])
async def test_an_actor_handles_nothing_that_is_not_valid(message_type: str) -> None:  # CH-13
    system = ActorSystem()
    listener = Listener(system)
    system.add(listener)
    message = Message(type=message_type, receiver="listener", data={"unheard": 1})

    for response in (await listener.receive(message), await system.send_message(message)):
        assert isinstance(response, ErrorResponse)
        assert response.error_code == "INVALID_MESSAGE"
        assert message_type in response.error_message
    assert listener.handled == []


# How it travels


@given(ANY)
def test_every_message_comes_back_as_it_was(message: AnyMessage) -> None:  # CH-02, CH-07, D-22
    text = serialize_message(message)

    for back in (deserialize_message(text), deserialize_message(text.encode())):
        assert (type(back), back) == (type(message), message)
        assert back.timestamp.utcoffset() == timedelta(0)
    assert serialize_message(deserialize_message(text)) == text


EDITS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from(["cut", "put", "double", "end"]), st.binary(max_size=3)),
    min_size=1,
    max_size=4,
)


@given(ANY | st.sampled_from(MESSAGES), EDITS)
def test_a_damaged_text_is_a_message_or_refused(message: AnyMessage, edits: list[tuple[int, str, bytes]]) -> None:
    text = serialize_message(message).encode()
    for place, what, put in edits:
        at = place % (len(text) + 1)
        kept = {"cut": text[at + 1 :], "put": put + text[at:], "double": text[max(at - 9, 0) :], "end": put}[what]
        text = text[:at] + kept
    try:
        found = deserialize_message(text)
    except ActorError as error:
        assert error.code is ErrorCode.INVALID_MESSAGE
        assert str(error).isprintable()
        assert len(str(error)) <= 500
    else:
        assert deserialize_message(serialize_message(found)) == found


NESTED = "[" * 99_999 + "]" * 99_999
MALFORMED = {
    "": "line 1 column 1",
    "[]": "type list, not an object",
    "7": "type int, not an object",
    '{"type": "X"': "delimiter",
    '{"type": "X"} {}': "Extra data",
    '{"type": "X", "type": "Y"}': "'type' 2 times",
    '{"type": "X", "data": {"a": {"b": 1, "b": 2}}}': "'b' 2 times",
    '{"type": "X", "data": {"a": NaN}}': "data: Value error, {'a': nan} is not a JSON value: numbers must be finite",
    '{"type": "X", "data": {"a": 1e999}}': "numbers must be finite",
    '{"type": "X", "data": {"a": "\\ud800"}}': "lone surrogate U+D800",
    '{"type": "X", "sender": "\\ud800"}': "sender",
    '{"type": "X", "data": 3}': "data: Value error, expected a JSON object, got a value of type int",
    '{"type": "X", "data": null}': "type NoneType",
    '{"type": "X", "data": {"a": ' + "[" * 200 + "]" * 200 + "}}": "nested deeper than 100 levels",
    NESTED: "recursion",
    '{"type": "X", "envelope": ' + "[" * 500 + "]" * 500 + "}": "envelope is a value of type list",
    '{"type": "X", "envelope": "letter"}': "envelope is 'letter'; expected one of request, response, error",
    '{"type": "X", "envelope": null}': "envelope is a value of type NoneType",
    '{"type": "X", "envelope": "request", "message_id": "1"}': "message_id",
    '{"type": "X", "envelope": "error", "data": {"error_message": "no"}}': "type: Input should be 'ERROR'",
    '{"type": "ERROR", "envelope": "response", "data": {"error_message": "no"}}': "ErrorResponse",
    '{"type": "ERROR", "message_id": "1"}': "error_message: Field required",
    '{"type": "ERROR", "message_id": "1", "error_message": "no", "data": 5}': "data",
    '{"data": {}}': "type: Field required",
    '{"type": "X", "id": ""}': "id",
    '{"type": "X", "id": 5}': "id",
    '{"type": "X", "priority": 1}': "priority",
    '{"type": "X", "timestamp": "2026-01-01T00:00:00"}': "timestamp",
    '{"type": "X", "timestamp": "9999-12-31T23:59:59-01:00"}': "timestamp",
    '{"type": "X", "timestamp": Infinity}': "timestamp",
    '{"type": "X", "id": ' + "9" * 5000 + "}": "5000 digits",
    '{"\\u001b[31m\\n": 1, "type": "X"}': "[31m",
}
"""Text → what its refusal names."""


@pytest.mark.parametrize(("text", "offender"), MALFORMED.items(), ids=lambda text: text[:40])
def test_a_text_that_is_no_message_is_refused_by_what_is_wrong_with_it(text: str, offender: str) -> None:  # CH-07
    for given_ in (text, text.encode()):
        assert offender in refusal(lambda given_=given_: deserialize_message(given_))  # type: ignore[misc]


def test_what_is_too_large_is_neither_written_nor_read() -> None:  # CH-07
    most = Message(type="X", data={"text": ""})
    room = LARGEST - len(serialize_message(most))
    whole, over = (most.model_copy(update={"data": {"text": "x" * size}}) for size in (room, room + 1))

    assert deserialize_message(serialize_message(whole)) == whole
    assert str(LARGEST + 1) in refusal(lambda: serialize_message(over))
    assert str(LARGEST + 1) in refusal(lambda: deserialize_message(over.model_dump_json()))


class Unspeakable:
    def __str__(self) -> str:
        return "a lock\nof \x1b[31m some kind"


@pytest.mark.parametrize("detail", [Unspeakable(), float("nan"), "\ud800", [[Unspeakable()]]])
def test_an_error_reaches_its_sender_whatever_its_details_are(detail: object) -> None:  # CH-06
    error = Message(type="X").error(ActorError(ErrorCode.FAILED, f"no {detail}", cause=detail, left=[1]))
    back = deserialize_message(serialize_message(error))

    assert isinstance(back, ErrorResponse)
    assert back.data["left"] == [1]
    assert isinstance(back.data["cause"], str) and back.data["cause"].isprintable()


def test_an_error_is_raised_as_what_it_tells_of() -> None:  # CH-06
    told = {"message": "m", "code": 7, "self": "s", "retryable": True}
    fine = Response(type="THREAD_STARTED")
    assert raise_for_error(fine) is fine
    for told_code, code in (("TIMEOUT", ErrorCode.TIMEOUT), ("TEAPOT", ErrorCode.FAILED)):
        with pytest.raises(ActorError, match=r"^no$") as caught:
            raise_for_error(ErrorResponse(error_message="no", error_code=told_code, data=told))
        assert caught.value.details == {"message": "m", "code": 7, "self": "s"}
        assert (caught.value.code, caught.value.retryable) == (code, True)
        assert Message(type="X").error(caught.value).data == {"error_message": "no", "error_code": code, **told}


def test_an_error_crosses_processes() -> None:
    back = pickle.loads(pickle.dumps(ActorError(ErrorCode.TIMEOUT, "late", retryable=True, seconds=3)))

    assert (type(back), str(back), vars(back)) == (
        ActorError,
        "late",
        {"code": ErrorCode.TIMEOUT, "retryable": True, "details": {"seconds": 3}},
    )
