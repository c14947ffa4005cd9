"""The entry point: `sabir.adapter("lantern:…")` finds this object by the entry point's name in pyproject.toml."""

from sabir.authoring import Provider

from sabir_lantern.provider import Lantern

lantern: Provider = Lantern()
