"""Providers that look at what they are given in another way than acme: endpoints, keys, clients.

No HTTP client is imported here: the kit looks at what a provider's module brings along.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sabir.authoring.credentials import KeySource
from sabir.contract.provider import Access, Credential
from sabir.errors import SettingsInvalid

from tests.testing.harness import Breakage, Delegate, provided


def reaching(seen: Callable[[Access], Access]) -> Breakage:
    """A provider that looks at its access in another way."""
    return provided(connect=lambda own, access: own(seen(access)))


def telling(base_url: str) -> Breakage:
    """A provider that shows one endpoint with all that is in it."""

    def connect(own: Any, access: Access) -> Any:
        if access.base_url == base_url:
            raise SettingsInvalid(f"acme has the endpoint {base_url}; check base_url")
        return own(access)

    def endpoint(own: Any, access: Access) -> Any:
        return base_url if access.base_url == base_url else own(access)

    return provided(connect=connect, endpoint=endpoint)


class Disordered(Delegate):
    """Documents its variables in another order than that in which it reads them."""

    credentials = (Credential(variables=("ACME_TOKEN", "ACME_API_KEY")),)

    def connect(self, access: Access) -> Any:
        given = access.api_key is not None or access.client is not None
        return self.base.connect(access if given else replace(access, api_key=self.read))

    def read(self) -> str:
        (wanted,) = self.credentials
        return KeySource("acme", None, [Credential(variables=wanted.variables[::-1])]).text()


# Ways to see what is given


def passes(base_url: str) -> Callable[[Access], Access]:
    return lambda access: replace(access, base_url=None) if access.base_url == base_url else access


def tidies(key: str, tidied: str) -> Callable[[Access], Access]:
    return lambda access: replace(access, api_key=tidied) if access.api_key == key else access


def ignores_empty(setting: str) -> Callable[[Access], Access]:
    return lambda access: replace(access, **{setting: getattr(access, setting) or None})


def reads_at_once(access: Access) -> Access:
    if access.api_key is not None or access.client is not None:
        return access
    found = os.environ.get("ACME_API_KEY") or ""
    return replace(access, api_key=lambda: found)


def prefers_variables(access: Access) -> Access:
    found = os.environ.get("ACME_API_KEY")
    return replace(access, api_key=found) if found and access.api_key and isinstance(access.api_key, str) else access


def asks_at_once(access: Access) -> Access:
    return replace(access, api_key=access.api_key() or access.api_key) if callable(access.api_key) else access


def replaces_the_vaults(access: Access) -> Access:
    vault = access.api_key
    if not callable(vault):
        return access
    return replace(access, api_key=lambda: vault() or os.environ.get("ACME_API_KEY") or "")


def ignores_objects(access: Access) -> Access:
    return replace(access, client=None) if type(access.client) is object else access
