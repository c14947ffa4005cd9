"""The file of a run: one line of JSON for each reply, appended before its outcome is yielded.

    {"key": "<SHA-256 of the request>", "number": 0, "reply": {…}}

A process that is killed while it writes leaves an incomplete line at the end, which the next run removes. `number`
counts equal requests, so that two equal prompts have a reply each.
"""

import errno
import json
import os
import sys
from collections import Counter
from pathlib import Path

from pydantic import ValidationError
from sabir import Reply, SabirError
from sabir.authoring import create_private_file

if sys.platform != "win32":
    import fcntl


class JournalError(SabirError):
    """Raised if the file of a run cannot be opened, read or written, is used by another run (not noticed on Windows),
    or contains a line that is not a reply. The message names the file and the reason.
    """


class ReplyJournal:
    """The replies of earlier runs, and the file to which this run appends. Not thread-safe."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._stored: dict[tuple[str, int], Reply] = {}
        self._numbers: Counter[str] = Counter()
        try:
            create_private_file(self._path)
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise self._unusable_file(error) from None
        try:
            self._lock()
            self._load_replies()
        except BaseException:
            os.close(self._file)
            raise

    def claim(self, key: str) -> tuple[str, int]:
        """Return the entry key of the next request with this key: the key, and the number of requests before."""
        self._numbers[key] += 1
        return key, self._numbers[key] - 1

    def find(self, entry_key: tuple[str, int]) -> Reply | None:
        """Return the reply that an earlier run stored under this entry key, or None."""
        return self._stored.get(entry_key)

    def append(self, entry_key: tuple[str, int], reply: Reply) -> None:
        """Write a reply at the end of the file."""
        key, number = entry_key
        line = json.dumps({"key": key, "number": number, "reply": reply.model_dump(mode="json")}) + "\n"
        data = line.encode()
        try:
            written = os.write(self._file, data)
            if written < len(data):  # the disk is full; remove the incomplete line, so that later lines can be read
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise self._unusable_file(error) from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _lock(self) -> None:
        """Lock the file until `close`, or until the process ends, even if it is killed. On Windows, do nothing.

        Raises JournalError if another run has locked the file.
        """
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            reason = f"another run is using {str(self._path)!r}"
            raise JournalError(f"{reason}; wait for its end, or use another file") from None

    def _load_replies(self) -> None:
        try:
            content = self._path.read_bytes()
            end = content.rfind(b"\n") + 1
            os.ftruncate(self._file, end)
        except OSError as error:
            raise self._unusable_file(error) from None
        for number, line in enumerate(content[:end].splitlines(), 1):
            self._parse_line(line, number)

    def _parse_line(self, line: bytes, number: int) -> None:
        try:
            fields = json.loads(line)
            self._stored[fields["key"], fields["number"]] = Reply.model_validate(fields["reply"])
        except (ValueError, KeyError, TypeError, ValidationError):
            reason = f"line {number} of {str(self._path)!r} is not a reply of an earlier run"
            raise JournalError(f"{reason}; use another file, or delete the line") from None

    def _unusable_file(self, error: OSError) -> JournalError:
        return JournalError(
            f"{str(self._path)!r} cannot be used: {error.strerror}; pass the path of a file for this run"
        )
