"""Two runs beside each other: where sabir takes more, or less, than before by a tenth or more.

    python -m benchmarks.compare before.json [after.json]

`before.json` may be the results of an earlier commit (`git show COMMIT:docs/explanation/performance/results.json`). A
figure is what sabir takes by what the slowest to change takes beside it, its limit, so that runs of two days and two
machines can be compared; where there was none beside it, the figure itself.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.contenders import BARE, OWN
from benchmarks.goals import Record, significant
from benchmarks.interleave import at_once, place_of

LIMITS = ("limit", "floor", "raw", *BARE)
TENTH = 0.1


def figures(stored: dict[str, Any]) -> dict[str, float]:
    """Place → what sabir takes there by what a limit takes."""
    found: dict[str, float] = {}
    for name, row in stored["rows"].items():
        cases: dict[str, dict[str, Record]] = {}
        for record in row["records"]:
            case = f"{name}, {place_of(record)}, {record['size']}{at_once(record['concurrency'])}"
            cases.setdefault(case, {})[record["contender"]] = record
        for case, each in cases.items():
            own = next((each[one] for one in OWN if one in each), None)
            beside = next((each[one] for one in LIMITS if one in each), None)
            if own:
                found[case] = own["cpu"] / beside["cpu"] if beside else own["cpu"]
    return found


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each place that is in both and changed by a tenth or more, the worst first."""
    earlier, later = figures(before), figures(after)
    changes = sorted(((later[case] / earlier[case], case) for case in earlier.keys() & later.keys()), reverse=True)
    return [
        f"{significant(change)} × {case}: {significant(earlier[case])} → {significant(later[case])}"
        for change, case in changes
        if abs(change - 1) >= TENTH
    ]


def main() -> None:
    before, after = (*map(Path, sys.argv[1:3]), results.STORED)[:2]
    lines = compared(results.load(before), results.load(after))
    print("\n".join(lines) or "nothing changed by a tenth")


if __name__ == "__main__":
    main()
