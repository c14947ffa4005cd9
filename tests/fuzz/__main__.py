"""`python -m tests.fuzz --count 100000 --seed 7`: what came of changed bodies, and each that failed in a file.

A body that is read for longer than a minute ends the run with the stack, and is in the file `hanging` by then.
"""

import argparse
import faulthandler
import random
import sys
from pathlib import Path

from tests.fuzz.run import MOST_SHOWN, Run, fuzz
from tests.fuzz.seeds import own, vendors

BATCH = 500
PATIENCE = 600.0
"""Seconds for a batch: whoever takes longer hangs."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--keep", type=Path, default=Path(".cache/fuzz"))
    given = parser.parse_args()
    seeds = [*own(), *vendors()]
    print(
        f"seed {given.seed}: {given.count} bodies made of {len(own())} own and {len(vendors())} of vendors", flush=True
    )
    run = Run()
    for number in range(0, given.count, BATCH):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        part = fuzz(seeds, min(BATCH, given.count - number), given.seed + number)
        run.counts.update(part.counts)
        run.faults += part.faults
    faulthandler.cancel_dump_traceback_later()
    for (dialect, kind, outcome), count in sorted(run.counts.items()):
        print(f"  {dialect:24} {kind:9} {outcome:9} {count}")
    given.keep.mkdir(parents=True, exist_ok=True)
    for number, fault in enumerate(run.faults):
        (given.keep / f"{given.seed}-{number}.body").write_bytes(fault.body)
        if number < MOST_SHOWN:
            print(f"  {fault.seed.dialect} {fault.seed.kind}: {fault.what[:200]} ▸ {given.seed}-{number}.body")
    print(f"{len(run.faults)} faults")
    return bool(run.faults)


if __name__ == "__main__":
    sys.exit(main())
