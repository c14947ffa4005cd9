"""What the kit is told of each dialect here: its adapter, its recordings, what its wire carries, and where it may fail.

    SUITES[name] ── tests/conformance/test_conformance.py ──▶ every case of the kit
                 └─ docs/reference/capabilities.md

Recorded anew by `nox -s record`: a vendor whose key is set answers for its own dialects, else a server on this machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import anthropic
import openai
import sabir
from google import genai
from sabir_google import http_options
from sabir_testing import CAPABILITIES, DOWNGRADED, FULL, REFUSED, Grade, OfflineConformance, ProviderConformance
from sabir_testing.cassettes import provenance_of
from sabir_testing.kit.service_questions import ANSWERED
from sabir_testing.kit.suite import Suite

from tests.conftest import EXAMPLES
from tests.laws.histories import own_parts
from tests.laws.oracle import check_request, validators
from tests.laws.rules import check_pairing
from tests.recorded.available import server_for, vendor_key
from tests.recorded.wires import NOWHERE, WIRES, Wire

CASSETTES = Path(__file__).parents[2] / "cassettes"
FEW = max(1, EXAMPLES // 4)
"""Examples a law: tests/laws tries the same laws on these dialects with more. `nox -s conformance` tries 100."""
OPENAI_VECTORS: Mapping[str, Sequence[Sequence[float]]] = {
    """{"object": "list", "model": "text-embedding-3-small", "usage": {"prompt_tokens": 5, "total_tokens": 5}, "data": [
        {"object": "embedding", "index": 0, "embedding": "AAAAPwAAgL4="},
        {"object": "embedding", "index": 1, "embedding": "AACAPwAAAAA="}]}""": [[0.5, -0.25], [1, 0]],
    """{"object": "list", "model": "other", "usage": {"prompt_tokens": 5}, "data": [
        {"index": 1, "embedding": [1, 0, 0]}, {"index": 0, "embedding": [0, 0.5, -0.25]}]}""": [
        [0, 0.5, -0.25], [1, 0, 0],
    ],
}  # fmt: skip
"""Bodies of OpenAI's embeddings API and of a compatible server, which answers in another order."""
VENDOR_TOKENS = 2_048
"""What a vendor's model gets at least: it may think before it answers."""


def carries(full: str, downgraded: str = "") -> Mapping[str, Grade]:
    """Every capability by its grade; those that are not named are refused."""
    rows = {FULL: full, DOWNGRADED: downgraded}
    named = {name: grade for grade, names in rows.items() for name in names.split()}
    return {**dict.fromkeys(CAPABILITIES, REFUSED), **named}


class Recorded(ProviderConformance):
    """A dialect whose exchanges are recorded here; `recorded_from` says by whom."""

    examples = FEW
    recorded_from: ClassVar[Wire]
    mocked: ClassVar[frozenset[str]] = frozenset()

    def check_request(self, body: bytes) -> None:
        """The SDK's own request types, and the wire's rules of order."""
        check_pairing(self.adapter.dialect, body)
        if self.adapter.dialect in validators():
            check_request(self.adapter.dialect, body)

    @contextmanager
    def live(self, question: str) -> Iterator[sabir.ModelAdapter]:
        """The vendor where its key is set, else the server that can answer the question."""
        key = vendor_key(self.recorded_from)
        if key is not None:
            how = {"api_key": key, "base_url": self.recorded_from.vendor_url}
        else:
            server = server_for(self.server_name(question))
            how = {"api_key": server.api_key, "base_url": server.address + self.recorded_from.path}
        with sabir.adapter(self.subject_of().model_name, **how) as adapter:
            yield adapter

    def server_name(self, question: str) -> str:
        """Who answers a question where no vendor does."""
        return "mock" if question in self.mocked else self.recorded_from.server

    def provenance(self, question: str) -> Mapping[str, str]:
        """Who answered."""
        if vendor_key(self.recorded_from) is not None:
            return {"server": self.recorded_from.vendor_server, "version": "not told"}
        return server_for(self.server_name(question)).provenance


def _is_vendors(wire: Wire, dialect: str) -> bool:
    """Whether a vendor answered, or is to answer."""
    recorded = CASSETTES / dialect / "text.yaml"
    return vendor_key(wire) is not None or (
        recorded.exists() and provenance_of(recorded)["server"] == wire.vendor_server
    )


def _settings(wire: Wire, dialect: str) -> Mapping[str, sabir.Settings]:
    """Room to think, for a vendor's model."""
    roomy = sabir.Settings(max_output_tokens=VENDOR_TOKENS)
    return {name: roomy for name in ANSWERED if name != "max_tokens"} if _is_vendors(wire, dialect) else {}


def _openai(dialect: str) -> sabir.ModelAdapter:
    """OpenAI's own endpoint where OpenAI answered; else one of unknown make, which is asked with other words."""
    wire = WIRES[dialect]
    base_url = wire.vendor_url if _is_vendors(wire, dialect) else NOWHERE + wire.path
    return sabir.adapter(f"{dialect}:{wire.vendor_model}", api_key="test", base_url=base_url)


