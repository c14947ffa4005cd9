"""Scrubbing: the removal of secrets and personal data from an exchange before it is written to a cassette.

URL         becomes scheme://recorded.invalid/path, with the parameters in `Scrubbing.query`
headers     are removed, except those in `Scrubbing`
bodies      are decompressed. Values of secret fields are replaced, at any depth of JSON, event streams, JSON lines,
            forms and base64. In binary frames, the length stays the same, but checksums become wrong
everywhere  secrets are replaced: the key in use, keys in environment variables, and `Scrubbing.secrets`, in each of
            their spellings (`spellings`), also if a stream splits one over several events; and names, passwords and
            keys in URLs

Names of fields are compared without case, dashes and underscores: `apiKey` equals `api_key`. The module `leaks`
searches the result for secrets that remain: `Leak` is a finding, and `Allowed` an exception.
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
from sabir_testing.reading import Document, Fragment, base64_runs, documents
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

    `request_headers`, `response_headers` and `query` are the names, in lower case, of headers and URL parameters that
    remain; all others are removed. `fields` are names of fields whose values are replaced, at any depth. `secrets` are
    texts that are replaced everywhere.
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
    """A secret, private data or a random text that was found in a cassette. It may be harmless.

    `place` is the path in the file, `kind` the kind of secret, and `shown` the first characters of the secret and the
    number of its further characters.
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

    def covers(self, kind: str, text: str) -> bool:
        """Return whether this text is allowed as a finding of this kind."""
        return self.kind in ("", kind) and re.fullmatch(self.pattern, text) is not None


def environment_secrets(environment: Mapping[str, str] = os.environ) -> set[str]:
    """Return the values of environment variables whose names contain KEY, TOKEN, SECRET or similar words, without short
    values and numbers.
    """
    return {value for name, value in environment.items() if _SECRET_VARIABLE.fullmatch(name) and is_telling(value)}


