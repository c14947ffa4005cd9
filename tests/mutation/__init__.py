"""Change one place of the code at a time, to see whether the tests, or the kit, notice it."""
