"""The result of a fetch, and the Fetcher protocol."""

from typing import Protocol

from pydantic import ConfigDict
from sabir.authoring import Frozen


class FetchedMedia(Frozen):
    """Bytes behind a URL. `url` is where they came from after redirects. In JSON the bytes are base64."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes
    mime: str
    url: str


class Fetcher(Protocol):
    """Fetches media for targets that take only bytes."""

    def fetch_sync(self, url: str) -> FetchedMedia:
        """The bytes behind a web URL; MediaRefused where fetching is not allowed or fails."""

    async def fetch(self, url: str) -> FetchedMedia:
        """The bytes behind a web URL; MediaRefused where fetching is not allowed or fails."""
