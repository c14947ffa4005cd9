"""The embedded model as the provider `local`, without a key and a network.

    LocalProvider ──connect──▶ LocalConnection ──first request──▶ LocalServer (a child process, on a loopback port)
                                      └─ then OpenAI's SDK client sends requests, as for any endpoint

`client=` accepts your own LocalServer, with other weights, more threads or a longer context. Without `client=`, all
adapters of a process share one server for each file of weights, which starts at the first request and stops when the
process ends.
"""

import json
from functools import partial
from threading import Lock
from typing import Any

from sabir import ModelInfo
from sabir.authoring import (
    Access,
    AsyncWireResponse,
    Dialect,
    KeySource,
    Library,
    WireRequest,
    WireResponse,
    packaged_models,
)
from sabir.errors import SabirError, SettingsInvalid
from sabir_openai.errors import ERRORS
from sabir_openai.provider import OpenAIConnection

from sabir_local.dialect import LOCAL_CHAT
from sabir_local.server import LocalServer, shared_server

ENDPOINT = "local:"
"""The endpoint in a reply's origin. It is always the same, although the server's port changes at every start."""


class LocalProvider:
    """The provider `local`: models on this machine, as `local:smollm2`, `local:NAME` for an added file, or
    `local:path/to/FILE.gguf`. It sends Chat Completions requests to the embedded server.
    """

    name = "local"
    api_version = 2
    dialects: tuple[str, ...] = ("chat",)
    credentials = ()
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect `openai.chat`, adapted to the embedded server, for every local model."""
        return LOCAL_CHAT

    def endpoint(self, access: Access) -> str:
        """Return "local:", which names the server in every process."""
        return ENDPOINT

    def connect(self, access: Access) -> "LocalConnection":
        """Return a connection to the server in `client=` or to the shared server. The server starts at the first
        request.

        Raises SettingsInvalid for a `base_url`, and for a `client` that is not a LocalServer.
        """
        if access.client is not None and not isinstance(access.client, LocalServer):
            raise SettingsInvalid(
                f"client= of local is of type {type(access.client).__name__}; pass a sabir_local.server.LocalServer"
            )
        if access.base_url is not None:
            remedy = "for another server use sabir.adapter('openai.chat:…', base_url=…)"
            raise SettingsInvalid(f"the provider local does not accept base_url={access.base_url!r}; {remedy}")
        return LocalConnection(access.client)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirks of llama.cpp's server."""
        return frozenset({"max_tokens", "system_role", "plain_text", "automatic_cache"})

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the known facts about the embedded model."""
        return packaged_models("sabir_local")


class LoopbackConnection(OpenAIConnection):
    """A connection over the SDK's clients to a server on this machine. Proxies and certificates from the environment
    are not used.

    Each request opens a new connection, because the server sometimes closes connections that it should keep open.
    """

    def library(self) -> Library:
        """Return the SDK's HTTP client classes, and a TLS context that trusts no certificate, because TLS is not
        used.
        """
        from ssl import PROTOCOL_TLS_CLIENT, SSLContext

        client, async_client, _ = super().library()
        options: dict[str, Any] = {"trust_env": False, "headers": {"Connection": "close"}}
        client, async_client = partial(client, **options), partial(async_client, **options)
        return Library(client, async_client, partial(SSLContext, PROTOCOL_TLS_CLIENT))


class LocalConnection:
    """A connection to the embedded server, which starts at the first request. If the server was started again, a new
    LoopbackConnection is used.
    """

    def __init__(self, server: LocalServer | None = None) -> None:
        self._user_server = server
        self._lock = Lock()
        self._connection: LoopbackConnection | None = None
        self._url = ""

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send a request, and return the response when its headers have arrived, for every status. Starts the server if
        needed. Raises WeightsMissing or ServerNotStarted if the server cannot be started, and SettingsInvalid for an
        invalid SABIR_LOCAL_THREADS.
        """
        return self._connect_to_server(request).open_sync(request)

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """Async version of `open_sync`. The server is started in a thread."""
        import asyncio

        return await (await asyncio.to_thread(self._connect_to_server, request)).open(request)

    def translate(self, error: Exception) -> SabirError | None:
        """Return sabir's error for an exception of the SDK or its HTTP client; None for any other exception."""
        return self._connection.translate(error) if self._connection else None

    def close(self) -> None:
        """Close the sync client. This does not stop the server."""
        if self._connection is not None:
            self._connection.close()

    async def aclose(self) -> None:
        """Close the sync client, and the async client of the running event loop. This does not stop the server."""
        if self._connection is not None:
            await self._connection.aclose()

    def _connect_to_server(self, request: WireRequest) -> LoopbackConnection:
        """Return a connection to the server, started if needed. After a restart, the server has another URL."""
        server = self._user_server or shared_server(json.loads(request.body)["model"])
        url = f"{server.address}/v1"  # it changes when the server is started again
        with self._lock:
            if self._connection is None or url != self._url:
                key = KeySource("local", lambda: server.api_key)
                self._connection, self._url = LoopbackConnection("local", ERRORS, key, url, is_vendor=False), url
            return self._connection
