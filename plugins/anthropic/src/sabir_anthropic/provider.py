"""Anthropic: URL, credentials, and connections over the official SDK or over the user's own client, also for a cloud.

Without `client=`, the SDK is imported when the first request is sent, and builds the URL and headers of each kind of
request once. Then sabir sends ready bytes with them, over an HTTP client of the class that the SDK uses by default (see
sabir.authoring.transport). A user's client builds and sends every request. The SDK's clients for Bedrock and Vertex AI
read the model from the body, so the body is passed to them as an object.
"""

import json
from typing import TYPE_CHECKING, Any

from sabir.authoring import Access, GeneratedSDKConnection, KeySource, Row, RowProvider, UserSDKConnection, WireRequest

from sabir_anthropic.dialect import CLOUD, MESSAGES
from sabir_anthropic.errors import ERRORS, read_credential_error
from sabir_anthropic.request import COMPATIBLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.authoring import Dialect, Operation
    from sabir.errors import CallError

CLOUD_CLIENTS = ("AnthropicBedrock", "AnthropicVertex")
"""Client classes that accept the body as an object only, and whose endpoints accept media as bytes only. The names of
the async classes are these with the prefix Async.
"""


def _is_cloud(client: object) -> bool:
    """Return whether a client is for Bedrock or Vertex AI, by its class name, so that the SDK need not be loaded."""
    names = {kind.__name__.removeprefix("Async") for kind in type(client).__mro__}
    return not names.isdisjoint(CLOUD_CLIENTS)


ANTHROPIC = Row(
    name="anthropic", url="https://api.anthropic.com", docs="https://platform.claude.com/docs/en/api/overview",
    dialects=("messages",), key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    url_variables=("ANTHROPIC_BASE_URL",),
)  # fmt: skip
"""Anthropic's own endpoint."""


class AnthropicProvider(RowProvider):
    """The provider for Anthropic, or for another vendor's endpoint with Anthropic's API. `row` describes the endpoint.

    For another vendor, the provider adds the dialect "messages" to that vendor's name, as in `moonshot.messages:model`.
    Supports an API key, and `client=` with a client of the package `anthropic`.
    """

    api_version = 2
    request_ids = ("request-id", "x-amzn-requestid", "x-request-id")
    hosts = ("anthropic.com", "claude.com")
    elsewhere = frozenset({COMPATIBLE})

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.adds_dialects = row is not ANTHROPIC
        self.package = "" if self.adds_dialects else "sabir_anthropic"

    def dialect(self, short_name: str) -> "Dialect":
        """Return the dialect `anthropic.messages`."""
        return MESSAGES

    def connect_own_clients(self, access: Access, key: KeySource) -> "AnthropicConnection":
        """Return a connection over clients of the package `anthropic`, which are created at the first request."""
        return AnthropicConnection(self.name, ERRORS, key, self.url_of(access), is_vendor=self.is_vendor(access))

    def connect_user_client(self, client: object) -> "AnthropicUserConnection":
        """Return a connection over the user's client of the package `anthropic`, which may be a client for Bedrock or
        Vertex AI.
        """
        return AnthropicUserConnection(self.name, ERRORS, client)

    def operations(self) -> "Mapping[str, Operation[Any, Any]]":
        """Return the operations of batches for Anthropic itself, and none for other vendors."""
        from sabir_anthropic.batches import BATCHES

        return {} if self.adds_dialects else BATCHES

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirk CLOUD for a `client=` for Bedrock or Vertex AI, and no quirk for any other `client=`.
        Without a `client=`, return COMPATIBLE if the URL is not Anthropic's, and the quirks of the row.
        """
        if access.client is not None:
            return frozenset({CLOUD}) if _is_cloud(access.client) else frozenset()
        return super().quirks(access)


class AnthropicConnection(GeneratedSDKConnection):
    """A connection over clients of the package `anthropic` that the plugin creates."""

    module, client_name = "anthropic", "Anthropic"


class AnthropicUserConnection(UserSDKConnection):
    """A connection over the user's own client of the package `anthropic`, for Anthropic or for a cloud."""

    module = "anthropic"
    kinds = ("anthropic.SyncAPIClient", "anthropic.AsyncAPIClient")
    remedy = (
        "sync calls need an Anthropic client, async calls an AsyncAnthropic (or the cloud clients of the same kind)"
    )

    def what(self, request: WireRequest) -> dict[str, Any]:
        """Return the path and the body of the request as arguments of `client.post`: bytes, or an object for a cloud's
        client.
        """
        return cloud_arguments(request) if _is_cloud(self.client) else super().what(request)

    def translate(self, error: Exception) -> "CallError | None":
        """Return the CallError for an exception of the SDK or its HTTP client, also one raised while the SDK looks for
        cloud credentials. None for other exceptions.
        """
        return read_credential_error(error, self.name) or super().translate(error)


def cloud_arguments(request: WireRequest) -> dict[str, Any]:
    """Return the path and the body of a request as arguments of `post` of a cloud's client."""
    return {"path": request.path, "body": json.loads(request.body)}
