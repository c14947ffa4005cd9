"""Claude on Amazon Bedrock and Google's Vertex AI by string, over the SDK's clients for them.

    bedrock.messages:eu.anthropic.claude-…-v1:0     vertex.messages:claude-…@20250929
        CloudProvider ──connect(access)──▶ CloudConnection ──open──▶ AnthropicBedrock, AnthropicVertex ──▶ the cloud
                            └ client=▶ CloudUserConnection ─┘

The SDK's client is created at the first request. The SDK writes the model into the path, and signs each request or adds
a token, so the SDK builds every request. Without a key, the SDK looks for credentials with boto3 or google-auth, which
are extras of the SDK. `errors.CREDENTIAL_RULES` turns their exceptions into errors of sabir.

https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock
https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from sabir.authoring import Access, Credential, KeySource, SDKProvider, UserSDKConnection, WireRequest
from sabir.errors import CallError

from sabir_anthropic.dialect import CLOUD, MESSAGES
from sabir_anthropic.errors import ERRORS, read_credential_error
from sabir_anthropic.provider import AnthropicProvider, AnthropicUserConnection, cloud_arguments

if TYPE_CHECKING:
    from sabir.authoring import Dialect


BEARER, SIGNING, CHAIN = "a bearer key", "keys that sign", "the credentials that boto3 finds"
"""The alternatives to authenticate at Bedrock."""


class CloudProvider(SDKProvider):
    """Base class of the providers for Claude on Bedrock and Vertex AI. The names in `credentials` are arguments of the
    SDK's client.
    """

    api_version = 2
    adds_dialects = True
    """Whether the provider only adds dialects to its name, which other packages may use too. It is True because the
    clouds also sell models of other vendors: users must write `bedrock.messages:model`, not `bedrock:model`.
    """
    dialects = ("messages",)
    request_ids = AnthropicProvider.request_ids
    package = "sabir_anthropic"
    client_name: ClassVar[str]
    """The name of the SDK's sync client class. The name of the async class is "Async" followed by this name."""

    def dialect(self, short_name: str) -> "Dialect":
        """Return the dialect `anthropic.messages`."""
        return MESSAGES

    def connect_own_clients(self, access: Access, key: KeySource) -> "CloudConnection":
        """Return a connection over the SDK's clients for the cloud, which are created at the first request."""
        return CloudConnection(self.name, self.client_name, key, access.base_url)

    def connect_user_client(self, client: object) -> AnthropicUserConnection:
        """Return a connection over the user's client, which must be the SDK's client for this cloud."""
        return CloudUserConnection(self.name, self.client_name, client)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirk CLOUD: the clouds accept media as bytes only, and no late system messages."""
        return frozenset({CLOUD})


class BedrockProvider(CloudProvider):
    """The provider for Claude on Amazon Bedrock: `bedrock.messages:model`. Without any key, boto3 looks for AWS
    credentials. Without a region, boto3 looks for the region too.

    https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock
    """

    name = "bedrock"
    client_name = "AnthropicBedrock"
    credentials = (
        Credential(variables=("AWS_BEARER_TOKEN_BEDROCK",), alternative=BEARER),
        Credential(name="aws_access_key", variables=("AWS_ACCESS_KEY_ID",), alternative=SIGNING),
        Credential(name="aws_secret_key", variables=("AWS_SECRET_ACCESS_KEY",), alternative=SIGNING),
        Credential(name="aws_session_token", variables=("AWS_SESSION_TOKEN",), default="", alternative=SIGNING),
        Credential(name="aws_profile", default="", secret=False, alternative=CHAIN),
        Credential(
            name="aws_region", variables=("AWS_REGION", "AWS_DEFAULT_REGION"), default="", secret=False, in_url=True
        ),
    )
    url = "https://bedrock-runtime.{aws_region}.amazonaws.com"
    url_variables = ("ANTHROPIC_BEDROCK_BASE_URL",)


class VertexProvider(CloudProvider):
    """The provider for Claude on Google's Vertex AI: `vertex.messages:model`. Without a token, google-auth looks for
    the application default credentials.

    https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai
    """

    name = "vertex"
    client_name = "AnthropicVertex"
    credentials = (
        Credential(name="access_token", default=""),
        Credential(name="region", variables=("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"), secret=False, in_url=True),
        Credential(name="project_id", variables=("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"), secret=False),
    )
    url = "https://{region}-aiplatform.googleapis.com/v1"
    url_variables = ("ANTHROPIC_VERTEX_BASE_URL",)

    def vendor_url(self, access: Access) -> str:
        """Return the URL of Vertex AI in a region, in the multi-region "us" or "eu", or for "global". Without a region,
        return the URL for "global".
        """
        region = self.url_values(access)["region"]
        host = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}.get(region)
        return f"https://{host}.googleapis.com/v1" if host else super().vendor_url(access)


class _CloudClient:
    """An HTTP client, and the SDK's client that sends through it. If the credentials change, a new SDK client is
    created.
    """

    def __init__(self, http_client: Any, new_client: Callable[..., Any]) -> None:
        self._http_client, self._new_client = http_client, new_client
        self._client: tuple[object, Any] = (None, None)

    def with_credentials(self, key: KeySource) -> Any:
        """Return the SDK's client for the present credentials, a new one if they changed.

        Exceptions of `KeySource.read` and of the SDK's class are raised unchanged.
        """
        values = key.read()
        client_values, client = self._client
        if client_values != values:
            # A generator, because a variable with the secrets would appear in reports of failures.
            arguments = ((name, value.get_secret_value()) for name, value in values)
            client = self._new_client(**dict(arguments), http_client=self._http_client)
            self._client = values, client
        return client

    def close(self) -> None:
        """Close a sync HTTP client."""
        self._http_client.close()

    async def aclose(self) -> None:
        """Close an async HTTP client."""
        await self._http_client.aclose()


class CloudConnection(UserSDKConnection):
    """A connection over the SDK's clients for a cloud: one sync client, and an async client for each event loop."""

    module = "anthropic"

    def __init__(self, name: str, client_name: str, key: KeySource, base_url: str | None = None) -> None:
        super().__init__(name, ERRORS)
        self._client_name, self._key = client_name, key
        self._http_options, self._options = _read_options(base_url)

    def what(self, request: WireRequest) -> dict[str, Any]:
        """Return the path, and the body as an object, as arguments of `client.post`."""
        return cloud_arguments(request)

    def make_sync(self) -> _CloudClient:
        """Return a new _CloudClient, which sends through a new sync HTTP client of the SDK's default class."""
        sdk = import_module(self.module)
        return _CloudClient(sdk.DefaultHttpxClient(**self._http_options), self._sdk_class(self._client_name))

    def make(self) -> _CloudClient:
        """Async version of `make_sync`: the SDK's client sends through a new async HTTP client."""
        sdk = import_module(self.module)
        new_client = self._sdk_class(f"Async{self._client_name}")
        return _CloudClient(sdk.DefaultAsyncHttpxClient(**self._http_options), new_client)

    def send_sync(self, client: _CloudClient, request: WireRequest) -> Any:
        """Send a request with the present credentials. Return the response when its headers have arrived, for every
        status.
        """
        return super().send_sync(client.with_credentials(self._key), request)

    async def send(self, client: _CloudClient, request: WireRequest) -> Any:
        """Async version of `send_sync`."""
        return await super().send(client.with_credentials(self._key), request)

    def translate(self, error: Exception) -> CallError | None:
        """Return the CallError for an exception of the SDK or its HTTP client, also one raised while the SDK looks for
        credentials. None for other exceptions.
        """
        return read_credential_error(error, self.name) or super().translate(error)

    def _sdk_class(self, client_name: str) -> Callable[..., Any]:
        # A partial, not a function of ours: if the SDK's class raises, a function's frame would contain the secrets.
        return partial(getattr(import_module(self.module), client_name), **self._options)


def _read_options(base_url: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of the HTTP client, and the arguments of the SDK's client, for the user's `base_url`.

    User and password are removed from the URL and passed as `auth`, because HTTP clients log URLs.
    """
    if base_url is None:
        return {}, {}
    parts = urlsplit(base_url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    url = parts._replace(netloc=host, query="", fragment="").geturl()
    auth = {"auth": (unquote(name), unquote(password))} if at else {}
    return auth, {"base_url": url, "default_query": dict(parse_qsl(parts.query, keep_blank_values=True))}


class CloudUserConnection(AnthropicUserConnection):
    """A connection over the user's own client for a cloud. Its first request raises SettingsInvalid for a client of
    another class.
    """

    def __init__(self, name: str, client_name: str, client: object) -> None:
        super().__init__(name, ERRORS, client)
        self.kinds = (f"anthropic.{client_name}", f"anthropic.Async{client_name}")
        self.remedy = f"sync calls need an {client_name}, async calls an Async{client_name}"
