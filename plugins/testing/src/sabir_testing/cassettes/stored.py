"""Cassettes on disk: read once for each state of the file, and split into exchanges.

path ──▶ heading (provenance) + interactions ──▶ RecordedExchange(method, path, request body │ status, headers, body)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import yaml

Provenance = Mapping[str, str]
"""Who answered: the fields of PROVENANCE_FIELDS, and any others."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with it."""
_STREAM_TYPES = {"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"}


class CassetteFailed(AssertionError):
    """A cassette is invalid, or its exchanges were not requested; the text says which, and the remedy."""


@dataclass(frozen=True)
class RecordedExchange:
    """One request and its response.

    `path` has neither host nor query. `headers` are the response's, their names in lower case.
    """

    method: str
    path: str
    request_body: bytes
    status: int
    headers: Mapping[str, str]
    response_body: bytes

    @property
    def content_type(self) -> str:
        """The response's, without parameters and in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events, or of lines of JSON."""
        return self.content_type in _STREAM_TYPES

    @cached_property
    def request_json(self) -> Any:
        """The request's body as a JSON value; None if it is not JSON."""
        try:
            return json.loads(self.request_body)
        except ValueError:
            return None


@dataclass(frozen=True)
class Stored:
    """The contents of one file. `document` is the whole of it, and must not be changed."""

    document: Mapping[str, Any]
    provenance: Provenance
    exchanges: tuple[RecordedExchange, ...]


def stored(path: Path | str) -> Stored:
    """The contents of a cassette, cached until the file changes; raises CassetteFailed if it is missing or invalid."""
    path = Path(path)
    try:
        state = path.stat()
    except FileNotFoundError:
        raise CassetteFailed(f"there is no cassette {path}; record it: pytest --sabir-record") from None
    return _stored(path, state.st_mtime_ns, state.st_size)


def parse(text: str, path: Path) -> Stored:
    """The contents of a cassette's text; raises CassetteFailed, which names the file, for an invalid text."""
    try:
        document = yaml.load(text, _LOADER)
        found = tuple(_exchange(each) for each in document["interactions"])
        heading = document.get("provenance") or {}
        provenance = MappingProxyType({str(name): str(value) for name, value in heading.items()})
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise CassetteFailed(
            f"{path} is no cassette of vcrpy ({type(error).__name__}: {error}); record it anew"
        ) from None
    return Stored(document, provenance, found)


@lru_cache(maxsize=512)
def _stored(path: Path, modified: int, size: int) -> Stored:
    return parse(path.read_text("utf-8"), path)


def exchanges(path: Path | str) -> list[RecordedExchange]:
    """The recorded exchanges in order; raises CassetteFailed if there is no such cassette."""
    return list(stored(path).exchanges)


def provenance_of(path: Path | str) -> Provenance:
    """The provenance in the heading; empty without a heading."""
    return stored(path).provenance


def _exchange(interaction: Mapping[str, Any]) -> RecordedExchange:
    request, response = interaction["request"], interaction["response"]
    headers = {name.lower(): _joined(values) for name, values in response["headers"].items()}
    return RecordedExchange(
        request["method"],
        urlsplit(request["uri"]).path,
        _bytes(request["body"]),
        response["status"]["code"],
        MappingProxyType(headers),
        _bytes(response["body"]["string"]),
    )


def _joined(values: str | list[str]) -> str:
    return values if isinstance(values, str) else ", ".join(values)


def _bytes(body: str | bytes | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""
