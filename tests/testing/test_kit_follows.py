"""What the kit cannot see it does not pass, and what is no fault it does not take for one.

framing         streams in server-sent events, in lines of JSON, in frames of bytes
alone           a provider beside which no other is installed
quotes · rewrites · reads_home      sound adapters, in ways in which acme is not
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sabir
import yaml
from sabir import ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import JSONLines
from sabir.contract.dialect import ServerEvent, ServerEventReader
from sabir.contract.provider import Access
from sabir.contract.scope import RequestScope
from sabir_acme.stream import ChatDecoder
from sabir_testing import DOWNGRADED, FULL
from sabir_testing.families.transport_fixtures import provider_variables
from sabir_testing.kit.suite import AdapterUnderTest, Suite

from tests.testing.broken.providers import reaching
from tests.testing.harness import (
    FEW,
    TEMPLATE,
    Breakage,
    cases_of,
    changed,
    failed_in,
    fails,
    registered,
    run,
    sound,
    suite_of,
)


class Frames:
    """A byte that no text holds, a length of three bytes, and so many bytes of JSON."""

    was_invalid = False

    def __init__(self) -> None:
        self._bytes = b""

    @property
    def kept(self) -> int:
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        self._bytes += chunk
        events = []
        while len(self._bytes) >= (end := 4 + int.from_bytes(self._bytes[1:4], "big")) > 4:
            events.append(ServerEvent(self._bytes[4:end].decode()))
            self._bytes = self._bytes[end:]
        return events

    def close(self) -> list[ServerEvent]:
        return []


def framed_bytes(event: str) -> bytes:
    data = event.encode()
    return b"\xff" + len(data).to_bytes(3, "big") + data


FRAMINGS: Mapping[str, tuple[Any, Callable[[str], bytes]]] = {
    "text/event-stream": (ServerEventReader, lambda event: f"data: {event}\n\n".encode()),
    "application/x-ndjson": (JSONLines, lambda event: f"{event}\n".encode()),
    "application/x-frames": (Frames, framed_bytes),
}
"""Content type → what cuts such a stream, and how an event is written."""


@pytest.fixture(scope="module", params=FRAMINGS)
def framing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A content type, and acme's recordings with their streams written so."""
    kind, folder = request.param, tmp_path_factory.mktemp("framed")
    for path in (TEMPLATE / "tests" / "cassettes").glob("*.yaml"):
        said = yaml.safe_load(path.read_text("utf-8"))
        for each in said["interactions"]:
            response = each["response"]
            if "text/event-stream" in response["headers"].get("content-type", ()):
                events = response["body"]["string"].split("\n\n")
                body = b"".join(FRAMINGS[kind][1](event.removeprefix("data: ")) for event in events if event)
                response["body"]["string"], response["headers"]["content-type"] = body, [kind]
        (folder / path.name).write_text(yaml.safe_dump(said), "utf-8")
    return kind, folder


def framed(framing: tuple[str, Path], **changes: Any) -> Breakage:
    """Acme whose streams come in that framing, with other functions."""
    kind, folder = framing
    framings = {kind: FRAMINGS[kind][0]}
    return Breakage(dialect=lambda base: replace(base, framings=framings, **changes), attributes={"cassettes": folder})


class Deaf(ChatDecoder):
    """Hears nothing."""

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        return ()


class Hollow(Deaf):
    """Hears nothing, and says that all is well."""

    def close(self) -> Iterable[StreamEvent]:
        return ReplyStart(origin=self._scope.origin()), ReplyEnd(finish_reason="stop")


def test_a_sound_adapter_passes_in_every_framing(pytester: pytest.Pytester, framing: tuple[str, Path]) -> None:
    """Events come in server-sent events, in lines of JSON, or in frames of bytes that are no text."""
    assert failed_in(pytester, framed(framing), "streams") == []
    case = "test_a_stream_that_breaks_off_is_a_broken_stream"
    assert not fails(pytester, framed(framing), case)


