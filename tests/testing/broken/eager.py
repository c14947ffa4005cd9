"""A dialect whose module imports what it should leave for the first send: here a module of the standard library."""

import wave

from tests.testing.harness import Delegate

SDK = wave.__name__


class Eager(Delegate):
    """The dialect as it was."""
