"""Secrets are planted in each place of a real exchange, seen to have been there, and seen to be gone from the file."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
import requests
import yaml
from sabir_testing.cassettes import exchanges, recording, replaying
from sabir_testing.loopback import Server, whole
from sabir_testing.reading.documents import documents
from sabir_testing.scrubbing.scrubber import HOST, PLACEHOLDER, Scrubber, Scrubbing, environment_secrets

from tests.testing.planted import (
    EVENTS,
    NOWHERE,
    PLAIN,
    PROVENANCE,
    Planted,
    joined,
    record,
    recorded_answer,
    sse,
)

SECRET = 'plum/orchard "velvet"'
"""Of no shape that the search for leaks knows: what goes, goes by scrubbing."""
GIVEN = Scrubbing(secrets=(PLAIN,))
QUOTED = Scrubbing(secrets=(SECRET,))
BEARER = {"authorization": f"Bearer {PLAIN}"}
BASIC = base64.b64encode(f"someone:{PLAIN}".encode()).decode()

PLACES: Mapping[str, Planted] = {
    "authorization": Planted(headers=BEARER),
    "a key's header": Planted(headers={"x-acme-key": PLAIN}),
    "a cookie": Planted(headers={"cookie": f"session={PLAIN}"}),
    "any other request header": Planted(headers={"x-machine": PLAIN}),
    "a query": Planted(target=f"/v1/answers?alt=sse&key={PLAIN}"),
    "a kept parameter": Planted(target=f"/v1/answers?alt={PLAIN}", scrub=GIVEN),
    "a path": Planted(target=f"/v1/{PLAIN}/answers", scrub=GIVEN),
    "a path, in percents": Planted(target=f"/v1/{quote(SECRET, safe='')}/answers", secret="orchard", scrub=QUOTED),
    "a kept request header": Planted(headers={"accept": f"x/{PLAIN}"}, scrub=GIVEN),
    "a request's field": Planted(json.dumps({"api_key": PLAIN}).encode()),
    "a request's field in another spelling": Planted(json.dumps({"Api-Key": PLAIN}).encode()),
    "a request's field deep inside": Planted(json.dumps({"a": [{"b": {"accessToken": PLAIN}}]}).encode()),
    "a request's field of several": Planted(json.dumps({"user": {"id": PLAIN, "tags": [PLAIN]}}).encode()),
    "a request's field in JSON in a text": Planted(json.dumps({"arguments": f'{{"password":"{PLAIN}"}}'}).encode()),
    "a request's text": Planted(json.dumps({"say": f"it is {SECRET}."}).encode(), secret="orchard", scrub=QUOTED),
    "a request's name": Planted(json.dumps({PLAIN: 1}).encode(), scrub=GIVEN),
    "a form": Planted(
        f"grant=x&client_secret={PLAIN}&z=1".encode(), headers={"content-type": "application/x-www-form-urlencoded"}
    ),
    "bytes that are no text": Planted(b"\xff\xfe" + PLAIN.encode() + b"\x00", scrub=GIVEN),
    "any response header": Planted(answer_headers={"acme_organization": PLAIN}),
    "a response's cookie": Planted(answer_headers={"set_cookie": f"session={PLAIN}; HttpOnly"}),
    "a kept response header": Planted(answer_headers={"request_id": PLAIN}, scrub=GIVEN),
    "a response's field": Planted(answer=json.dumps({"meta": [{"organization": PLAIN}]}).encode()),
    "a response's text": Planted(answer=f"You sent {PLAIN}!".encode(), kind="text/plain", scrub=GIVEN),
    "the key in use, told back": Planted(answer=json.dumps({"error": f"bad key {PLAIN}"}).encode(), headers=BEARER),
    "a password in use, told back": Planted(
        answer=json.dumps({"error": f"bad password {PLAIN}"}).encode(), headers={"authorization": f"Basic {BASIC}"}
    ),
    "a parameter's key, told back": Planted(answer=PLAIN.encode(), kind="text/plain", target=f"/v1?api_key={PLAIN}"),
    "an organisation's header, told back": Planted(
        answer=json.dumps({"error": f"{PLAIN} has no quota"}).encode(), answer_headers={"acme_organization": PLAIN}
    ),
    "a field's key, told back": Planted(
        json.dumps({"api_key": PLAIN}).encode(), answer=PLAIN.encode(), kind="text/plain"
    ),
    "an event's field": Planted(answer=sse({"user_id": PLAIN}, {"text": "x"}), kind=EVENTS),
    "an event's text": Planted(answer=sse({"text": f"it is {PLAIN}."}), kind=EVENTS, scrub=GIVEN),
    "two events": Planted(
        answer=sse({"d": {"t": "a plum-or"}}, {"d": {"t": "chard-velvet b"}}), kind=EVENTS, scrub=GIVEN
    ),
    "each letter an event": Planted(answer=sse(*({"d": [{"t": each}]} for each in PLAIN)), kind=EVENTS, scrub=GIVEN),
    "an event of several lines": Planted(
        answer=f'data: {{"text":\ndata: "it is {PLAIN}"}}\n\n'.encode(), kind=EVENTS, scrub=GIVEN
    ),
    "an event that is no JSON": Planted(answer=f"data: {PLAIN}\n\n".encode(), kind=EVENTS, scrub=GIVEN),
    "lines of JSON": Planted(
        answer=b'{"t":"plum-orch"}\n{"t":"ard-velvet"}\n', kind="application/x-ndjson", scrub=GIVEN
    ),
    "a list that is streamed": Planted(answer=b'[{"t":"x"},\r\n{"email":"plum-orchard-velvet"}]'),
}


@pytest.mark.parametrize("planted", PLACES.values(), ids=PLACES)
def test_a_secret_is_gone_wherever_it_stood(tmp_path: Path, planted: Planted) -> None:
    """CD-11: it went over the wire, and is nowhere in the file, neither whole nor in pieces that make it up."""
    said, held = record(tmp_path / "text.yaml", planted)
    together = "\n".join(joined(text.encode()) for text in held)

    assert planted.secret in said or BASIC in said
    assert planted.secret not in together
    assert BASIC not in together


def test_a_secret_is_found_in_each_of_several_texts_that_are_told_at_once(tmp_path: Path) -> None:
    """Events that count (`index`) are put together for each count, as their reader does."""
    said = [(0, "plum-"), (1, "a peach"), (0, "orchard-"), (1, " and a pear"), (0, "velvet")]
    answer = sse(*({"index": index, "t": text} for index, text in said))
    record(tmp_path / "text.yaml", Planted(answer=answer, kind=EVENTS, scrub=GIVEN))

    body = exchanges(tmp_path / "text.yaml")[0].response_body.decode()
    assert [document.value["t"] for document in documents(body)] == [PLACEHOLDER, "a peach", "", " and a pear", ""]


@pytest.mark.parametrize("planted", PLACES.values(), ids=PLACES)
def test_what_was_scrubbed_still_replays(tmp_path: Path, planted: Planted) -> None:
    """The request matches with another key and on another host: what is not known any more may be anything."""
    path = tmp_path / "text.yaml"
    record(path, planted)
    body, target = (text.replace(PLAIN, "other") for text in (planted.body.decode("latin-1"), planted.target))

    with replaying(path), httpx2.Client(trust_env=False, verify=False) as client:
        told = client.post(NOWHERE + target, content=body.encode("latin-1"), headers=dict(planted.headers))

    assert told.content == exchanges(path)[0].response_body


WITH_STRUCTURE = {place: each for place, each in PLACES.items() if each.kind != "text/plain"}


@pytest.mark.parametrize("planted", WITH_STRUCTURE.values(), ids=WITH_STRUCTURE)
def test_bodies_stay_what_they_were(tmp_path: Path, planted: Planted) -> None:
    """As many documents as before, and JSON where there was JSON."""
    record(tmp_path / "text.yaml", planted)
    (exchange,) = exchanges(tmp_path / "text.yaml")

    before, after = (documents(body.decode()) for body in (planted.answer, exchange.response_body))
    assert len(after) == len(before)
    assert exchange.response_body.count(b"\n\n") == planted.answer.count(b"\n\n")


def test_nothing_else_is_changed(tmp_path: Path) -> None:
    """A body without secrets stays as it is, byte for byte; so do numbers, spaces and the order of fields."""
    body = b'{ "b": 1.50, "a": [1e3, "\\u00e9\\ud83d"],  "users": "all", "tokens": 7 }'
    answer = b'event: x\r\nid: 7\r\ndata: {"b" : 1.50}\r\n\r\n: a comment\n\ndata: [DONE]\n\n'
    record(tmp_path / "text.yaml", Planted(body, answer, EVENTS, scrub=GIVEN))
    (exchange,) = exchanges(tmp_path / "text.yaml")

    assert (exchange.request_body, exchange.response_body) == (body, answer)


def test_the_schema_of_a_secret_field_is_no_secret(tmp_path: Path) -> None:
    """An option may take a password; what it takes has to be rendered right."""
    schema = {"properties": {"password": {"type": "string"}, "user": {"anyOf": [{"$ref": "#/x"}]}}, "secret": None}
    record(tmp_path / "text.yaml", Planted(json.dumps(schema).encode()))

    assert exchanges(tmp_path / "text.yaml")[0].request_json == schema


def test_half_of_a_surrogate_pair_survives_beside_a_secret(tmp_path: Path) -> None:
    """Streams split such pairs over events."""
    answer = b'data: {"user":"plum-orchard-velvet","t":"\\ud83d"}\n\n'
    record(tmp_path / "text.yaml", Planted(answer=answer, kind=EVENTS))

    assert exchanges(tmp_path / "text.yaml")[0].response_body == b'data: {"user":"REDACTED","t":"\\ud83d"}\n\n'


def test_where_a_split_secret_began_the_placeholder_stands(tmp_path: Path) -> None:
    """The texts around it are kept, in their own events."""
    record(tmp_path / "text.yaml", PLACES["two events"])

    body = exchanges(tmp_path / "text.yaml")[0].response_body.decode()
    assert [document.value["d"]["t"] for document in documents(body)] == [f"a {PLACEHOLDER}", " b"]


def test_the_host_is_gone_wherever_it_stood(tmp_path: Path) -> None:
    """CD-11: in the URL, and in what the server says of itself."""
    path = tmp_path / "text.yaml"
    with Server(script := [b""]) as server:
        host = server.url.removeprefix("http://")
        script[:] = [whole(json.dumps({"see": f"{server.url}/docs", "ip": "127.0.0.1"}).encode(), request_id=host)]
        with recording(path, PROVENANCE), httpx2.Client(trust_env=False, verify=False) as client:
            client.post(f"{server.url}/v1/answers", content=json.dumps({"image": f"{server.url}/owl.png"}).encode())
    (exchange,) = exchanges(path)

    assert "127.0.0.1" not in path.read_text("utf-8")
    assert f"uri: http://{HOST}/v1/answers\n" in path.read_text("utf-8")
    assert exchange.request_json == {"image": f"http://{HOST}/owl.png"}
    assert json.loads(exchange.response_body) == {"see": f"http://{HOST}/docs", "ip": HOST}
    with replaying(path), httpx2.Client(trust_env=False, verify=False) as client:
        client.post("http://localhost:9/v1/answers", json={"image": "http://localhost:9/owl.png"})


def test_localhost_alone_is_a_word(tmp_path: Path) -> None:
    """With its port it is a machine."""
    scrubber = Scrubber(Scrubbing())
    scrubber.learn("http://localhost:8080/v1", {}, b"")

    assert scrubber.body(b"localhost:8080 is a localhost") == f"{HOST} is a localhost".encode()


def test_requests_of_another_client_are_scrubbed_alike(tmp_path: Path) -> None:
    """vcrpy gives headers and bodies in as many forms as there are clients."""
    path = tmp_path / "text.yaml"
    with Server([whole(json.dumps({"error": f"bad key {PLAIN}"}).encode())]) as server, recording(path, PROVENANCE):
        with requests.Session() as session:
            session.trust_env = False
            session.post(f"{server.url}/v1", json={"user": PLAIN}, headers={"x-api-key": PLAIN}, timeout=20)

    assert server.asked[0].headers["x-api-key"] == PLAIN
    assert PLAIN not in path.read_text("utf-8")
    assert json.loads(exchanges(path)[0].response_body) == {"error": "bad key REDACTED"}


def test_a_secret_of_a_later_request_goes_from_earlier_ones_too(tmp_path: Path) -> None:
    """All is learnt before anything is written."""
    path = tmp_path / "text.yaml"
    with Server([whole(json.dumps({"session": PLAIN}).encode())]) as server, recording(path, PROVENANCE):
        with httpx2.Client(trust_env=False, verify=False) as client:
            client.post(f"{server.url}/v1/sessions", content=b"{}")
            client.post(f"{server.url}/v1/answers", content=b"{}", headers={"authorization": f"Bearer {PLAIN}"})

    assert PLAIN not in path.read_text("utf-8")


@pytest.mark.parametrize("name", ["ACME_API_KEY", "acme_token", "APIKEY", "DB_PASSWORD", "GITHUB_PAT", "SECRET_SAUCE"])
def test_what_the_environment_holds_as_a_secret_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """CD-11: by the look of the variable's name, whoever reads it."""
    monkeypatch.setenv(name, PLAIN)
    _, held = record(tmp_path / "text.yaml", Planted(answer=f"hello {PLAIN}".encode(), kind="text/plain"))

    assert f"hello {PLACEHOLDER}" in held
    assert PLAIN not in "".join(held)


