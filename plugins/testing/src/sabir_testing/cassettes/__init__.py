"""Cassettes: real HTTP exchanges through any client that vcrpy patches, scrubbed, with who answered in their heading.

recording(path, provenance)    ask ──▶ decompress ──▶ learn the secrets of all ──▶ scrub each ──▶ check ──▶ write
replaying(path)                ask ──▶ method, path, body are equal ──▶ the recorded answer       each must be requested

A recording that fails a check is not written. By default vcrpy ignores bodies, and so replays wrong requests; it also
replays empty cassettes, and does not report exchanges that were not requested. `differences` tells how a request
differs from a recorded one; `stored` holds the exchanges of a file, and its checks.
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

from sabir_testing.cassettes.differences import body_differences, is_same_text, listed
from sabir_testing.cassettes.stored import (
    NOT_A_VENDOR,
    OWN_SERVICE,
    PROVENANCE_FIELDS,
    REMEDY,
    CassetteFailed,
    Leaking,
    NotPlayed,
    Provenance,
    RecordedExchange,
    check_cassette,
    check_held,
    check_played,
    check_provenance,
    exchanges,
    leaks,
    parse,
    provenance_of,
    read_stored,
)
from sabir_testing.reading import opened, unpacked
from sabir_testing.scrubbing import Allowed, Leak, Scrubber, Scrubbing

__all__ = [
    "PROVENANCE_FIELDS", "REMEDY", "Allowed", "CassetteFailed", "Leak", "Leaking", "NotPlayed", "NotRecorded",
    "Provenance", "RecordedExchange", "Scrubbing", "check_cassette", "check_played", "check_provenance", "exchanges",
    "leaks", "provenance_of", "recording", "replaying",
]  # fmt: skip

DEFAULT = Scrubbing()
_DUMPER: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class NotRecorded(CassetteFailed):
    """A request that is not in the cassette; the text names it, its difference from the nearest one, and the remedy."""


@contextmanager
def recording(
    path: Path | str,
    provenance: Provenance,
    *,
    scrub: Scrubbing = DEFAULT,
    allowed: Sequence[Allowed] = (),
    stream_end: str = "",
) -> Iterator[Cassette]:
    """Record the requests within the block as the cassette at `path`, replacing an older one.

    Raises CassetteFailed at the end for the faults that `check_cassette` finds; then, and if the block raises, nothing
    is written. `stream_end`: a text that the last event of every stream holds.
    """
    path = Path(path)
    check_provenance(provenance, str(path))
    with _patched(Cassette, path, RecordMode.ALL) as cassette:
        yield cassette
    if not len(cassette):
        raise NotPlayed(f"nothing was asked while {path} was recorded; ask inside, through a client that vcrpy patches")
    # Only after vcrpy has restored the clients, which it fails to do if saving raises.
    interactions = _scrubbed(path, cassette, provenance.get("server", ""), scrub)
    document = {"provenance": dict(provenance), "version": 1, "interactions": interactions}
    text = yaml.dump(document, Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
    check_held(parse(text, path), path, allowed=allowed, stream_end=stream_end)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@contextmanager
def replaying(path: Path | str) -> Iterator[Cassette]:
    """Answer the requests within the block from the cassette at `path`, without a network.

    Raises NotRecorded for a request that it does not hold, also at the end, since many clients take the failure for a
    broken connection; NotPlayed for exchanges that were not requested; CassetteFailed for a cassette that is missing
    or empty, and for an empty body.
    """
    read_stored(path)
    with _patched(_Replayed, path, RecordMode.NONE) as cassette:
        try:
            yield cassette
        except (KeyboardInterrupt, SystemExit, GeneratorExit, CassetteFailed):
            raise
        except BaseException as error:  # pytest's failures are not Exceptions, and may be the result
            if cassette.missed:
                raise cassette.missed[0] from error
            raise
        if cassette.missed:
            raise cassette.missed[0]
        check_played(cassette)


def _patched(kind: type[Cassette], path: Path | str, mode: RecordMode) -> Any:
    """vcrpy's block in which clients are patched: requests match by method, path and body."""
    return kind.use(
        path=str(path),
        record_mode=mode,
        record_on_exception=False,
        match_on=(method, _match_path, _match_body),
        before_record_request=deepcopy,
        persister=_Persister(mode),
    )


class _Persister:
    """Gives vcrpy what a file holds, read once for each state of it; a file that is recorded again holds nothing."""

    def __init__(self, mode: RecordMode) -> None:
        self._mode = mode

    def load_cassette(self, path: str, serializer: object) -> tuple[list[Request], list[dict[str, Any]]]:
        if self._mode is RecordMode.ALL:
            raise CassetteNotFoundError
        found: tuple[list[Request], list[dict[str, Any]]] = deserialize(path, self)
        return found

    def deserialize(self, path: str) -> Any:
        return deepcopy(read_stored(path).document)

    def save_cassette(self, path: str, cassette: Mapping[str, Any], serializer: object) -> None:
        """Nothing: `recording` writes the file, once it is checked."""


