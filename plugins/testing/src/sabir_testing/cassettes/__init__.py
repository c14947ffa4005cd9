"""Cassettes: recorded HTTP exchanges of any client that vcrpy patches, without secrets, and with their provenance.

recording(path, provenance)    requests ──▶ decompress ──▶ collect all secrets ──▶ scrub ──▶ check ──▶ write
replaying(path)                request ──▶ equal method, path and body ──▶ recorded response    each must be requested

A recording that fails a check is not written. By default vcrpy ignores bodies, and so replays wrong requests; it also
replays empty cassettes, and does not report exchanges that were not requested. The module `differences` compares
requests with recorded ones, and `files` reads and checks cassette files.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from vcr.cassette import Cassette
from vcr.matchers import method
from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.record_mode import RecordMode
from vcr.request import Request
from vcr.serialize import deserialize

from sabir_testing.cassettes.differences import body_differences, is_same_text, list_differences
from sabir_testing.cassettes.files import (
    NOT_A_VENDOR,
    OWN_SERVICE,
    PROVENANCE_FIELDS,
    REMEDY,
    CassetteFailed,
    Leaking,
    NotPlayed,
    Provenance,
    ProvenanceRefused,
    RecordedExchange,
    check_cassette,
    check_contents,
    check_played,
    check_provenance,
    exchanges,
    leaks,
    parse,
    provenance_of,
    read_cassette,
)
from sabir_testing.reading import decompress, decompress_detected
from sabir_testing.scrubbing import Allowed, Leak, Scrubber, Scrubbing

__all__ = [
    "PROVENANCE_FIELDS", "REMEDY", "Allowed", "CassetteFailed", "Leak", "Leaking", "NotPlayed", "NotRecorded",
    "Provenance", "RecordedExchange", "Scrubbing", "check_cassette", "check_played", "check_provenance", "exchanges",
    "leaks", "provenance_of", "recording", "replaying",
]  # fmt: skip

DEFAULT_RULES = Scrubbing()
_DUMPER: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class NotRecorded(CassetteFailed):
    """Raised for a request that is not in the cassette, or was sent more often than recorded. The message shows how the
    request differs from the most similar recorded one with its method and path, or lists the recorded requests.
    """


@contextmanager
def recording(
    path: Path | str,
    provenance: Provenance,
    *,
    scrub: Scrubbing = DEFAULT_RULES,
    allowed: Sequence[Allowed] = (),
    stream_end: str = "",
) -> Iterator[Cassette]:
    """Return a context manager that records the requests of its block as the cassette at `path`, and replaces an older
    one.

    `stream_end` is a text that the last event of every successful stream must contain. Raises CassetteFailed at the
    start for an invalid provenance, and at the end if no request was sent, if a request cannot be scrubbed, if it went
    to this machine or a private network and the provenance does not say "not a vendor", or for the faults that
    `check_cassette` finds. In these cases, and if the block raises, nothing is written.
    """
    path = Path(path)
    check_provenance(provenance, str(path))
    with _patch_clients(Cassette, path, RecordMode.ALL) as cassette:
        yield cassette
    if not len(cassette):
        what = f"the block of recording({str(path)!r}) sent no request"
        raise NotPlayed(f"{what}; send requests inside the block, with an HTTP client that vcrpy patches")
    # Only after vcrpy has restored the clients, which it fails to do if saving raises.
    interactions = _scrub_interactions(path, cassette, provenance.get("server", ""), scrub)
    document = {"provenance": dict(provenance), "version": 1, "interactions": interactions}
    text = yaml.dump(document, Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
    check_contents(parse(text, path), path, allowed=allowed, stream_end=stream_end)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@contextmanager
def replaying(path: Path | str) -> Iterator[Cassette]:
    """Return a context manager that answers the requests of its block from the cassette at `path`, without a network.

    Raises CassetteFailed at the start for a missing or invalid cassette. Raises NotRecorded for a request that is not
    in the cassette, and again at the end of the block, because many clients treat the first error as a broken
    connection. KeyboardInterrupt, SystemExit and CassetteFailed pass through. If the block does not raise, raises
    NotPlayed at its end for an empty cassette and for exchanges that were not requested, and CassetteFailed for an
    empty response body, unless the method or status allows none.
    """
    read_cassette(path)
    with _patch_clients(_ReplayCassette, path, RecordMode.NONE) as cassette:
        try:
            yield cassette
        except (KeyboardInterrupt, SystemExit, GeneratorExit, CassetteFailed):
            raise
        except BaseException as error:  # also pytest's failures, which a missing response may cause
            if cassette.missed:
                raise cassette.missed[0] from error
            raise
        if cassette.missed:
            raise cassette.missed[0]
        check_played(cassette)


def _patch_clients(kind: type[Cassette], path: Path | str, mode: RecordMode) -> Any:
    """Return vcrpy's context manager, which patches clients. Requests match by method, path and body."""
    return kind.use(
        path=str(path),
        record_mode=mode,
        record_on_exception=False,
        match_on=(method, _match_path, _match_body),
        before_record_request=deepcopy,
        persister=_Persister(mode),
    )


class _Persister:
    """Loads a cassette for vcrpy, cached until the file changes. A new recording ignores the old contents."""

    def __init__(self, mode: RecordMode) -> None:
        self._mode = mode

    def load_cassette(self, path: str, serializer: object) -> tuple[list[Request], list[dict[str, Any]]]:
        if self._mode is RecordMode.ALL:
            raise CassetteNotFoundError
        loaded: tuple[list[Request], list[dict[str, Any]]] = deserialize(path, self)
        return loaded

    def deserialize(self, path: str) -> Any:
        return deepcopy(read_cassette(path).document)

    def save_cassette(self, path: str, cassette: Mapping[str, Any], serializer: object) -> None:
        """Do nothing: `recording` writes the file after its checks."""


