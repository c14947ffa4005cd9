"""What the kit cannot see it does not pass, and what is no fault it does not take for one.

framed          streams that are recorded in frames of their own: the kit can play none of their events
alone           a provider beside which no other is installed
quotes · rewrites · reads_home      sound adapters, in ways in which acme is not
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sabir
import yaml
from sabir.authoring.access import first_variable
from sabir.contract.provider import Access
from sabir.contract.scope import RequestScope
from sabir.vocabulary.target import Target
from sabir_testing import DOWNGRADED, FULL

from tests.testing.broken.answers import Answer
from tests.testing.broken.connections import Told
from tests.testing.broken.providers import Reaching
from tests.testing.broken.streams import EndsWell, decoding
from tests.testing.harness import TEMPLATE, Breakage, Delegate, cases_of, failed_cases, fails, run, sound

FEW = 2
FRAME = b"\x00\x01"


class Unframed(Answer):
    """Events of the wire, where the service sends frames."""

    def waiting(self) -> Iterator[bytes]:
        body = b"".join(self.base.chunks())
        yield body.replace(FRAME, b"data: ").replace(b"\x02", b"\n\n")


@pytest.fixture
def framed(tmp_path: Path) -> Path:
    """Acme's recordings, their streams in frames."""
    for path in (TEMPLATE / "tests" / "cassettes").glob("*.yaml"):
        said = yaml.safe_load(path.read_text("utf-8"))
        for each in said["interactions"]:
            response = each["response"]
            if "text/event-stream" in response["headers"].get("content-type", ()):
                body = response["body"]["string"].encode().replace(b"data: ", FRAME).replace(b"\n\n", b"\x02")
                response["body"]["string"] = body
        (tmp_path / path.name).write_text(yaml.safe_dump(said), "utf-8")
    return tmp_path


def test_a_stream_case_that_saw_no_event_fails(pytester: pytest.Pytester, framed: Path) -> None:
    """Else a decoder that takes any end for a good one would pass them all, where its events come in frames."""
    broken = Breakage(
        dialect=decoding(EndsWell).dialect,
        connection=lambda base: Told(base, "waiting", Unframed),
        attributes={"cassettes": framed},
    )

    assert set(failed_cases(pytester, broken, "streams")) == set(cases_of("streams"))


def test_an_adapter_that_is_handed_to_nobody_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told what to install; a case that looked at nothing would say that all is well."""
    case = "test_an_answer_goes_to_every_installed_provider_and_back"
    monkeypatch.setattr(sabir, "providers", tuple)
    (outcome,) = run(pytester, sound(), "-k", case)

    assert outcome.failed
    assert "handed to nobody" in outcome.said
    assert "install one, such as sabir-echo" in outcome.said


class Quotes(Delegate):
    """Names the model in the path alone, quoted."""

    def path_of(self, target: Target, *, streaming: bool) -> str:
        return f"/models/{quote(target.model, safe='')}"

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        return {name: value for name, value in self.base.encode_request(scope).items() if name != "model"}


class Rewrites(Delegate):
    """Writes what the system says in other characters, and says so."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        for turn in scope.system:
            scope.losses.add("rewritten", "in other characters", message=turn.entries[0].message)
        found: Mapping[str, Any] = self.base.encode_request(scope)
        return found


def reads_home(access: Access) -> Access:
    """Takes a key from the user's own folder, where none is given."""
    kept = Path.home() / "acme.key"
    is_given = access.api_key is not None or access.client is not None or first_variable(["ACME_API_KEY"])
    if is_given or not kept.exists():
        return access
    return Access(api_key=kept.read_text("utf-8"), base_url=access.base_url)


def rewriting(grade: object) -> Breakage:
    said = {**sound().capabilities, "system": grade}
    return Breakage(dialect=Rewrites, attributes={"capabilities": said})


def test_a_path_is_read_unquoted(pytester: pytest.Pytester) -> None:
    """A model's name may hold what a path cannot."""
    assert not fails(pytester, Breakage(dialect=Quotes, model="org/small:7"), "test_a_request_names_its_model", FEW)


@pytest.mark.parametrize(("grade", "is_wrong"), [(FULL, False), (DOWNGRADED, True)])
def test_what_is_rewritten_is_carried_in_full(pytester: pytest.Pytester, grade: object, is_wrong: bool) -> None:
    """The same meaning in other characters: whoever declares it downgraded promises too little."""
    assert fails(pytester, rewriting(grade), "test_instructions_are_sent_or_reported", FEW) is is_wrong


def test_a_key_in_the_home_of_whoever_runs_the_tests_is_not_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The case of a missing key says the same on every machine."""
    (tmp_path / "acme.key").write_text("key-of-a-home", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    case = "test_a_missing_key_names_what_to_set"

    assert not fails(pytester, Breakage(provider=lambda base: Reaching(base, reads_home)), case, FEW)