@pytest.mark.parametrize("decoder", [Deaf, Hollow])
def test_a_decoder_that_swallows_everything_fails_every_stream_case(
    pytester: pytest.Pytester, framing: tuple[str, Path], decoder: type[ChatDecoder]
) -> None:
    """A case that saw no event would say that all is well, in whatever framing the events come."""
    failed = failed_in(pytester, framed(framing, decoder=decoder), "streams")

    assert set(failed) == set(cases_of("streams"))


def test_a_stream_that_no_framing_cuts_fails_every_stream_case(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """The dialect names no framing for what its service sends; it is told where to name one."""
    broken = Breakage(dialect=lambda base: replace(base, framings={"text/": Silent}))
    with registered(broken) as name:
        outcomes = run(pytester, suite_of(name, broken, FEW), "-k", "pieces")

    assert all(outcome.failed for outcome in outcomes)


class Silent(Frames):
    """Cuts nothing."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        return []


def test_an_adapter_that_is_handed_to_nobody_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told what to install; a case that looked at nothing would say that all is well."""
    case = "test_an_answer_goes_to_every_installed_provider_and_back"
    monkeypatch.setattr(sabir, "providers", tuple)
    (outcome,) = run(pytester, sound(), "-k", case)

    assert outcome.failed
    assert "no other provider is installed" in outcome.said
    assert "install one, such as sabir-echo" in outcome.said


QUOTING = changed(
    path=lambda own, target: f"/models/{quote(target.model, safe='')}",
    encode_request=lambda own, scope: {name: value for name, value in own(scope).items() if name != "model"},
)
"""The model is named in the path alone, quoted."""


def rewriting(own: Any, scope: RequestScope) -> Any:
    """What the system says is written in other characters, which a loss says."""
    for turn in scope.system:
        scope.losses.add("rewritten", "in other characters", message=turn.entries[0].message)
    return own(scope)


def reads_home(access: Access) -> Access:
    """Takes a key from the user's own folder, where none is given."""
    kept = Path.home() / "acme.key"
    is_given = access.api_key is not None or access.client is not None or os.environ.get("ACME_API_KEY")
    if is_given or not kept.exists():
        return access
    return Access(api_key=kept.read_text("utf-8"), base_url=access.base_url)


def test_a_path_is_read_unquoted(pytester: pytest.Pytester) -> None:
    """A model's name may hold what a path cannot."""
    assert not fails(pytester, replace(QUOTING, model="org/small:7"), "test_a_request_names_its_model")


@pytest.mark.parametrize(("grade", "is_wrong"), [(FULL, False), (DOWNGRADED, True)])
def test_what_is_rewritten_is_carried_in_full(pytester: pytest.Pytester, grade: object, is_wrong: bool) -> None:
    """The same meaning in other characters: whoever declares it downgraded promises too little."""
    said = {"capabilities": {**sound().capabilities, "system": grade}}
    adapter = replace(changed(encode_request=rewriting), attributes=said)

    assert fails(pytester, adapter, "test_instructions_are_sent_or_reported") is is_wrong


def test_a_key_in_the_home_of_whoever_runs_the_tests_is_not_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The case of a missing key says the same on every machine."""
    (tmp_path / "acme.key").write_text("key-of-a-home", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    case = "test_a_missing_key_names_what_to_set"

    assert not fails(pytester, reaching(reads_home), case)


DECISIVE = (
    "ACME_API_KEY", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy", "ACME_BASE_URL", "OTHER_SDK_URL", "TENANT",
)  # fmt: skip
HARMLESS = ("PATH", "ACMES", "TENANTS", "MY_ACME_KEY")


def test_variables_that_may_decide_what_a_provider_does_are_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys, all that begins with its name or its SDK's, what the suite names, and proxies; nothing else."""
    for name in (*DECISIVE, *HARMLESS):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with registered(Breakage()) as name:
        said = {"adapter": sabir.adapter(f"{name}:small"), "sdk": "other.client", "variables": ("TENANT",)}
        found = provider_variables(AdapterUnderTest(type("OfAcme", (Suite,), said)()))

    assert {*DECISIVE} <= {*found}
    assert {*HARMLESS}.isdisjoint(found)
