"""Download media for models that accept media only as bytes, with checks of address, redirects, size, time and type.

llm = fetching(sabir.adapter("provider:model"), GuardedFetcher(max_bytes=5_000_000))
"""

from sabir_media.errors import AddressRefused, FetchFailed, FetchTimedOut, SizeRefused, TypeRefused
from sabir_media.fetcher import GuardedFetcher
from sabir_media.fetching import FetchingAdapter, fetching
from sabir_media.mimes import ALLOWED_MIMES
from sabir_media.network import Resolver, system_resolver
from sabir_media.steps import FetchedMedia, Fetcher

__all__ = [
    "ALLOWED_MIMES",
    "AddressRefused",
    "FetchFailed",
    "FetchTimedOut",
    "FetchedMedia",
    "Fetcher",
    "FetchingAdapter",
    "GuardedFetcher",
    "Resolver",
    "SizeRefused",
    "TypeRefused",
    "fetching",
    "system_resolver",
]
