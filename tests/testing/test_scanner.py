"""What a maintained scanner finds in a cassette, the search for leaks finds: a secret of each kind is planted."""

import json
import random
import string
from pathlib import Path

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
from sabir_testing.cassettes import Allowed, leaks
from sabir_testing.scrubbing.leaks import DETECTORS, scanned

from tests.testing.test_leaks import cassette

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
LEFT_OUT = {"IPPublicDetector", "Base64HighEntropyString", "HexHighEntropyString"}


def test_every_detector_of_the_scanner_is_used_but_three() -> None:
    """A new one is seen when the scanner is renewed: those of random texts and of public addresses are left out."""
    assert {each.__name__ for each in get_mapping_from_secret_type_to_class().values()} == {*DETECTORS, *LEFT_OUT}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("place", ["answer", "body", "server"])
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
    assert scanned('{"password":"REDACTED"}') == (("Secret Keyword", "REDACTED"),)
