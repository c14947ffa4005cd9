"""Credentials and certificates for a NATS server, from files or environment variables.

    Access(creds="desk.creds") ─┐
    nats://user:password@host   ├─ the first with any ──▶ Login ──▶ nats-py
    NATS_CREDS, NATS_USER …    ─┘

URLs are parsed strictly, and displayed without secrets: "nats://ada:secret@one:4222, tls://two" is displayed as
nats://one:4222,tls://two. Errors do not quote an invalid URL, because any part of it may belong to a password.

The variables are those of NATS' own command line. Secrets are read from a file or a variable when a connection is
opened. They do not appear in settings, texts or errors. If TLS is requested, nothing is sent without TLS.
"""

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field
from sabir.authoring import Frozen

from sabir_runtime.distributed.errors import AccessInvalid

ENCRYPTED = ("tls", "wss")
SCHEMES = ("nats", "ws", *ENCRYPTED)
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(%[\w.-]+)?")
_URL_FORM = "write nats://host:4222 or tls://host:4222, several separated by commas, and give credentials in files"


@dataclass(frozen=True)
class Address:
    """The address of one NATS server."""

    url: str = field(repr=False)
    """The complete URL, including secrets."""
    display_url: str
    """The URL's scheme, host and port, for display."""
    is_encrypted: bool
    """True if the URL's scheme requires TLS."""
    has_login: bool
    """True if the URL contains credentials."""
    secrets: tuple[str, ...] = field(repr=False)
    """The password or token in the URL, and the URL's query: as written, and percent-decoded."""


def read_addresses(target: str) -> tuple[Address, ...]:
    """Parse URLs separated by commas. Raises AccessInvalid, without quoting the URL, if a URL is invalid."""
    urls = [each.strip() for each in target.split(",")]
    return tuple(_read_address(each, f"NATS URL {number} of {len(urls)}") for number, each in enumerate(urls, 1))


