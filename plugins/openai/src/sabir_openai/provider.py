"""OpenAI and the endpoints that speak its dialects: URL, credentials, and the official SDK's clients that carry bytes.

    row of data ──▶ CompatibleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks
                                                   └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. It writes the head of each kind of request once; then ready bytes are sent
with it, over an HTTP client of the class that the SDK takes by default (see sabir.authoring.transport).
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from sabir.authoring import (
    Access,
    Connection,
    Credential,
    Dialect,
    Frozen,
    IdentifierRule,
    KeySource,
    PostingClient,
    PostingConnection,
    SDKProvider,
    WireRequest,
)

from sabir_openai.errors import ERRORS

COMPATIBLE = frozenset({"max_tokens", "system_role"})
"""Quirks assumed of an endpoint that the user names only by `base_url` and that is not known to sell these models."""
ACCOUNT = (
    Credential(name="organization", variables=("OPENAI_ORG_ID",), default="", secret=False),
    Credential(name="project", variables=("OPENAI_PROJECT_ID",), default="", secret=False),
)
"""Access settings that only OpenAI itself takes beside its key, as arguments of the SDK's client."""


class Row(Frozen):
    """An endpoint as data. `key_variables` and `url_variables` are read in order; `docs` is the vendor's page."""

    name: str
    url: str
    docs: str
    dialects: tuple[str, ...] = ("chat",)
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    quirks: frozenset[str] = frozenset()
    call_id_length: int | None = None
    streams_usage: bool = True


OPENAI = Row(
    name="openai", url="https://api.openai.com/v1", docs="https://developers.openai.com/api/docs/quickstart",
    dialects=("responses", "chat"), key_variables=("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    url_variables=("OPENAI_BASE_URL",),
)  # fmt: skip


@cache
def gateways() -> Mapping[str, Row]:
    """The compatible endpoints of gateways.toml by name."""
    text = files("sabir_openai").joinpath("gateways.toml").read_text("utf-8")
    return {row["name"]: Row(**row) for row in tomllib.loads(text)["gateways"]}


def variant(short_name: str, call_id_length: int | None = None, streams_usage: bool = True) -> Dialect:
    """A dialect, loaded when it is requested; of chat also a variant for ids of one length or no `stream_options`."""
    if short_name == "responses":
        from sabir_openai.responses_dialect import RESPONSES

        return RESPONSES
    from sabir_openai.chat_dialect import CHAT

    tables, streaming = CHAT.tables, CHAT.streaming_fields if streams_usage else {"stream": True}
    if call_id_length is not None:
        exactly = rf"(?=[A-Za-z0-9]{{{call_id_length}}}\Z)[A-Za-z0-9]"
        rule = IdentifierRule(characters="[A-Za-z0-9]", longest=call_id_length, first=exactly)
        every = {"": tables, **tables.variants}
        every = {name: replace(each, calls=replace(each.calls, ids=rule)) for name, each in every.items()}
        tables = replace(every.pop(""), variants=every)
    return (
        CHAT if call_id_length is None and streams_usage else replace(CHAT, tables=tables, streaming_fields=streaming)
    )


class CompatibleProvider(SDKProvider):
    """A provider made of one row."""

    request_ids = ("x-request-id", "apim-request-id", "request-id", "x-correlation-id")

    def __init__(self, row: Row) -> None:
        self._row = row
        self.name, self.dialects = row.name, row.dialects
        self.url, self.url_variables = row.url, row.url_variables
        self.credentials = (Credential(variables=row.key_variables),) if row.key_variables else ()
        if row is OPENAI:
            self.credentials += ACCOUNT
            self.hosts, self.elsewhere, self.package = ("openai.com", "azure.com"), COMPATIBLE, "sabir_openai"

    def dialect(self, short_name: str) -> Dialect:
        """The dialect of that short name, as this endpoint speaks it."""
        return variant(short_name, self._row.call_id_length, self._row.streams_usage)

    def own(self, access: Access, key: KeySource) -> Connection:
        """Over the SDK's clients, made at the first send."""
        return SDKConnection(self.name, ERRORS, key, self.url_of(access), is_vendor=self.is_vendor(access))

    def given(self, client: object) -> Connection:
        """Over the user's own client."""
        return UsersConnection(self.name, ERRORS, client)

    def quirks(self, access: Access) -> frozenset[str]:
        """The row's quirks; for OpenAI's dialects at an unknown endpoint, the safest quirks."""
        return self._row.quirks | super().quirks(access)


class SDKConnection(PostingConnection):
    """The SDK's own clients; only OpenAI itself gets organisation and project."""

    module, client_name = "openai", "OpenAI"
    vendor_headers = ("OpenAI-Organization", "OpenAI-Project")


class UsersConnection(PostingClient):
    """The user's own client, which may be Azure's."""

    module = "openai"
    kinds = ("openai.OpenAI", "openai.AsyncOpenAI")
    remedy = "the waiting calls take an OpenAI client, await takes an AsyncOpenAI"

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
