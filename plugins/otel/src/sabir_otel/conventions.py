"""OpenTelemetry's GenAI conventions as tables: names, well-known values, bucket boundaries.

This follows version 1.41.1, the last release that includes GenAI:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/gen-ai/gen-ai-spans.md (and gen-ai-metrics.md,
gen-ai-events.md next to it). They have since moved to https://github.com/open-telemetry/semantic-conventions-genai,
which has no release yet. Names that are not in the conventions begin with `sabir.`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from sabir import Target
from sabir.authoring import FinishReason

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASON_LIST = "gen_ai.response.finish_reasons"
OUTPUT_TYPE = "gen_ai.output.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
OTHER = "_OTHER"
"""The value of `error.type` for errors without a code."""
STATUS_CODE = "http.response.status_code"
TOKEN_TYPE = "gen_ai.token.type"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
DEFINITIONS = "gen_ai.tool.definitions"
CONVERSATION = "gen_ai.conversation.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
EXCEPTION = "exception"
EXCEPTION_TYPE = "exception.type"
TRACE_PARENT = "traceparent"
"""The header with the trace and the parent of another process's spans: https://www.w3.org/TR/trace-context/."""

ATTEMPT = "sabir.attempt"
ATTEMPTS = "sabir.attempts"
LEFT = "sabir.left"
LOSSES = "sabir.losses"
LOSS_KIND = "sabir.loss.kind"
LOSS_COUNT = "sabir.loss.count"
COST = "sabir.cost"
CALLS = "sabir.calls"
RETRIES = "sabir.retries"
WAITED = "sabir.waited"
WAITING = "sabir.waiting"
CACHE_PREDICTED, CACHE_CHANGED = "sabir.prompt_cache.predicted_tokens", "sabir.prompt_cache.changed"
"""Attributes of a conversation's call with the setting `prompt_cache`: the most tokens that the provider could read
from its cache, and the path of the first change in the request since the one before, if anything changed.
"""

ATTEMPT_FAILED = "sabir.attempt_failed"
RETRIED = "sabir.retried"
LOST = "sabir.lost"
DETAILS = "gen_ai.client.inference.operation.details"

CHAT = "chat"
"""The value of `gen_ai.operation.name` for every call of a model, for all vendors."""

WORKS: Mapping[str, tuple[str, str]] = {
    "agent": ("invoke_agent", "gen_ai.agent.name"),
    "option": ("execute_tool", "gen_ai.tool.name"),
    "workflow": ("invoke_workflow", "gen_ai.workflow.name"),
}
"""Kind of a work → the value of `gen_ai.operation.name`, and the attribute for its name."""

USAGE: Mapping[str, str] = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
"""Field of a reply's usage → attribute of the span. sabir and the conventions count cached tokens as input, and
reasoning as output.
"""

TOKEN_TYPES: Mapping[str, str] = {"input_tokens": "input", "output_tokens": "output"}
"""Field of a reply's usage → value of `gen_ai.token.type` in the metric of tokens."""

SETTINGS: Mapping[str, str] = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "stop": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
VENDOR_SETTINGS: Mapping[str, str] = {
    "n": "gen_ai.request.choice.count",
    "candidate_count": "gen_ai.request.choice.count",
    "top_k": "gen_ai.request.top_k",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
"""Name of a setting in the vendor settings → attribute. Only some vendors have these settings."""

FINISH_REASONS: Mapping[FinishReason, str] = {"option_calls": "tool_call", "native_calls": "tool_call"}
"""Finish reason → its name in the conventions, if it has another name there. Other reasons are recorded unchanged."""

PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Provider → its name in the conventions, if it has another name there. Other providers are recorded unchanged."""
HOSTS: Mapping[str, str] = {
    r"(^|\.)(openai|cognitiveservices)\.azure\.com$": "azure.ai.openai",
    r"(^|\.)services\.ai\.azure\.com$": "azure.ai.inference",
    r"(^|[.-])aiplatform\.googleapis\.com$": "gcp.vertex_ai",
    r"^bedrock-runtime\..*\.amazonaws\.com$": "aws.bedrock",
}
"""Pattern of a host name → the conventions' provider name for that host, whatever the provider in the model string."""
PORTS: Mapping[str, int] = {"https": 443, "http": 80}

DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
HISTOGRAMS = (
    (DURATION, "s", "GenAI operation duration.", tuple(2**power / 100 for power in range(14))),
    (TOKEN_USAGE, "{token}", "Number of input and output tokens used.", tuple(4**power for power in range(14))),
)
"""Name, unit, description and bucket boundaries of each histogram. The boundaries are the conventions' own."""


@lru_cache(maxsize=256)
def target_attributes(target: Target) -> Mapping[str, str | int]:
    """Return the attributes of a call's target, for spans and metrics: operation, provider, model, server and port.

    Attributes without a value are left out. Equal targets get the same mapping, so do not change it.
    """
    split = urlsplit(target.endpoint)
    host = split.hostname or ""
    operation = "embeddings" if target.dialect.endswith(".embeddings") else CHAT
    attributes: dict[str, str | int] = {OPERATION: operation, PROVIDER: provider_name(target.provider, host)}
    if target.model:
        attributes[REQUEST_MODEL] = target.model
    port = split.port or PORTS.get(split.scheme)
    if host:
        attributes[SERVER_ADDRESS] = host
    if host and port:
        attributes[SERVER_PORT] = port
    return attributes


def provider_name(provider: str, host: str) -> str:
    """Return the conventions' name of a provider at a host, or the provider's own name if there is no other."""
    platforms = (name for pattern, name in HOSTS.items() if re.search(pattern, host))
    return next(platforms, PROVIDERS.get(provider, provider))


def error_type(error: BaseException) -> str:
    """Return the qualified name of an error's class.

    The module precedes the name, unless the class is built in or belongs to the package `sabir` itself.
    """
    kind = type(error)
    known = kind.__module__ == "builtins" or kind.__module__.partition(".")[0] == "sabir"
    return kind.__qualname__ if known else f"{kind.__module__}.{kind.__qualname__}"
