"""A guarded fetcher of media for sabir: addresses, redirects, size, time and MIME are checked."""

from sabir_media.errors import AddressRefused, FetchFailed, FetchTimedOut, SizeRefused, TypeRefused
from sabir_media.fetcher import GuardedFetcher
from sabir_media.mimes import ALLOWED_MIMES
from sabir_media.network import Resolver, system_resolver

__all__ = [
    "ALLOWED_MIMES",
    "AddressRefused",
    "FetchFailed",
    "FetchTimedOut",
    "GuardedFetcher",
    "Resolver",
    "SizeRefused",
    "TypeRefused",
    "system_resolver",
]
