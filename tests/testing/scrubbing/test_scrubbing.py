"""Secrets are planted in each place of a real exchange, seen to have been there, and seen to be gone from the file."""

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import brotli
import pytest
import requests
import yaml
import zstandard
from sabir_testing.cassettes import CassetteFailed, Scrubbing, exchanges, recording, replaying
from sabir_testing.loopback import Server, whole
from sabir_testing.reading import documents
from sabir_testing.scrubbing import HOST, PLACEHOLDER, Scrubber, environment_secrets

from tests.testing.planted import EVENTS, NOWHERE, PLAIN, PROVENANCE, Planted, post, record, recorded_answer, sse

SECRET = 'plum/orchard "velvet"'
"""Of no shape that the search for leaks knows: what goes, goes by scrubbing."""
GIVEN = Scrubbing(secrets=(PLAIN,))
QUOTED = Scrubbing(secrets=(SECRET,))
BEARER = {"authorization": f"Bearer {PLAIN}"}
BASIC = base64.b64encode(f"someone:{PLAIN}".encode()).decode()
FIELDS = {
    "Project-Id": PLAIN,
    "a": [{"b": {"workspaceId": PLAIN}}],
    "user": {"id": PLAIN, "tags": [PLAIN]},
    "arguments": f'{{"email":"{PLAIN}"}}',
}
FORM = {"content-type": "application/x-www-form-urlencoded"}
TOLD = json.dumps({"error": f"{PLAIN} is wrong"}).encode()
LINES = "application/x-ndjson"

PLACES: Mapping[str, Planted] = {
    "request headers": Planted(headers={**BEARER, "x-acme-key": PLAIN, "cookie": f"a={PLAIN}", "x-machine": PLAIN}),
    "a query": Planted(target=f"/v1/answers?alt=sse&key={PLAIN}"),
    "a path and a kept parameter": Planted(target=f"/v1/{PLAIN}/answers?alt={PLAIN}", scrub=GIVEN),
    "a path, in percents": Planted(target=f"/v1/{quote(SECRET, safe='')}/answers", secret="orchard", scrub=QUOTED),
    "kept headers": Planted(headers={"accept": f"x/{PLAIN}"}, answer_headers={"request_id": PLAIN}, scrub=GIVEN),
    "a request's fields": Planted(json.dumps(FIELDS).encode()),
    "a request's text": Planted(json.dumps({"say": f"it is {SECRET}."}).encode(), secret="orchard", scrub=QUOTED),
    "a request's name": Planted(json.dumps({PLAIN: 1}).encode(), scrub=GIVEN),
    "a form": Planted(f"grant=x&client_secret={PLAIN}&z=1".encode(), headers=FORM),
    "bytes that are no text": Planted(b"\xff\xfe" + PLAIN.encode() + b"\x00", scrub=GIVEN),
    "response headers": Planted(answer_headers={"acme_organization": PLAIN, "set_cookie": f"a={PLAIN}; HttpOnly"}),
    "a response's field": Planted(answer=json.dumps({"meta": [{"organization": PLAIN}]}).encode()),
    "a response's text": Planted(answer=f"You sent {PLAIN}!".encode(), kind="text/plain", scrub=GIVEN),
    "the key in use, told back": Planted(answer=TOLD, headers=BEARER),
    "a password in use, told back": Planted(answer=TOLD, headers={"authorization": f"Basic {BASIC}"}),
    "a parameter's key, told back": Planted(answer=PLAIN.encode(), kind="text/plain", target=f"/v1?api_key={PLAIN}"),
    "an organisation's header, told back": Planted(answer=TOLD, answer_headers={"acme_organization": PLAIN}),
    "a field's key, told back": Planted(json.dumps({"Api-Key": PLAIN}).encode(), TOLD),
    "an event's field": Planted(answer=sse({"user_id": PLAIN}, {"text": "x"}), kind=EVENTS),
    "each letter an event": Planted(answer=sse(*({"d": [{"t": each}]} for each in PLAIN)), kind=EVENTS, scrub=GIVEN),
    "an event of several lines": Planted(
        answer=f'data: {{"text":\ndata: "it is {PLAIN}"}}\n\n'.encode(), kind=EVENTS, scrub=GIVEN
    ),
    "an event that is no JSON": Planted(answer=f"data: {PLAIN}\n\n".encode(), kind=EVENTS, scrub=GIVEN),
    "lines of JSON": Planted(answer=b'{"t":"plum-orch"}\n{"t":"ard-velvet"}\n', kind=LINES, scrub=GIVEN),
    "a list that is streamed": Planted(answer=b'[{"t":"x"},\r\n{"email":"plum-orchard-velvet"}]'),
}


