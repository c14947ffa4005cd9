"""The guarded fetcher, which a user gives to code that may fetch on their behalf."""

import ssl
from collections.abc import Collection
from contextlib import aclosing, closing
from functools import cached_property

import httpx2
from sabir.errors import SettingsInvalid

from sabir_media.drivers import AsyncDriver, Driver, Resources
from sabir_media.medium import FetchedMedia
from sabir_media.mimes import ALLOWED_MIMES
from sabir_media.network import Deadline, Resolver, system_resolver
from sabir_media.rules import read_rules
from sabir_media.steps import FAILURES, Progress, fetch_steps


class GuardedFetcher:
    """Fetches media from public http and https addresses, and refuses everything else in one line.

    `max_bytes` limits a body, `timeout` (seconds) the whole fetch with its look-ups and redirects,
    `max_redirects` the redirects followed. `allowed_mimes` are the types taken. `allow_hosts` are
    `host:port` texts that may be visited although their name, address or port is not public; the other rules
    hold for them too, and a redirect may lead there.

    `resolver` looks names up, once for each hop; `ssl_context` holds the certificates to trust, by default
    the system's. Proxies, certificates and credentials from the environment are ignored, and no cookie is
    kept.

    A fetcher keeps nothing between fetches but the certificates: threads and tasks may share it, and there is
    nothing to close. Raises SettingsInvalid for an invalid setting.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 20_000_000,
        timeout: float = 20.0,
        max_redirects: int = 3,
        allowed_mimes: Collection[str] = ALLOWED_MIMES,
        allow_hosts: Collection[str] = (),
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if not 0 < timeout < float("inf"):
            raise SettingsInvalid(f"timeout is {timeout}; expected the seconds that a fetch may take, more than 0")
        self._rules = read_rules(
            max_bytes=max_bytes,
            max_redirects=max_redirects,
            allowed_mimes=allowed_mimes,
            allow_hosts=allow_hosts,
        )
        self._timeout = timeout
        self._resolver = resolver
        self._ssl_context = ssl_context

    def fetch_sync(self, url: str) -> FetchedMedia:
        """The bytes behind a URL, their type and final URL; raises a MediaRefused if a rule is broken."""
        progress = Progress(fetch_steps(url, self._rules))
        with closing(Driver(self._resources())) as driver:
            while progress.step is not None:
                try:
                    progress.answer(driver.perform(progress.step))
                except FAILURES as error:
                    progress.fail(error)
        return progress.media

    async def fetch(self, url: str) -> FetchedMedia:
        """As fetch_sync, on an event loop; cancelling it closes its connection."""
        progress = Progress(fetch_steps(url, self._rules))
        async with aclosing(AsyncDriver(self._resources())) as driver:
            while progress.step is not None:
                try:
                    progress.answer(await driver.perform(progress.step))
                except FAILURES as error:
                    progress.fail(error)
        return progress.media

    def _resources(self) -> Resources:
        return Resources(self._resolver, lambda: self._trust, Deadline.after(self._timeout))

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self._ssl_context or httpx2.create_ssl_context(trust_env=False)
