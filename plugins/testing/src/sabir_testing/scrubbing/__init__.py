"""Scrubbing: the removal of secrets and personal data from an exchange before it is written to a cassette.

URL         becomes scheme://recorded.invalid/path, with the parameters in `Scrubbing.query`
headers     are removed, except those in `Scrubbing`
bodies      are decompressed. Values of secret fields are replaced, at any depth of JSON, event streams, JSON lines,
            forms and base64. In binary frames, the length stays the same, but checksums become wrong
everywhere  secrets are replaced: the key in use, keys in environment variables, and `Scrubbing.secrets`, in each of
            their spellings (`spellings`), also if a stream splits one over several events; and names, passwords and
            keys in URLs

Names are compared without case, dashes and underscores: `apiKey` equals `api_key`. The module `leaks` searches the
result for secrets that remain: `Leak` is a finding, and `Allowed` an exception.
"""

import base64
import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from sabir_testing import reading
from sabir_testing.reading import Document, Fragment, documents, encoded
from sabir_testing.scrubbing.spellings import SHORTEST_NUMBER, Spelling, is_telling, replace_all, spellings

PLACEHOLDER = "REDACTED"
"""The text that replaces a secret."""
HOST = "recorded.invalid"
"""The host in the URLs of all recorded exchanges, which never resolves (RFC 2606)."""

KEPT_REQUEST_HEADERS = frozenset({"accept", "content-type"})
KEPT_RESPONSE_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "request-id", "x-request-id"})
KEPT_QUERY = frozenset({"alt", "api-version", "beta"})
CREDENTIAL_FIELDS = frozenset(
    {"access_token", "api_key", "auth_token", "authorization", "client_secret", "id_token", "password", "private_key"}
    | {"refresh_token", "secret", "secret_key", "session_token", "secret_access_key", "security_token", "passwd"}
    | {"aws_secret_access_key", "aws_session_token", "account_key", "connection_string", "dsn", "database_url"}
)
SECRET_FIELDS = CREDENTIAL_FIELDS | frozenset(
    {"account", "account_id", "email", "org_id", "organization", "organization_id", "project", "project_id"}
    | {"safety_identifier", "user", "user_id", "user_name", "workspace_id"}
)
"""Fields whose values are replaced: credentials, and names and ids of people and organizations."""

_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)(?:_.*)?", re.IGNORECASE
)
_TELLING_HEADER = re.compile(
    r"auth(?!enticate)|cookie|key|token(?!s)|secret|credential|organi[sz]ation|project|workspace|account", re.IGNORECASE
)
_KEY_HEADER = re.compile(r"auth(?!enticate)|key|token(?!s)|secret|credential|password", re.IGNORECASE)
TELLING_PARAMETER = re.compile(r"auth|key|token(?!s)|secret|sig|password", re.IGNORECASE)
"""Names of URL parameters with credentials."""
USER_IN_URL = re.compile(r"(?<=://)([^\s/?#@:\"'<>]*):([^\s/?#@\"'<>]+)(?=@)")
"""A user name and a password in a URL, such as the URL of a database."""
PARAMETER_IN_URL = re.compile(r"(?<=[?&;])([^\s=&;#?\"'<>]+)=([^\s&;#,\"'<>]+)")
_URL = re.compile(r"\w+://[^\s\"'<>]+")
_SCHEMA_WORDS = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}
_SCHEMA_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


@dataclass(frozen=True)
class Scrubbing:
    """The rules of scrubbing, for `recording`.

    `request_headers`, `response_headers` and `query` are the names of headers and URL parameters that remain; all
    others are removed. `fields` are names of fields whose values are replaced, at any depth. `secrets` are texts that
    are replaced everywhere.
    """

    request_headers: frozenset[str] = KEPT_REQUEST_HEADERS
    response_headers: frozenset[str] = KEPT_RESPONSE_HEADERS
    query: frozenset[str] = KEPT_QUERY
    fields: frozenset[str] = SECRET_FIELDS
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for an empty secret, which would match everywhere."""
        if "" in self.secrets:
            raise ValueError("Scrubbing(secrets=…) contains an empty text, which would match everywhere; remove it")


@dataclass(frozen=True)
class Leak:
    """A secret or private data that was found in a cassette.

    `place` is the path in the file, `kind` the kind of secret, and `shown` its first characters and its length.
    """

    file: Path
    place: str
    kind: str
    shown: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.kind} {self.shown}"


@dataclass(frozen=True)
class Allowed:
    """An exception: texts that a cassette may contain although they look like secrets.

    `pattern` is a regular expression that must match the complete finding, and `reason` says why it may be published.
    `kind` restricts the exception to one kind of finding; "" means every kind.
    """

    pattern: str
    reason: str
    kind: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an exception without a reason."""
        if not self.reason.strip():
            raise ValueError(f"Allowed({self.pattern!r}) has no reason; write why this text may be published")

    def covers(self, kind: str, found: str) -> bool:
        """Return whether the text `found` of this kind is allowed."""
        return self.kind in ("", kind) and re.fullmatch(self.pattern, found) is not None