def test_short_values_numbers_and_other_names_are_no_secrets() -> None:
    """They stand in too many places to be replaced."""
    environment = {"ACME_KEY": "test", "MAX_TOKENS": "plum-orchard", "KEYBOARD": "plum-orchard", "A_KEY": "1234567890"}

    assert environment_secrets(environment) == set()
    assert environment_secrets({"ACME_KEY": "plum-orchard"}) == {"plum-orchard"}


def test_limits_of_tokens_are_not_taken_for_tokens() -> None:
    """Their headers are dropped, and their numbers are left in bodies."""
    scrubber = Scrubber(Scrubbing())
    scrubber.learn_headers({"x-ratelimit-limit-tokens": "30000000", "x-key-number": "30000000"})

    assert scrubber.body(b'{"limit":30000000}') == b'{"limit":30000000}'


def test_what_is_kept_may_be_chosen(tmp_path: Path) -> None:
    """Names are compared without case."""
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


def test_an_empty_secret_is_refused() -> None:
    """It stands everywhere."""
    with pytest.raises(ValueError, match="holds an empty text; leave it out"):
        Scrubbing(secrets=("",))


ADDRESSES = {
    "postgresql://olive:s3cret-plum@db.farm:5432/owls": "postgresql://REDACTED:REDACTED@db.farm:5432/owls",
    "redis://:s3cret-plum@cache/0": "redis://REDACTED:REDACTED@cache/0",
    "https://olive:s3cret-plum@barn.farm/x?y=1": "https://REDACTED:REDACTED@barn.farm/x?y=1",
    "https://a.farm/f?se=2026&sig=s3cret-plum%3D&sp=r": "https://a.farm/f?se=2026&sig=REDACTED&sp=r",
    "https://a.farm/f?X-Amz-Signature=s3cret-plum": "https://a.farm/f?X-Amz-Signature=REDACTED",
    "https://a.farm/f?maxTokens=7": "https://a.farm/f?maxTokens=7",
}


@pytest.mark.parametrize(("address", "kept"), ADDRESSES.items())
def test_names_passwords_and_keys_go_from_addresses_in_bodies(tmp_path: Path, address: str, kept: str) -> None:
    """CD-11: of databases too; the rest of the address stays."""
    answer = json.dumps({"text": f"see {address}, please", "arguments": json.dumps({"at": address})}).encode()
    body = json.loads(recorded_answer(tmp_path / "text.yaml", "none", answer))
    plain = recorded_answer(tmp_path / "plain.yaml", "none", f"see {address} please".encode(), kind="text/plain")

    assert body["text"] == f"see {kept}, please"
    assert json.loads(body["arguments"]) == {"at": kept}
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
    assert PLAIN not in joined(kept)
    said = []
    while kept:
        end = 4 + int.from_bytes(kept[:4], "big")
        said.append(json.loads(kept[4:end]))
        kept = kept[end + 1 :]
    assert (said[0], said[-1], len(said)) == ({"say": "żółć"}, {"say": "more"}, len(FRAMED[case]) + 2)
    assert PLAIN not in "".join(str(each.get("text", "")) for each in said)
