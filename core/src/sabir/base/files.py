"""Write files that others must not read, or must never see half-written.

    text ──▶ .name.<random> ──fsync──▶ name       the old content or the new one, also after a crash or a power failure
             (permissions of the old file)

This module imports only the standard library.
"""

import os
import stat
from pathlib import Path
from uuid import uuid4


def create_private_file(path: str | os.PathLike[str]) -> None:
    """Create a file that only its owner may read and write. An existing file keeps its permissions. Raises OSError.

    Call this before SQLite or another library opens the file: it would use the permissions of the umask.
    """
    Path(path).touch(0o600)


def replace_file(path: Path, text: str) -> None:
    r"""Write a text file completely or not at all: in UTF-8, with "\n" unchanged. Raises OSError.

    An existing file is replaced and keeps its permissions. A symbolic link is replaced itself; resolve it first to
    replace the linked file.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            if path.exists():
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))  # before the file has any content
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