def texts(value: object, *, names: bool = True) -> list[str]:
    """Every text in a value."""
    if isinstance(value, dict):
        own = [str(name) for name in value] if names else []
        return own + [text for member in value.values() for text in texts(member, names=names)]
    if isinstance(value, list):
        return [text for member in value for text in texts(member, names=names)]
    return [value.decode("latin-1") if isinstance(value, bytes) else str(value)]


def joined(text: str) -> str:
    """A body, and its events' texts put together."""
    return text + "".join(leaf for document in documents(text) for leaf in texts(document.value, names=False))


@pytest.mark.parametrize("planted", PLACES.values(), ids=PLACES)
def test_a_secret_is_gone_wherever_it_stood_and_the_exchange_replays(tmp_path: Path, planted: Planted) -> None:
    """CD-11: it is nowhere in the file, neither whole nor in pieces; bodies hold as many documents and events.

    The request matches with another key and on another host: what is not known any more may be anything.
    """
    path = tmp_path / "text.yaml"
    said = record(path, planted)
    together = "\n".join(map(joined, texts(yaml.safe_load(path.read_text("utf-8")))))
    (exchange,) = exchanges(path)

    assert planted.secret in joined(said) or BASIC in said
    assert planted.secret not in together
    assert BASIC not in together
    assert len(documents(exchange.response_body.decode())) == len(documents(planted.answer.decode()))
    assert exchange.response_body.count(b"\n\n") == planted.answer.count(b"\n\n")
    body, target = (text.replace(PLAIN, "other") for text in (planted.body.decode("latin-1"), planted.target))
    with replaying(path):
        assert post(NOWHERE + target, body.encode("latin-1"), planted.headers).content == exchange.response_body


