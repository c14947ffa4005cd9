"""One module a row of the goals; each runs alone: `python -m tests.benchmarks.rows.decode`."""
