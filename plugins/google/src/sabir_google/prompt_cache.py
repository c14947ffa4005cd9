"""Caches that Google stores under a name: create one from a rendering, refer to it in settings, and delete it.

    rendering ──create_cache──▶ CachedPrompt ──settings──▶ a request without what the cache contains
                                    └──▶ expires_at, delete()

A cache contains the system instruction, the tools and the contents of a rendering. A later request that begins with the
same content refers to the cache and sends only what follows. A request with another beginning is sent completely, with
a loss. Rendering does not check whether the cache still exists. https://ai.google.dev/api/caching
"""

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import Field, SkipValidation
from sabir import ApiKey, Rendering, Settings, SettingsInvalid, provider
from sabir.authoring import (
    Access,
    Frozen,
    KeySource,
    RequestScope,
    decode_json,
    encode_json,
    show_arguments,
)

from sabir_google.errors import ERRORS

if TYPE_CHECKING:
    from google import genai

NAME = "google"
HEAD_FIELDS = ("systemInstruction", "tools", "toolConfig")
"""Fields of a request that a cache contains. The API refuses them next to a reference to a cache."""
LIFETIME = timedelta(hours=1)
"""The default lifetime of a cache, as the API documents it."""


class CacheArguments(TypedDict, total=False):
    """The optional arguments of `create_cache`, as for `sabir.adapter`.

    api_key: the key, or a function that returns it; None means the environment's.
    client: a `google.genai.Client`, for example for Vertex AI.
    display_name: a name for the cache in Google's lists.
    """

    api_key: ApiKey | None
    client: Any
    display_name: str


class CachedPrompt(Frozen):
    """A cache that Google stores. Created by `create_cache`.

    `name` is the cache's name, `model` the model for which it was created, `expires_at` the end of its lifetime, and
    `tokens` the number of tokens in it. The other fields identify its content. Pass `settings` to requests, or the
    cache as the vendor setting `cached_content`.
    """

    name: str
    model: str
    expires_at: datetime
    tokens: int | None = None
    head_hash: str
    contents_hash: str
    contents_length: int
    last_role: str
    access: SkipValidation[Access] = Field(default_factory=Access, exclude=True, repr=False)
    """Key, endpoint and client of the requests that created the cache and delete it. Not stored."""

    @property
    def settings(self) -> Settings:
        """The settings that make a request use the cache."""
        return Settings(prompt_cache=True, vendor={NAME: {"cached_content": self.model_dump(mode="json")}})

    async def delete(self) -> None:
        """Delete the cache, which costs money until it expires. Raises CallError if the request fails."""
        async with _async_client(self.access) as client:
            await client.aio.caches.delete(name=self.name, config=_config(client))

    def delete_sync(self) -> None:
        """Sync version of `delete`. Blocks the thread."""
        with _sync_client(self.access) as client:
            client.caches.delete(name=self.name, config=_config(client))

    def start_of(self, contents: bytes) -> tuple[int, bytes] | None:
        """Return how many bytes of these contents the cache contains, and the bytes to send instead. None if the
        contents have another beginning, or if nothing would remain to send.
        """
        length = self.contents_length
        if len(contents) > length + 1 and self._contains(contents[:length]) and contents[length : length + 1] == b",":
            return length + 1, b""
        if contents[length - 2 : length - 1] == b"," and self._contains(contents[: length - 2] + b"]}"):
            return length - 1, encode_json({"role": self.last_role, "parts": []})[:-2].encode()
        return None

    def _contains(self, contents: bytes) -> bool:
        return _hash(contents) == self.contents_hash


@show_arguments
async def create_cache(
    rendering: Rendering, *, ttl: timedelta | float = LIFETIME, **how: Unpack[CacheArguments]
) -> CachedPrompt:
    """Store the system instruction, tools and contents of a rendering at Google, and return the cache.

    Render the beginning that all requests share, for example instructions and a document, and pass
    `CachedPrompt.settings` to the requests. Storing costs money for each hour; `ttl` is the lifetime, in seconds if it
    is a number. Google refuses a beginning that is shorter than the model's minimum. Raises SettingsInvalid for a
    rendering of another provider, CredentialsMissing, and CallError if the request fails.
    """
    access, body = _cache_request(rendering, ttl, how)
    async with _async_client(access) as client:
        stored = await client.aio.caches.create(model=rendering.target.model, config=_config(client, body))
    return _cached_prompt(rendering, stored, access)


@show_arguments
def create_cache_sync(
    rendering: Rendering, *, ttl: timedelta | float = LIFETIME, **how: Unpack[CacheArguments]
) -> CachedPrompt:
    """Sync version of `create_cache`. Blocks the thread."""
    access, body = _cache_request(rendering, ttl, how)
    with _sync_client(access) as client:
        stored = client.caches.create(model=rendering.target.model, config=_config(client, body))
    return _cached_prompt(rendering, stored, access)


