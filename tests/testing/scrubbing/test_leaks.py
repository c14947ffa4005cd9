"""What scrubbing missed is found: each kind in each place, named without being told; and little else is."""

import base64
import gzip
import json
import random
import string
from pathlib import Path

import pytest
import yaml
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
from sabir_testing.cassettes import Allowed, leaks
from sabir_testing.scrubbing.leaks import LEFT_OUT, RANDOM, detectors, scan_for_secrets

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
    "Bearer authentication is needed", "Bearer REDACTED", "task-force-of-owls-and-others",
    "risk-assessment-2026-for-all-owls", "owl@example.com", "owl@mail.example.org", "version 10.2.3", "2026.10.11549",
    "8.8.8.8", "192.0.2.7", "localhost", "[1, 2, 3]", "[::]", "/homepage/olive",
    "streamGenerateContentForAllTheOwlsOfTheForest2", "get_the_weather_of_a_City_in_Europe_2026",
    "3f2c8a1e-9b7d-4c56-8e10-7a5b9d3f6c21", "https://owls.example.com/" + RANDOM_KEY,
    "data:image/png;base64," + RANDOM_KEY, RANDOM_KEY * 9, "=" * 60, "0" * 64,
]  # fmt: skip


def cassette(folder: Path, **places: object) -> Path:
    """A file with one exchange, where these stand: `body`, `answer`, `uri`, `headers`, `answer_headers`, `server`."""
    request = {
        "method": "POST",
        "uri": places.get("uri", "http://recorded.invalid/v1"),
        "body": places.get("body", "{}"),
        "headers": places.get("headers", {}),
    }
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": places.get("answer_headers", {}),
        "body": {"string": places.get("answer", "{}")},
    }
    document = {
        "provenance": {"server": places.get("server", "a test")},
        "version": 1,
        "interactions": [{"request": request, "response": response}],
    }
    path = folder / "text.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
    return path


def kinds(path: Path) -> list[str]:
    return [leak.kind for leak in leaks(path)]


@pytest.mark.parametrize(("text", "kind"), FOUND.items(), ids=map(repr, FOUND))
def test_each_kind_is_found_in_the_midst_of_a_text_and_never_told(tmp_path: Path, text: str, kind: str) -> None:
    """CD-11: and only as that kind; a finding says in one line how it begins and how long it is."""
    (leak,) = leaks(path := cassette(tmp_path, body=json.dumps({"text": f"see {text}, please"})))

    told = str(leak)
    assert leak.kind == kind
    assert text not in told
    assert text[4:] not in told
    assert "\n" not in told
    assert told.startswith(f"{path}: interactions[0].request.body ▸ text: {kind} '")


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
IN_JSON = json.dumps({"a": KEY})
IN_BASE64 = base64.b64encode(f"no {KEY}".encode()).decode()
GZIP_IN_BASE64 = base64.b64encode(gzip.compress(KEY.encode())).decode()
ANSWERS: dict[str, tuple[str | bytes, str]] = {
    "JSON": (json.dumps({"a": [{"b": KEY}]}), " ▸ a[0].b"),
    "JSON, in a name": (json.dumps({"a": {KEY: 1}}), f" ▸ a.{KEY}"),
    "text": (f"no {KEY}", ""),
    "an event": (f'data: {{}}\n\ndata: {{"t":"{KEY}"}}\n\n', " ▸ document 1 ▸ t"),
    "an event that does not grow by the next": (
        f'data: {{"t":"{KEY}"}}\n\ndata: {{"t":"and2more"}}\n\n', " ▸ document 0 ▸ t",
    ),
    "an event that is no JSON": (f"data: {{}}\n\ndata: {KEY}\n\n", ""),
    "a comment of a stream": (f': {KEY}\n\ndata: {{"t":1}}\n\n', ""),
    "two events": (
        f'data: {{"t":"no {KEY[:9]}"}}\n\ndata: {{"t":"{KEY[9:]} x"}}\n\n', " ▸ documents 0 to 1 together ▸ t",
    ),
    "two lines": (f'{{"t":"no {KEY[:9]}"}}\n{{"t":"{KEY[9:]} x"}}\n', " ▸ documents 0 to 1 together ▸ t"),
    "bytes": (b"\xff\xfe " + KEY.encode() + b"\x00", ""),
    "bytes in UTF-16": (IN_JSON.encode("utf-16"), " ▸ a"),
    "bytes in UTF-16 without a mark": (IN_JSON.encode("utf-16-le"), " ▸ a"),
    "bytes in gzip": (gzip.compress(IN_JSON.encode()), " ▸ a"),
    "base64": (json.dumps({"a": IN_BASE64}), " ▸ a ▸ base64"),
    "gzip in base64": (json.dumps({"data": GZIP_IN_BASE64}), " ▸ data ▸ base64"),
    "base64 as a whole": (IN_BASE64, " ▸ base64"),
    "two places, of which the first is named": (f"{KEY} {KEY}", ""),
}  # fmt: skip
PLACES: dict[str, tuple[dict[str, object], str]] = {
    **{name: ({"answer": answer}, BODY + place) for name, (answer, place) in ANSWERS.items()},
    "a request, before its answer": (
        {"body": json.dumps({"say": KEY, "b": [KEY]}), "answer": KEY}, "interactions[0].request.body ▸ say",
    ),
    "a form": ({"body": f"a=1&b={KEY}&c=2"}, "interactions[0].request.body"),
    "a request's header": ({"headers": {"x-note": [KEY]}}, "interactions[0].request.headers.x-note[0]"),
    "a response's header": ({"answer_headers": {"x-note": [KEY]}}, "interactions[0].response.headers.x-note[0]"),
    "a URL": ({"uri": f"http://recorded.invalid/v1/{KEY}"}, "interactions[0].request.uri"),
    "the heading": ({"server": f"a test of {KEY}"}, "provenance.server"),
}  # fmt: skip


