"""A provider that keeps each of its exchanges: the counterpart of a cassette for a local service.

Tapped(provider) ──connect──▶ connection ──open_sync──▶ answer        carried(): requests and answers, as bytes
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sabir.authoring import Access, Connection, Credential, Provider, WireRequest, WireResponse

from sabir_testing.cassettes import RecordedExchange


class _Around:
    """A wrapper with all attributes of another object, except those that a subclass overrides."""

    def __init__(self, base: Any) -> None:
        self._base = base

    def __getattr__(self, name: str) -> Any:  # whatever the other has
        return getattr(self._base, name)


class Tapped(_Around):
    """A provider that keeps what goes over its waiting connections."""

    name: str
    api_version: int
    dialects: tuple[str, ...]
    credentials: tuple[Credential, ...]
    request_ids: tuple[str, ...]

    def __init__(self, base: Provider) -> None:
        super().__init__(base)
        self._answers: list[_Answer] = []

    def connect(self, access: Access) -> Connection:
        """A connection of the provider's, listened to."""
        return _Connection(self._base.connect(access), self._answers)

    def carried(self) -> Iterator[RecordedExchange]:
        """What went over the wire so far, in order."""
        return (answer.carried() for answer in self._answers)


class _Connection(_Around):
    def __init__(self, base: Connection, answers: "list[_Answer]") -> None:
        super().__init__(base)
        self._answers = answers

    def open_sync(self, request: WireRequest) -> WireResponse:
        self._answers.append(_Answer(request, self._base.open_sync(request)))
        return self._answers[-1]


class _Answer(_Around):
    """An answer, and what was read of it."""

    status: int
    headers: Mapping[str, str]

    def __init__(self, request: WireRequest, base: WireResponse) -> None:
        super().__init__(base)
        self._request, self._body = request, bytearray()

    def chunks(self) -> Iterator[bytes]:
        for chunk in self._base.chunks():
            self._body += chunk
            yield chunk

    def close(self) -> None:
        self._base.close()

    def carried(self) -> RecordedExchange:
        request = self._request
        return RecordedExchange("POST", request.path, request.body, self.status, dict(self.headers), bytes(self._body))
