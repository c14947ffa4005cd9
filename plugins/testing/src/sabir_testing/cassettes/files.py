"""Cassette files: read and cached until they change, split into exchanges, and checked.

path ──▶ provenance + interactions ──▶ RecordedExchange(method, path, request body │ status, headers, body)

check_cassette      checks a file: exchanges, complete bodies, provenance, and no secrets
check_provenance    checks the provenance
check_played        checks after a replay that every exchange was requested
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import yaml

from sabir_testing.reading import as_text
from sabir_testing.scrubbing import Allowed, Leak
from sabir_testing.scrubbing.leaks import leaks_in

Provenance = Mapping[str, str]
"""Facts about the service that answered: the fields of PROVENANCE_FIELDS, and any others."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's fast loader, if PyYAML was built with it."""
_STREAM_TYPES = {"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"}

PROVENANCE_FIELDS = ("server", "version", "model", "date", "client")
OWN_SERVICE, NOT_A_VENDOR = "own service", "not a vendor"
"""The field `server` of the provenance must contain one of these texts."""
REMEDY = "if the request is right, record it again with `pytest --sabir-record`"
_NO_VALUES = {"", "unknown", "none", "null"}
_WITHOUT_BODY = {204, 205, 304}


class CassetteFailed(AssertionError):
    """Raised for an invalid cassette or recording, and for a replay that does not match the cassette. Its message has
    the remedy.
    """


class ProvenanceRefused(CassetteFailed):
    """Raised for a provenance that lacks a field, or does not say whose service answered."""


class NotPlayed(CassetteFailed):
    """Raised if recorded exchanges were not requested, or if a cassette or a recording has no exchanges."""


class Leaking(CassetteFailed):
    """Raised for a cassette that contains secrets or private data. `leaks` are the findings."""

    def __init__(self, path: Path, leaks: Sequence[Leak]) -> None:
        self.leaks = tuple(leaks)
        remedy = "add them to Scrubbing(fields=…, secrets=…), or to Allowed(pattern, reason) if they may be published"
        super().__init__(
            f"{path} contains secrets or private data, listed below; {remedy}\n"
            + "\n".join(f"  {leak.place}: {leak.kind} {leak.shown}" for leak in leaks)
        )


@dataclass(frozen=True)
class RecordedExchange:
    """One recorded request and its response.

    `path` is the path of the request's URL, without host and query. `headers` are the headers of the response, with
    names in lower case.
    """

    method: str
    path: str
    request_body: bytes
    status: int
    headers: Mapping[str, str]
    response_body: bytes

    @property
    def content_type(self) -> str:
        """The content type of the response, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        """Whether the content type is one of server-sent events or JSON lines. Binary streams give False."""
        return self.content_type in _STREAM_TYPES

    @cached_property
    def request_json(self) -> Any:
        """The request's body as a JSON value; None if it is not JSON, and for the JSON value null."""
        try:
            return json.loads(self.request_body)
        except ValueError:
            return None


@dataclass(frozen=True)
class CassetteContents:
    """The contents of one cassette file. `document` is the complete YAML document, and must not be changed."""

    document: Mapping[str, Any]
    provenance: Provenance
    exchanges: tuple[RecordedExchange, ...]


def read_cassette(path: Path | str) -> CassetteContents:
    """Return the contents of a cassette, cached until the file changes.

    Raises CassetteFailed if the file is missing or invalid.
    """
    path = Path(path)
    try:
        state = path.stat()
    except FileNotFoundError:
        raise CassetteFailed(f"the cassette {path} does not exist; record it with `pytest --sabir-record`") from None
    return _read_unchanged(path, state.st_mtime_ns, state.st_size)


def parse(text: str, path: Path) -> CassetteContents:
    """Return the contents of a cassette's text. Raises CassetteFailed, with the path, for an invalid text."""
    try:
        document = yaml.load(text, _LOADER)
        exchanges = tuple(_read_exchange(each) for each in document["interactions"])
        fields = document.get("provenance") or {}
        provenance = MappingProxyType({str(name): str(value) for name, value in fields.items()})
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise CassetteFailed(
            f"{path} is not a valid vcrpy cassette ({type(error).__name__}: {error}); record it again"
        ) from None
    return CassetteContents(document, provenance, exchanges)


@lru_cache(maxsize=512)
def _read_unchanged(path: Path, modified: int, size: int) -> CassetteContents:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8 text"
        raise CassetteFailed(f"{path} is not a vcrpy cassette: {reason}; record it again") from None
    return parse(text, path)


def exchanges(path: Path | str) -> list[RecordedExchange]:
    """Return the exchanges of a cassette, in order. Raises CassetteFailed if the file is missing or invalid."""
    return list(read_cassette(path).exchanges)


def provenance_of(path: Path | str) -> Provenance:
    """Return the provenance of a cassette; {} if it has none.

    Raises CassetteFailed if the file is missing or invalid.
    """
    return read_cassette(path).provenance


def _read_exchange(interaction: Mapping[str, Any]) -> RecordedExchange:
    request, response = interaction["request"], interaction["response"]
    fields = response["headers"].items()
    headers = {name.lower(): values if isinstance(values, str) else ", ".join(values) for name, values in fields}
    return RecordedExchange(
        request["method"],
        urlsplit(request["uri"]).path,
        _encode_body(request["body"]),
        response["status"]["code"],
        MappingProxyType(headers),
        _encode_body(response["body"]["string"]),
    )


