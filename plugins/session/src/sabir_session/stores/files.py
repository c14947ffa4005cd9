"""Files by their identity: a path that still leads to the same file as before.

SQLite writes to the file that it opened, also after the file was deleted or another one was put in its place. The
records are then lost when the process ends.
"""

from pathlib import Path


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of the file at a path; None if there is no file, or it cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
