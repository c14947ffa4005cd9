"""Messages of errors: one line each, which steers no terminal, whatever it quotes."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.base.errors import one_line, printable
from sabir.calling.drive import redact
from sabir.errors import CallError, OptionFailed, SabirError

HOSTILE = "no \x1b]0;title\x07 \x00 \u202egnp.exe\u2066 \x9b31m \x7f\r\nmodel"
SHOWN = "no ␛]0;title␇ ␀ �gnp.exe� �31m � model"


def test_a_foreign_text_steers_no_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\n\tc\u202e\u200f") == "a␛[2Jb␇␍\n\tc��"


@given(st.text(st.characters(categories=["Cc", "Cf", "L", "Zs"])))
def test_no_control_and_no_direction_character_gets_through(text: str) -> None:
    shown = printable(text)

    assert not [each for each in shown if unicodedata.category(each) == "Cc" and each not in "\t\n"]
    assert not [each for each in shown if unicodedata.bidirectional(each) in ("LRE", "RLE", "LRO", "RLO", "PDF")]
    assert not [each for each in shown if unicodedata.bidirectional(each) in ("LRI", "RLI", "FSI", "PDI")]
    assert len(shown) == len(text)
    assert printable(shown) == shown


@pytest.mark.parametrize("kind", [SabirError, CallError])
def test_what_a_vendor_says_steers_no_terminal_by_an_error(kind: type[SabirError]) -> None:
    assert str(kind(HOSTILE)) == SHOWN
    assert one_line(HOSTILE) == SHOWN
    assert one_line(OSError(HOSTILE)) == f"OSError: {SHOWN}"
    assert redact(HOSTILE.encode()) == SHOWN.replace(" model", "␍\nmodel")


def test_what_an_error_holds_as_data_stays_as_it_was() -> None:
    assert OptionFailed(HOSTILE, HOSTILE).error_message == HOSTILE
    assert CallError("x", code=HOSTILE).code == HOSTILE


def test_a_long_message_of_a_call_keeps_its_remedy() -> None:
    remedy = "; see the vendor's page on limits and ask for fewer tokens"
    message = str(CallError("x" * 5000 + remedy))

    assert len(message) == 500
    assert message.endswith(remedy)
    assert "…" in message
