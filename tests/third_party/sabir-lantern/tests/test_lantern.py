"""Test Lantern with sabir's conformance kit. A failing test names the broken rule and the reason.

pytest                     offline, with the recorded answers in tests/cassettes
pytest --sabir-record      asks the stand-in of service.py again, and records its answers
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import sabir
from sabir import errors
from sabir.authoring import ServerEvent
from sabir_lantern.errors import HEADER
from sabir_testing import DOWNGRADED, FULL, REFUSED, ProviderConformance
from sabir_testing.cassettes import Allowed
from sabir_testing.scrubbing import KEPT_RESPONSE_HEADERS, Scrubbing

CARRIED = (
    "system", "image.bytes", "options", "parallel_calls", "reasoning", "settings.max_output_tokens",
    "settings.temperature", "settings.stop", "settings.reasoning_effort", "option_choice.auto", "option_choice.none",
    "streaming", "stored_requests",
)  # fmt: skip
NOT_CARRIED = (
    "image.url", "image.file", "results.image", "settings.top_p", "settings.seed", "settings.parallel_options",
    "settings.prompt_cache",
    "settings.response_format", "option_choice.required", "option_choice.named", "count_tokens",
    *(f"{modality}.{form}" for modality in ("audio", "video", "document") for form in ("url", "bytes", "file")),
    *(f"results.{modality}" for modality in ("audio", "video", "document")),
    "native.web_search", "native.code_execution", "native.mcp_server",
)  # fmt: skip
KEYS = {"key_id": "lamp-0", "secret": "secret-of-no-account"}


class TestLantern(ProviderConformance):
    """The conformance tests of Lantern, with the grade of every capability."""

    adapter = sabir.adapter("lantern:small", api_key=KEYS)
    cassettes = Path(__file__).parent / "cassettes"
    capabilities = dict.fromkeys(CARRIED, FULL) | dict.fromkeys(NOT_CARRIED, REFUSED) | {"later_system": DOWNGRADED}
    sdk = "httpx2"
    answers_repeat = True
    scrub = Scrubbing(response_headers=KEPT_RESPONSE_HEADERS | {HEADER, "x-lantern-request"})
    finish_reasons: ClassVar = {
        "done": "stop", "cut": "length", "asks": "option_calls", "blocked": "content_filter",
    }  # fmt: skip
    error_codes: ClassVar = {
        "bad_signature": errors.AuthenticationFailed, "unknown_key": errors.AuthenticationFailed,
        "no_such_model": errors.ModelNotFound, "bad_request": errors.InvalidRequest,
        "too_long": errors.ContextTooLong, "not_allowed": errors.ContentFiltered, "no_oil": errors.QuotaExceeded,
        "slow_down": errors.RateLimited, "crowded": errors.Overloaded,
    }  # fmt: skip
    usage_fields: ClassVar = {"in": "input_tokens", "out": "output_tokens", "cached": "cache_read_tokens"}
    allowed = (Allowed(r"[0-9a-f]{64}", "the seal of a thought, which the stand-in computes from the thought's text"),)
    refused_body: ClassVar = {"max_tokens": "many"}
    wrong_key: ClassVar = {"key_id": "lamp-7", "secret": "not-its-secret"}

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """Return an adapter for the stand-in, from which the kit records answers."""
        import service

        key_id, secret = next(iter(service.KEYS.items()))
        keys = {"key_id": key_id, "secret": secret}
        with service.running() as url, sabir.adapter("lantern:small", api_key=keys, base_url=url) as adapter:
            yield adapter

    def client(self, base_url: str) -> object:
        """Return a client as a user creates one to pass it as `client=`."""
        import httpx2
        from sabir_lantern.signing import signer

        return httpx2.Client(base_url=base_url, auth=signer(**KEYS))

    def error_event(self, body: str) -> ServerEvent:
        """Return the line that reports a failure within a stream."""
        return ServerEvent(json.dumps({"is": "fail", "code": "bad_request", "text": body}))

    def provenance(self, question: str) -> Mapping[str, str]:
        """Return facts about the server that answered."""
        return {"server": "stand-in written for this test, not a vendor's own service", "version": "1"}