@pytest.mark.parametrize(("places", "place"), PLACES.values(), ids=PLACES)
def test_a_key_is_found_in_every_place_and_the_place_is_named(
    tmp_path: Path, places: dict[str, object], place: str
) -> None:
    """CD-11: by the path in the YAML, then by that in the body; one secret in many places is one finding."""
    path = cassette(tmp_path, **places)

    assert [(leak.file, leak.place, leak.kind) for leak in leaks(path)] == [(path, place, "API key")]


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


def test_an_aws_secret_is_found_in_a_field_that_is_named_so_and_beside_the_id_of_its_key(tmp_path: Path) -> None:
    """CD-11: it has no shape but its length."""
    for name in ("aws_secret_access_key", "SecretAccessKey", "client_secret"):
        assert kinds(cassette(tmp_path, answer=json.dumps({name: AWS_SECRET}))) == ["AWS secret key"]
    beside = json.dumps({"text": f"AKIA{'7HTQ29LMZX41PWRV'} {AWS_SECRET}"})

    assert kinds(cassette(tmp_path, answer=json.dumps({"text": AWS_SECRET}))) == []
    assert kinds(cassette(tmp_path, answer=beside)) == ["AWS key", "AWS secret key"]


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
    """The pattern has to match the whole finding, and the kind where one is given; a reason is required."""
    path = cassette(tmp_path, body=json.dumps({"a": KEY, "b": RANDOM_KEY}))

    assert [leak.kind for leak in leaks(path, [Allowed(KEY[:9] + ".*", "made up")])] == [RANDOM]
    assert [leak.kind for leak in leaks(path, [Allowed(".*", "made up", kind="API key")])] == [RANDOM]
    assert len(leaks(path, [Allowed(KEY[:9], "made up")])) == 2
    with pytest.raises(ValueError, match="has no reason; write why this text may be published"):
        Allowed("owl", "  ")


# What a maintained scanner finds in a cassette


LOTS = random.Random(7)


