"""What scrubbing missed is found: each kind in each place, named without being told; and little else is."""

import base64
import gzip
import json
from pathlib import Path

import pytest
import yaml
from sabir_testing.cassettes import leaks
from sabir_testing.scrubbing.leaks import RANDOM, Allowed, Leak

RANDOM_KEY = "Zq81LxTn40VbWm27RkYd59HsPc36JfGu"
"""32 letters and digits, drawn for this test."""

# Split, so that no search for secrets stops at this file.
FOUND = {
    "sk" + "-7hTq29LmZx41PwRv83Yd": "API key",
    "gsk" + "_7hTq29LmZx41PwRv83Yd": "API key",
    "AIza" + "Sy7hTq29LmZx41PwRv83YdBnQ": "Google key",
    "Bearer " + "owl.7hTq29": "bearer token",
    "eyJ" + "hbGciOiJub25lIn0.eyJ" + "zdWIiOiJvd2wifQ.c2ln": "JSON web token",
    "AKIA" + "7HTQ29LMZX41PWRV": "AWS key",
    "ghp" + "_7hTq29LmZx41PwRv83Yd": "GitHub token",
    "github" + "_pat_7hTq29LmZx41PwRv83Yd": "GitHub token",
    "xoxb" + "-7129-41832-pwrv": "Slack token",
    "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIowl": "private key",
    "org" + "-7hTq29LmZx41PwRv": "organisation or project",
    "olive.owl" + "@barn.farm": "e-mail address",
    "127.0.0" + ".1:8080": "private address",
    "192.168" + ".7.12": "private address",
    "[fe80:" + ":1]:8080": "private address",
    "local" + "host:8080": "private address",
    "0.0.0" + ".0:8080": "private address",
    "/home/" + "olive/owls.txt": "home folder",
    "/Users/" + "olive": "home folder",
    "C:\\Users\\" + "olive": "home folder",
    RANDOM_KEY: RANDOM,
    "9f86d081884c7d659a2feaa0c55ad015": RANDOM,
    "kV7/tR2+xW9/qB4+zN6/mL1+hJ8/fD3+sG5/pC0+": RANDOM,  # as AWS draws them, 40 letters of base64
    "postgres://olive:" + "plum9tree@db.farm/owls": "password in a URL",
    "https://a.farm/f?se=1&sig=" + "plum9tree": "parameter 'sig'",
}
HARMLESS = [
    "Bearer authentication is needed",
    "Bearer REDACTED",
    "task-force-of-owls-and-others",
    "risk-assessment-2026-for-all-owls",
    "owl@example.com",
    "owl@mail.example.org",
    "version 10.2.3",
    "2026.10.11549",
    "8.8.8.8",
    "192.0.2.7",
    "localhost",
    "[1, 2, 3]",
    "[::]",
    "/homepage/olive",
    "streamGenerateContentForAllTheOwlsOfTheForest2",
    "get_the_weather_of_a_City_in_Europe_2026",
    "3f2c8a1e-9b7d-4c56-8e10-7a5b9d3f6c21",
    "https://owls.example.com/" + RANDOM_KEY,
    "data:image/png;base64," + RANDOM_KEY,
    RANDOM_KEY * 9,
    "=" * 60,
    "0" * 64,
]


def cassette(folder: Path, **places: object) -> Path:
    """A file with one exchange, where these stand: `body`, `answer`, `uri`, `headers`, `answer_headers`, `server`."""
    document = {
        "provenance": {"server": places.get("server", "a test")},
        "version": 1,
        "interactions": [
            {
                "request": {
                    "method": "POST",
                    "uri": places.get("uri", "http://recorded.invalid/v1"),
                    "body": places.get("body", "{}"),
                    "headers": places.get("headers", {}),
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": places.get("answer_headers", {}),
                    "body": {"string": places.get("answer", "{}")},
                },
            }
        ],
    }
    path = folder / "text.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
    return path


def kinds(path: Path) -> list[str]:
    return [leak.kind for leak in leaks(path)]


@pytest.mark.parametrize(("text", "kind"), FOUND.items(), ids=map(repr, FOUND))
def test_each_kind_is_found_in_the_midst_of_a_text(tmp_path: Path, text: str, kind: str) -> None:
    """CD-11: and only as that kind."""
    assert kinds(cassette(tmp_path, answer=json.dumps({"text": f"see {text}, please"}))) == [kind]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_so_is_left_alone(tmp_path: Path, text: str) -> None:
    """A check that cries wolf is switched off."""
    assert kinds(cassette(tmp_path, body=json.dumps({"text": f"see {text} here"}))) == []