def without_secrets(text: str, addresses: tuple[Address, ...]) -> str:
    """Return a text with the secrets of the URLs replaced by ***."""
    for secret in sorted({each for address in addresses for each in address.secrets}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _read_address(written: str, what: str) -> Address:
    scheme, colon, rest = written.rpartition("://")
    scheme = scheme.lower() if colon else "nats"
    if scheme not in SCHEMES:
        _raise_unreadable(what, f"its scheme is not one of {', '.join(SCHEMES)}")
    if "@" in rest and not colon and not what.endswith(" of 1"):
        _raise_unreadable(what, "it has a user but no scheme, or a password contains a comma")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # the exception is not chained: its text may contain a password
        _raise_unreadable(what, "its port is not a number, or its host is invalid")
    if not _HOST.fullmatch(host) or not written.isprintable() or " " in written:
        _raise_unreadable(what, "its host is missing or invalid")
    after_host = f"{parts.path}?{parts.query}#{parts.fragment}"
    if port == 0 or "@" in after_host or (scheme in ("nats", "tls") and after_host not in ("?#", "/?#")):
        _raise_unreadable(what, "the host is followed by something that is not a port; a token cannot be in the query")
    server = f"[{host}]" if ":" in host else host
    server = f"{scheme}://{server}" if colon else server
    url_secrets = filter(None, (parts.username if parts.password is None else parts.password, parts.query))
    return Address(
        url=f"{scheme}://{rest}",
        display_url=server if port is None else f"{server}:{port}",
        is_encrypted=scheme in ENCRYPTED,
        has_login="@" in parts.netloc,
        secrets=tuple(each for secret in url_secrets for each in (secret, unquote(secret))),
    )


def _raise_unreadable(what: str, reason: str) -> NoReturn:
    raise AccessInvalid(f"{what} cannot be read: {reason}; {_URL_FORM}") from None


_IN_CREDS = ("-----BEGIN NATS USER JWT-----", "-----BEGIN USER NKEY SEED-----")
_KINDS = ("creds", "nkey", "user", "token_file")
_ONE_KIND = "give one of: creds, nkey, user and password_file, token_file"


@dataclass(frozen=True, repr=False)
class Login:
    """The credentials and TLS settings for opening a connection. `repr` does not show the secrets."""

    creds: str | None = None
    """The text of a .creds file, which contains a user's JWT and seed."""
    seed: str | None = None
    """The seed of an nkey, which is NATS' kind of private key."""
    user: str | None = None
    password: str | None = None
    token: str | None = None
    tls: ssl.SSLContext | None = None
    needs_tls: bool = False
    """True if nothing may be sent without TLS."""


class Access(Frozen):
    """Files with credentials and certificates for a NATS server. Part of CallSettings and WorkerSettings.

    Give one kind of credentials: `creds`, `nkey`, `user` with `password_file`, or `token_file`. Without credentials
    here, the credentials in the URL are used, or else the NATS_… environment variables. `ca`, `cert`, NATS_CA and
    NATS_CERT require TLS, like a URL with tls://. The files are read when a connection is opened, and AccessInvalid is
    raised for an unusable file. Not used for a connected nats-py client that you pass as the target.

    >>> from sabir_runtime.distributed import Access, CallSettings
    >>> CallSettings(access=Access(creds="desk.creds")).access.creds.name
    'desk.creds'
    """

    creds: Path | None = None
    """A .creds file with a user's JWT and seed.

    None means the path in NATS_CREDS, if neither this object nor the URL has credentials.
    """
    nkey: Path | None = None
    """A file with the seed of an nkey.

    None means the path in NATS_NKEY, if neither this object nor the URL has credentials.
    """
    user: str | None = Field(default=None, min_length=1)
    """A user's name, which needs a password.

    None means the name in NATS_USER, if neither this object nor the URL has credentials.
    """
    password_file: Path | None = None
    """A file with the user's password. For a user without this file, the password itself is in NATS_PASSWORD."""
    token_file: Path | None = None
    """A file with a token.

    None means the token in NATS_TOKEN, if neither this object nor the URL has credentials.
    """
    ca: Path | None = None
    """A file with the CA certificates that verify the server's certificate.

    None means the path in the variable NATS_CA, or else the system's CA certificates.
    """
    cert: Path | None = None
    """A file with the program's own certificate, for servers that require a client certificate.

    None means the path in the variable NATS_CERT, if it is set.
    """
    key: Path | None = None
    """A file with the unencrypted private key of `cert`. None means the path in the variable NATS_KEY, if it is set."""

    def login(self, addresses: tuple[Address, ...]) -> Login:
        """Read the credentials for these servers from files and variables.

        Raises AccessInvalid for unusable files, for several kinds of credentials, for a user without a password or a
        `password_file` without a user, and for a key without a certificate.
        """
        tls = self._make_tls_context()
        needs_tls = tls is not None or any(each.is_encrypted for each in addresses)
        access = self._with_variables(any(each.has_login for each in addresses))
        kinds = [kind for kind in _KINDS if getattr(access, kind) is not None]
        token = _read_variable("NATS_TOKEN") if access is not self else None
        if len(kinds) + (token is not None) > 1:
            raise AccessInvalid(f"credentials of several kinds are given: {', '.join(kinds)}; {_ONE_KIND}")
        if access.password_file and not access.user:
            raise AccessInvalid(f"a password is given without a user; {_ONE_KIND}")
        return Login(
            creds=_read_creds(access.creds) if access.creds else None,
            seed=_read_secret(access.nkey) if access.nkey else None,
            user=access.user,
            password=access._read_password() if access.user else None,
            token=_read_secret(access.token_file) if access.token_file else token,
            tls=tls,
            needs_tls=needs_tls,
        )

    def _with_variables(self, is_in_url: bool) -> Self:
        """Return this object if it or the URL has credentials, otherwise a copy with credentials from variables."""
        if is_in_url or any(getattr(self, kind) is not None for kind in (*_KINDS, "password_file")):
            return self
        creds, nkey = (_path_from_variable(f"NATS_{kind}") for kind in ("CREDS", "NKEY"))
        return self.model_copy(update={"creds": creds, "nkey": nkey, "user": _read_variable("NATS_USER")})

    def _read_password(self) -> str:
        password = _read_secret(self.password_file) if self.password_file else _read_variable("NATS_PASSWORD")
        if password is None:
            raise AccessInvalid("a user is given without a password; give password_file, or set NATS_PASSWORD")
        return password

    def _make_tls_context(self) -> ssl.SSLContext | None:
        ca, cert, key = (
            file or _path_from_variable(f"NATS_{name}")
            for file, name in ((self.ca, "CA"), (self.cert, "CERT"), (self.key, "KEY"))
        )
        if key and not cert:
            raise AccessInvalid("a key is given without a certificate; give cert, or set NATS_CERT")
        if not (ca or cert):
            return None
        for file in filter(None, (ca, cert, key)):
            _read_text(file)
        try:
            context = ssl.create_default_context(cafile=ca)
            if cert:
                context.load_cert_chain(
                    cert, key, password=""
                )  # otherwise OpenSSL asks for the password at the terminal
        except ssl.SSLError as error:
            files = ", ".join(str(file) for file in (ca, cert, key) if file)
            remedy = "give PEM files, and the certificate's own, unencrypted key"
            raise AccessInvalid(
                f"{files} cannot be used for TLS: {error.reason or 'no certificate'}; {remedy}"
            ) from None
        return context


def _read_variable(name: str) -> str | None:
    return os.environ.get(name) or None


def _path_from_variable(name: str) -> Path | None:
    value = _read_variable(name)
    return None if value is None else Path(value)


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise AccessInvalid(f"{file} cannot be read: {reason}; give a file that this program may read") from None


def _read_secret(file: Path) -> str:
    """Return a file's text without white space at both ends. Raises AccessInvalid for an empty or unreadable file."""
    secret = _read_text(file).strip()
    if not secret:
        raise AccessInvalid(f"{file} is empty; write the secret into the file")
    return secret


def _read_creds(file: Path) -> str:
    """Return the text of a .creds file. Raises AccessInvalid if a part is missing, because nats-py would then loop
    forever.
    """
    text = _read_text(file)
    if not all(part in text for part in _IN_CREDS):
        raise AccessInvalid(f"{file} is not a .creds file; give one created by nsc, or give an nkey's seed as nkey")
    return text
