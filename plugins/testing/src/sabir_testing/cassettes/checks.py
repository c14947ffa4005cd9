"""Checks of a cassette before it is used: exchanges, whole bodies, provenance, and no secret.

check_cassette      a file: all of it
check_provenance    a heading
check_played        the requests to a cassette while it was replayed
"""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from sabir_testing.cassettes.stored import CassetteFailed, Provenance, RecordedExchange, Stored, stored
from sabir_testing.reading import as_text
from sabir_testing.scrubbing.leaks import Allowed, Leak, leaks_in

PROVENANCE_FIELDS = ("server", "version", "model", "date", "client")
OWN_SERVICE, NOT_A_VENDOR = "own service", "not a vendor"
"""The allowed values of `server`."""
REMEDY = "if the new request is right, record it anew: pytest --sabir-record"
_UNSAID = {"", "unknown", "none", "null"}
_WITHOUT_BODY = {204, 205, 304}


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
    check_held(stored(path), Path(path), allowed=allowed, stream_end=stream_end)


def leaks(path: Path | str, allowed: Sequence[Allowed] = ()) -> list[Leak]:
    """The leaks in a cassette, in the order of the file; raises CassetteFailed if there is no such cassette."""
    return leaks_in(stored(path).document, Path(path), allowed)


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