@pytest.mark.parametrize("inside", [RANDOM_KEY, "a" + "@b.cd"])
def test_what_stands_by_chance_in_a_body_that_is_no_text_is_left_alone(tmp_path: Path, inside: str) -> None:
    """Frames carry padding, media carry anything; a key in them is found all the same (below, "bytes")."""
    assert kinds(cassette(tmp_path, answer=b"\x00\x00\x01\xfe\xff:" + inside.encode() + b"\x00\x9b\xe2")) == []


KEY = next(iter(FOUND))
BODY = "interactions[0].response.body.string"
PLACES = {
    "JSON": ({"answer": json.dumps({"a": [{"b": KEY}]})}, f"{BODY} ▸ a[0].b"),
    "JSON, in a name": ({"answer": json.dumps({"a": {KEY: 1}})}, f"{BODY} ▸ a.{KEY}"),
    "text": ({"answer": f"no {KEY}"}, BODY),
    "an event": ({"answer": f'data: {{}}\n\ndata: {{"t":"{KEY}"}}\n\n'}, f"{BODY} ▸ document 1 ▸ t"),
    "an event that is no JSON": ({"answer": f"data: {{}}\n\ndata: {KEY}\n\n"}, BODY),
    "a comment of a stream": ({"answer": f': {KEY}\n\ndata: {{"t":1}}\n\n'}, BODY),
    "two events": (
        {"answer": f'data: {{"t":"no {KEY[:9]}"}}\n\ndata: {{"t":"{KEY[9:]} x"}}\n\n'},
        f"{BODY} ▸ documents 0 to 1 together ▸ t",
    ),
    "two lines": (
        {"answer": f'{{"t":"no {KEY[:9]}"}}\n{{"t":"{KEY[9:]} x"}}\n'},
        f"{BODY} ▸ documents 0 to 1 together ▸ t",
    ),
    "bytes": ({"answer": b"\xff\xfe " + KEY.encode() + b"\x00"}, BODY),
    "bytes in UTF-16": ({"answer": json.dumps({"a": KEY}).encode("utf-16")}, f"{BODY} ▸ a"),
    "bytes in UTF-16 without a mark": ({"answer": json.dumps({"a": KEY}).encode("utf-16-le")}, f"{BODY} ▸ a"),
    "bytes in gzip": ({"answer": gzip.compress(json.dumps({"a": KEY}).encode())}, f"{BODY} ▸ a"),
    "base64": ({"answer": json.dumps({"a": base64.b64encode(f"no {KEY}".encode()).decode()})}, f"{BODY} ▸ a ▸ base64"),
    "gzip in base64": (
        {"answer": json.dumps({"data": base64.b64encode(gzip.compress(KEY.encode())).decode()})},
        f"{BODY} ▸ data ▸ base64",
    ),
    "base64 as a whole": ({"answer": base64.b64encode(f"no {KEY}".encode()).decode()}, f"{BODY} ▸ base64"),
    "a request": ({"body": json.dumps({"say": KEY})}, "interactions[0].request.body ▸ say"),
    "a form": ({"body": f"a=1&b={KEY}&c=2"}, "interactions[0].request.body"),
    "a request's header": ({"headers": {"x-note": [KEY]}}, "interactions[0].request.headers.x-note[0]"),
    "a response's header": ({"answer_headers": {"x-note": [KEY]}}, "interactions[0].response.headers.x-note[0]"),
    "a URL": ({"uri": f"http://recorded.invalid/v1/{KEY}"}, "interactions[0].request.uri"),
    "the heading": ({"server": f"a test of {KEY}"}, "provenance.server"),
}


@pytest.mark.parametrize(("places", "place"), PLACES.values(), ids=PLACES)
def test_a_key_is_found_in_every_place_and_the_place_is_named(
    tmp_path: Path, places: dict[str, object], place: str
) -> None:
    """CD-11: by the path in the YAML, then by that in the body."""
    path = cassette(tmp_path, **places)
    found = leaks(path)

    assert [(leak.file, leak.place, leak.kind) for leak in found] == [(path, place, "API key")]


@pytest.mark.parametrize("text", FOUND)
def test_a_finding_never_tells_the_secret(tmp_path: Path, text: str) -> None:
    """CD-11: it says how it begins and how long it is, in one line."""
    (leak,) = leaks(cassette(tmp_path, body=json.dumps({"text": text})))

    told = str(leak)
    assert text not in told
    assert text[4:] not in told
    assert "\n" not in told
    assert told.startswith(f"{tmp_path / 'text.yaml'}: interactions[0].request.body ▸ text: {leak.kind} '")


def test_one_secret_in_many_places_is_one_finding(tmp_path: Path) -> None:
    """The first place is named: what is scrubbed there is scrubbed everywhere."""
    path = cassette(tmp_path, body=json.dumps({"a": KEY, "b": [KEY]}), answer=f"{KEY} {KEY}")

    assert [leak.place for leak in leaks(path)] == ["interactions[0].request.body ▸ a"]