def environment_secrets(environment: Mapping[str, str] = os.environ) -> set[str]:
    """Return the values of environment variables whose names contain KEY, TOKEN, SECRET or similar words."""
    return {value for name, value in environment.items() if _SECRET_VARIABLE.fullmatch(name) and is_telling(value)}


class Scrubber:
    """Scrubs the exchanges of one recording. Secrets that `learn` finds in one exchange are removed from all."""

    def __init__(self, scrubbing: Scrubbing) -> None:
        self._scrubbing = scrubbing
        self._fields = frozenset(map(_plain, scrubbing.fields))
        self._credentials = frozenset(map(_plain, CREDENTIAL_FIELDS)) & self._fields
        self._secrets = {*scrubbing.secrets, *environment_secrets()}
        self._words: set[str] = set()
        self.hosts: set[str] = set()
        """The hosts of the requests' URLs, with and without their ports."""
        self._known: list[Spelling] | None = None

    def learn(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Collect the secrets and the host of a request."""
        parts = urlsplit(url)
        self.hosts |= {parts.netloc.rpartition("@")[2], parts.hostname or ""} - {""}
        self._learn({unquote(parts.username or "")})
        keys = {value for name, value in parse_qsl(parts.query) if TELLING_PARAMETER.search(name)}
        keys |= {unquote(parts.password or "")}
        for name, value in headers.items():
            if _KEY_HEADER.search(name) and name.lower() not in self._scrubbing.request_headers:
                keys |= set(_keys(value))
        self._learn_keys(keys)
        self.learn_headers(headers)
        text = _text(body) or ""
        self._learn(unquote(match[2]) for match in USER_IN_URL.finditer(text))
        for document in documents(text):
            named = (leaf for leaf in reading.walk(document.value) if leaf.place and not leaf.is_name)
            self._learn(
                leaf.value
                for leaf in named
                if isinstance(leaf.value, str) and _plain(str(leaf.place[-1])) in self._credentials
            )

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Collect the secrets in the headers of a request or response."""
        kept = self._scrubbing.request_headers | self._scrubbing.response_headers
        for name, value in headers.items():
            if _TELLING_HEADER.search(name) and name.lower() not in kept:
                self._learn({value, *_credentials(value)})

    def url(self, url: str) -> str:
        """Return the URL with the placeholder host, and with the allowed parameters only."""
        parts = urlsplit(url)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name.lower() in self._scrubbing.query]
        query = f"?{urlencode(kept)}" if kept else ""
        return f"{parts.scheme}://{HOST}{self._literal(parts.path)}{self._literal(query)}"

    def headers(self, headers: Mapping[str, list[str]], kept: frozenset[str]) -> dict[str, list[str]]:
        """Return the headers whose lower-case names are in `kept`, without secrets in their values."""
        return {
            name: [self._literal(value) for value in values] for name, values in headers.items() if name.lower() in kept
        }

    def body(self, body: bytes, content_type: str = "") -> bytes:
        """Return a decompressed body without secrets. JSON remains JSON, and an event stream has the same events."""
        inside = reading.opened(body)
        if inside is not body:
            scrubbed = self.body(inside, content_type)
            return body if scrubbed == inside else scrubbed
        read = reading.as_text(body, content_type)
        if read is None or reading.is_framed(read.text):
            return self._framed(body)
        body = read.written(self._text(read.text, content_type))
        return body if read.encoding == "utf-8" else self._literal_bytes(body)

    def _literal_bytes(self, body: bytes) -> bytes:
        """Return bytes of the same length without secrets, because binary formats contain lengths."""
        for spelling in self._spelled():
            for encoding, width in () if spelling.is_word else (("utf-8", 1), ("utf-16-le", 2), ("utf-16-be", 2)):
                found = spelling.text.encode(encoding)
                body = body.replace(found, _masked(spelling.instead, len(found) // width).encode(encoding))
        return body

    def _framed(self, body: bytes) -> bytes:
        """Return binary frames of the same length without secrets, and without the values of secret JSON fields."""
        text = self._literal_bytes(body).decode("latin-1")
        found = documents(text)
        masked = [self._emptied_texts(document.value) for document in found]
        for fragments in reading.streamed([document.value for document in found]):
            texts = [fragment.text for fragment in fragments]
            for spelling in self._spelled():
                for number, share, _ in _shares(texts, spelling):
                    masked[fragments[number].document].add(texts[number][share])
        for document, parts in zip(found, masked, strict=True):
            inside = text[document.start : document.end]
            for part in sorted(parts, key=len, reverse=True):
                for spelt in {json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]} - {""}:
                    inside = inside.replace(spelt, _masked("0" if part.isdigit() else PLACEHOLDER, len(spelt)))
            text = text[: document.start] + inside + text[document.end :]
        return text.encode("latin-1")

    def _emptied_texts(self, value: Any, *, is_secret: bool = False) -> set[str]:
        """Return the texts and numbers in secret fields, at any depth. The schema of a secret field is not secret."""
        if isinstance(value, dict):
            found = set[str]()
            for name, member in value.items():
                is_schema = isinstance(member, dict) and _emptied(member) is member
                inside = (is_secret or _plain(name) in self._fields) and not is_schema
                found |= self._emptied_texts(member, is_secret=inside)
            return found
        if isinstance(value, list):
            return {text for member in value for text in self._emptied_texts(member, is_secret=is_secret)}
        return {str(value)} if is_secret and value is not None and not isinstance(value, bool) else set()

    def _text(self, text: str, content_type: str) -> str:
        if content_type.startswith("application/x-www-form-urlencoded"):
            text = self._form(text)
        text = self._without_fields_in_base64(text)
        found = documents(text)
        values = [self._without_fields(deepcopy(document.value)) for document in found]
        for fragments in reading.streamed(values):
            self._scrub_stream(values, fragments)
        pairs = zip(found, values, strict=True)
        return self._around(text, [(document, value) for document, value in pairs if document.value != value])

    def _around(self, text: str, changed: list[tuple[Document, Any]]) -> str:
        """Return the text with the changed documents. Secrets outside of them are replaced, too.

        Within JSON, short keys are not replaced, because a number may contain them.
        """
        text = reading.replace(text, changed)
        found = documents(text)
        outside = [self._literal(_without_addresses(part)) for part in reading.around(text, found)]
        everywhere = [spelling for spelling in self._spelled() if not spelling.is_word]
        inside = [replace_all(text[document.start : document.end], everywhere) for document in found]
        return "".join(each for pair in zip(outside, [*inside, ""], strict=True) for each in pair)

    def _learn(self, found: Iterable[str]) -> None:
        self._secrets |= {secret for secret in found if is_telling(secret) and secret != PLACEHOLDER}
        self._known = None

    def _learn_keys(self, found: Iterable[str]) -> None:
        """Collect keys that were sent, also short ones, but not small numbers."""
        keys = {
            key for key in found if key and key != PLACEHOLDER and not (key.isdigit() and len(key) < SHORTEST_NUMBER)
        }
        self._words |= {key for key in keys if not is_telling(key)}
        self._learn(keys)

    def _spelled(self) -> list[Spelling]:
        """Return every spelling of all secrets and hosts, the longest first."""
        if self._known is None:
            # "localhost" alone is a word that an answer may contain.
            found = {Spelling(host, HOST) for host in self.hosts if re.search(r"[.:]", host)}
            found |= {each for secret in self._secrets for each in spellings(secret, PLACEHOLDER)}
            found |= {each for word in self._words for each in spellings(word, PLACEHOLDER, is_word=True)}
            self._known = sorted(found, key=lambda each: len(each.text), reverse=True)
        return self._known

    def _literal(self, text: str) -> str:
        return replace_all(text, self._spelled())

    def _form(self, text: str) -> str:
        pairs = (part.partition("=") for part in text.split("&"))
        return "&".join(
            f"{name}{sign}{PLACEHOLDER if sign and _plain(name) in self._fields else value}"
            for name, sign, value in pairs
        )

    def _without_fields(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self._literal(name): _emptied(member) if _plain(name) in self._fields else self._without_fields(member)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._without_fields(member) for member in value]
        if isinstance(value, str):
            inside = self._without_fields_in_base64(self._without_fields_inside(value))
            return self._literal(_without_addresses(inside))
        return PLACEHOLDER if type(value) is int and str(value) in self._words else value

    def _without_fields_inside(self, text: str) -> str:
        """Scrub a text that is JSON itself, such as the arguments of a call. Other texts are returned unchanged."""
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            inside = json.loads(text)
        except ValueError:
            return text
        scrubbed = self._without_fields(inside)
        return text if scrubbed == inside else reading.written(scrubbed)

    def _without_fields_in_base64(self, text: str) -> str:
        """Scrub a text that is base64 of JSON. Other texts are returned unchanged."""
        run = next(encoded(text.strip()), None)
        if run is None or run.end - run.start < len(text.strip()):
            return text
        held = _text(run.held)
        scrubbed = held if held is None else self._without_fields_inside(held)
        return text if scrubbed is None or scrubbed == held else run.written(scrubbed.encode())

    def _scrub_stream(self, values: list[Any], fragments: list[Fragment]) -> None:
        """Replace secrets that extend over several fragments. The first fragment gets the placeholder, and the others
        lose their part.
        """
        texts = [fragment.text for fragment in fragments]
        for spelling in self._spelled():
            for number, part, instead in reversed(list(_shares(texts, spelling))):
                texts[number] = texts[number][: part.start] + instead + texts[number][part.stop :]
        for fragment, text in zip(fragments, texts, strict=True):
            if text != fragment.text:
                reading.put(values[fragment.document], fragment.place, text)


def _shares(texts: list[str], spelling: Spelling) -> Iterator[tuple[int, slice, str]]:
    """Yield the places of a spelling in the joined texts: number of the text, slice in the text, replacement."""
    for begin, finish in spelling.spans("".join(texts)):
        start, instead = 0, spelling.instead
        for number, text in enumerate(texts):
            part = slice(max(begin - start, 0), min(finish - start, len(text)))
            if part.start < part.stop:
                yield number, part, instead
                instead = ""
            start += len(text)


def _masked(instead: str, length: int) -> str:
    """Return the replacement, repeated and cut to a length."""
    return (instead * (length // len(instead) + 1))[:length]


def _emptied(value: Any) -> Any:
    """Return the replacement of a secret field's value. The schema of a secret field is returned unchanged."""
    if isinstance(value, dict):
        if _SCHEMA_WORDS & value.keys() or value.get("type") in _SCHEMA_TYPES:
            return value
        return {name: _emptied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_emptied(member) for member in value]
    return value if value is None or isinstance(value, bool) else PLACEHOLDER


def _credentials(value: str) -> Iterator[str]:
    """Yield the credentials in a header: the token, or the user name and password, of an Authorization header, or the
    values of a cookie.
    """
    scheme, _, token = value.partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            yield from base64.b64decode(token).decode().split(":", 1)
    yield token
    yield from re.findall(r"=([^;,\s]+)", value)


def _keys(value: str) -> Iterator[str]:
    """Yield the key in a header: the value, the token after a scheme, or the password of basic authentication."""
    scheme, _, token = value.strip().partition(" ")
    if not token:
        yield scheme
    elif scheme.lower() == "basic":
        yield token
        with contextlib.suppress(ValueError):
            yield base64.b64decode(token).decode().partition(":")[2]
    elif not re.search(r"[\s,]", token):
        yield token


def _without_addresses(text: str) -> str:
    """Return a text without the names, passwords and keys in its URLs."""
    return _URL.sub(_without_keys, text) if "://" in text else text


def _without_keys(url: re.Match[str]) -> str:
    without = USER_IN_URL.sub(f"{PLACEHOLDER}:{PLACEHOLDER}", url.group())
    return PARAMETER_IN_URL.sub(
        lambda found: f"{found[1]}={PLACEHOLDER}" if TELLING_PARAMETER.search(found[1]) else found.group(), without
    )


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _text(body: bytes) -> str | None:
    read = reading.as_text(body)
    return None if read is None else read.text
