"""Acme against sabir's conformance kit: each case that fails says which rule is broken, by what, and how.

    pytest                     offline, against tests/cassettes
    pytest --sabir-record      asks the service anew

Change: `capabilities`, to what you know of the vendor; then `live` goes, so that recording asks the real service
with the key in ACME_API_KEY, and `provenance` says "its own service". Where the vendor's SDK has types for
requests, a method `check_request(self, body)` that reads the body with them makes the kit check every request.
A failure that the service cannot be asked for goes to `xfail`, by the name of its case and with the reason.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import sabir
from sabir_testing import DOWNGRADED, FULL, REFUSED, ProviderConformance

CARRIED = (
    "system", "image.url", "image.bytes", "audio.bytes", "document.bytes", "results.image",
    "options", "parallel_calls", "reasoning",
    "settings.max_output_tokens", "settings.temperature", "settings.top_p", "settings.stop", "settings.seed",
    "settings.reasoning_effort", "settings.parallel_options", "settings.response_format",
    "option_choice.auto", "option_choice.none", "option_choice.required", "option_choice.named",
    "streaming", "count_tokens", "stored_requests",
)  # fmt: skip
NOT_CARRIED = (
    "image.file", "audio.url", "audio.file", "video.url", "video.bytes", "video.file", "document.url", "document.file",
    "results.audio", "results.video", "results.document",
)  # fmt: skip
HANDOVER = "test_an_answer_goes_to_every_installed_provider_and_back"
OTHERS = {status.name for status in sabir.providers()} - {"acme"}


class TestAcme(ProviderConformance):
    """What is left out of `capabilities` is held to one rule only: that nothing is lost in silence."""

    adapter = sabir.adapter("acme:small", api_key="test")
    cassettes = Path(__file__).parent / "cassettes"
    capabilities = dict.fromkeys(CARRIED, FULL) | dict.fromkeys(NOT_CARRIED, REFUSED) | {"later_system": DOWNGRADED}
    sdk = "httpx2"
    answers_repeat = True
    refused_body = {"limit": "many"}
    prompts = {"rate_limited": "slow down", "overloaded": "overload"}
    xfail = {} if OTHERS else {HANDOVER: "no other provider is installed; sabir-echo would do"}

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """The stand-in of service.py answers while recordings are made."""
        from service import running

        with running() as url, sabir.adapter("acme:small", api_key="any", base_url=url) as adapter:
            yield adapter

    def client(self, base_url: str) -> object:
        """The vendor's own client, as a user makes it."""
        import httpx2

        return httpx2.Client(base_url=base_url)

    def provenance(self, question: str) -> Mapping[str, str]:
        """Who answered: it stands at the head of each recording."""
        return {"server": "tests/service.py, not a vendor's own service", "version": "1"}
