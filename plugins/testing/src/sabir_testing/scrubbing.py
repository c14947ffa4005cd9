"""What goes from an exchange before it is written: all headers but a few, hosts, fields that name people, and secrets.

URL         scheme://recorded.invalid/path, and of the query what is kept
headers     kept by name; all others go
bodies      decompressed; values of secret fields at any depth, in JSON, event streams, lines of JSON, and forms
everywhere  literal secrets: the key in use, what environment variables hold as keys, and what was given;
            also where a stream splits one over several events

Names are compared without case, dashes and underscores: `apiKey` is `api_key`.
"""

import base64
import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit

from sabir_testing.documents import Fragment, documents, put, replace, streamed, written

PLACEHOLDER = "REDACTED"
"""What stands where something was scrubbed."""
HOST = "recorded.invalid"
"""The host of every recorded exchange: a name that never resolves (RFC 2606)."""

KEPT_REQUEST_HEADERS = frozenset({"accept", "content-type"})
KEPT_RESPONSE_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "request-id", "x-request-id"})
KEPT_QUERY = frozenset({"alt", "api-version", "beta"})
CREDENTIAL_FIELDS = frozenset(
    {"access_token", "api_key", "auth_token", "authorization", "client_secret", "id_token", "password", "private_key"}
    | {"refresh_token", "secret", "secret_key", "session_token"}
)
SECRET_FIELDS = CREDENTIAL_FIELDS | frozenset(
    {"account", "account_id", "email", "org_id", "organization", "organization_id", "project", "project_id"}
    | {"safety_identifier", "user", "user_id", "user_name", "workspace_id"}
)
"""Fields whose values go: what opens doors, and who it was."""

SHORTEST_SECRET = 8
"""Characters that a value found by the look of its name has at least: shorter ones stand in too many places."""

_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)(?:_.*)?", re.IGNORECASE
)
_TELLING_HEADER = re.compile(
    r"auth(?!enticate)|cookie|key|token(?!s)|secret|credential|organi[sz]ation|project|workspace|account", re.IGNORECASE
)
_TELLING_PARAMETER = re.compile(r"auth|key|token|secret|sig|password", re.IGNORECASE)
_SCHEMA_WORDS = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}
_SCHEMA_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


@dataclass(frozen=True)
class Scrubbing:
    """What is kept of headers and queries, and what goes from bodies.

    `request_headers`, `response_headers`, `query`: names that are kept; all others go. `fields`: names of fields whose
    values go, at any depth. `secrets`: texts that go wherever they stand.
    """

    request_headers: frozenset[str] = KEPT_REQUEST_HEADERS
    response_headers: frozenset[str] = KEPT_RESPONSE_HEADERS
    query: frozenset[str] = KEPT_QUERY
    fields: frozenset[str] = SECRET_FIELDS
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """ValueError for an empty secret, which stands everywhere."""
        if "" in self.secrets:
            raise ValueError("Scrubbing(secrets=…) holds an empty text; leave it out")


def environment_secrets(environment: Mapping[str, str] = os.environ) -> set[str]:
    """What environment variables hold that are named as keys, tokens, secrets or passwords are."""
    return {
        value
        for name, value in environment.items()
        if _SECRET_VARIABLE.fullmatch(name) and len(value) >= SHORTEST_SECRET and not value.isdigit()
    }


