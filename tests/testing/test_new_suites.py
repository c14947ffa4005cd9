"""Suites that are new: the first recording, a wrong provenance, an optional key, and errors of one word."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Connection, Credential, KeySource, WireRequest
from sabir.errors import Overloaded
from sabir_acme.provider import Acme, AcmeConnection
from sabir_testing import ConformanceFailure
from sabir_testing.families.access import AccessCases
from sabir_testing.families.errors import ErrorCases

from tests.testing.harness import FEW, Breakage, Outcome, registered, run, sound, suite_of
from tests.testing.kit.test_questions import OfAcme

RECORDING = ("--sabir-record", "-k", "recorded or streamed or pieces_of_a_call or call_begins or signed")
CLAIMED = {"server": "Acme's own service", "version": "1"}


class OptionalKey(Acme):
    """Acme for a service that needs no key."""

    name = "acme_open"
    credentials = (Credential(variables=("ACME_API_KEY",), default=""),)

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        return _OptionalKeyConnection(self.endpoint(access), key)


class _OptionalKeyConnection(AcmeConnection):
    def _build_request(self, client: Any, request: WireRequest) -> Any:
        key = self._key.text() if self._key else ""
        headers = {"Authorization": f"Bearer {key}", **request.headers} if key else request.headers
        return AcmeConnection(self._url, None)._build_request(client, replace(request, headers=headers))


def recorded(pytester: pytest.Pytester, folder: Path, provenance: Mapping[str, str]) -> list[Outcome]:
    """Record the stand-in's answers into an empty folder, and check them in the same run."""
    with registered(Breakage()) as name:
        said = {"cassettes": folder, "live": OfAcme.live, "provenance": lambda self, question: provenance}
        return run(pytester, suite_of(name, Breakage(attributes=said), FEW), *RECORDING)


def test_the_first_recording_passes(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """Each answer is recorded before a case uses it, although the cases of streams are written before its own."""
    outcomes = recorded(pytester, tmp_path, {"server": "a stand-in, not a vendor's own service", "version": "1"})

    assert [outcome for outcome in outcomes if outcome.failed] == []
    assert len(list(tmp_path.glob("*.yaml"))) > 30


@pytest.mark.parametrize(
    ("provenance", "reason"),
    [({"server": "Acme", "version": "1"}, "does not say whose service"), (CLAIMED, "sent to this machine"),
     ({"server": "", "version": "1"}, "lacks server")],
    ids=["no owner", "not a vendor", "no server"],
)  # fmt: skip
def test_a_refused_provenance_fails_one_case(
    pytester: pytest.Pytester, tmp_path: Path, provenance: Mapping[str, str], reason: str
) -> None:
    """It is the same mistake for every question, so the other cases are skipped."""
    failed = [outcome for outcome in recorded(pytester, tmp_path, provenance) if outcome.failed]

    assert [reason in outcome.said for outcome in failed] == [True]
    assert list(tmp_path.iterdir()) == []


def test_a_text_as_error_event_is_refused_in_words(pytester: pytest.Pytester) -> None:
    suite = type("TestTexts", (sound(),), {"examples": FEW, "error_event": lambda self, body: body})
    case = "test_an_error_within_a_stream_is_an_error"
    (outcome,) = run(pytester, suite, "-k", case)

    assert outcome.failed
    assert (
        "TestTexts.error_event returns a value of the type str; return a ServerEvent(data, name), or None"
        in outcome.said
    )


def test_an_optional_key_passes_the_cases_of_access(pytester: pytest.Pytester) -> None:
    """Without a key, requests are sent without one; a key that is set is sent."""
    cases = " or ".join(name for name in vars(AccessCases) if name.startswith("test_"))
    sabir.register(OptionalKey.name, OptionalKey())
    try:
        outcomes = run(pytester, suite_of(OptionalKey.name, Breakage(), FEW), "-k", cases)
    finally:
        sabir.unregister(OptionalKey.name)

    assert [outcome for outcome in outcomes if outcome.failed] == []
    assert len(outcomes) > 20


def decoding_to(code: str | None, body: bytes) -> Any:
    """A service with one recorded failure, whose dialect returns an error with this code."""
    error = Overloaded("acme: overloaded", provider="acme", status=503, code=code)
    dialect = SimpleNamespace(decode_error=lambda *_: error)
    subject = SimpleNamespace(dialect=dialect, target=SimpleNamespace(provider="acme"))
    return SimpleNamespace(subject=subject, failures=lambda: [("x", SimpleNamespace(status=503, response_body=body))])


def check_code(code: str | None, body: bytes) -> None:
    ErrorCases().test_an_error_keeps_the_vendors_code(decoding_to(code, body))


@pytest.mark.parametrize("body", [b'{"error": "overloaded"}', b'{"error": {"message": "Overloaded."}}'])
def test_a_message_of_one_word_needs_no_code(body: bytes) -> None:
    """A body without a code is no reason to invent one."""
    check_code(None, body)


def test_a_message_of_one_word_is_not_the_code() -> None:
    """If the body has a code, the message is not accepted in its place."""
    body = b'{"error": {"code": "slow_down", "message": "Overloaded"}}'

    check_code("slow_down", body)
    for wrong in ("Overloaded", None):
        with pytest.raises(ConformanceFailure, match="expected the vendor's code"):
            check_code(wrong, body)
