"""Explain errors of HTTP clients that a wrong environment variable for a proxy or certificates causes.

    with explaining_environment_errors("acme"):          ALL_PROXY=socks5://…, and socksio is not installed
        httpx2.Client()                        ──▶ ConnectionFailed: acme cannot be reached: ALL_PROXY names …

HTTP libraries read these variables when a client is created, and raise ImportError, ValueError or OSError without the
variable's name. The value is never shown, because the URL of a proxy may contain a password.
https://www.python-httpx.org/environment_variables/
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from urllib.parse import urlsplit

from sabir.base.errors import SabirError
from sabir.errors import ConnectionFailed

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Variables that name a proxy. A variable of the same name in lower case takes precedence."""
FILES = {
    "SSL_CERT_FILE": "names no readable file of certificates",
    "SSL_CERT_DIR": "names no readable folder of certificates",
    "SSLKEYLOGFILE": "names a file that cannot be written",
}
"""Variables that Python or OpenSSL reads for a TLS context → what is wrong if the context cannot be created."""
SCHEMES = ("http", "https", "socks5", "socks5h")
"""Schemes of the proxies that HTTP libraries support."""

_URL = f"not the URL of a proxy (expected: {', '.join(SCHEMES)})"
_EXPECTED = {"NO_PROXY": "not a list of hosts"}


@contextmanager
def explaining_environment_errors(who: str) -> Iterator[None]:
    """Return a context manager that explains errors caused by proxy and certificate variables, such as `HTTPS_PROXY`.

    Use it around code that creates HTTP clients; it can also decorate a function. If a wrong variable explains an
    exception in the block, ConnectionFailed is raised instead; its message names the variable and the remedy, and it is
    not retryable. Other exceptions are raised unchanged. `who` is the name of the provider or server for the message.
    """
    try:
        yield
    except Exception as error:
        fault = None if isinstance(error, SabirError) else _fault_of(error)
        if fault is None:
            raise
        failure = ConnectionFailed(f"{who} cannot be reached: the variable {fault}, or unset it", provider=who)
        failure.retryable = False
        raise failure from error


def variables_behind(error: BaseException) -> list[str]:
    """Return the names of the set variables that may be the reason why a connection failed: those of certificates if
    the error's text contains "certificate", else those of proxies.
    """
    is_of_certificates = "certificate" in str(error).lower()
    return [name for name in FILES if os.environ.get(name)] if is_of_certificates else list(_proxies())


def _proxies(*further: str) -> dict[str, str]:
    """Return the values of the variables in PROXIES and `further` that are set, by the name in use (lower
    case first).
    """
    names = (name.lower() if name.lower() in os.environ else name for name in (*PROXIES, *further))
    return {name: value for name in names if (value := os.environ.get(name))}


def _fault_of(error: Exception) -> str | None:
    """Return the variable that explains an error of creating a client, what is wrong with it, and the remedy; None if
    no variable explains the error.
    """
    faults: list[str] = []
    if isinstance(error, ImportError):
        missing = "names a SOCKS proxy, and the package socksio is not installed; install socksio"
        faults = [f"{name} {missing}" for name, value in _proxies().items() if value.lower().startswith("socks")]
    elif isinstance(error, OSError):
        # The error for SSLKEYLOGFILE has the file's name, the error for certificates has no name.
        files = [name for name in FILES if (value := os.environ.get(name)) and error.filename in (None, value)]
        faults = [f"{name} {FILES[name]}; correct it" for name in files]
    elif isinstance(error, ValueError) or type(error).__name__ == "InvalidURL":
        wrong = [name for name, value in _proxies("NO_PROXY").items() if not _is_valid(name, value)]
        faults = [f"{name} is {_EXPECTED.get(name.upper(), _URL)}; correct it" for name in wrong]
    return next(iter(faults), None)


def _is_valid(name: str, value: str) -> bool:
    """Return whether the value of a proxy variable is a URL, or the value of NO_PROXY a list of hosts and networks."""
    if name.upper() == "NO_PROXY":
        return all(_is_host(host.strip().rpartition("://")[2]) for host in value.split(",") if host.strip())
    return _is_url(value if "://" in value else f"http://{value}")


def _is_host(text: str) -> bool:
    if "/" in text:
        with suppress(ValueError):
            return bool(ip_network(text, strict=False))
        return False
    return _is_url(f"http://[{text}]" if text.count(":") > 1 and not text.startswith("[") else f"http://{text}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False