def apply_cache(body: MutableMapping[str, Any], cache: CachedPrompt, scope: RequestScope) -> bool:
    """Remove what the cache contains from the fields of a request, refer to the cache, and return True.

    If the request does not begin with the cache's content, or has another model, report a loss and return False.
    """
    path = f"settings.vendor.{scope.target.provider}.cached_content"
    differences = {
        f"it was created for the model {cache.model}": scope.target.model != cache.model,
        "the system instruction or the tools differ from it": _head_hash(body) != cache.head_hash,
    }
    reason = next((reason for reason, holds in differences.items() if holds), "")
    start = None if reason else cache.start_of(scope.encoded_turns)
    if start is None:
        reason = reason or "the messages do not begin with its content, or nothing follows it"
        scope.losses.add("dropped", f"the cache was not used: {reason}", path=path)
        return False
    scope.stored_start = start
    for field in HEAD_FIELDS:
        body.pop(field, None)
    body["cachedContent"] = cache.name
    return True


def _cache_request(rendering: Rendering, ttl: timedelta | float, how: CacheArguments) -> tuple[Access, dict[str, Any]]:
    """Return key and endpoint of the request that creates a cache, and its fields. Raises SettingsInvalid for a
    rendering of another provider.
    """
    target = rendering.target
    if target.provider != NAME:
        raise SettingsInvalid(f"create_cache got a rendering for {target}; render it for a model of google")
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    request = decode_json(rendering.body_bytes)
    fields = {name: request[name] for name in (*HEAD_FIELDS, "contents") if request.get(name)}
    display_name = {"displayName": how["display_name"]} if how.get("display_name") else {}
    base_url = target.endpoint if how.get("client") is None else None
    access = Access(api_key=how.get("api_key"), base_url=base_url, client=how.get("client"))
    return access, {**fields, "ttl": f"{seconds:f}s", **display_name}


def _config(client: "genai.Client", body: Mapping[str, Any] | None = None) -> Any:  # the SDK has two types for it
    """Return the SDK's configuration for sending the fields of `body` unchanged, to the API version of requests."""
    options: dict[str, Any] = {"retry_options": {"attempts": 1}, "extra_body": body}
    if not client.vertexai:
        options["api_version"] = "v1beta"
    return {"http_options": options}


def _cached_prompt(rendering: Rendering, stored: Any, access: Access) -> CachedPrompt:
    """Return the CachedPrompt for the SDK's cache object `stored`, with hashes of the rendering's content."""
    body = decode_json(rendering.body_bytes)
    contents = rendering.body_bytes.partition(b'"contents":[')[2][:-2]
    return CachedPrompt(
        name=stored.name,
        model=rendering.target.model,
        expires_at=stored.expire_time,
        tokens=stored.usage_metadata.total_token_count if stored.usage_metadata else None,
        head_hash=_head_hash(body),
        contents_hash=_hash(contents),
        contents_length=len(contents),
        last_role=body["contents"][-1]["role"],
        access=access,
    )


def _head_hash(body: Mapping[str, Any]) -> str:
    return _hash(encode_json({name: body[name] for name in HEAD_FIELDS if body.get(name)}).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _sync_client(access: Access) -> "Iterator[genai.Client]":
    """Yield the user's client, or a new client that is closed at the end. Raises the SDK's errors as sabir's."""
    from httpx2 import AsyncBaseTransport, AsyncClient, Client

    with _sabir_errors():
        if access.client is not None:
            yield access.client
            return
        with Client() as http_client:
            yield _new_client(access, http_client, AsyncClient(transport=AsyncBaseTransport()))


@asynccontextmanager
async def _async_client(access: Access) -> "AsyncIterator[genai.Client]":
    """Async version of `_sync_client`."""
    from httpx2 import AsyncClient, BaseTransport, Client

    with _sabir_errors():
        if access.client is not None:
            yield access.client
            return
        async with AsyncClient() as http_client:
            yield _new_client(access, Client(transport=BaseTransport()), http_client)


def _new_client(access: Access, http_client: Any, async_client: Any) -> "genai.Client":
    """Return a new client of the SDK. Raises CredentialsMissing without a key."""
    from google import genai
    from google.genai.types import HttpOptions

    ((_, key),) = KeySource(NAME, access.api_key, provider(NAME).credentials).read()
    options = HttpOptions(base_url=access.base_url, httpx_client=http_client, httpx_async_client=async_client)
    return genai.Client(vertexai=False, api_key=key.get_secret_value(), http_options=options)


@contextmanager
def _sabir_errors() -> Iterator[None]:
    """Convert the SDK's errors in the `with` block to sabir's errors. Other exceptions are raised unchanged."""
    from google.genai.errors import APIError

    try:
        yield
    except APIError as error:
        raise ERRORS.decode(error.code, {}, encode_json(error.details).encode(), NAME) from None
    except Exception as error:
        if (translated := ERRORS.translate(error, NAME)) is not None:
            raise translated from error
        raise
