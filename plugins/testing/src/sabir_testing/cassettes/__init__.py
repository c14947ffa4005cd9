"""Cassettes: real HTTP exchanges, recorded once, replayed in every test, and checked before anybody relies on them.

recorder ──▶ writer ──▶ checks ──▶ stored        vcrpy ▸ writing a file ▸ required contents ▸ its exchanges
"""

from sabir_testing.cassettes.checks import (
    PROVENANCE_FIELDS,
    REMEDY,
    Leaking,
    NotPlayed,
    check_cassette,
    check_played,
    check_provenance,
    leaks,
)
from sabir_testing.cassettes.recorder import NotRecorded, recording, replaying
from sabir_testing.cassettes.stored import CassetteFailed, Provenance, RecordedExchange, exchanges, provenance_of
from sabir_testing.scrubbing import Allowed, Leak, Scrubbing

__all__ = [
    "PROVENANCE_FIELDS", "REMEDY", "Allowed", "CassetteFailed", "Leak", "Leaking", "NotPlayed", "NotRecorded",
    "Provenance", "RecordedExchange", "Scrubbing", "check_cassette", "check_played", "check_provenance", "exchanges",
    "leaks", "provenance_of", "recording", "replaying",
]  # fmt: skip
