"""Cassettes on disk: read once for each state of the file, split into exchanges, and checked before they are used.

path ──▶ heading (provenance) + interactions ──▶ RecordedExchange(method, path, request body │ status, headers, body)

check_cassette      a file: exchanges, whole bodies, provenance, and no secret
check_provenance    a heading
check_played        the requests to a cassette while it was replayed
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
"""Who answered: the fields of PROVENANCE_FIELDS, and any others."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with it."""
_STREAM_TYPES = {"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"}

PROVENANCE_FIELDS = ("server", "version", "model", "date", "client")
OWN_SERVICE, NOT_A_VENDOR = "own service", "not a vendor"
"""The allowed values of `server`."""
REMEDY = "if the new request is right, record it anew: pytest --sabir-record"
_UNSAID = {"", "unknown", "none", "null"}
_WITHOUT_BODY = {204, 205, 304}


class CassetteFailed(AssertionError):
    """A cassette is invalid, or its exchanges were not requested; the text says which, and the remedy."""


class NotPlayed(CassetteFailed):
    """Nothing asked for some of the recorded exchanges, or there is none."""


class Leaking(CassetteFailed):
    """A recording holds secrets or private data. `leaks`: the findings."""

    def __init__(self, path: Path, leaks: Sequence[Leak]) -> None:
        self.leaks = tuple(leaks)
        remedy = "name it in Scrubbing(fields=…, secrets=…), or in Allowed(pattern, reason) if all may read it"
        super().__init__(
            f"{path} leaks; {remedy}:\n" + "\n".join(f"  {leak.place}: {leak.kind} {leak.shown}" for leak in leaks)
        )


@dataclass(frozen=True)
class RecordedExchange:
    """One request and its response.

    `path` has neither host nor query. `headers` are the response's, their names in lower case.
    """

    method: str
    path: str
    request_body: bytes
    status: int
    headers: Mapping[str, str]
    response_body: bytes

    @property
    def content_type(self) -> str:
        """The response's, without parameters and in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events, or of lines of JSON."""
        return self.content_type in _STREAM_TYPES

    @cached_property
    def request_json(self) -> Any:
        """The request's body as a JSON value; None if it is not JSON."""
        try:
            return json.loads(self.request_body)
        except ValueError:
            return None


@dataclass(frozen=True)
class Stored:
    """The contents of one file. `document` is the whole of it, and must not be changed."""

    document: Mapping[str, Any]
    provenance: Provenance
    exchanges: tuple[RecordedExchange, ...]


def read_stored(path: Path | str) -> Stored:
    """The contents of a cassette, cached until the file changes; raises CassetteFailed if it is missing or invalid."""
    path = Path(path)
    try:
        state = path.stat()
    except FileNotFoundError:
        raise CassetteFailed(f"there is no cassette {path}; record it: pytest --sabir-record") from None
    return _stored(path, state.st_mtime_ns, state.st_size)


def parse(text: str, path: Path) -> Stored:
    """The contents of a cassette's text; raises CassetteFailed, which names the file, for an invalid text."""
    try:
        document = yaml.load(text, _LOADER)
        found = tuple(_exchange(each) for each in document["interactions"])
        heading = document.get("provenance") or {}
        provenance = MappingProxyType({str(name): str(value) for name, value in heading.items()})
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise CassetteFailed(
            f"{path} is no cassette of vcrpy ({type(error).__name__}: {error}); record it anew"
        ) from None
    return Stored(document, provenance, found)


@lru_cache(maxsize=512)
def _stored(path: Path, modified: int, size: int) -> Stored:
    return parse(path.read_text("utf-8"), path)


def exchanges(path: Path | str) -> list[RecordedExchange]:
    """The recorded exchanges in order; raises CassetteFailed if there is no such cassette."""
    return list(read_stored(path).exchanges)


def provenance_of(path: Path | str) -> Provenance:
    """The provenance in the heading; empty without a heading."""
    return read_stored(path).provenance


def _exchange(interaction: Mapping[str, Any]) -> RecordedExchange:
    request, response = interaction["request"], interaction["response"]
    headers = {name.lower(): _joined(values) for name, values in response["headers"].items()}
    return RecordedExchange(
        request["method"],
        urlsplit(request["uri"]).path,
        _bytes(request["body"]),
        response["status"]["code"],
        MappingProxyType(headers),
        _bytes(response["body"]["string"]),
    )


def _joined(values: str | list[str]) -> str:
    return values if isinstance(values, str) else ", ".join(values)


