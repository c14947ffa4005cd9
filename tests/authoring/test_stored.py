"""Any bytes become JSON of a known shape, or one of the library's errors (law 10)."""

import pytest
from sabir.authoring.stored import first_whole_number, read_count, unknown_fields
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid
from sabir.vocabulary.settings import Target

SCOPE = DecodeScope(Target(provider="acme", dialect="acme.wire", model="m"))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"null", b"{", b"\xff"])
def test_what_is_no_object_is_an_invalid_response(body: bytes) -> None:
    with pytest.raises(ResponseInvalid, match=r"acme:m answered .*check the endpoint"):
        SCOPE.read_object(body)


@pytest.mark.parametrize("body", [b'{"a\\ud800": ["\\udfff"]}', '{"a\\uD800": ["\\uDFFF"]}'])
def test_half_characters_become_the_sign_for_them(body: bytes | str) -> None:
    assert SCOPE.read_object(body) == {"a\ufffd": ["\ufffd"]}


def test_a_count_is_a_whole_number() -> None:
    """Truth is none, and nought is one; some vendors declare figures as numbers, and write 70.0."""
    assert first_whole_number(None, True, "3", 1.5, 0, 4) == 0
    assert first_whole_number(None, False, float("inf"), float("nan")) is None
    assert repr(first_whole_number(70.0)) == "70"


@pytest.mark.parametrize("body", [b"", b"[7]", b"{", b'{"tokens": "7"}', b'{"others": 7}'])
def test_an_answer_without_a_count_is_an_invalid_response(body: bytes) -> None:
    assert read_count(b'{"tokens": 7}', "tokens", "acme.wire") == 7
    with pytest.raises(ResponseInvalid, match=r"^acme\.wire answered a count with .*; expected the field 'tokens'$"):
        read_count(body, "tokens", "acme.wire")


def test_what_is_left_over_says_something() -> None:
    assert unknown_fields({"a": 1, "b": None, "c": ""}, {"a"}) == {"c": ""}