def _match_path(sent: Request, recorded: Request) -> None:
    assert is_same_text(recorded.path, sent.path), f"recorded {recorded.path}, sent {sent.path}"


def _match_body(sent: Request, recorded: Request) -> None:
    differences = list_differences(body_differences(_plain_body(recorded), _plain_body(sent)))
    assert not differences, differences


class _ReplayCassette(Cassette):  # type: ignore[misc]  # vcrpy has no types
    """A cassette that remembers the requests without a recorded response."""

    missed: list[NotRecorded]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.missed = []

    def can_play_response_for(self, request: Request) -> bool:
        """Return True if a response is recorded, otherwise raise NotRecorded. vcrpy calls this for every request."""
        if super().can_play_response_for(request):
            return True
        self.missed.append(NotRecorded(self._describe_unrecorded(request)))
        raise self.missed[-1]

    def _describe_unrecorded(self, request: Request) -> str:
        """Return the message of NotRecorded."""
        request_line = f"{request.method} {request.path}"
        head = f"the request {request_line} is not in the cassette {self.path}"
        alike = [each for each in self.requests if each.method == request.method]
        alike = [each for each in alike if is_same_text(each.path, request.path)]
        if not alike:
            recorded = ", ".join(sorted({f"{each.method} {each.path}" for each in self.requests})) or "no requests"
            return f"{head}, which contains {recorded}; {REMEDY}"
        differences = [list(islice(body_differences(_plain_body(each), _plain_body(request)), 50)) for each in alike]
        fewest = min(differences, key=len)
        if not fewest:
            times = sum(not each for each in differences)
            return f"{head} again: it is recorded {times}× and was sent more often; {REMEDY}"
        lines = list_differences(iter(fewest))
        return f"{head}; its body differs from the most similar recorded one:\n{lines}\n{REMEDY}"


def _scrub_interactions(path: Path, cassette: Cassette, server: str, scrub: Scrubbing) -> list[dict[str, Any]]:
    """Return the recorded interactions without their secrets.

    Raises CassetteFailed for a compressed request body that cannot be decompressed, and for a request to this machine
    or a private network if the provenance calls the server a vendor's own service.
    """
    scrubber = Scrubber(scrub)
    for request, response in cassette.data:
        scrubber.learn(request.uri, _flatten_headers(request.headers), _plain_body(request))
        scrubber.learn_headers(_flatten_headers(response["headers"]))
    if any(map(_is_private, scrubber.hosts)) and NOT_A_VENDOR not in server:
        remedy = f'add "{NOT_A_VENDOR}\'s {OWN_SERVICE}" to "server"'
        what = f"{path}: a request was sent to this machine or a private network, but the provenance has"
        raise ProvenanceRefused(f'{what} "server": {server!r}; {remedy}')
    for number, request in enumerate(cassette.requests):
        named = _flatten_headers(request.headers).get("content-encoding", "")
        if (
            decompress(_raw_body(request), named) is None
        ):  # secrets would not be found; `check_contents` reports responses
            raise CassetteFailed(
                f"{path}: the request body of exchange {number} has content-encoding {named!r} and cannot be "
                "decompressed; send the body uncompressed, or install brotli or zstandard"
            )
    return [_scrub_interaction(scrubber, scrub, request, response) for request, response in cassette.data]


def _scrub_interaction(scrubber: Scrubber, rules: Scrubbing, request: Request, response: Any) -> dict[str, Any]:
    sent_headers, received_headers = _flatten_headers(request.headers), _flatten_headers(response["headers"])
    body = response["body"]["string"] or b""
    unpacked = decompress(body, received_headers.get("content-encoding", ""))
    allowed_headers = rules.response_headers | (set() if unpacked is not None else {"content-encoding"})
    clean_body = scrubber.body(body if unpacked is None else unpacked, received_headers.get("content-type", "").lower())
    return {
        "request": {
            "method": request.method,
            "uri": scrubber.url(request.uri),
            "body": _text_or_bytes(scrubber.body(_plain_body(request), sent_headers.get("content-type", "").lower())),
            "headers": scrubber.headers(_list_headers(request.headers), rules.request_headers),
        },
        "response": {
            "status": dict(response["status"]),
            "headers": scrubber.headers(_list_headers(response["headers"]), allowed_headers),
            "body": {"string": _text_or_bytes(clean_body)},
        },
    }


def _raw_body(request: Request) -> bytes:
    return bytes(request.body_bytes or b"")


def _plain_body(request: Request) -> bytes:
    """Return the body of a vcrpy request as bytes, decompressed if possible."""
    raw_body = _raw_body(request)
    unpacked = decompress(raw_body, _flatten_headers(request.headers).get("content-encoding", ""))
    return decompress_detected(raw_body if unpacked is None else unpacked)


def _list_headers(headers: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Return headers with lists of text values. Clients have text, bytes, or lists of these."""
    headers_by_name: dict[str, list[str]] = {}
    for name, value in headers.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        headers_by_name.setdefault(_header_text(name), []).extend(map(_header_text, values))
    return headers_by_name


def _flatten_headers(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Return headers with names in lower case and one text for each."""
    return {name.lower(): ", ".join(values) for name, values in _list_headers(headers).items()}


def _header_text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost"


def _text_or_bytes(body: bytes) -> str | bytes:
    """Return a body as text if it is UTF-8, so that people can read a cassette; otherwise return the bytes."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body