class Scrubber:
    """Scrubs the exchanges of one recording. Secrets that `learn` finds in one exchange are removed from all."""

    def __init__(self, scrubbing: Scrubbing) -> None:
        self._scrubbing = scrubbing
        self._fields = frozenset(map(_normalize_name, scrubbing.fields))
        self._credentials = frozenset(map(_normalize_name, CREDENTIAL_FIELDS)) & self._fields
        self._secrets = {*scrubbing.secrets, *environment_secrets()}
        self._short_keys: set[str] = set()
        self.hosts: set[str] = set()
        """The hosts of the requests' URLs, with and without their ports."""
        self._cached_spellings: list[Spelling] | None = None

    def learn(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Collect the secrets and the host of a request."""
        parts = urlsplit(url)
        self.hosts |= {parts.netloc.rpartition("@")[2], parts.hostname or ""} - {""}
        self._learn({unquote(parts.username or "")})
        keys = {value for name, value in parse_qsl(parts.query) if TELLING_PARAMETER.search(name)}
        keys |= {unquote(parts.password or "")}
        for name, value in headers.items():
            if _KEY_HEADER.search(name) and name.lower() not in self._scrubbing.request_headers:
                keys |= set(_keys_in(value))
        self._learn_keys(keys)
        self.learn_headers(headers)
        text = _decode_text(body) or ""
        self._learn(unquote(match[2]) for match in USER_IN_URL.finditer(text))
        for document in documents(text):
            named = (leaf for leaf in reading.walk(document.value) if leaf.path and not leaf.is_name)
            self._learn(
                leaf.value
                for leaf in named
                if isinstance(leaf.value, str) and _normalize_name(str(leaf.path[-1])) in self._credentials
            )

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Collect the secrets in the headers of a request or response."""
        public = self._scrubbing.request_headers | self._scrubbing.response_headers
        for name, value in headers.items():
            if _TELLING_HEADER.search(name) and name.lower() not in public:
                self._learn({value, *_credentials_in(value)})

    def url(self, url: str) -> str:
        """Return the URL with the placeholder host, with the allowed parameters only, and without secrets."""
        parts = urlsplit(url)
        parameters = [(name, value) for name, value in parse_qsl(parts.query) if name.lower() in self._scrubbing.query]
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{parts.scheme}://{HOST}{self._replace_secrets(parts.path)}{self._replace_secrets(query)}"

    def headers(self, headers: Mapping[str, list[str]], names: frozenset[str]) -> dict[str, list[str]]:
        """Return the headers whose lower-case names are in `names`, without secrets in their values."""
        public = {name: values for name, values in headers.items() if name.lower() in names}
        return {name: [self._replace_secrets(value) for value in values] for name, values in public.items()}

    def body(self, body: bytes, content_type: str = "") -> bytes:
        """Return a body without secrets. JSON remains JSON, and an event stream has the same number of events. A
        compressed body is returned decompressed if it contains secrets, otherwise unchanged.
        """
        inside = reading.decompress_detected(body)
        if inside is not body:
            scrubbed = self.body(inside, content_type)
            return body if scrubbed == inside else scrubbed
        read = reading.as_text(body, content_type)
        if read is None or reading.is_framed(read.text):
            return self._scrub_frames(body)
        body = read.encode(self._scrub_text(read.text, content_type))
        return body if read.encoding == "utf-8" else self._replace_in_bytes(body)

    def _replace_in_bytes(self, body: bytes) -> bytes:
        """Return bytes of the same length without secrets, because binary formats contain lengths."""
        for spelling in self._spellings():
            for encoding, width in () if spelling.is_word else (("utf-8", 1), ("utf-16-le", 2), ("utf-16-be", 2)):
                secret = spelling.text.encode(encoding)
                body = body.replace(secret, _repeat_to(spelling.replacement, len(secret) // width).encode(encoding))
        return body

    def _scrub_frames(self, body: bytes) -> bytes:
        """Return binary frames of the same length without secrets, and without the values of secret JSON fields."""
        text = self._replace_in_bytes(body).decode("latin-1")
        parsed = documents(text)
        secrets = [self._secret_texts(document.value) for document in parsed]
        for fragments in reading.group_fragments([document.value for document in parsed]):
            texts = [fragment.text for fragment in fragments]
            for spelling in self._spellings():
                for number, share, _ in _split_spans(texts, spelling):
                    secrets[fragments[number].document].add(texts[number][share])
        for document, parts in zip(parsed, secrets, strict=True):
            inside = text[document.start : document.end]
            for part in sorted(parts, key=len, reverse=True):
                for spelt in {json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]} - {""}:
                    inside = inside.replace(spelt, _repeat_to("0" if part.isdigit() else PLACEHOLDER, len(spelt)))
            text = text[: document.start] + inside + text[document.end :]
        return text.encode("latin-1")

    def _secret_texts(self, value: Any, *, is_secret: bool = False) -> set[str]:
        """Return the texts and numbers in secret fields, at any depth. The schema of a secret field is not secret."""
        if isinstance(value, dict):
            secrets = set[str]()
            for name, member in value.items():
                is_schema = isinstance(member, dict) and _redact(member) is member
                inside = (is_secret or _normalize_name(name) in self._fields) and not is_schema
                secrets |= self._secret_texts(member, is_secret=inside)
            return secrets
        if isinstance(value, list):
            return {text for member in value for text in self._secret_texts(member, is_secret=is_secret)}
        return {str(value)} if is_secret and value is not None and not isinstance(value, bool) else set()

    def _scrub_text(self, text: str, content_type: str) -> str:
        if content_type.startswith("application/x-www-form-urlencoded"):
            text = self._scrub_form(text)
        text = self._scrub_base64(text)
        parsed = documents(text)
        values = [self._scrub_value(deepcopy(document.value)) for document in parsed]
        for fragments in reading.group_fragments(values):
            self._scrub_stream(values, fragments)
        pairs = zip(parsed, values, strict=True)
        return self._write_documents(text, [(document, value) for document, value in pairs if document.value != value])

    def _write_documents(self, text: str, changed: list[tuple[Document, Any]]) -> str:
        """Return the text with the changed documents. Replace the secrets outside of the documents, too.

        Within JSON, short keys are not replaced, because a number may contain them.
        """
        text = reading.replace(text, changed)
        parsed = documents(text)
        outside = [self._replace_secrets(_scrub_urls(part)) for part in reading.texts_between(text, parsed)]
        everywhere = [spelling for spelling in self._spellings() if not spelling.is_word]
        inside = [replace_all(text[document.start : document.end], everywhere) for document in parsed]
        return "".join(each for pair in zip(outside, [*inside, ""], strict=True) for each in pair)

    def _learn(self, candidates: Iterable[str]) -> None:
        self._secrets |= {secret for secret in candidates if is_telling(secret) and secret != PLACEHOLDER}
        self._cached_spellings = None

    def _learn_keys(self, candidates: Iterable[str]) -> None:
        """Collect keys that were sent, also short ones, but not small numbers."""
        candidates = {key for key in candidates if key and key != PLACEHOLDER}
        keys = {key for key in candidates if not key.isdigit() or len(key) >= SHORTEST_NUMBER}
        self._short_keys |= {key for key in keys if not is_telling(key)}
        self._learn(keys)

    def _spellings(self) -> list[Spelling]:
        """Return every spelling of all secrets and hosts, the longest first."""
        if self._cached_spellings is None:
            # "localhost" alone is a word that an answer may contain.
            every = {Spelling(host, HOST) for host in self.hosts if re.search(r"[.:]", host)}
            every |= {each for secret in self._secrets for each in spellings(secret, PLACEHOLDER)}
            every |= {each for word in self._short_keys for each in spellings(word, PLACEHOLDER, is_word=True)}
            self._cached_spellings = sorted(every, key=lambda each: len(each.text), reverse=True)
        return self._cached_spellings

    def _replace_secrets(self, text: str) -> str:
        return replace_all(text, self._spellings())

    def _scrub_form(self, text: str) -> str:
        pairs = (part.partition("=") for part in text.split("&"))
        return "&".join(
            f"{name}{sign}{PLACEHOLDER if sign and _normalize_name(name) in self._fields else value}"
            for name, sign, value in pairs
        )

    def _scrub_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            secret = {name for name in value if _normalize_name(name) in self._fields}
            return {
                self._replace_secrets(name): _redact(member) if name in secret else self._scrub_value(member)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._scrub_value(member) for member in value]
        if isinstance(value, str):
            inside = self._scrub_base64(self._scrub_json_text(value))
            return self._replace_secrets(_scrub_urls(inside))
        return PLACEHOLDER if type(value) is int and str(value) in self._short_keys else value

    def _scrub_json_text(self, text: str) -> str:
        """Scrub a text that is JSON itself, such as the arguments of a call. Other texts are returned unchanged."""
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            inside = json.loads(text)
        except ValueError:
            return text
        scrubbed = self._scrub_value(inside)
        return text if scrubbed == inside else reading.compact_json(scrubbed)

    def _scrub_base64(self, text: str) -> str:
        """Scrub a text that is base64 of JSON. Other texts are returned unchanged."""
        run = next(base64_runs(text.strip()), None)
        if run is None or run.end - run.start < len(text.strip()):
            return text
        content = _decode_text(run.content)
        scrubbed = content if content is None else self._scrub_json_text(content)
        return text if scrubbed is None or scrubbed == content else run.encode(scrubbed.encode())

    def _scrub_stream(self, values: list[Any], fragments: list[Fragment]) -> None:
        """Replace secrets that extend over several fragments. The first fragment gets the placeholder, and the others
        lose their part.
        """
        texts = [fragment.text for fragment in fragments]
        for spelling in self._spellings():
            for number, part, replacement in reversed(list(_split_spans(texts, spelling))):
                texts[number] = texts[number][: part.start] + replacement + texts[number][part.stop :]
        for fragment, text in zip(fragments, texts, strict=True):
            if text != fragment.text:
                reading.set_text(values[fragment.document], fragment.path, text)


def _split_spans(texts: list[str], spelling: Spelling) -> Iterator[tuple[int, slice, str]]:
    """Yield where a spelling is in the joined texts: the number of a text, a slice of this text, its replacement."""
    for begin, finish in spelling.spans("".join(texts)):
        start, replacement = 0, spelling.replacement
        for number, text in enumerate(texts):
            part = slice(max(begin - start, 0), min(finish - start, len(text)))
            if part.start < part.stop:
                yield number, part, replacement
                replacement = ""
            start += len(text)


def _repeat_to(replacement: str, length: int) -> str:
    """Return the replacement, repeated and cut to a length."""
    return (replacement * (length // len(replacement) + 1))[:length]


def _redact(value: Any) -> Any:
    """Return the replacement of a secret field's value. The schema of a secret field is returned unchanged."""
    if isinstance(value, dict):
        if _SCHEMA_WORDS & value.keys() or value.get("type") in _SCHEMA_TYPES:
            return value
        return {name: _redact(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_redact(member) for member in value]
    return value if value is None or isinstance(value, bool) else PLACEHOLDER


def _credentials_in(value: str) -> Iterator[str]:
    """Yield the credentials in a header: the token, or the user name and password, of an Authorization header, or the
    values of a cookie.
    """
    scheme, _, token = value.partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            yield from base64.b64decode(token).decode().split(":", 1)
    yield token
    yield from re.findall(r"=([^;,\s]+)", value)


def _keys_in(value: str) -> Iterator[str]:
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


def _scrub_urls(text: str) -> str:
    """Return a text without the names, passwords and keys in its URLs."""
    return _URL.sub(_scrub_url, text) if "://" in text else text


def _scrub_url(url: re.Match[str]) -> str:
    without = USER_IN_URL.sub(f"{PLACEHOLDER}:{PLACEHOLDER}", url.group())
    return PARAMETER_IN_URL.sub(
        lambda match: f"{match[1]}={PLACEHOLDER}" if TELLING_PARAMETER.search(match[1]) else match.group(), without
    )


def _normalize_name(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _decode_text(body: bytes) -> str | None:
    read = reading.as_text(body)
    return None if read is None else read.text
