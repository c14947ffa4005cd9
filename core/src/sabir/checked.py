"""What users hand over where a type checker may not have looked: met with an error that says what to write instead.

settings={"seed": 1}           ──▶ SettingsInvalid: … write sabir.Settings(…)
Settings(vendor={"acem": …})   ──▶ SettingsInvalid: … did you mean 'acme'?
api_key=123                    ──▶ SettingsInvalid: … give a string, or a plain function that returns one
speaks_as="runtime"            ──▶ SettingsInvalid: … give speaks_as= another
"""

import difflib
from functools import lru_cache

from sabir.contracts import ApiKey
from sabir.errors import SettingsInvalid
from sabir.messages import RESERVED, RUNTIME
from sabir.registry import default_registry as registry
from sabir.settings import Settings
from sabir.signatures import is_asynchronous

LIKENESS = 0.8
"""From which likeness on (0 … 1, as difflib counts it) a name is taken for another one misspelt."""


def checked_settings(settings: Settings | None, provider: str) -> Settings | None:
    """The settings; SettingsInvalid for another type, and for a vendor section whose name is a provider's misspelt.

    Installed providers are known by name without loading them. A section for one that is not installed, and whose name
    is unlike all of theirs, passes: the same settings may serve machines with other plugins.
    """
    if settings is None:
        return None
    if not isinstance(settings, Settings):
        raise SettingsInvalid(f"settings is of type {type(settings).__name__}; write sabir.Settings(…)")
    for name in settings.vendor:
        meant = None if name == provider else _meant(name, (provider, *registry.names()))
        if meant is not None and not registry.knows(name):
            raise SettingsInvalid(
                f"Settings(vendor=…) has a section for {name!r}, which is no provider; did you mean {meant!r}?"
            )
    return settings


def checked_policy(speaks_as: str) -> str:
    """The policy that an adapter speaks for; SettingsInvalid for the one that is nobody's (PJ-06)."""
    if speaks_as == RUNTIME:
        raise SettingsInvalid(f"{RESERVED}; give speaks_as= another, for example 'llm'")
    return speaks_as


@lru_cache(maxsize=256)
def _meant(name: str, known: tuple[str, ...]) -> str | None:
    """The provider whose name is nearly this one; None where it is a provider's, or unlike all."""
    if name in known:
        return None
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=LIKENESS)), None)


def checked_key(api_key: ApiKey | None) -> ApiKey | None:
    """The key; SettingsInvalid for what is neither a string nor a plain function."""
    remedy = "give a string, or a plain function that returns one"
    if callable(api_key) and is_asynchronous(api_key):
        raise SettingsInvalid(f"api_key is a coroutine function; {remedy}")
    if api_key is not None and not isinstance(api_key, str) and not callable(api_key):
        raise SettingsInvalid(f"api_key is of type {type(api_key).__name__}; {remedy}")
    return api_key
