"""Addresses and files of stores: check paths and URLs, create private files, and recognize a replaced file.

    "chats.db" · Path("chats.db") · ":memory:" ──▶ the text of a path      7 · b"a" · "" · "a\\0b" ──▶ StoreError
    "mysql://…" · "sqlite:chats.db" · a folder · a missing folder ──▶ StoreError, which names the remedy

SQLite writes to the file that it opened, even after the file was deleted or another file was put in its place. The
records are then lost when the process ends.
"""

import os
import re
from pathlib import Path

from sabir.authoring import one_line

from sabir_session.errors import StoreError

MEMORY = ":memory:"
"""The path of a store in memory, which is lost when the store is closed."""
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://|(sqlite|postgres|postgresql|file|https?)(?:\+\w+)?:", re.IGNORECASE)


def address_text(address: object) -> str:
    """Return a path or URL as text. Raises StoreError for another type, or for a character that is not allowed."""
    text = os.fspath(address) if isinstance(address, os.PathLike) else address
    if not isinstance(text, str):
        raise StoreError(f"{one_line(repr(address), 60)} is not the address of a store; pass a path or a URL")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        text = "\0"
    if "\0" in text:
        # The error does not contain the text, which may contain a password.
        raise StoreError(
            "the address of the store has a character that is not allowed in paths and URLs; remove the character"
        )
    return text


def find_scheme(address: str) -> str:
    """Return the scheme of a URL in lower case; "" for a text that is not a URL.

    Errors show the scheme only, because the rest of a URL may contain a password.
    """
    match = _URL.match(address)
    return (match[1] or match[2]).lower() if match else ""


def absolute_path(path: str) -> Path | None:
    """Return the absolute path of a database file; None for a store in memory.

    Raises StoreError for a URL, an empty text, a folder, and a path in a missing or unreadable folder.
    """
    scheme = find_scheme(path)
    if scheme.startswith("postgres"):
        raise StoreError(
            f"SQLiteStore needs the path of a file, not a URL of {scheme!r}; use PostgresStore for the URL"
        )
    if scheme or not path.strip():
        kind = f"a URL of {scheme!r}" if scheme else "an empty text"
        written = repr(path.partition(":///")[2] or "chats.db")
        raise StoreError(f"SQLiteStore needs the path of a file, not {kind}; write SQLiteStore({written})")
    if path == MEMORY:
        return None
    try:
        has_folder, is_folder, absolute = Path(path).parent.is_dir(), Path(path).is_dir(), Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead back to themselves
        reason = (error.strerror if isinstance(error, OSError) else None) or "its links form a circle"
        path_text = one_line(repr(path), 120)
        raise StoreError(
            f"{path_text} could not be opened: {reason}; use the path of a file that can be created"
        ) from None
    if not has_folder:
        raise StoreError(f"{path!r} could not be opened: its folder does not exist; create the folder first")
    if is_folder:
        raise StoreError(f"{path!r} could not be opened: it is a folder; use the path of a file in the folder")
    return absolute


def find_identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and the inode number of the file at a path; None if no file is found there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
