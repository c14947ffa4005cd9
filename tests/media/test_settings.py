"""What a fetcher can be told, and that it says which setting is wrong."""

from collections.abc import Mapping

import pytest
from sabir.errors import MediaRefused, SettingsInvalid
from sabir_media import AddressRefused, Fetcher, FetchFailed, FetchTimedOut, GuardedFetcher, SizeRefused, TypeRefused


@pytest.mark.parametrize(
    "settings",
    [
        {"max_bytes": 0},
        {"max_redirects": -1},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"allowed_mimes": "image/png"},
        {"allowed_mimes": ["png"]},
        {"allowed_mimes": ["image/svg+xml"]},
        {"allowed_mimes": ["Text/HTML"]},
        {"allow_hosts": "127.0.0.1:80"},
        {"allow_hosts": ["127.0.0.1"]},
        {"allow_hosts": ["http://127.0.0.1:80"]},
        {"allow_hosts": ["example.com:0"]},
        {"allow_hosts": ["example.com:65536"]},
        {"allow_hosts": ["*:80"]},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_named(settings: Mapping[str, object]) -> None:
    """One line: the setting, what it is, what was expected."""
    with pytest.raises(SettingsInvalid) as caught:
        GuardedFetcher(**settings)  # type: ignore[arg-type]

    assert str(caught.value).startswith(next(iter(settings)))
    assert "\n" not in str(caught.value)


def test_a_guarded_fetcher_is_what_core_calls_a_fetcher() -> None:
    """The Protocol that adapters ask for; checked by the type checker as well."""
    fetcher: Fetcher = GuardedFetcher()

    assert callable(fetcher.fetch)
    assert callable(fetcher.fetch_sync)


@pytest.mark.parametrize("error", [AddressRefused, FetchFailed, FetchTimedOut, SizeRefused, TypeRefused])
def test_every_refusal_is_cores_own_error(error: type[Exception]) -> None:
    """Whoever catches MediaRefused, or ValueError, catches all of them."""
    assert issubclass(error, MediaRefused)
    assert issubclass(error, ValueError)