MOCKED = frozenset({"parallel_calls", "option_picture", "image", "missing_model", "rate_limited", "overloaded"})
"""What no server here can show but the mock."""


class OpenAIChat(Recorded):
    """`openai.chat`."""

    recorded_from = WIRES["openai.chat"]
    adapter = _openai("openai.chat")
    cassettes = CASSETTES / "openai.chat"
    blocks = own_parts("openai.chat")
    settings = _settings(recorded_from, "openai.chat")
    mocked = MOCKED
    refused_body = recorded_from.refused
    missing_model = "gpt-missing"
    sdk = "openai"
    answers_repeat = True
    usage_fields: ClassVar = {
        "prompt_tokens": "input_tokens", "prompt_tokens_details.cached_tokens": "cache_read_tokens",
        "completion_tokens": "output_tokens", "completion_tokens_details.reasoning_tokens": "reasoning_tokens",
    }  # fmt: skip
    capabilities = carries(
        full="""
            system later_system image.url image.bytes document.bytes document.file options parallel_calls
            settings.max_output_tokens settings.temperature settings.top_p settings.stop settings.seed
            settings.reasoning_effort settings.parallel_options settings.response_format
            option_choice.auto option_choice.none option_choice.required option_choice.named
            streaming stored_requests embeddings batches"""
    )
    embedding_model = "text-embedding-3-small"
    embedding_responses = OPENAI_VECTORS

    def client(self, base_url: str) -> object:
        """As a user makes it."""
        return openai.OpenAI(api_key="mine", base_url=base_url)


class OpenAIResponses(Recorded):
    """`openai.responses`."""

    recorded_from = WIRES["openai.responses"]
    adapter = _openai("openai.responses")
    cassettes = CASSETTES / "openai.responses"
    blocks = own_parts("openai.responses")
    settings = _settings(recorded_from, "openai.responses")
    mocked = MOCKED | {"reasoning", "reasoning_loop", "structured_output"}
    xfail: ClassVar = {
        "test_a_recorded_answer_says_what_was_asked[max_tokens]": (
            "the embedded server says `completed` where it stopped at the limit; no vendor was asked"
        )
    }
    refused_body = recorded_from.refused
    missing_model = "gpt-missing"
    sdk = "openai"
    answers_repeat = True
    usage_fields: ClassVar = {
        "input_tokens": "input_tokens", "input_tokens_details.cached_tokens": "cache_read_tokens",
        "output_tokens": "output_tokens", "output_tokens_details.reasoning_tokens": "reasoning_tokens",
    }  # fmt: skip
    capabilities = carries(
        full="""
            system later_system image.url image.bytes image.file document.url document.bytes document.file
            results.image results.document options parallel_calls reasoning
            settings.max_output_tokens settings.temperature settings.top_p settings.reasoning_effort
            settings.parallel_options settings.response_format
            option_choice.auto option_choice.none option_choice.required option_choice.named
            native.web_search native.code_execution native.mcp_server
            streaming stored_requests count_tokens embeddings batches"""
    )
    embedding_model = "text-embedding-3-small"
    embedding_responses = OPENAI_VECTORS

    def client(self, base_url: str) -> object:
        """As a user makes it."""
        return openai.OpenAI(api_key="mine", base_url=base_url)


class AnthropicMessages(Recorded):
    """`anthropic.messages`."""

    recorded_from = WIRES["anthropic.messages"]
    adapter = sabir.adapter("anthropic:claude-sonnet-5", api_key="test")
    cassettes = CASSETTES / "anthropic.messages"
    blocks = own_parts("anthropic.messages")
    settings = _settings(recorded_from, "anthropic.messages")
    mocked = MOCKED | {"reasoning", "reasoning_loop", "structured_output"}
    refused_body = recorded_from.refused
    missing_model = "claude-sonnet-5-missing"
    sdk = "anthropic"
    answers_repeat = True
    usage_fields: ClassVar = {
        "input_tokens": "input_tokens", "cache_read_input_tokens": "cache_read_tokens",
        "cache_creation_input_tokens": "cache_write_tokens", "output_tokens": "output_tokens",
        "output_tokens_details.thinking_tokens": "reasoning_tokens",
    }  # fmt: skip
    capabilities = carries(
        full="""
            system image.url image.bytes image.file document.url document.bytes document.file
            results.image results.document options parallel_calls reasoning
            settings.max_output_tokens settings.reasoning_effort settings.parallel_options settings.response_format
            settings.prompt_cache settings.stop
            option_choice.auto option_choice.none option_choice.required option_choice.named
            native.web_search native.code_execution native.mcp_server
            streaming stored_requests count_tokens batches""",
        downgraded="later_system",
    )

    def client(self, base_url: str) -> object:
        """As a user makes it."""
        return anthropic.Anthropic(api_key="mine", base_url=base_url)