def test_a_key_that_one_event_holds_does_not_grow_by_the_next(tmp_path: Path) -> None:
    """It is one finding, in its own event."""
    path = cassette(tmp_path, answer=f'data: {{"t":"{KEY}"}}\n\ndata: {{"t":"and2more"}}\n\n')

    assert [leak.place for leak in leaks(path)] == [f"{BODY} ▸ document 0 ▸ t"]


CREDENTIALS = ["Authorization", "x-api-key", "X-Goog-Api-Key", "set-cookie", "cookie", "x-acme-token", "client-secret"]


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_header_that_opens_doors_is_found_whatever_it_holds(tmp_path: Path, name: str) -> None:
    """CD-11: but for the placeholder."""
    assert kinds(cassette(tmp_path, headers={name: ["owl"]})) == [f"header {name!r}"]
    assert kinds(cassette(tmp_path, answer_headers={name: "owl"})) == [f"header {name!r}"]
    assert kinds(cassette(tmp_path, headers={name: ["REDACTED"]})) == []


@pytest.mark.parametrize("name", ["key", "api_key", "access_token", "sig", "X-Amz-Signature"])
def test_a_parameter_that_opens_doors_is_found_whatever_it_holds(tmp_path: Path, name: str) -> None:
    """CD-11: but for the placeholder."""
    uri = f"http://recorded.invalid/v1?alt=sse&{name}="

    assert kinds(cassette(tmp_path, uri=uri + "owl")) == [f"parameter {name!r}"]
    assert kinds(cassette(tmp_path, uri=uri + "REDACTED")) == []


AWS_SECRET = "abcdefgHIJ/KLMNOP+qrstuvwxyzABCDEFGhijkl"
"""40 letters of base64, of no randomness."""


@pytest.mark.parametrize("name", ["aws_secret_access_key", "SecretAccessKey", "client_secret"])
def test_an_aws_secret_is_found_in_a_field_that_is_named_so(tmp_path: Path, name: str) -> None:
    """CD-11: it has no shape but its length."""
    assert kinds(cassette(tmp_path, answer=json.dumps({name: AWS_SECRET}))) == ["AWS secret key"]
    assert kinds(cassette(tmp_path, answer=json.dumps({"text": AWS_SECRET}))) == []


def test_an_aws_secret_is_found_beside_the_id_of_its_key(tmp_path: Path) -> None:
    answer = json.dumps({"text": f"AKIA{'7HTQ29LMZX41PWRV'} {AWS_SECRET}"})

    assert kinds(cassette(tmp_path, answer=answer)) == ["AWS key", "AWS secret key"]


def test_a_host_is_found(tmp_path: Path) -> None:
    """CD-11: every recorded host is recorded.invalid."""
    (leak,) = leaks(cassette(tmp_path, uri="https://api.owls.example/v1"))

    assert (leak.kind, leak.place) == ("host", "interactions[0].request.uri")


@pytest.mark.parametrize(
    "name", ["id", "responseId", "call_id", "signature", "thoughtSignature", "encrypted_content", "data", "b64_json"]
)
def test_random_texts_are_left_alone_where_they_belong(tmp_path: Path, name: str) -> None:
    """Identifiers, signatures, sealed reasoning and media; a key's shape is found there too."""
    assert kinds(cassette(tmp_path, answer=json.dumps({name: RANDOM_KEY}))) == []
    assert kinds(cassette(tmp_path, answer_headers={f"x-{name}": [RANDOM_KEY]})) == []
    assert kinds(cassette(tmp_path, answer=json.dumps({name: KEY}))) == ["API key"]


def test_what_is_allowed_is_not_found(tmp_path: Path) -> None:
    """The pattern has to match the whole finding, and the kind where one is given."""
    path = cassette(tmp_path, body=json.dumps({"a": KEY, "b": RANDOM_KEY}))

    assert [leak.kind for leak in leaks(path, [Allowed(KEY[:9] + ".*", "made up")])] == [RANDOM]
    assert [leak.kind for leak in leaks(path, [Allowed(".*", "made up", kind="API key")])] == [RANDOM]
    assert len(leaks(path, [Allowed(KEY[:9], "made up")])) == 2


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_exception_gives_its_reason(reason: str) -> None:
    with pytest.raises(ValueError, match="gives no reason; say why it may be read by all"):
        Allowed("owl", reason)


def test_a_leak_is_told_in_one_line() -> None:
    leak = Leak(Path("text.yaml"), "provenance.server", "API key", "'sk-a' and 40 more characters")

    assert str(leak) == "text.yaml: provenance.server: API key 'sk-a' and 40 more characters"
