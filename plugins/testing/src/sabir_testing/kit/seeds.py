"""The seed of a run, from which the examples of all random cases derive.

pytest --sabir-seed N ──▶ subject.seed ──▶ for_all ──▶ failure.seed ──▶ the command that repeats the failure
       └ fixed in CI, otherwise new for each run      (kit/law_testing)
"""

import os
import shlex

CI_SEED = 20_260
"""The seed in CI, where the same commit must always have the same result."""
SEED_OPTION = "--sabir-seed"


def choose_seed() -> int:
    """Return the seed for a run without `--sabir-seed`: CI_SEED if the environment variable CI is set, otherwise a
    random number.
    """
    return CI_SEED if os.environ.get("CI") else int.from_bytes(os.urandom(4), "big")


def advice_to_repeat(test: str, seed: int) -> str:
    """Return the seed of a failure and the command that repeats it. `test` is the test's node id."""
    command = f"pytest {shlex.quote(test)} {SEED_OPTION} {seed}"
    return f"the example is random, from the seed {seed}; repeat it with:\n  {command}"