class GoogleGenerateContent(Recorded):
    """`google.generate_content`."""

    recorded_from = WIRES["google.generate_content"]
    adapter = sabir.adapter("google:gemini-3-flash-preview", api_key="test")
    cassettes = CASSETTES / "google.generate_content"
    blocks = own_parts("google.generate_content")
    settings = _settings(recorded_from, "google.generate_content")
    # The proxy asks a database about a key that it does not know, and says 400 where there is none; with a result
    # before it, the model behind it repeats the question's city.
    mocked = MOCKED | {"reasoning", "reasoning_loop", "bad_key", "option_result"}
    xfail: ClassVar = {"test_the_usage_of_a_stream_is_counted": "the proxy cannot count tokens when it streams"}
    refused_body = recorded_from.refused
    missing_model = "gemini-missing"
    sdk = "google.genai"
    answers_repeat = True
    usage_fields: ClassVar = {
        "promptTokenCount": "input_tokens", "toolUsePromptTokenCount": "input_tokens",
        "candidatesTokenCount": "output_tokens", "thoughtsTokenCount": "reasoning_tokens",
        "cachedContentTokenCount": "cache_read_tokens",
    }  # fmt: skip
    capabilities = carries(
        full="""
            system image.url image.bytes image.file audio.url audio.bytes audio.file video.url video.bytes video.file
            document.url document.bytes document.file results.image results.document options parallel_calls reasoning
            settings.max_output_tokens settings.temperature settings.top_p settings.stop settings.seed
            settings.reasoning_effort settings.response_format
            option_choice.auto option_choice.none option_choice.required option_choice.named
            native.web_search native.code_execution native.mcp_server
            streaming stored_requests count_tokens embeddings batches""",
        downgraded="later_system",
    )
    embedding_model = "gemini-embedding-001"
    embedding_responses: ClassVar = {
        '{"embeddings": [{"values": [0.5, -0.25]}, {"values": [1, 0]}], "usageMetadata": {"promptTokenCount": 4}}': [
            [0.5, -0.25], [1, 0],
        ],
    }  # fmt: skip

    def client(self, base_url: str) -> object:
        """As a user makes it."""
        return genai.Client(api_key="mine", http_options=http_options(base_url=base_url))


class Local(OfflineConformance):
    """`local`: the embedded model."""

    adapter = sabir.adapter("local:smollm2")
    examples = FEW
    sdk = "openai"
    answers_repeat = True
    refused_body: ClassVar = {"top_k": "many"}
    capabilities = carries(
        full="""
            system later_system options parallel_calls
            settings.max_output_tokens settings.temperature settings.top_p settings.stop settings.seed
            settings.response_format
            option_choice.auto option_choice.none option_choice.required option_choice.named
            streaming stored_requests""",
        downgraded="settings.prompt_cache",
    )
    xfail: ClassVar = {
        "test_a_recorded_answer_says_what_was_asked[parallel_calls]": "so small a model makes one call at a time",
        **{
            f"test_a_{way}_failure_is_its_error[{question}]": f"the embedded server {why}"
            for way in ("recorded", "streamed")
            for question, why in {
                "rate_limited": "has no limit",
                "overloaded": "serves whoever asks, one after the other",
            }.items()
        },
    }


class Echo(OfflineConformance):
    """`echo`."""

    adapter = sabir.adapter("echo:small")
    examples = FEW
    prompts: ClassVar = {
        "option_call": 'call weather {"city": "Paris"}',
        "parallel_calls": 'call weather {"city": "Paris"}\ncall weather {"city": "Rome"}',
        "structured_output": '{"city": "Paris", "country": "France"}',
        "missing_model": "fail 404",
        "bad_request": "fail 400",
        "rate_limited": "fail 429",
        "overloaded": "fail 529",
    }
    refused_body: ClassVar = {"kit": "refused"}
    xfail: ClassVar = {
        f"test_a_{way}_failure_is_its_error[context_overflow]": "echo reads as much as it is given"
        for way in ("recorded", "streamed")
    }
    answers_repeat = True
    capabilities = carries(
        full="""
            system later_system options parallel_calls
            settings.max_output_tokens settings.temperature settings.top_p settings.stop settings.seed
            settings.reasoning_effort settings.parallel_options settings.response_format
            settings.prompt_cache
            option_choice.auto option_choice.none option_choice.required option_choice.named
            streaming stored_requests embeddings batches"""
    )
    embedding_responses: ClassVar = {
        '{"vectors": ["AAAAPwAAgL4=", "AACAPwAAAAA="], "usage": {"input_tokens": 3}}': [[0.5, -0.25], [1, 0]]
    }


SUITES: Mapping[str, type[Suite]] = {
    "openai.chat": OpenAIChat,
    "openai.responses": OpenAIResponses,
    "anthropic.messages": AnthropicMessages,
    "google.generate_content": GoogleGenerateContent,
    "local": Local,
    "echo": Echo,
}
