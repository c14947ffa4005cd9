"""Bodies that do not read at first sight: compressed, in another encoding, in base64. What they hold is scrubbed."""

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import brotli
import pytest
import requests
import zstandard
from sabir_testing.cassettes import CassetteFailed, exchanges, recording, replaying
from sabir_testing.loopback import Server, whole
from sabir_testing.scrubbing import PLACEHOLDER

from tests.testing.planted import (
    LONG,
    NOWHERE,
    PLAIN,
    PROVENANCE,
    Planted,
    record,
    recorded_answer,
)

PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "GZIP": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, bare": lambda body: zlib.compress(body, wbits=-15),
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "deflate, gzip": lambda body: gzip.compress(zlib.compress(body)),
}
SAID = json.dumps({"user": PLAIN, "error": f"bad key {LONG}", "at": 7}).encode()
KEPT = {"user": PLACEHOLDER, "error": f"bad key {PLACEHOLDER}", "at": 7}


@pytest.mark.parametrize("name", PACKED)
def test_what_is_compressed_is_stored_as_it_reads_without_its_secrets(tmp_path: Path, name: str) -> None:
    """CD-11: of requests and of responses; a client that compresses its request finds it again."""
    path, body, encoding = tmp_path / "text.yaml", PACKED[name](SAID), name.partition(", bare")[0]
    headers = {"content-encoding": encoding, "x-api-key": LONG, "content-type": "application/json"}
    with Server([whole(body, content_encoding=encoding)]) as server, recording(path, PROVENANCE):
        requests.post(f"{server.url}/v1", data=body, headers=headers, timeout=20, stream=True).raw.read()
    (exchange,) = exchanges(path)

    assert exchange.request_json == json.loads(exchange.response_body) == KEPT
    with replaying(path):
        requests.post(f"{NOWHERE}/v1", data=body, headers=headers, timeout=20)


def test_a_request_that_cannot_be_decompressed_is_not_written(tmp_path: Path) -> None:
    """CD-11: nobody can say what is in it."""
    path = tmp_path / "text.yaml"
    with pytest.raises(CassetteFailed, match=r"the request body of exchange 0 is compressed \(zz\), and could not be"):
        record(path, Planted(b"\x00\x01", headers={"content-encoding": "zz"}))

    assert not path.exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_body_in_another_encoding_is_scrubbed_in_it(tmp_path: Path, encoding: str) -> None:
    """CD-11: by its mark, or by its zeros; what stays is in the same encoding."""
    body = recorded_answer(tmp_path / "text.yaml", LONG, SAID.decode().encode(encoding))

    assert json.loads(body.decode(encoding)) == KEPT


def test_a_body_in_the_encoding_that_its_kind_names_is_scrubbed_in_it(tmp_path: Path) -> None:
    said = f'{{"text":"é{LONG}"}}'.encode("latin-1")
    body = recorded_answer(tmp_path / "text.yaml", LONG, said, kind="application/json; charset=latin-1")

    assert body.decode("latin-1") == f'{{"text":"é{PLACEHOLDER}"}}'


def test_fields_go_from_a_body_and_from_a_text_that_are_base64_of_json(tmp_path: Path) -> None:
    """CD-11: as they go from JSON in a text."""
    inside = base64.b64encode(SAID).decode()
    whole_body = recorded_answer(tmp_path / "whole.yaml", LONG, inside.encode(), kind="text/plain")
    text = json.loads(recorded_answer(tmp_path / "text.yaml", LONG, json.dumps({"blob": inside}).encode()))["blob"]

    assert json.loads(base64.b64decode(whole_body)) == json.loads(base64.b64decode(text)) == KEPT
