"""Each fact about fetching holds for both drivers: `fetch` runs a test once with the sync and once with the async."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pytest
from sabir_media import FetchedMedia, GuardedFetcher

Fetch: TypeAlias = Callable[[GuardedFetcher, str], FetchedMedia]


def _fetch_sync(fetcher: GuardedFetcher, url: str) -> FetchedMedia:
    return fetcher.fetch_sync(url)


def _fetch_async(fetcher: GuardedFetcher, url: str) -> FetchedMedia:
    return asyncio.run(fetcher.fetch(url))


@pytest.fixture(params=[_fetch_sync, _fetch_async], ids=["sync", "async"])
def fetch(request: pytest.FixtureRequest) -> Fetch:
    """One fetch, by one of the two drivers."""
    chosen: Fetch = request.param
    return chosen
