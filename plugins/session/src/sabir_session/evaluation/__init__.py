"""A prompt evaluated: recorded as it goes, resumed where it stopped."""
