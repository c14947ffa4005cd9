"""The project's tests, by package; helpers that several of them share are imported as `tests.<module>`."""
