"""What a NATS server says to whom it does not let in, and what helps: credentials, certificates, or permissions."""

import re
import ssl

import nats.errors

_LOGIN = re.compile("authorization|authentication", re.IGNORECASE)
_TLS = re.compile("secure connection|tls|certificate", re.IGNORECASE)
_SUBJECT = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)


def is_refusal(error: Exception | None) -> bool:
    """Whether it is no use to ask again: the server is there, and does not want this client, or this client it."""
    if isinstance(error, ssl.SSLError | nats.errors.SecureConnWantedError | nats.errors.AuthorizationError):
        return True
    return isinstance(error, nats.errors.Error) and bool(_LOGIN.search(str(error)))


def remedy_for(refusal: Exception) -> str:
    """What lets a client in."""
    if isinstance(refusal, ssl.SSLError) or _TLS.search(str(refusal)):
        return "give the CA of its certificate (NATS_CA), and NATS_CERT and NATS_KEY where it asks for them"
    return (
        "give Access(…) or NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, or NATS_TOKEN, as its accounts have it"
    )


def kept_from(said: str) -> tuple[bool, str]:
    """Whether a client may not hear a subject, and which subject it may not use, in small letters; else empty."""
    found = _SUBJECT.search(said)
    return (False, "") if found is None else (found[1].lower() == "subscription", found[2].lower())
