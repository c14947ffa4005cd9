"""Test Acme with sabir's conformance kit. A failing test names the broken rule and the reason.

    pytest                     offline, with the recorded answers in tests/cassettes
    pytest --sabir-record      sends the requests again, and records the answers

Change: `capabilities`, `finish_reasons` and `error_codes`, to what you know about the vendor. Then delete `live`, so that recording sends requests to the
real service with the key in ACME_API_KEY, and name this service in `provenance`. If the vendor's SDK has types for
requests, add a method `check_request(self, body)` that validates a body with them; the kit calls it for every request.
If you cannot make the service fail in a certain way, add the name of that test to `xfail`, with the reason.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import sabir
from sabir import errors
from sabir_testing import DOWNGRADED, FULL, REFUSED, ProviderConformance

CARRIED = (
    "system", "image.url", "image.bytes", "audio.bytes", "document.bytes", "results.image",
    "options", "parallel_calls", "reasoning",
    "settings.max_output_tokens", "settings.temperature", "settings.top_p", "settings.stop", "settings.seed",
    "settings.reasoning_effort", "settings.parallel_options", "settings.response_format",
    "settings.prompt_cache",
    "option_choice.auto", "option_choice.none", "option_choice.required", "option_choice.named",
    "streaming", "count_tokens", "stored_requests",
)  # fmt: skip
NOT_CARRIED = (
    "image.file", "audio.url", "audio.file", "video.url", "video.bytes", "video.file", "document.url", "document.file",
    "results.audio", "results.video", "results.document", "embeddings", "batches",
    "native.web_search", "native.code_execution", "native.mcp_server",
)  # fmt: skip
HANDOVER = "test_an_answer_goes_to_every_installed_provider_and_back"
OTHERS = {status.name for status in sabir.providers()} - {"acme"}


class TestAcme(ProviderConformance):
    """The conformance tests of Acme. `capabilities` says for each capability whether the API has it: FULL, DOWNGRADED
    or REFUSED. For a capability that is not named there, the tests only check that each loss is reported.
    """

    adapter = sabir.adapter("acme:small", api_key="test")
    cassettes = Path(__file__).parent / "cassettes"
    capabilities = dict.fromkeys(CARRIED, FULL) | dict.fromkeys(NOT_CARRIED, REFUSED) | {"later_system": DOWNGRADED}
    sdk = "httpx2"
    answers_repeat = True
    refused_body = {"limit": "many"}
    finish_reasons = {"done": "stop", "calls": "option_calls", "limit": "length", "refused": "content_filter"}
    error_codes = {
        "too_long": errors.ContextTooLong, "forbidden_topic": errors.ContentFiltered, "no_credit": errors.QuotaExceeded,
        "slow_down": errors.RateLimited, "overloaded": errors.Overloaded,
    }  # fmt: skip
    usage_fields = {"input": "input_tokens", "output": "output_tokens", "thinking": "reasoning_tokens"}
    prompts = {"rate_limited": "slow down", "overloaded": "overload"}
    xfail = {} if OTHERS else {HANDOVER: "no other provider is installed; sabir-echo would do"}

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """Return an adapter for the fake in service.py, from which the kit records answers."""
        from service import running

        with running() as url, sabir.adapter("acme:small", api_key="any", base_url=url) as adapter:
            yield adapter

    def client(self, base_url: str) -> object:
        """Return a client of the vendor's SDK, as a user creates one to pass it as `client=`."""
        import httpx2

        return httpx2.Client(base_url=base_url)

    def provenance(self, question: str) -> Mapping[str, str]:
        """Return facts about the server that answered. They are written at the beginning of each recording."""
        return {"server": "tests/service.py, not a vendor's own service", "version": "1"}
