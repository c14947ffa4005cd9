"""A key that was sent is known: it goes in each of its spellings, and nothing goes that only holds its letters."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from sabir_testing.reading.documents import documents
from sabir_testing.scrubbing import PLACEHOLDER

from tests.testing.planted import (
    EVENTS,
    LONG,
    recorded_answer,
    sse,
)

UUID = "3f2c8a1e-9b7d-4c56-8e10-7a5b9d3f6c21"
SHORT, NUMBER = "k9", "83412"


ECHOED = {
    "a short one in a text": (SHORT, f"the key {SHORT} is wrong", f"the key {PLACEHOLDER} is wrong"),
    "a short one, and longer words": (SHORT, f"{SHORT}, not ok9 or {SHORT}x", f"{PLACEHOLDER}, not ok9 or {SHORT}x"),
    "a number in a text": (NUMBER, f"no key {NUMBER}.", f"no key {PLACEHOLDER}."),
    "a number as one": (NUMBER, 83412, PLACEHOLDER),
    "a number in others": (NUMBER, [834123, -834120, 1.83412], [834123, -834120, 1.83412]),
    "a UUID": (UUID, f"<{UUID}>", f"<{PLACEHOLDER}>"),
    "a UUID in capitals": (UUID, f"<{UUID.upper()}>", f"<{PLACEHOLDER}>"),
    "a UUID without dashes": (UUID, f"<{UUID.replace('-', '')}>", f"<{PLACEHOLDER}>"),
    "in percents": ("plum/orchard+1", "key=plum%2Forchard%2B1", f"key={PLACEHOLDER}"),
    "escaped": ("plum/orchard+1", r"plum\/orchard+1", PLACEHOLDER),
    "a name": (SHORT, {SHORT: 1}, {PLACEHOLDER: 1}),
}


@pytest.mark.parametrize(("key", "said", "kept"), ECHOED.values(), ids=ECHOED)
@pytest.mark.parametrize("carried", ["header", "bearer", "query"])
def test_a_key_that_was_sent_goes_however_short_and_however_spelled(
    tmp_path: Path, key: str, said: object, kept: object, carried: str
) -> None:
    """CD-11: it is known; whatever else holds the same letters by chance stays."""
    headers = {"header": {"x-api-key": key}, "bearer": {"authorization": f"Bearer {key}"}, "query": {}}[carried]
    target = f"/v1?key={quote(key, safe='')}" if carried == "query" else "/v1"
    answer = json.dumps({"error": said, "at": 7}).encode()

    body = recorded_answer(tmp_path / "text.yaml", key, answer, headers=headers, target=target)

    assert json.loads(body) == {"error": kept, "at": 7}


@pytest.mark.parametrize("before", ["", "x", "xy", "for olive: "])
@pytest.mark.parametrize("key", [LONG, UUID, SHORT, NUMBER])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode], ids=["base64", "url-safe"])
def test_a_key_goes_from_base64_wherever_it_begins_there(
    tmp_path: Path, before: str, key: str, encode: Callable[[bytes], bytes]
) -> None:
    """CD-11: base64 writes the same text in three ways; what is left is base64 of the rest."""
    is_apart = before[-1:] == " " or not before or len(key) >= 8
    held = (before if is_apart else before + " ") + key + "?~ÿ"
    said = encode(held.encode()).decode()

    body = recorded_answer(tmp_path / "text.yaml", key, json.dumps({"debug": f"sent {said} there"}).encode())

    _, kept, _ = json.loads(body)["debug"].split(" ")
    assert base64.urlsafe_b64decode(kept.translate(str.maketrans("+/", "-_"))).decode() == held.replace(
        key, PLACEHOLDER
    )


def test_a_number_goes_from_a_stream_that_splits_it(tmp_path: Path) -> None:
    answer = sse({"t": "no 83"}, {"t": "412 here"}, {"t": " 83"}, {"t": "4120"})
    body = recorded_answer(tmp_path / "text.yaml", NUMBER, answer, kind=EVENTS).decode()

    assert [each.value["t"] for each in documents(body)] == [f"no {PLACEHOLDER}", " here", " 83", "4120"]


def test_a_count_is_no_key(tmp_path: Path) -> None:
    """A number of three digits stands everywhere."""
    body = recorded_answer(tmp_path / "text.yaml", "100", b'{"limit":100,"text":"100 owls"}')

    assert body == b'{"limit":100,"text":"100 owls"}'
