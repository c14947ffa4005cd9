"""Cassettes: real HTTP exchanges, recorded once, replayed in every test, and checked before anybody relies on them.

recorder ──▶ differences, stored        vcrpy's part ▸ how two requests differ ▸ a file's exchanges, and its checks
"""

from sabir_testing.cassettes.recorder import NotRecorded, recording, replaying
from sabir_testing.cassettes.stored import (
    PROVENANCE_FIELDS,
    REMEDY,
    CassetteFailed,
    Leaking,
    NotPlayed,
    Provenance,
    RecordedExchange,
    check_cassette,
    check_played,
    check_provenance,
    exchanges,
    leaks,
    provenance_of,
)
from sabir_testing.scrubbing import Allowed, Leak, Scrubbing

__all__ = [
    "PROVENANCE_FIELDS", "REMEDY", "Allowed", "CassetteFailed", "Leak", "Leaking", "NotPlayed", "NotRecorded",
    "Provenance", "RecordedExchange", "Scrubbing", "check_cassette", "check_played", "check_provenance", "exchanges",
    "leaks", "provenance_of", "recording", "replaying",
]  # fmt: skip
