"""OpenAI and the endpoints that speak its dialects: URL, credentials, and the official SDK's clients that carry bytes.

    row of data ──▶ CompatibleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks
                                                   └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. It writes the head of each kind of request once; then ready bytes are sent
with it, over an HTTP client of the class that the SDK takes by default (see sabir.authoring.transport).
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
    GeneratedSDKConnection,
    KeySource,
    Row,
    RowProvider,
    UserSDKConnection,
    WireRequest,
)

from sabir_openai.errors import ERRORS

COMPATIBLE = frozenset({"max_tokens", "system_role"})
"""Quirks assumed of an endpoint that the user names only by `base_url` and that is not known to sell these models."""
ROW_QUIRKS: Mapping[str, str] = {
    "max_output_tokens: max_tokens": "max_tokens",
    "seed: random_seed": "random_seed",
    "refuses strict": "no_strict",
    "refuses response_format.schema": "json_object",
}
"""What an entry of a row says → the quirk that obeys it; the quirks are described in chat_dialect.py."""
ACCOUNT = (
    Credential(name="organization", variables=("OPENAI_ORG_ID",), default="", secret=False),
    Credential(name="project", variables=("OPENAI_PROJECT_ID",), default="", secret=False),
)
"""Access settings that only OpenAI itself takes beside its key, as arguments of the SDK's client."""


OPENAI = Row(
    name="openai", url="https://api.openai.com/v1", docs="https://developers.openai.com/api/docs/quickstart",
    dialects=("responses", "chat"), key_variables=("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    url_variables=("OPENAI_BASE_URL",),
)  # fmt: skip


class CompatibleProvider(RowProvider):
    """A provider made of one row."""

    reserves_name = True
    request_ids = ("x-request-id", "apim-request-id", "request-id", "x-correlation-id")
    row_quirks = ROW_QUIRKS

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        if row is OPENAI:
            self.credentials += ACCOUNT
            self.hosts, self.elsewhere, self.package = ("openai.com", "azure.com"), COMPATIBLE, "sabir_openai"

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect of that short name."""
        return dialect_of(short_name)

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over the SDK's clients, which are made at the first send."""
        return SDKConnection(self.name, ERRORS, key, self.url_of(access), is_vendor=self.is_vendor(access))

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's own client."""
        return UsersConnection(self.name, ERRORS, client)


def dialect_of(short_name: str) -> Dialect:
    """Return the dialect of that short name; its module is imported at the first request."""
    if short_name == "responses":
        from sabir_openai.responses_dialect import RESPONSES

        return RESPONSES
    from sabir_openai.chat_dialect import CHAT

    return CHAT


class SDKConnection(GeneratedSDKConnection):
    """The SDK's own clients; only OpenAI itself gets organisation and project."""

    module, client_name = "openai", "OpenAI"
    vendor_headers = ("OpenAI-Organization", "OpenAI-Project")


class UsersConnection(UserSDKConnection):
    """The user's own client, which may be Azure's."""

    module = "openai"
    kinds = ("openai.OpenAI", "openai.AsyncOpenAI")
    remedy = "sync calls need an OpenAI client, async calls an AsyncOpenAI"

    def what(self, request: WireRequest) -> dict[str, Any]:
        """The arguments of the SDK's call; for an Azure client without a deployment, the path gets the deployment.

        The SDK adds it to the path for bodies that it makes, but does not read ready bytes.
        """
        from openai import AsyncAzureOpenAI, AzureOpenAI

        arguments, client = super().what(request), self.client
        if isinstance(client, AzureOpenAI | AsyncAzureOpenAI) and "/deployments" not in client.base_url.path:
            arguments["path"] = deployment_path(request)
        return arguments


def deployment_path(request: WireRequest) -> str:
    """Return the path of a request in Azure's dated API: for chat it names the deployment, which is the body's model.

    https://learn.microsoft.com/en-us/azure/foundry-classic/openai/reference
    """
    if request.path != "/chat/completions":
        return request.path
    model = str(json.loads(request.body).get("model", ""))
    return f"/deployments/{quote(model, safe='')}{request.path}"