def drawn(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Random letters, so that no file holds what looks like a key."""
    return "".join(LOTS.choices(letters, k=length))


LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
PLANTED = {
    "Artifactory Credentials": " AKC" + drawn(20),
    "AWS Access Key": "AKIA" + drawn(16, string.ascii_uppercase + string.digits),
    "Azure Storage Account access key": "AccountKey=" + drawn(86) + "==",
    "Basic Auth Credentials": "amqp://olive:" + drawn(9) + "@queue/owls",
    "Cloudant Credentials": "cloudant_password = '" + drawn(64, HEX) + "'",
    "Discord Bot Token": "M" + drawn(23) + "." + drawn(6) + "." + drawn(27),
    "GitHub Token": "ghp" + "_" + drawn(36),
    "GitLab Token": "glpat" + "-" + drawn(20),
    "IBM Cloud IAM Key": "ibm_cloud_iam_api_key = '" + drawn(44) + "'",
    "IBM COS HMAC Credentials": "cos_hmac_secret_access_key = '" + drawn(48, HEX) + "'",
    "JSON Web Token": "eyJ" + "hbGciOiJub25lIn0.eyJ" + "zdWIiOiJvd2wifQ.c2ln",
    "Secret Keyword": 'db_password = "' + drawn(9, LOWER) + '"',
    "Mailchimp Access Key": drawn(32, LOWER) + "-us7",
    "NPM tokens": "//registry.invalid/:_auth" + "Token=npm_" + drawn(20),
    "OpenAI Token": "sk-" + drawn(20) + "T3Blbk" + "FJ" + drawn(20),
    "Private Key": "-----BEGIN OPENSSH PRIVATE" + " KEY-----",
    "PyPI Token": "pypi-AgEIcHlwaS5v" + "cmc" + drawn(80),
    "SendGrid API Key": "SG." + drawn(22) + "." + drawn(43),
    "Slack Token": "xoxb" + "-712941832-" + drawn(12, LOWER),
    "SoftLayer Credentials": "softlayer_api_key = '" + drawn(64, HEX) + "'",
    "Square OAuth Secret": "sq0csp" + "-" + drawn(43),
    "Stripe Access Key": "rk_live" + "_" + drawn(24),
    "Telegram Bot Token": drawn(9, string.digits) + ":" + drawn(35),
    "Twilio API Key": "AC" + drawn(32, LOWER),
    "Base64 High Entropy String": '"' + drawn(40) + '"',
    "Hex High Entropy String": '"' + drawn(40, HEX) + '"',
}


def test_every_detector_of_the_scanner_is_used_but_three() -> None:
    """Those of random texts and of public addresses are left out; each other kind is planted."""
    kinds = {kind for kind, each in get_mapping_from_secret_type_to_class().items() if each.__name__ not in LEFT_OUT}

    assert len(detectors()) == len(kinds)
    assert kinds <= set(PLANTED)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("place", ["answer", "server"])
def test_what_the_scanner_finds_in_the_file_is_found(tmp_path: Path, kind: str, place: str) -> None:
    """CD-11: the scanner reads the file with its own settings, as those do who run it over their repository."""
    text = PLANTED[kind]
    path = cassette(tmp_path, **{place: text if place == "server" else json.dumps({"text": f"it is {text} ."})})
    with default_settings():
        lines = [text, *path.read_text("utf-8").splitlines()]
        by_scanner = {each.type for line in lines for each in scan_line(line)}

    assert kind in by_scanner
    assert leaks(path)


def test_each_finding_names_its_field_and_tells_no_secret(tmp_path: Path) -> None:
    """CD-11: also one that only the names around it make a secret."""
    answer = json.dumps({"at": [{"db_passwd": "plum9tree"}], "text": PLANTED["SendGrid API Key"]})
    found = {str(leak).partition(": ")[2] for leak in leaks(cassette(tmp_path, answer=answer))}

    body = "interactions[0].response.body.string"
    assert found == {
        f"{body} ▸ text: SendGrid API Key 'SG.{PLANTED['SendGrid API Key'][3]}' and 65 more characters",
        f"{body}: Secret Keyword 'pl' and 7 more characters",
    }


def test_what_the_scanner_finds_may_be_allowed(tmp_path: Path) -> None:
    path = cassette(tmp_path, answer=json.dumps({"text": PLANTED["Secret Keyword"]}))

    assert leaks(path, [Allowed(r"\w{9}", "made up", kind="Secret Keyword")]) == []


def test_a_placeholder_is_no_finding() -> None:
    """The scanner takes it for a password; what was scrubbed is told apart by `leaks`."""
    assert scan_for_secrets('{"password":"REDACTED"}') == (("Secret Keyword", "REDACTED"),)