NUMBER = "83412"
STREAMS = {
    "two events": (PLAIN, [{"d": "a plum-or"}, {"d": "chard-velvet b"}], [f"a {PLACEHOLDER}", " b"]),
    "counted": (
        PLAIN,
        [{"index": at, "d": text} for at, text in ((0, "plum-"), (1, "a"), (0, "orchard-"), (1, "b"), (0, "velvet"))],
        [PLACEHOLDER, "a", "", "b", ""],
    ),
    "a number": (
        NUMBER, [{"d": "no 83"}, {"d": "412 here"}, {"d": " 83"}, {"d": "4120"}],
        [f"no {PLACEHOLDER}", " here", " 83", "4120"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("key", "said", "kept"), STREAMS.values(), ids=STREAMS)
def test_where_a_split_secret_began_the_placeholder_stands(
    tmp_path: Path, key: str, said: list[object], kept: list[str]
) -> None:
    """The texts around it stay in their own events; events that count (`index`) are put together for each count."""
    body = recorded_answer(tmp_path / "text.yaml", key, sse(*said), kind=EVENTS).decode()

    assert [document.value["d"] for document in documents(body)] == kept


UNCHANGED: Mapping[str, Planted] = {
    "numbers, spaces, order": Planted(
        b'{ "b": 1.50, "a": [1e3, "\\u00e9\\ud83d"],  "users": "all", "tokens": 7 }',
        b'event: x\r\nid: 7\r\ndata: {"b" : 1.50}\r\n\r\n: a comment\n\ndata: [DONE]\n\n', EVENTS, scrub=GIVEN,
    ),
    "the schema of a secret field": Planted(
        b'{"properties":{"password":{"type":"string"},"user":{"anyOf":[{"$ref":"#/x"}]}},"secret":null}'
    ),
    "a count": Planted(answer=b'{"limit":100,"text":"100 owls"}', headers={"x-api-key": "100"}),
    "limits of tokens": Planted(
        answer=b'{"limit":30000000}', answer_headers={"x_limit_tokens": "30000000", "x_key_number": "30000000"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", UNCHANGED.values(), ids=UNCHANGED)
def test_nothing_else_is_changed(tmp_path: Path, planted: Planted) -> None:
    """A body without secrets stays as it is, byte for byte."""
    record(tmp_path / "text.yaml", planted)
    (exchange,) = exchanges(tmp_path / "text.yaml")

    assert (exchange.request_body, exchange.response_body) == (planted.body, planted.answer)


def test_half_of_a_surrogate_pair_survives_beside_a_secret(tmp_path: Path) -> None:
    """Streams split such pairs over events."""
    answer = b'data: {"user":"plum-orchard-velvet","t":"\\ud83d"}\n\n'

    kept = recorded_answer(tmp_path / "text.yaml", "none", answer, kind=EVENTS)
    assert kept == b'data: {"user":"REDACTED","t":"\\ud83d"}\n\n'


def test_the_host_is_gone_wherever_it_stood(tmp_path: Path) -> None:
    """CD-11: in the URL, and in what the server says of itself; `localhost` alone is a word."""
    path = tmp_path / "text.yaml"
    with Server(script := [b""]) as server:
        host = server.url.removeprefix("http://")
        script[:] = [whole(json.dumps({"see": f"{server.url}/docs", "ip": "127.0.0.1"}).encode(), request_id=host)]
        with recording(path, PROVENANCE):
            post(f"{server.url}/v1", json.dumps({"image": f"{server.url}/owl.png"}).encode(), {})
    (exchange,) = exchanges(path)

    assert "127.0.0.1" not in path.read_text("utf-8")
    assert f"uri: http://{HOST}/v1\n" in path.read_text("utf-8")
    assert exchange.request_json == {"image": f"http://{HOST}/owl.png"}
    assert json.loads(exchange.response_body) == {"see": f"http://{HOST}/docs", "ip": HOST}
    with replaying(path):
        post("http://localhost:9/v1", b'{"image":"http://localhost:9/owl.png"}', {})
    scrubber = Scrubber(Scrubbing())
    scrubber.learn("http://localhost:8080/v1", {}, b"")
    assert scrubber.body(b"localhost:8080 is a localhost") == f"{HOST} is a localhost".encode()


def test_a_secret_of_a_later_request_goes_from_earlier_ones_too(tmp_path: Path) -> None:
    """All is learnt before anything is written."""
    path = tmp_path / "text.yaml"
    with Server([whole(json.dumps({"session": PLAIN}).encode())]) as server, recording(path, PROVENANCE):
        post(f"{server.url}/v1/sessions", b"{}", {})
        post(f"{server.url}/v1/answers", b"{}", BEARER)

    assert PLAIN not in path.read_text("utf-8")


def test_what_the_environment_holds_as_a_secret_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CD-11: by the look of the variable's name; short values and numbers stand in too many places."""
    monkeypatch.setenv("acme_token", PLAIN)
    assert recorded_answer(tmp_path / "text.yaml", "none", PLAIN.encode(), kind="text/plain") == PLACEHOLDER.encode()

    for name in ("ACME_API_KEY", "APIKEY", "DB_PASSWORD", "GITHUB_PAT", "SECRET_SAUCE"):
        assert environment_secrets({name: "plum-orchard"}) == {"plum-orchard"}
    harmless = {"ACME_KEY": "test", "MAX_TOKENS": "plum-orchard", "KEYBOARD": "plum-orchard", "A_KEY": "1234567890"}
    assert environment_secrets(harmless) == set()


def test_what_is_kept_may_be_chosen(tmp_path: Path) -> None:
    """Names are compared without case; an empty secret, which stands everywhere, is refused."""
    scrub = Scrubbing(
        request_headers=frozenset({"acme-version"}),
        response_headers=frozenset({"content-type", "acme-region"}),
        query=frozenset({"page"}),
        fields=frozenset({"nickname"}),
    )
    planted = Planted(
        b'{"nick_name":"Oz","user":"all"}',
        target="/v1?page=2&alt=sse",
        headers={"Acme-Version": "7", "accept": "x/y"},
        answer_headers={"acme_region": "north", "retry_after": "7"},
        scrub=scrub,
    )
    record(tmp_path / "text.yaml", planted)
    (held,) = yaml.safe_load((tmp_path / "text.yaml").read_text("utf-8"))["interactions"]

    assert {name.lower(): value for name, value in held["request"]["headers"].items()} == {"acme-version": ["7"]}
    assert held["response"]["headers"] == {"content-type": ["application/json"], "acme-region": ["north"]}
    assert held["request"]["uri"] == f"http://{HOST}/v1?page=2"
    assert json.loads(held["request"]["body"]) == {"nick_name": PLACEHOLDER, "user": "all"}
    with pytest.raises(ValueError, match="contains an empty text, which would match everywhere; remove it"):
        Scrubbing(secrets=("",))


ADDRESSES = {
    "postgresql://olive:s3cret-plum@db.farm:5432/owls": "postgresql://REDACTED:REDACTED@db.farm:5432/owls",
    "redis://:s3cret-plum@cache/0": "redis://REDACTED:REDACTED@cache/0",
    "https://olive:s3cret-plum@barn.farm/x?y=1": "https://REDACTED:REDACTED@barn.farm/x?y=1",
    "https://a.farm/f?se=2026&sig=s3cret-plum%3D&sp=r": "https://a.farm/f?se=2026&sig=REDACTED&sp=r",
    "https://a.farm/f?X-Amz-Signature=s3cret-plum": "https://a.farm/f?X-Amz-Signature=REDACTED",
    "https://a.farm/f?maxTokens=7": "https://a.farm/f?maxTokens=7",
}


def test_names_passwords_and_keys_go_from_addresses_in_bodies(tmp_path: Path) -> None:
    """CD-11: of databases too; the rest of the address stays."""
    said, kept = (" and ".join(found) for found in (ADDRESSES, ADDRESSES.values()))
    answer = json.dumps({"text": f"see {said}, please", "arguments": json.dumps({"at": said})}).encode()
    body = json.loads(recorded_answer(tmp_path / "text.yaml", "none", answer))
    plain = recorded_answer(tmp_path / "plain.yaml", "none", f"see {said} please".encode(), kind="text/plain")

    assert body == {"text": f"see {kept}, please", "arguments": json.dumps({"at": kept}, separators=(",", ":"))}
    assert plain.decode() == f"see {kept} please"


def frame(value: object) -> bytes:
    data = json.dumps(value, ensure_ascii=False).encode()
    return len(data).to_bytes(4, "big") + data + b"\xff"


FRAMED: Mapping[str, tuple[object, ...]] = {
    "a literal": ({"text": f"It is {PLAIN}."},),
    "a field": ({"a": [{"organization": PLAIN}]},),
    "a field of other letters": ({"organization": f"żółć {PLAIN}"},),
    "split over frames": ({"index": 0, "text": PLAIN[:7]}, {"index": 0, "text": PLAIN[7:]}),
}


@pytest.mark.parametrize("has_letters_alone", [True, False])
@pytest.mark.parametrize("case", FRAMED)
def test_frames_of_bytes_keep_their_lengths(tmp_path: Path, case: str, has_letters_alone: bool) -> None:
    """Where a secret goes, as many bytes stand for it, and JSON stays JSON: else no reader finds the next frame."""
    sent = b"".join(map(frame, ({"say": "żółć"}, *FRAMED[case], {"say": "more"})))
    sent = sent.replace(b"\xff", b"\x01") if has_letters_alone else sent
    kept = recorded_answer(tmp_path / "framed.yaml", PLAIN, sent, kind="application/x-frames")

    assert len(kept) == len(sent)
    assert PLAIN not in joined(kept.decode("latin-1"))
    said = []
    while kept:
        end = 4 + int.from_bytes(kept[:4], "big")
        said.append(json.loads(kept[4:end]))
        kept = kept[end + 1 :]
    assert (said[0], said[-1], len(said)) == ({"say": "żółć"}, {"say": "more"}, len(FRAMED[case]) + 2)
    assert PLAIN not in "".join(str(each.get("text", "")) for each in said)


# Each way to write a key that was sent


UUID = "3f2c8a1e-9b7d-4c56-8e10-7a5b9d3f6c21"
SHORT = "k9"
ECHOED: Mapping[str, tuple[str, object, object]] = {
    "a short one, and longer words": (SHORT, f"{SHORT}, not ok9 or {SHORT}x", f"{PLACEHOLDER}, not ok9 or {SHORT}x"),
    "a number in a text": (NUMBER, f"no key {NUMBER}.", f"no key {PLACEHOLDER}."),
    "a number as one": (NUMBER, 83412, PLACEHOLDER),
    "a number in others": (NUMBER, [834123, -834120, 1.83412], [834123, -834120, 1.83412]),
    "a UUID": (UUID, f"<{UUID.upper()}> or {UUID.replace('-', '')}", f"<{PLACEHOLDER}> or {PLACEHOLDER}"),
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
    record(tmp_path / "text.yaml", Planted(answer=answer, headers=headers, target=target))

    assert json.loads(exchanges(tmp_path / "text.yaml")[0].response_body) == {"error": kept, "at": 7}


@pytest.mark.parametrize("key", [PLAIN, UUID, SHORT, NUMBER])
def test_a_key_goes_from_base64_wherever_it_begins_there(tmp_path: Path, key: str) -> None:
    """CD-11: base64 writes the same text in three ways, of two alphabets; what is left is base64 of the rest."""
    space = "" if len(key) >= 8 else " "
    held = [f"{before}{key}?~ÿ".encode() for before in ("", f"x{space}", f"xy{space}", "for olive: ")]
    said = [encode(each).decode() for each in held for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    body = recorded_answer(tmp_path / "text.yaml", key, json.dumps([f"sent {each} there" for each in said]).encode())

    left = [each.split(" ")[1].translate(str.maketrans("+/", "-_")) for each in json.loads(body)]
    wanted = [each.replace(key.encode(), PLACEHOLDER.encode()) for each in held for _ in range(2)]
    assert [base64.urlsafe_b64decode(each) for each in left] == wanted


# Bodies that do not read at first sight


PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "GZIP": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, bare": lambda body: zlib.compress(body, wbits=-15),
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "deflate, gzip": lambda body: gzip.compress(zlib.compress(body)),
}
SAID = json.dumps({"user": "someone", "error": f"bad key {PLAIN}", "at": 7}).encode()
KEPT = {"user": PLACEHOLDER, "error": f"bad key {PLACEHOLDER}", "at": 7}


@pytest.mark.parametrize("name", PACKED)
def test_what_is_compressed_is_stored_as_it_reads_without_its_secrets(tmp_path: Path, name: str) -> None:
    """CD-11: of requests and of responses, by another client; one that compresses its request finds it again."""
    path, body, encoding = tmp_path / "text.yaml", PACKED[name](SAID), name.partition(", bare")[0]
    headers = {"content-encoding": encoding, "x-api-key": PLAIN, "content-type": "application/json"}
    with Server([whole(body, content_encoding=encoding)]) as server, recording(path, PROVENANCE):
        requests.post(f"{server.url}/v1", data=body, headers=headers, timeout=20, stream=True).raw.read()
    (exchange,) = exchanges(path)

    assert exchange.request_json == json.loads(exchange.response_body) == KEPT
    with replaying(path):
        requests.post(f"{NOWHERE}/v1", data=body, headers=headers, timeout=20)


def test_a_request_that_cannot_be_decompressed_is_not_written(tmp_path: Path) -> None:
    """CD-11: nobody can say what is in it."""
    path = tmp_path / "text.yaml"
    with pytest.raises(CassetteFailed, match="the request body of exchange 0 has content-encoding 'zz' and cannot be"):
        record(path, Planted(b"\x00\x01", headers={"content-encoding": "zz"}))

    assert not path.exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_a_body_in_another_encoding_is_scrubbed_in_it(tmp_path: Path, encoding: str) -> None:
    """CD-11: by its mark, its zeros, or the name in its kind; what stays is in the same encoding."""
    said = json.dumps({"user": "é", "error": f"é {PLAIN}", "at": 7}, ensure_ascii=False)
    kind = f"application/json; charset={encoding}" if encoding == "latin-1" else "application/json"
    body = recorded_answer(tmp_path / "text.yaml", PLAIN, said.encode(encoding), kind=kind)

    assert json.loads(body.decode(encoding)) == {**KEPT, "error": f"é {PLACEHOLDER}"}


def test_fields_go_from_a_body_and_from_a_text_that_are_base64_of_json(tmp_path: Path) -> None:
    """CD-11: as they go from JSON in a text."""
    inside = base64.b64encode(SAID).decode()
    whole_body = recorded_answer(tmp_path / "whole.yaml", PLAIN, inside.encode(), kind="text/plain")
    text = json.loads(recorded_answer(tmp_path / "text.yaml", PLAIN, json.dumps({"blob": inside}).encode()))["blob"]

    assert json.loads(base64.b64decode(whole_body)) == json.loads(base64.b64decode(text)) == KEPT


def test_names_that_become_alike_hide_no_secret_beside_them_in_frames_of_bytes() -> None:
    """Two names of a body are keys that were sent, and a third is that of a secret field."""
    scrubber = Scrubber(Scrubbing())
    scrubber.learn("https://h.example.com/v?key=abc1", {"api-key": "9871"}, b"{}")
    told = {"m": {"abc1": {"a": 1, "b": 2}, "9871": {"a": 3}}, "access_token": "plain-hidden-value", "z": "ok"}
    body = b"\0\0\x01\xfe" + json.dumps(told).encode() + b"\0\xff"

    found = scrubber.body(body, "application/octet-stream")

    assert b"plain-hidden-value" not in found and b'"b": 2' in found and len(found) == len(body)