def _encode_body(body: str | bytes | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


def check_played(cassette: Any) -> None:
    """Check a vcrpy cassette after a replay.

    Raises NotPlayed for an empty cassette and, unless it was recording, for exchanges that were not requested. Raises
    CassetteFailed for an empty response body, unless the method or status allows none.
    """
    where = cassette.path
    if not len(cassette):
        raise NotPlayed(f"the cassette {where} contains no exchanges; record it with `pytest --sabir-record`")
    for number, (request, response) in enumerate(zip(cassette.requests, cassette.responses, strict=True)):
        if not response["body"]["string"] and _needs_body(request.method, response["status"]["code"]):
            raise CassetteFailed(f"{where}: the response body of exchange {number} is empty; {REMEDY}")
    unused = [str(number) for number in range(len(cassette)) if not cassette.play_counts.get(number)]
    if unused and cassette.record_mode.value == "none":
        count = f"{len(unused)} of {len(cassette)} recorded exchanges"
        what = f"{where}: {count} were not requested (numbers, counted from 0: {', '.join(unused)})"
        remedy = "if the program needs fewer requests now, record it again with `pytest --sabir-record`"
        raise NotPlayed(f"{what}; {remedy}")


def check_provenance(provenance: Provenance, where: str = "the cassette") -> None:
    """Raise CassetteFailed unless the provenance has all of PROVENANCE_FIELDS, with a date and a valid `server`.

    `server` must contain "own service", as in "Acme's own service", or "not a vendor", as in "a proxy, not a vendor's
    own service". `where` begins the error message.
    """
    missing = [name for name in PROVENANCE_FIELDS if str(provenance.get(name, "")).strip().lower() in _NO_VALUES]
    if missing:
        raise ProvenanceRefused(
            f"the provenance of {where} lacks {', '.join(missing)}; it needs {', '.join(PROVENANCE_FIELDS)}"
        )
    try:
        date.fromisoformat(provenance["date"])
    except ValueError:
        what = f"the provenance of {where} has the invalid date {provenance['date']!r}"
        raise ProvenanceRefused(f"{what}; write dates as 2026-01-31") from None
    if not any(words in provenance["server"] for words in (OWN_SERVICE, NOT_A_VENDOR)):
        remedy = f'write "…\'s {OWN_SERVICE}" for a vendor, otherwise "…, {NOT_A_VENDOR}\'s {OWN_SERVICE}"'
        what = f"the server {provenance['server']!r} in the provenance of {where} does not say whose service it is"
        raise ProvenanceRefused(f"{what}; {remedy}")


def check_cassette(path: Path | str, *, allowed: Sequence[Allowed] = (), stream_end: str = "") -> None:
    """Check a cassette file.

    Raises NotPlayed if it has no exchanges, Leaking for secrets and private data that no entry of `allowed` matches,
    and CassetteFailed for a missing or invalid file, invalid provenance, and an empty, incomplete or compressed
    response body. `stream_end` is a text that the last event of every successful stream must contain.
    """
    check_contents(read_cassette(path), Path(path), allowed=allowed, stream_end=stream_end)


def leaks(path: Path | str, allowed: Sequence[Allowed] = ()) -> list[Leak]:
    """Return the secrets and private data in a cassette, in the order of the file, without those in `allowed`.

    Raises CassetteFailed if the file is missing or invalid.
    """
    return leaks_in(read_cassette(path).document, Path(path), allowed)


def check_contents(contents: CassetteContents, path: Path, *, allowed: Sequence[Allowed], stream_end: str) -> None:
    """Check contents that were read from, or will be written to, `path`. Raises like `check_cassette`."""
    if not contents.exchanges:
        raise NotPlayed(f"the cassette {path} contains no exchanges; record it with `pytest --sabir-record`")
    check_provenance(contents.provenance, str(path))
    for number, exchange in enumerate(contents.exchanges):
        fault = _body_fault(exchange, stream_end)
        if fault:
            raise CassetteFailed(f"{path}: the response body of exchange {number} {fault}; record it again")
    if findings := leaks_in(contents.document, path, allowed):
        raise Leaking(path, findings)


def _needs_body(method: str, status: int) -> bool:
    return method != "HEAD" and status not in _WITHOUT_BODY


def _body_fault(exchange: RecordedExchange, stream_end: str) -> str | None:
    """Describe what is wrong with a response's body; None if nothing is wrong."""
    body = exchange.response_body
    if not body:
        return "is empty" if _needs_body(exchange.method, exchange.status) else None
    if "content-encoding" in exchange.headers:
        return f"has content-encoding {exchange.headers['content-encoding']!r} and cannot be decompressed"
    decoded = as_text(body)
    text = body.decode("utf-8", "replace") if decoded is None else decoded.text
    if exchange.is_stream:
        return _stream_fault(exchange, text, stream_end)
    return "is incomplete JSON" if exchange.content_type.endswith("json") and _is_cut(text) else None


def _stream_fault(exchange: RecordedExchange, text: str, stream_end: str) -> str | None:
    has_events = exchange.content_type == "text/event-stream"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    last = text.strip().rpartition("\n\n" if has_events else "\n")[2]
    lines = [line.removeprefix("data:") for line in last.split("\n") if line.startswith("data:") or not has_events]
    if _is_cut("\n".join(lines)):
        return "is a stream that ends within an event"
    if has_events and not text.endswith("\n\n"):
        return "is a stream whose last event has no blank line after it"
    if stream_end and exchange.status < 400 and stream_end not in last:
        return f"is a stream without its end marker: {stream_end!r} is not in the last event"
    return None


def _is_cut(body: str) -> bool:
    """Return whether a body begins like a JSON object or a list of objects, but is invalid. `[DONE]` is neither."""
    if not body.lstrip().startswith(("{", "[{")):
        return False
    try:
        json.loads(body)
    except ValueError:
        return True
    return False