def _match_path(asked: Request, recorded: Request) -> None:
    assert is_same_text(recorded.path, asked.path), f"recorded {recorded.path}, asked {asked.path}"


def _match_body(asked: Request, recorded: Request) -> None:
    found = listed(body_differences(_sent(recorded), _sent(asked)))
    assert not found, found


class _Replayed(Cassette):  # type: ignore[misc]  # vcrpy has no types
    """A cassette that keeps the requests which it could not answer."""

    missed: list[NotRecorded]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.missed = []

    def can_play_response_for(self, request: Request) -> bool:
        """Whether there is an answer; every client of vcrpy calls this before it takes one."""
        if super().can_play_response_for(request):
            return True
        self.missed.append(NotRecorded(self._missing(request)))
        raise self.missed[-1]

    def _missing(self, asked: Request) -> str:
        path = Path(self.path)
        said = f"{asked.method} {asked.path}"
        head = f"the case {path.stem!r} ({path}) does not hold what was asked: {said}"
        alike = [each for each in self.requests if each.method == asked.method and is_same_text(each.path, asked.path)]
        if not alike:
            held = ", ".join(sorted({f"{each.method} {each.path}" for each in self.requests})) or "nothing"
            return f"{head}; it holds {held}; {REMEDY}"
        ways = [list(islice(body_differences(_sent(each), _sent(asked)), 50)) for each in alike]
        nearest = min(ways, key=len)
        if not nearest:
            times = sum(not way for way in ways)
            return f"{head}, once more than it was recorded ({times}×); {REMEDY}"
        return f"{head}; the body differs from the nearest recorded one:\n{listed(iter(nearest))}\n{REMEDY}"


def _scrubbed(path: Path, cassette: Cassette, server: str, scrub: Scrubbing) -> list[dict[str, Any]]:
    """The recorded interactions without their secrets; CassetteFailed for what cannot be scrubbed, or is no vendor's.

    The server may be called a vendor's own service only if no address of this machine or a private network was asked.
    """
    scrubber = Scrubber(scrub)
    for request, response in cassette.data:
        scrubber.learn(request.uri, _flat(request.headers), _sent(request))
        scrubber.learn_headers(_flat(response["headers"]))
    if any(map(_is_private, scrubber.hosts)) and NOT_A_VENDOR not in server:
        remedy = f'say "{NOT_A_VENDOR}\'s {OWN_SERVICE}"'
        raise CassetteFailed(f"{path}: an address of a private network was asked, and server is {server!r}; {remedy}")
    for number, request in enumerate(cassette.requests):
        named = _flat(request.headers).get("content-encoding", "")
        if unpacked(_given(request), named) is None:  # no secret in it would be found; `check_held` tells of responses
            raise CassetteFailed(
                f"{path}: the request body of exchange {number} is compressed ({named}), and could not be "
                "decompressed; send it uncompressed, or install what decompresses it"
            )
    return [_interaction(scrubber, scrub, request, response) for request, response in cassette.data]


def _interaction(scrubber: Scrubber, scrub: Scrubbing, request: Request, response: Mapping[str, Any]) -> dict[str, Any]:
    asked, answered = _flat(request.headers), _flat(response["headers"])
    body = response["body"]["string"] or b""
    read = unpacked(body, answered.get("content-encoding", ""))
    kept = scrub.response_headers | (set() if read is not None else {"content-encoding"})
    written = scrubber.body(body if read is None else read, answered.get("content-type", "").lower())
    return {
        "request": {
            "method": request.method,
            "uri": scrubber.url(request.uri),
            "body": _writable(scrubber.body(_sent(request), asked.get("content-type", "").lower())),
            "headers": scrubber.headers(_lists(request.headers), scrub.request_headers),
        },
        "response": {
            "status": dict(response["status"]),
            "headers": scrubber.headers(_lists(response["headers"]), kept),
            "body": {"string": _writable(written)},
        },
    }


def _given(request: Request) -> bytes:
    return bytes(request.body_bytes or b"")


def _sent(request: Request) -> bytes:
    """The body of a vcrpy request as bytes; decompressed if possible."""
    given = _given(request)
    read = unpacked(given, _flat(request.headers).get("content-encoding", ""))
    return opened(given if read is None else read)


def _lists(headers: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Headers as clients hold them: a text, bytes, or several of either."""
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        found.setdefault(_text(name), []).extend(map(_text, values))
    return found


def _flat(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Headers by names in lower case, each as one text."""
    return {name.lower(): ", ".join(values) for name, values in _lists(headers).items()}


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost"


def _writable(body: bytes) -> str | bytes:
    """A text if possible, so that people can read a cassette; bytes where YAML cannot hold its control characters."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body