def _bytes(body: str | bytes | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


def check_played(cassette: Any) -> None:
    """Raise CassetteFailed for an empty vcrpy cassette, an empty body, or an exchange that was not requested."""
    where = cassette.path
    if not len(cassette):
        raise NotPlayed(f"{where} is empty; record it: pytest --sabir-record")
    for number, (request, response) in enumerate(zip(cassette.requests, cassette.responses, strict=True)):
        if not response["body"]["string"] and _needs_body(request.method, response["status"]["code"]):
            raise CassetteFailed(f"{where}: the recorded body of exchange {number} is empty; {REMEDY}")
    left = [str(number) for number in range(len(cassette)) if not cassette.play_counts.get(number)]
    if left and cassette.record_mode.value == "none":
        asked = f"{len(left)} of {len(cassette)} recorded exchanges"
        raise NotPlayed(f"{where}: {asked} were not asked for, counted from 0: {', '.join(left)}; {REMEDY}")


def check_provenance(provenance: Provenance, where: str = "the cassette") -> None:
    """Raise CassetteFailed unless the heading names the server, its version, the model, the date and the client.

    `server` says whose service it is: "Acme's own service", or "…, not a vendor's own service".
    """
    missing = [name for name in PROVENANCE_FIELDS if str(provenance.get(name, "")).strip().lower() in _UNSAID]
    if missing:
        raise CassetteFailed(
            f"{where} does not say its {', '.join(missing)}; give all of {', '.join(PROVENANCE_FIELDS)}"
        )
    try:
        date.fromisoformat(provenance["date"])
    except ValueError:
        raise CassetteFailed(f"{where} is of {provenance['date']!r}; give the date as 2026-01-31") from None
    if not any(words in provenance["server"] for words in (OWN_SERVICE, NOT_A_VENDOR)):
        remedy = f'write "…\'s {OWN_SERVICE}" or "…, {NOT_A_VENDOR}\'s {OWN_SERVICE}"'
        raise CassetteFailed(f"{where} does not say whose service {provenance['server']!r} is; {remedy}")


def check_cassette(path: Path | str, *, allowed: Sequence[Allowed] = (), stream_end: str = "") -> None:
    """Raise CassetteFailed for missing exchanges or provenance, an empty or cut body, or a leak (Leaking)."""
    check_held(read_stored(path), Path(path), allowed=allowed, stream_end=stream_end)


def leaks(path: Path | str, allowed: Sequence[Allowed] = ()) -> list[Leak]:
    """The leaks in a cassette, in the order of the file; raises CassetteFailed if there is no such cassette."""
    return leaks_in(read_stored(path).document, Path(path), allowed)


def check_held(held: Stored, path: Path, *, allowed: Sequence[Allowed], stream_end: str) -> None:
    """As `check_cassette`, for contents that were already read, or will be written to `path`."""
    if not held.exchanges:
        raise NotPlayed(f"{path} is empty; record it: pytest --sabir-record")
    check_provenance(held.provenance, str(path))
    for number, exchange in enumerate(held.exchanges):
        fault = _fault(exchange, stream_end)
        if fault:
            raise CassetteFailed(f"{path}: the recorded body of exchange {number} {fault}; record it anew")
    found = leaks_in(held.document, path, allowed)
    if found:
        raise Leaking(path, found)


def _needs_body(method: str, status: int) -> bool:
    return method != "HEAD" and status not in _WITHOUT_BODY


def _fault(exchange: RecordedExchange, stream_end: str) -> str | None:
    """What is wrong with a response's body, or None."""
    body = exchange.response_body
    if not body:
        return "is empty" if _needs_body(exchange.method, exchange.status) else None
    if "content-encoding" in exchange.headers:
        return f"is compressed ({exchange.headers['content-encoding']}), and could not be decompressed"
    read = as_text(body)
    text = body.decode("utf-8", "replace") if read is None else read.text
    if exchange.is_stream:
        return _stream_fault(exchange, text, stream_end)
    return "is JSON that was cut" if exchange.content_type.endswith("json") and _is_cut(text) else None


def _stream_fault(exchange: RecordedExchange, text: str, stream_end: str) -> str | None:
    has_events = exchange.content_type == "text/event-stream"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    last = text.strip().rpartition("\n\n" if has_events else "\n")[2]
    lines = [line.removeprefix("data:") for line in last.split("\n") if line.startswith("data:") or not has_events]
    if _is_cut("\n".join(lines)):
        return "is a stream that was cut in an event"
    if has_events and not text.endswith("\n\n"):
        return "is a stream that was cut after an event, before its blank line"
    if stream_end and exchange.status < 400 and stream_end not in last:
        return f"is a stream without its end: {stream_end!r} is not in its last event"
    return None


def _is_cut(body: str) -> bool:
    """Whether a body begins as a JSON object or a list of objects, but is not complete; `[DONE]` does not count."""
    if not body.lstrip().startswith(("{", "[{")):
        return False
    try:
        json.loads(body)
    except ValueError:
        return True
    return False
