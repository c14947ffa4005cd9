"""The rows of the goals, in the order of the page: what a reader compares with others, then what has limits alone."""

from benchmarks.rows import calls, imports, runs
from benchmarks.rows.row import Row

ROWS: dict[str, Row] = {row.name: row for row in (*calls.WHOLE, imports.ROW, *calls.PARTS, *runs.RUNS, *runs.ACTORS)}
