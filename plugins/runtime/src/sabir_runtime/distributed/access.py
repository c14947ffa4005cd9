"""How a program authenticates to a NATS server: credentials and certificates, by file or by variable.

    Access(creds="desk.creds") ─┐
    nats://user:password@host   ├─the first that is set─▶ Login ──▶ nats-py
    NATS_CREDS, NATS_USER …    ─┘

URLs are parsed strictly, and shown without possible secrets: "nats://ada:secret@one:4222, tls://two" is shown as
nats://one:4222,tls://two. Errors repeat nothing of an invalid URL: a misplaced part may belong to a password.

The variables are those of NATS' own command line. Secrets are read from a file or a variable when a connection is
opened, and are in no setting, no text and no error. If TLS is requested, nothing is sent without it.
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
_FORM = "write nats://host:4222 or tls://host:4222, several with commas between them, and credentials elsewhere"


@dataclass(frozen=True)
class Address:
    """One server."""

    url: str = field(repr=False)
    """The whole URL, possible secrets included."""
    shown: str
    """The URL with only its scheme, host and port, for display."""
    is_encrypted: bool
    """Whether it demands TLS."""
    has_login: bool
    """Whether it holds credentials."""
    secrets: tuple[str, ...] = field(repr=False)
    """A password or a token, as given and unquoted."""


def read_addresses(target: str) -> tuple[Address, ...]:
    """The servers of a target; raises AccessInvalid, which repeats nothing of it, if one is invalid."""
    given = [each.strip() for each in target.split(",")]
    return tuple(_read_address(each, f"NATS URL {place} of {len(given)}") for place, each in enumerate(given, 1))


def without_secrets(text: str, addresses: tuple[Address, ...]) -> str:
    """Another library's text about a connection, without the secrets of the URLs."""
    for secret in sorted({each for address in addresses for each in address.secrets}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _read_address(given: str, what: str) -> Address:
    scheme, colon, rest = given.rpartition("://")
    scheme = scheme.lower() if colon else "nats"
    if scheme not in SCHEMES:
        _refuse(what, f"its scheme is none of {', '.join(SCHEMES)}")
    if "@" in rest and not colon and not what.endswith(" of 1"):
        _refuse(what, "it has a user and no scheme, or a comma stands in a password")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its text may repeat the invalid part
        _refuse(what, "its port is no number, or its host is none")
    if not _HOST.fullmatch(host) or not given.isprintable() or " " in given:
        _refuse(what, "it has no host, or one that is none")
    behind = f"{parts.path}?{parts.query}#{parts.fragment}"
    if port == 0 or "@" in behind or (scheme in ("nats", "tls") and behind not in ("?#", "/?#")):
        _refuse(what, "something stands behind the host that is no port; a token is no part of a query")
    shown = f"[{host}]" if ":" in host else host
    shown = f"{scheme}://{shown}" if colon else shown
    held = filter(None, (parts.username if parts.password is None else parts.password, parts.query))
    return Address(
        url=f"{scheme}://{rest}",
        shown=shown if port is None else f"{shown}:{port}",
        is_encrypted=scheme in ENCRYPTED,
        has_login="@" in parts.netloc,
        secrets=tuple(each for secret in held for each in (secret, unquote(secret))),
    )


def _refuse(what: str, reason: str) -> NoReturn:
    raise AccessInvalid(f"{what} cannot be read: {reason}; {_FORM}") from None


_IN_CREDS = ("-----BEGIN NATS USER JWT-----", "-----BEGIN USER NKEY SEED-----")
_KINDS = ("creds", "nkey", "user", "token_file")
_ONE = "give one of: creds, nkey, user and password_file, token_file"


@dataclass(frozen=True, repr=False)
class Login:
    """The credentials with which a connection is opened; never shown."""

    creds: str | None = None
    """The text of a .creds file."""
    seed: str | None = None
    """The seed of an nkey."""
    user: str | None = None
    password: str | None = None
    token: str | None = None
    tls: ssl.SSLContext | None = None
    needs_tls: bool = False
    """Whether nothing may be sent without TLS."""


class Access(Frozen):
    """Files with credentials for a NATS server; missing ones are taken from the URL, or from NATS_… variables.

    Credentials are one of: `creds`, `nkey`, `user` with a password, a token. `ca` or `cert` ask for TLS, as a URL with
    tls:// does. AccessInvalid, when a connection is opened, names a file that cannot be used.
    """

    creds: Path | None = None
    """A .creds file: a user's JWT and seed (NATS_CREDS)."""
    nkey: Path | None = None
    """A file that holds the seed of an nkey (NATS_NKEY)."""
    user: str | None = Field(default=None, min_length=1)
    """A user's name (NATS_USER)."""
    password_file: Path | None = None
    """A file that holds the user's password (its text: NATS_PASSWORD)."""
    token_file: Path | None = None
    """A file that holds a token (its text: NATS_TOKEN)."""
    ca: Path | None = None
    """CA certificates that check the server's certificate, instead of the system's (NATS_CA)."""
    cert: Path | None = None
    """The program's own certificate, for servers that ask for one (NATS_CERT)."""
    key: Path | None = None
    """Its key, not encrypted (NATS_KEY)."""

    def login(self, addresses: tuple[Address, ...]) -> Login:
        """The credentials for these servers; raises AccessInvalid if they cannot be read or contradict each other."""
        tls = self._tls()
        needs_tls = tls is not None or any(each.is_encrypted for each in addresses)
        given = self._or_variables(any(each.has_login for each in addresses))
        kinds = [kind for kind in _KINDS if getattr(given, kind) is not None]
        token = _variable("NATS_TOKEN") if given is not self else None
        if len(kinds) + (token is not None) > 1:
            raise AccessInvalid(f"credentials of several kinds are given: {', '.join(kinds)}; {_ONE}")
        if given.password_file and not given.user:
            raise AccessInvalid(f"a password is given and no user; {_ONE}")
        return Login(
            creds=_checked_creds(given.creds) if given.creds else None,
            seed=_secret(given.nkey) if given.nkey else None,
            user=given.user,
            password=given._password() if given.user else None,
            token=_secret(given.token_file) if given.token_file else token,
            tls=tls,
            needs_tls=needs_tls,
        )

    def _or_variables(self, is_in_url: bool) -> Self:
        """Itself, if it or the URL has credentials; else those of the variables."""
        if is_in_url or any(getattr(self, kind) is not None for kind in (*_KINDS, "password_file")):
            return self
        creds, nkey = (_path(f"NATS_{kind}") for kind in ("CREDS", "NKEY"))
        return self.model_copy(update={"creds": creds, "nkey": nkey, "user": _variable("NATS_USER")})

    def _password(self) -> str:
        password = _secret(self.password_file) if self.password_file else _variable("NATS_PASSWORD")
        if password is None:
            raise AccessInvalid("a user is given and no password; give password_file, or set NATS_PASSWORD")
        return password

    def _tls(self) -> ssl.SSLContext | None:
        ca, cert, key = (
            given or _path(f"NATS_{name}") for given, name in ((self.ca, "CA"), (self.cert, "CERT"), (self.key, "KEY"))
        )
        if key and not cert:
            raise AccessInvalid("a key is given and no certificate; give cert, or set NATS_CERT")
        if not (ca or cert):
            return None
        for file in filter(None, (ca, cert, key)):
            _read(file)
        try:
            context = ssl.create_default_context(cafile=ca)
            if cert:
                context.load_cert_chain(cert, key, password="")  # or OpenSSL asks at the terminal
        except ssl.SSLError as error:
            files = ", ".join(str(file) for file in (ca, cert, key) if file)
            remedy = "give PEM files, a key that fits its certificate and is not encrypted"
            raise AccessInvalid(
                f"{files} cannot be used for TLS: {error.reason or 'no certificate'}; {remedy}"
            ) from None
        return context


def _variable(name: str) -> str | None:
    return os.environ.get(name) or None


def _path(name: str) -> Path | None:
    value = _variable(name)
    return None if value is None else Path(value)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise AccessInvalid(f"{file} cannot be read: {reason}; give a file that this program may read") from None


def _secret(file: Path) -> str:
    """A file's text, without the line break at its end."""
    held = _read(file).strip()
    if not held:
        raise AccessInvalid(f"{file} is empty; write the secret into it")
    return held


def _checked_creds(file: Path) -> str:
    """A .creds file's text; checked, because nats-py would search for missing parts forever."""
    held = _read(file)
    if not all(part in held for part in _IN_CREDS):
        raise AccessInvalid(f"{file} is no .creds file; give one as nsc makes it, or an nkey's seed as nkey")
    return held
