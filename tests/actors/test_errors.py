"""The package's error, and the codes that say who can mend what."""

import pickle

import pytest
from sabir_actors import ActorError, ErrorCode, ErrorResponse, Message, Response, deserialize_message, serialize_message
from sabir_actors.protocol import raised


class Unspeakable:
    """What JSON cannot hold."""

    def __str__(self) -> str:
        return "a lock\nof \x1b[31m some kind"


@pytest.mark.parametrize("detail", [Unspeakable(), float("nan"), "\ud800", [[Unspeakable()]]])
def test_an_error_reaches_its_sender_whatever_its_details_are(detail: object) -> None:
    """CH-06: what JSON cannot hold is said in words, in one line."""
    error = Message(type="X").error(ActorError(ErrorCode.FAILED, f"no {detail}", cause=detail, left=[1]))
    back = deserialize_message(serialize_message(error))

    assert isinstance(back, ErrorResponse)
    assert back.data["left"] == [1]
    assert isinstance(back.data["cause"], str) and back.data["cause"].isprintable()


def test_an_error_is_raised_as_what_it_tells_of() -> None:
    """CH-06: with details of any name; a code of another system is a failure, and what is no error is given back."""
    told = {"message": "m", "code": 7, "self": "s", "retryable": True}
    fine = Response(type="THREAD_STARTED")
    assert raised(fine) is fine
    for given, code in (("TIMEOUT", ErrorCode.TIMEOUT), ("TEAPOT", ErrorCode.FAILED)):
        with pytest.raises(ActorError, match=r"^no$") as caught:
            raised(ErrorResponse(error_message="no", error_code=given, data=told))
        assert caught.value.details == {"message": "m", "code": 7, "self": "s"}
        assert (caught.value.code, caught.value.retryable) == (code, True)
        assert Message(type="X").error(caught.value).data == {"error_message": "no", "error_code": code, **told}


def test_an_error_crosses_processes() -> None:
    """With all that it holds."""
    back = pickle.loads(pickle.dumps(ActorError(ErrorCode.TIMEOUT, "late", retryable=True, seconds=3)))

    assert (type(back), str(back), vars(back)) == (
        ActorError,
        "late",
        {"code": ErrorCode.TIMEOUT, "retryable": True, "details": {"seconds": 3}},
    )