class Scrubber:
    """Scrubs the exchanges of one recording. What `learn` is told of a request goes from all of them."""

    def __init__(self, scrubbing: Scrubbing) -> None:
        self._scrubbing = scrubbing
        self._fields = frozenset(map(_plain, scrubbing.fields))
        self._credentials = frozenset(map(_plain, CREDENTIAL_FIELDS)) & self._fields
        self._secrets = {*scrubbing.secrets, *environment_secrets()}
        self._hosts: set[str] = set()
        self._known: list[tuple[str, str]] | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that were asked, as the requests name them."""
        return frozenset(self._hosts)

    def learn(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Take the secrets and the host of a request, as it was sent."""
        parts = urlsplit(url)
        self._hosts |= {parts.netloc.rpartition("@")[2], parts.hostname or ""} - {""}
        found = {parts.username or "", parts.password or ""}
        found |= {value for name, value in parse_qsl(parts.query) if _TELLING_PARAMETER.search(name)}
        self._learn(found)
        self.learn_headers(headers)
        for document in documents(_text(body) or ""):
            self._learn(set(self._credentials_in(document.value)))

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Take the secrets from the headers of a request or of a response."""
        kept = self._scrubbing.request_headers | self._scrubbing.response_headers
        for name, value in headers.items():
            if _TELLING_HEADER.search(name) and name.lower() not in kept:
                self._learn({value, *_credentials(value)})

    def url(self, url: str) -> str:
        """The URL without its host, and with what is kept of its query."""
        parts = urlsplit(url)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name.lower() in self._scrubbing.query]
        query = f"?{urlencode(kept)}" if kept else ""
        return f"{parts.scheme}://{HOST}{self._literal(parts.path)}{self._literal(query)}"

    def request_headers(self, headers: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """What is kept of a request's headers."""
        return self._headers(headers, self._scrubbing.request_headers)

    def response_headers(self, headers: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """What is kept of a response's headers."""
        return self._headers(headers, self._scrubbing.response_headers)

    def body(self, body: bytes, content_type: str = "") -> bytes:
        """A decompressed body without secrets; JSON stays JSON, and an event stream keeps its events."""
        text = _text(body)
        if text is None:
            for spelling, instead in self._replacements():
                body = body.replace(spelling.encode(), instead.encode())
            return body
        if content_type.startswith("application/x-www-form-urlencoded"):
            text = self._form(text)
        found = documents(text)
        values = [self._without_fields(deepcopy(document.value)) for document in found]
        for fragments in streamed(values):
            self._scrub_stream(values, fragments)
        pairs = zip(found, values, strict=True)
        text = replace(text, [(document, value) for document, value in pairs if document.value != value])
        return self._literal(text).encode()

    def _learn(self, found: Iterable[str]) -> None:
        long_enough = (secret for secret in found if len(secret) >= SHORTEST_SECRET)
        self._secrets |= {secret for secret in long_enough if secret != PLACEHOLDER and not secret.isdigit()}
        self._known = None

    def _headers(self, headers: Mapping[str, list[str]], kept: frozenset[str]) -> dict[str, list[str]]:
        return {
            name: [self._literal(value) for value in values] for name, values in headers.items() if name.lower() in kept
        }

    def _replacements(self) -> list[tuple[str, str]]:
        """Spelling → what stands there instead, the longest first."""
        if self._known is None:
            self._known = self._spelled()
        return self._known

    def _spelled(self) -> list[tuple[str, str]]:
        secrets = [(spelling, PLACEHOLDER) for secret in self._secrets for spelling in _spellings(secret)]
        # "localhost" alone is a word that a model may say.
        hosts = [(host, HOST) for host in self._hosts if re.search(r"[.:]", host)]
        return sorted(secrets + hosts, key=lambda each: len(each[0]), reverse=True)

    def _literal(self, text: str) -> str:
        for spelling, instead in self._replacements():
            text = text.replace(spelling, instead)
        return text

    def _form(self, text: str) -> str:
        pairs = (part.partition("=") for part in text.split("&"))
        return "&".join(
            f"{name}{sign}{PLACEHOLDER if sign and _plain(name) in self._fields else value}"
            for name, sign, value in pairs
        )

    def _without_fields(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: _emptied(member) if _plain(name) in self._fields else self._without_fields(member)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._without_fields(member) for member in value]
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
            return self._without_fields_inside(value)
        return value

    def _without_fields_inside(self, text: str) -> str:
        """A text that is JSON itself, such as the arguments of a call."""
        try:
            inside = json.loads(text)
        except ValueError:
            return text
        scrubbed = self._without_fields(inside)
        return text if scrubbed == inside else written(scrubbed)

    def _credentials_in(self, value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, member in value.items():
                if isinstance(member, str) and _plain(name) in self._credentials:
                    yield member
                yield from self._credentials_in(member)
        elif isinstance(value, list):
            for member in value:
                yield from self._credentials_in(member)

    def _scrub_stream(self, values: list[Any], fragments: list[Fragment]) -> None:
        """Replace what stands across the borders of fragments: the first one gets it, the others lose their part."""
        texts = [fragment.text for fragment in fragments]
        for spelling, instead in self._replacements():
            texts = _replaced_across(texts, spelling, instead)
        for fragment, text in zip(fragments, texts, strict=True):
            if text != fragment.text:
                put(values[fragment.document], fragment.place, text)


def _replaced_across(texts: list[str], spelling: str, instead: str) -> list[str]:
    joined = "".join(texts)
    if spelling not in joined:
        return texts
    made: list[str] = []
    start = 0
    spans = [match.span() for match in re.finditer(re.escape(spelling), joined)]
    for text in texts:
        made.append(_piece(joined, start, start + len(text), spans, instead))
        start += len(text)
    return made


def _piece(joined: str, start: int, end: int, spans: list[tuple[int, int]], instead: str) -> str:
    """One fragment's part of the joined text, where the spans are replaced at their beginnings."""
    made, at = "", start
    for begin, finish in spans:
        if finish <= start or begin >= end:
            continue
        made += joined[at : max(at, begin)] + (instead if begin >= start else "")
        at = finish
    return made + joined[at:end] if at < end else made


def _emptied(value: Any) -> Any:
    """What stands in the place of a secret field's value; the schema of such a field is no secret."""
    if isinstance(value, dict):
        if _SCHEMA_WORDS & value.keys() or value.get("type") in _SCHEMA_TYPES:
            return value
        return {name: _emptied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_emptied(member) for member in value]
    return value if value is None or isinstance(value, bool) else PLACEHOLDER


def _credentials(value: str) -> Iterator[str]:
    """What follows the scheme of an Authorization header: a token, or a name and a password; or a cookie's values."""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            yield from base64.b64decode(rest).decode().split(":", 1)
    yield rest
    yield from re.findall(r"=([^;,\s]+)", value)


def _spellings(secret: str) -> set[str]:
    """A secret as URLs and JSON write it."""
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        *escaped,
        *(each.replace("/", r"\/") for each in escaped),
    }


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
