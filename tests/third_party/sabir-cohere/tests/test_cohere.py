"""The published conformance kit, for Cohere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import oracle
import sabir
import service
from sabir_testing import DOWNGRADED, FULL, REFUSED, ProviderConformance

MODEL = "cohere:command-a-plus-05-2026"
"""It reads images, thinks and calls options; no row of models.toml is of it, so that nothing is left out for it."""
NO_MEDIA = ("audio", "video", "document")


class TestCohere(ProviderConformance):
    """Cohere's v2 chat."""

    adapter = sabir.adapter(MODEL, api_key="test")
    cassettes = Path(__file__).parent / "cassettes"
    sdk = "cohere"
    variables = ("CO_API_URL",)
    refused_body: ClassVar = {"temperature": "warm"}
    prompts: ClassVar = {"max_tokens": service.STORY}
    capabilities: ClassVar = {
        "system": FULL,
        "later_system": DOWNGRADED,
        "image.url": FULL,
        "image.bytes": FULL,
        "image.file": REFUSED,
        **{f"{modality}.{form}": REFUSED for modality in NO_MEDIA for form in ("url", "bytes", "file")},
        **{f"results.{modality}": REFUSED for modality in ("image", *NO_MEDIA)},
        "options": FULL,
        "parallel_calls": FULL,
        "reasoning": FULL,
        "settings.max_output_tokens": FULL,
        "settings.temperature": FULL,
        "settings.top_p": FULL,
        "settings.stop": FULL,
        "settings.seed": FULL,
        "settings.reasoning_effort": DOWNGRADED,
        "settings.parallel_options": REFUSED,
        "settings.prompt_cache": REFUSED,
        "settings.response_format": FULL,
        "option_choice.auto": FULL,
        "option_choice.none": FULL,
        "option_choice.required": FULL,
        "option_choice.named": FULL,
        **dict.fromkeys(("native.web_search", "native.code_execution", "native.mcp_server"), REFUSED),
        "streaming": FULL,
        "count_tokens": REFUSED,
        "stored_requests": REFUSED,
        "embeddings": REFUSED,
        "batches": REFUSED,
    }

    def check_request(self, body: bytes) -> None:
        """By the SDK's own types."""
        oracle.check(body)

    def provenance(self, question: str) -> Mapping[str, str]:
        """No answer is the vendor's own."""
        return service.provenance(question)

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """The mock, or what this package made up where the mock differs from the vendor's documents."""
        with service.address(question) as url, sabir.adapter(MODEL, api_key=service.KEY, base_url=url) as adapter:
            yield adapter
