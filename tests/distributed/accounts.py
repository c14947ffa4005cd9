"""What a server with accounts is given, made for a test: nkeys, and a .creds file with the tokens that it rests on."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import nkeys


class Key:
    """A key pair of one kind: O(perator), A(ccount), U(ser)."""

    def __init__(self, kind: int) -> None:
        self.seed: bytes = nkeys.encode_seed(os.urandom(32), kind)
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.public: str = self._pair.public_key.decode()

    def token(self, subject: "Key", name: str, **claims: Any) -> str:
        """A signed statement of this key's on another."""
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        body = {"iss": self.public, "sub": subject.public, "name": name, "iat": 0, "nats": {"version": 2, **claims}}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        signed = f"{_encode(json.dumps(head).encode())}.{_encode(json.dumps(body).encode())}"
        return f"{signed}.{_encode(self._pair.sign(signed.encode()))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def user_key() -> Key:
    return Key(nkeys.PREFIX_BYTE_USER)


def with_creds(file: Path) -> str:
    """Write a .creds file; give the configuration of a server that lets its user in."""
    operator, account, user = Key(nkeys.PREFIX_BYTE_OPERATOR), Key(nkeys.PREFIX_BYTE_ACCOUNT), user_key()
    bounds = ("subs", "data", "payload", "conn", "leaf", "imports", "exports")
    limits = {**dict.fromkeys(bounds, -1), "wildcards": True}
    trusted = operator.token(operator, "operator", type="operator")
    served = operator.token(account, "account", type="account", limits=limits)
    allowed = account.token(user, "user", type="user", subs=-1, data=-1, payload=-1)
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{allowed}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n",
        "utf-8",
    )
    return f"operator: {trusted}\nresolver: MEMORY\nresolver_preload: {{ {account.public}: {served} }}\n"
