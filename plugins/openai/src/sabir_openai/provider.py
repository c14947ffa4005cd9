"""OpenAI and endpoints with a compatible API: URLs, credentials, and connections over the official SDK.

    a Row ──▶ CompatibleProvider ──connect(access)──▶ OpenAIConnection ──open──▶ status, headers, byte chunks
                                             └ client=▶ OpenAIUserConnection ─┘

Without `client=`, the SDK is imported when the first request is sent, and builds the URL and headers of each kind of
request once. Then sabir sends ready bytes with them, over an HTTP client of the class that the SDK uses by default. A
user's client builds and sends every request.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sabir.authoring import (
    Access,
    Connection,
    Credential,
    Dialect,
    EmbeddingCall,
    EmbeddingVectors,
    GeneratedSDKConnection,
    KeySource,
    Operation,
    Row,
    RowProvider,
    UserSDKConnection,
    WireRequest,
)

from sabir_openai.errors import ERRORS

COMPATIBLE = frozenset({"max_tokens", "system_role"})
"""Quirks assumed for the provider `openai` if the endpoint's host is neither OpenAI's nor Azure's."""
ROW_QUIRKS: Mapping[str, str] = {
    "max_output_tokens: max_tokens": "max_tokens",
    "seed: random_seed": "random_seed",
    "refuses strict": "no_strict",
    "refuses response_format.schema": "json_object",
    "dimensions: output_dimension": "output_dimension",
}
"""A rename or refusal in a row's entry → the quirk that implements it. See QUIRKS in chat_dialect.py and in
embeddings.py.
"""
ACCOUNT_CREDENTIALS = (
    Credential(name="organization", variables=("OPENAI_ORG_ID",), default="", secret=False),
    Credential(name="project", variables=("OPENAI_PROJECT_ID",), default="", secret=False),
)
"""Credentials that only OpenAI itself accepts besides its key, as arguments of the SDK's client."""


OPENAI = Row(
    name="openai", url="https://api.openai.com/v1", docs="https://developers.openai.com/api/docs/quickstart",
    dialects=("responses", "chat"), key_variables=("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    url_variables=("OPENAI_BASE_URL",),
)  # fmt: skip
"""OpenAI's own endpoint."""


class CompatibleProvider(RowProvider):
    """A provider for OpenAI or an endpoint with an OpenAI-compatible API. `row` describes the endpoint and names its
    dialects: "chat", "responses" or both.

    Supports an API key, and `client=` with a client of the package `openai`.
    """

    api_version = 2
    reserves_name = True
    request_ids = ("x-request-id", "apim-request-id", "request-id", "x-correlation-id")
    row_quirks = ROW_QUIRKS

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.is_openai = row is OPENAI
        """Whether the provider is OpenAI itself, not a gateway."""
        if self.is_openai:
            self.credentials += ACCOUNT_CREDENTIALS
            self.hosts, self.elsewhere, self.package = ("openai.com", "azure.com"), COMPATIBLE, "sabir_openai"

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect `openai.responses` for "responses", otherwise `openai.chat`."""
        return load_dialect(short_name)

    def operations(self) -> Mapping[str, Operation[Any, Any]]:
        """Return the operation `openai.embeddings`, unless the row has entries and none is about embeddings. For OpenAI
        itself, also return the operations of batches.
        """
        from sabir_openai.batches import BATCHES

        vectors = load_operations(self._row.name) if _may_embed(self._row) else {}
        return {**vectors, **BATCHES} if self.is_openai else vectors

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients of the package `openai`, which are created at the first request."""
        return OpenAIConnection(self.name, ERRORS, key, self.url_of(access), is_vendor=self.is_vendor(access))

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's client of the package `openai`, which may be a client for Azure."""
        return OpenAIUserConnection(self.name, ERRORS, client)


def load_dialect(short_name: str) -> Dialect:
    """Return the dialect `openai.responses` for "responses", otherwise `openai.chat`. The dialect's module is imported
    by the first call, to keep `import sabir_openai` fast.
    """
    if short_name == "responses":
        from sabir_openai.responses_dialect import RESPONSES

        return RESPONSES
    from sabir_openai.chat_dialect import CHAT

    return CHAT


def load_operations(provider: str) -> Mapping[str, Operation[EmbeddingCall, EmbeddingVectors]]:
    """Return the operations of a provider by name. The module is imported by the first call, as for dialects."""
    from sabir_openai.embeddings import SHORT_NAME, embeddings_of

    return {SHORT_NAME: embeddings_of(provider)}


def _may_embed(row: Row) -> bool:
    return not row.entries or any("embeddings" in entry.dialects for entry in row.entries)


class OpenAIConnection(GeneratedSDKConnection):
    """A connection over clients of the package `openai` that the plugin creates. The headers for organization and
    project are sent only if `is_vendor` is True.
    """

    module, client_name = "openai", "OpenAI"
    vendor_headers = ("OpenAI-Organization", "OpenAI-Project")


class OpenAIUserConnection(UserSDKConnection):
    """A connection over the user's own client of the package `openai`, which may be a client for Azure."""

    module = "openai"
    kinds = ("openai.OpenAI", "openai.AsyncOpenAI")
    remedy = "sync calls need an OpenAI client, async calls an AsyncOpenAI"

    def what(self, request: WireRequest) -> dict[str, Any]:
        """Return the path and the content of the request as arguments of `client.post`.

        For an Azure client without a deployment, the request's model is added to the path of a chat or embedding
        request as the deployment, because the SDK cannot read the model from a body of bytes.
        """
        from openai import AsyncAzureOpenAI, AzureOpenAI

        arguments, client = super().what(request), self.client
        if isinstance(client, AzureOpenAI | AsyncAzureOpenAI) and "/deployments" not in client.base_url.path:
            arguments["path"] = deployment_path(request)
        return arguments


def deployment_path(request: WireRequest) -> str:
    """Return the path of a request in Azure's dated API. The path of a chat or an embedding request names the
    deployment, which is the `model` in the body. Other paths are returned unchanged.

    https://learn.microsoft.com/en-us/azure/foundry-classic/openai/reference
    """
    if request.path not in ("/chat/completions", "/embeddings"):
        return request.path
    model = str(json.loads(request.body).get("model", ""))
    return f"/deployments/{quote(model, safe='')}{request.path}"
