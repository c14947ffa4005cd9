"""A provider `scratch` whose dialect a test changes, as a new version of a plugin would."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sabir

from tests.testing.harness import Breakage, Renamed

TARGET = "scratch:small"


@contextmanager
def scratch(*, accepts_images: bool = True) -> Iterator[None]:
    """Register the provider for the `with` block, with or without images of users in its tables."""

    def without_images(dialect: Any) -> Any:
        media = {place: rule for place, rule in dialect.tables.media.items() if place != ("user", "image")}
        return replace(dialect, tables=replace(dialect.tables, media=media))

    sabir.register("scratch", Renamed("scratch", Breakage(dialect=None if accepts_images else without_images)))
    try:
        yield
    finally:
        sabir.unregister("scratch")
