"""What all tests of this folder share."""

from tests.providers.environment import bare_environment

__all__ = ["bare_environment"]
