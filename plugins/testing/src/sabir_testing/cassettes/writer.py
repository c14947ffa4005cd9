"""Writes vcrpy's recording to a file: scrubbed, checked, written. A recording that fails a check is not written.

requests, responses ──▶ decompress ──▶ learn the secrets of all ──▶ scrub each ──▶ heading + YAML ──▶ check ──▶ path
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.request import Request

from sabir_testing.cassettes.checks import NOT_A_VENDOR, OWN_SERVICE
from sabir_testing.cassettes.stored import CassetteFailed, Provenance, Stored, parse
from sabir_testing.reading import opened, unpacked
from sabir_testing.scrubbing.scrubber import Scrubber, Scrubbing

_DUMPER: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Check: TypeAlias = Callable[[Stored, Path], None]
"""A check that raises CassetteFailed for contents that must not be written."""


def sent(request: Request) -> bytes:
    """The body of a vcrpy request as bytes, whatever its client's type; decompressed if possible."""
    given = _given(request)
    read = unpacked(given, _header(_lists(request.headers), "content-encoding"))
    return opened(given if read is None else read)


def _given(request: Request) -> bytes:
    body = request.body_bytes
    if hasattr(body, "read"):
        body = body.read()
    return body.encode() if isinstance(body, str) else bytes(body or b"")


class CassetteWriter:
    """Scrubs what vcrpy recorded, checks it, and only then writes it."""

    def __init__(self, provenance: Provenance, scrub: Scrubbing, check: Check) -> None:
        self._provenance = dict(provenance)
        self._scrub = scrub
        self._check = check
        self._fault: Exception | None = None

    def load_cassette(self, path: str, serializer: object) -> tuple[list[Request], list[dict[str, Any]]]:
        """Nothing: an existing cassette is recorded again."""
        raise CassetteNotFoundError

    def save_cassette(self, path: str, cassette: Mapping[str, Any], serializer: object) -> None:
        """Write it, or store the fault: vcrpy leaves its patches in place if this raises."""
        try:
            self._write(path, cassette)
        except Exception as fault:
            self._fault = fault

    def raise_fault(self) -> None:
        """Raise the fault that prevented the last recording from being written."""
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _write(self, path: str, cassette: Mapping[str, Any]) -> None:
        pairs = list(zip(cassette["requests"], cassette["responses"], strict=True))
        scrubber = Scrubber(self._scrub)
        for request, response in pairs:
            headers = {name: ", ".join(values) for name, values in _lists(response["headers"]).items()}
            scrubber.learn(request.uri, _flat(request.headers), sent(request))
            scrubber.learn_headers(headers)
        self._check_server(path, scrubber.hosts)
        _check_requests(path, cassette["requests"])
        interactions = [_interaction(scrubber, self._scrub, request, response) for request, response in pairs]
        document = {"provenance": self._provenance, "version": 1, "interactions": interactions}
        text = yaml.dump(document, Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
        self._check(parse(text, Path(path)), Path(path))
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, "utf-8")

    def _check_server(self, path: str, hosts: frozenset[str]) -> None:
        """Raise a fault if the heading names a vendor, but the server is on this machine or a private network."""
        server = self._provenance.get("server", "")
        if any(map(_is_private, hosts)) and NOT_A_VENDOR not in server:
            remedy = f'say "{NOT_A_VENDOR}\'s {OWN_SERVICE}"'
            raise CassetteFailed(
                f"{path}: an address of a private network was asked, and server is {server!r}; {remedy}"
            )


def _check_requests(path: str, requests: Sequence[Request]) -> None:
    """CassetteFailed for a body in which no secret would be found; of responses, `check_held` says so."""
    for number, request in enumerate(requests):
        named = _header(_lists(request.headers), "content-encoding")
        if unpacked(_given(request), named) is None:
            raise CassetteFailed(
                f"{path}: the request body of exchange {number} is compressed ({named}), and could not be "
                "decompressed; send it uncompressed, or install what decompresses it"
            )


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost"


def _interaction(scrubber: Scrubber, scrub: Scrubbing, request: Request, response: Mapping[str, Any]) -> dict[str, Any]:
    asked, answered = _lists(request.headers), _lists(response["headers"])
    headers, body = scrubber.headers(answered, scrub.response_headers), response["body"]["string"] or b""
    read = unpacked(body, _header(answered, "content-encoding"))
    if read is None:
        headers |= {name: values for name, values in answered.items() if name.lower() == "content-encoding"}
        read = body
    return {
        "request": {
            "method": request.method,
            "uri": scrubber.url(request.uri),
            "body": _writable(scrubber.body(sent(request), _header(asked, "content-type").lower())),
            "headers": scrubber.headers(asked, scrub.request_headers),
        },
        "response": {
            "status": dict(response["status"]),
            "headers": headers,
            "body": {"string": _writable(scrubber.body(read, _header(answered, "content-type").lower()))},
        },
    }


def _lists(headers: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Headers as clients hold them: a text, bytes, or several of either."""
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        key = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        found.setdefault(key, []).extend(
            each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in values
        )
    return found


def _flat(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name: ", ".join(values) for name, values in _lists(headers).items()}


def _header(headers: Mapping[str, Sequence[str]], wanted: str) -> str:
    return ", ".join(value for name, values in headers.items() if name.lower() == wanted for value in values)


def _writable(body: bytes) -> str | bytes:
    """A text if possible, so that people can read a cassette.

    Bytes if it has control characters that YAML cannot hold.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body
