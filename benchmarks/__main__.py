"""All rows, or those named: `python -m benchmarks decode stream --quick`."""

from benchmarks.rows import ROWS
from benchmarks.rows.row import arguments, run_rows

if __name__ == "__main__":
    parser = arguments(__doc__ or "")
    parser.add_argument("rows", nargs="*", metavar="row", help=", ".join(ROWS))
    given = parser.parse_args()
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    run_rows([ROWS[name] for name in given.rows or ROWS], given)
