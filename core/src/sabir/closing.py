"""What is closed where a `with` block ends, however it ends.

with llm: …            SyncClosing     leaving calls close()
async with llm: …      AsyncClosing    leaving awaits aclose()
"""

from abc import abstractmethod
from typing import Self


class SyncClosing:
    """Something that a `with` block closes."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        """The thing itself; nothing is done yet."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close it."""
        self.close()


class AsyncClosing:
    """Something that an `async with` block closes."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close it."""

    async def __aenter__(self) -> Self:
        """The thing itself; nothing is done yet."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close it."""
        await self.aclose()
