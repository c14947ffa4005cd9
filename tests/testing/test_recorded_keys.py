"""Keys and headers in recordings: a suite's own rules, and secrets that are passed as a mapping."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Credential
from sabir_testing.kit.asking import secret_keys
from sabir_testing.kit.service import WHOLE
from sabir_testing.scrubbing import KEPT_RESPONSE_HEADERS, Scrubbing

from tests.testing.harness import acme
from tests.testing.kit.test_questions import OfAcme, service, stand_in

SECRET = "violet-owl-in-the-barn"


@contextmanager
def mapped_key(suite: OfAcme, question: str) -> Iterator[sabir.ModelAdapter]:
    """Return an adapter of the stand-in with a key and a secret. The secret is in no header."""
    keys = {"api_key": "any", "secret": SECRET}
    model = f"{suite.adapter.target.provider}:small"
    with stand_in().running() as url, sabir.adapter(model, api_key=keys, base_url=url) as adapter:
        yield adapter


def test_a_secret_of_a_mapping_is_removed_from_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acme, "credentials", (*acme.credentials, Credential(name="secret", variables=("ACME_SECRET",))))
    suite = {"live": mapped_key, "prompts": {"text": f"Is it {SECRET}?"}}
    with service(is_recording=True, cassettes=tmp_path, **suite) as asked:
        asked.ask("text", WHOLE)

    assert "Is it REDACTED?" in (tmp_path / "text.yaml").read_text("utf-8")
    assert SECRET not in (tmp_path / "text.yaml").read_text("utf-8")


def test_the_secret_keys_of_an_adapter_are_those_of_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings of the kit and of `sabir check` must not contain them. A region and a profile are not secret."""
    region = Credential(name="region", secret=False)
    monkeypatch.setattr(acme, "credentials", (*acme.credentials, Credential(name="secret"), region))
    monkeypatch.setenv("ACME_API_KEY", "key-in-a-variable")
    passed = {"secret": SECRET, "region": "northern-sea-1", "profile": "my-profile"}
    adapters: list[Any] = [SimpleNamespace(provider=acme, access=Access(api_key=key)) for key in (passed, SECRET, None)]
    keys = [secret_keys(adapter) for adapter in adapters]

    assert keys == [[SECRET, "key-in-a-variable"], [SECRET, "key-in-a-variable"], ["key-in-a-variable"]]


@pytest.mark.parametrize("names", [frozenset({"date"}), frozenset()])
def test_a_suite_names_the_headers_that_a_recording_keeps(names: frozenset[str], tmp_path: Path) -> None:
    scrub = Scrubbing(response_headers=KEPT_RESPONSE_HEADERS | names)
    with service(is_recording=True, cassettes=tmp_path, scrub=scrub) as asked:
        (exchange,) = asked.ask("text", WHOLE).exchanges
        replayed = (tmp_path / "text.yaml").read_text("utf-8")

    assert exchange.status == 200
    assert ("      date:\n" in replayed) == ("date" in names)


def test_a_key_is_completed_by_the_other_required_credentials() -> None:
    """The cases pass one value as the key, also to a provider that signs with two values."""
    credentials = (Credential(), Credential(name="secret"), Credential(name="region", default=""))
    with service() as asked:
        subject: Any = asked.subject
        subject.provider = SimpleNamespace(credentials=credentials)
        completed = {"api_key": "k", "secret": "secret-of-the-kit"}

        assert subject.complete_key("k") == completed
        assert subject.complete_key(lambda: "k")() == completed
        assert [subject.complete_key(key) for key in ("", None, {"secret": "s"})] == ["", None, {"secret": "s"}]
