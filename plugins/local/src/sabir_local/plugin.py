"""The entry point: the embedded model as the provider `local`."""

from sabir_local.provider import LocalProvider

local = LocalProvider()
