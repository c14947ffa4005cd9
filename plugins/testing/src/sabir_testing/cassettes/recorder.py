"""Cassettes: real HTTP exchanges through any client that vcrpy patches, scrubbed, with who answered in their heading.

recording(path, provenance)    ask ──▶ scrub ──▶ check ──▶ write          a recording that fails a check is not written
replaying(path)                ask ──▶ method, path, body are equal ──▶ the recorded answer       each must be requested

By default vcrpy ignores bodies, and so replays wrong requests; it also replays empty cassettes, and does not report
exchanges that were not requested.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import vcr
from vcr.cassette import Cassette
from vcr.request import Request

from sabir_testing.cassettes.checks import (
    REMEDY,
    NotPlayed,
    check_held,
    check_played,
    check_provenance,
)
from sabir_testing.cassettes.differences import body_differences, is_same_text, listed
from sabir_testing.cassettes.stored import (
    CassetteFailed,
    Provenance,
    stored,
)
from sabir_testing.cassettes.writer import CassetteWriter, sent
from sabir_testing.scrubbing.leaks import Allowed
from sabir_testing.scrubbing.scrubber import Scrubbing

DEFAULT = Scrubbing()


class NotRecorded(CassetteFailed):
    """A request that is not in the cassette; the text names it, its difference from the nearest one, and the remedy."""


@contextmanager
def _cassette(
    path: Path | str, mode: Literal["all", "none"], kind: type[Cassette], persister: "CassetteWriter | _Reader"
) -> Iterator[Any]:
    """vcrpy's own cassette, recorded again ("all") or replayed ("none"), by method, path and body."""
    made = vcr.VCR(record_mode=mode, match_on=["method", "recorded_path", "recorded_body"], record_on_exception=False)
    made.register_matcher("recorded_path", _match_path)
    made.register_matcher("recorded_body", _match_body)
    made.register_persister(persister)
    with kind.use(**made.get_merged_config(path=str(path))) as cassette:
        yield cassette


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
    check_provenance(provenance, str(path))
    writer = CassetteWriter(provenance, scrub, partial(check_held, allowed=allowed, stream_end=stream_end))
    with _cassette(path, "all", Cassette, writer) as cassette:
        yield cassette
    # Only after vcrpy has restored the clients, which it fails to do if saving raises.
    writer.raise_fault()
    if not len(cassette):
        raise NotPlayed(f"nothing was asked while {path} was recorded; ask inside, through a client that vcrpy patches")


@contextmanager
def replaying(path: Path | str) -> Iterator[Cassette]:
    """Answer the requests within the block from the cassette at `path`, without a network.

    Raises NotRecorded for a request that it does not hold, also at the end, since many clients take the failure for a
    broken connection; NotPlayed for exchanges that were not requested; CassetteFailed for a cassette that is missing
    or empty, and for an empty body.
    """
    stored(path)
    with _cassette(path, "none", _Replayed, _Reader()) as cassette:
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


def _match_path(asked: Request, recorded: Request) -> None:
    assert is_same_text(recorded.path, asked.path), f"recorded {recorded.path}, asked {asked.path}"


def _match_body(asked: Request, recorded: Request) -> None:
    found = listed(body_differences(sent(recorded), sent(asked)))
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
        ways = [list(islice(body_differences(sent(each), sent(asked)), 50)) for each in alike]
        nearest = min(ways, key=len)
        if not nearest:
            times = sum(not way for way in ways)
            return f"{head}, once more than it was recorded ({times}×); {REMEDY}"
        return f"{head}; the body differs from the nearest recorded one:\n{listed(iter(nearest))}\n{REMEDY}"


def _response(stored_response: Mapping[str, Any]) -> dict[str, Any]:
    body = stored_response["body"]["string"]
    return {**stored_response, "body": {"string": body.encode() if isinstance(body, str) else body or b""}}


class _Reader:
    """Gives vcrpy the contents of a file, read once for each state of it."""

    def load_cassette(self, path: str, serializer: object) -> tuple[list[Request], list[dict[str, Any]]]:
        interactions = stored(path).document["interactions"]
        requests = [Request._from_dict({**each["request"]}) for each in interactions]
        return requests, [_response(each["response"]) for each in interactions]

    def save_cassette(self, path: str, cassette: Mapping[str, Any], serializer: object) -> None:
        raise CassetteFailed(f"{path} was to be written while it was replayed; use recording()")
