"""OpenAI's models on Azure by string: the resource's endpoint, its API's version, and a key or a Microsoft Entra token.

    azure:deployment, azure.chat:deployment     the deployment's name is the model
    no version                                  {endpoint}/openai/v1/responses
    OPENAI_API_VERSION=preview                  {endpoint}/openai/v1/responses?api-version=preview
    OPENAI_API_VERSION=2024-10-21               {endpoint}/openai/deployments/{model}/chat/completions?api-version=…

Without `client=`, the SDK's clients for OpenAI build all requests, also those with a dated version. A key goes in the
header `api-key`, a token in `Authorization: Bearer`. A function passed as `api_key=` returns a token, or a mapping with
the field "api_key" or "azure_ad_token". Azure-identity's `get_bearer_token_provider` creates functions that return a
token.

https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

from sabir.authoring import (
    Access,
    Connection,
    Credential,
    Dialect,
    EmbeddingCall,
    EmbeddingVectors,
    KeySource,
    Operation,
    SDKProvider,
    WireRequest,
)
from sabir.errors import CredentialsMissing

from sabir_openai.errors import ERRORS
from sabir_openai.provider import (
    CompatibleProvider,
    OpenAIConnection,
    OpenAIUserConnection,
    deployment_path,
    load_dialect,
    load_operations,
)

TOKEN = "azure_ad_token"
"""Name of the credential with a token, which is also the name of the argument of the SDK's Azure client."""
KEY_HEADER = "api-key"
VERSION = Credential(name="api_version", variables=("OPENAI_API_VERSION",), default="", secret=False, in_url=True)
DATED = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?$")
"""Pattern of dated API versions. With such a version, paths begin with `/openai` instead of `/openai/v1`."""
UNKNOWN_URL = "https://openai.azure.com"
"""The endpoint in renderings if the user did not name a resource. Nothing is sent to this endpoint."""
_SUFFIX = re.compile(r"(/openai(/v1)?)?/*$")


class AzureProvider(SDKProvider):
    """The provider `azure`: OpenAI's models on Azure, as `azure:deployment`. The deployment's name is used as the
    model.

    The resource's URL comes from `base_url=` or AZURE_OPENAI_ENDPOINT. Supports an API key, a Microsoft Entra token
    (`api_key={"azure_ad_token": …}`, or a function that returns a token as a string), and `client=` with a client of
    the package `openai`. https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle
    """

    name = "azure"
    api_version = 2
    reserves_name = True
    """True, so that `azure:deployment` means this provider even if another package provides `azure` too."""
    dialects = ("responses", "chat")
    credentials = (
        Credential(name=TOKEN, variables=("AZURE_OPENAI_AD_TOKEN",), alternative="a token"),
        Credential(variables=("AZURE_OPENAI_API_KEY",), alternative="a key"),
        VERSION,
    )
    request_ids = CompatibleProvider.request_ids
    url, url_variables = UNKNOWN_URL, ("AZURE_OPENAI_ENDPOINT",)
    package = "sabir_openai"

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect `openai.responses` for "responses", otherwise `openai.chat`."""
        return load_dialect(short_name)

    def operations(self) -> Mapping[str, Operation[EmbeddingCall, EmbeddingVectors]]:
        """Return the operation `openai.embeddings`."""
        return load_operations(self.name)

    def url_of(self, access: Access) -> str:
        """Return the URL to which a request's path is appended. The query parameter `api-version` is not added.

        With a `client=`, the URL is the client's. Otherwise it is the resource's URL with `/openai` (dated versions)
        or `/openai/v1`. The resource's URL may already end with either, as in Azure's portal.
        """
        url = super().url_of(access)
        if access.client is not None:
            return url
        parts = urlsplit(url)
        suffix = "/openai" if DATED.match(self.url_values(access)[VERSION.name]) else "/openai/v1"
        return parts._replace(path=_SUFFIX.sub(suffix, parts.path, count=1)).geturl()

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients of the package `openai`, which are created at the first request."""
        if callable(access.api_key):
            key = KeySource(self.name, partial(_read_token, access.api_key), self.credentials)
        is_known = super().url_of(access) != UNKNOWN_URL
        version = self.url_values(access)[VERSION.name]
        return AzureConnection(self.name, key, self.url_of(access), version=version, is_known=is_known)

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's own client of the package `openai`."""
        return OpenAIUserConnection(self.name, ERRORS, client)


class AzureConnection(OpenAIConnection):
    """A connection over clients of the package `openai` for one Azure resource. `version` is the API version, "" for
    none. `is_known` says whether the user named a resource.
    """

    def __init__(self, name: str, key: KeySource, url: str, *, version: str, is_known: bool) -> None:
        parts = urlsplit(url)
        query = "&".join(filter(None, (parts.query, urlencode({"api-version": version} if version else {}))))
        super().__init__(name, ERRORS, key, parts._replace(query=query).geturl(), is_vendor=False)
        self._is_dated, self._is_known = bool(DATED.match(version)), is_known

    def addressed(self, request: WireRequest) -> WireRequest:
        """Return the request to send. With a dated API version, the path of a chat or embedding request names the
        deployment.

        Raises CredentialsMissing if the user did not name a resource.
        """
        if not self._is_known:
            missing = "no endpoint; set the variable AZURE_OPENAI_ENDPOINT, or pass base_url="
            raise CredentialsMissing(f"{self.name} has {missing}", provider=self.name)
        return replace(request, path=deployment_path(request)) if self._is_dated else request

    def arguments(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of the SDK's sync and async client classes, except the HTTP client. `keys` has either a
        token or a key.
        """
        if TOKEN in keys:
            return super().arguments({"api_key": keys[TOKEN]})
        arguments = super().arguments({"api_key": keys["api_key"]})
        return {**arguments, "default_headers": {**arguments["default_headers"], KEY_HEADER: keys["api_key"]}}

    def omitted(self, client: Any) -> tuple[str, ...]:
        """Return the names of the headers to omit: "Authorization" if the client sends the key in the header "api-key",
        otherwise none.
        """
        return ("Authorization",) if KEY_HEADER in client.default_headers else ()


def _read_token(ask: Callable[[], str | Mapping[str, str]]) -> Mapping[str, str]:
    """Call the function passed as `api_key=` and return its credentials by name. A returned string is a token."""
    answer = ask()
    return {TOKEN: answer} if isinstance(answer, str) else answer
