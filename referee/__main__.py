"""Judge all libraries and write the page: `python -m referee`; `python -m referee sabir lm15` prints the cells of two.

The first run creates the environments of the libraries under .cache/benchmarks. Recorded conversations are included if
SABIR_VENDOR_CASSETTES names their folder. Nothing is sent to a network.
"""

import argparse
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version

from referee import report, results, trial
from referee.contenders import CONTENDERS
from referee.recorded import VARIABLE

SDKS = ("openai", "anthropic", "google-genai")


def tell(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Judge the libraries that the command line names, or all, and write the page if all were judged."""
    parser = argparse.ArgumentParser(prog="python -m referee", description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="library", help=", ".join(CONTENDERS))
    parser.add_argument("--page", action="store_true", help="write the page from the stored results")
    chosen = parser.parse_args()
    if unknown := set(chosen.libraries) - set(CONTENDERS):
        parser.error(f"unknown library: {', '.join(sorted(unknown))}; choose from {', '.join(CONTENDERS)}")
    if chosen.page:
        report.write(results.load(results.STORED))
        return
    played = trial.play(chosen.libraries or list(CONTENDERS), tell)
    if not played["recorded"]:
        tell(f"no recorded conversations: {VARIABLE} names no folder")
    if chosen.libraries:
        for cell in played["cells"]:
            print(
                cell["library"],
                cell["history"],
                cell["wire"],
                cell["verdict"],
                *cell["reasons"],
                *cell["lost"],
                sep="  ",
            )
        return
    histories = trial.histories()
    head = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "types": ", ".join(f"{name} {version(name)}" for name in SDKS),
        "versions": trial.versions(list(CONTENDERS)),
        "titles": {name: each["title"] for name, each in histories.items()},
        "faults": {name: each["faults"] for name, each in histories.items() if "faults" in each},
    }
    results.store(results.STORED, head | played)
    report.write(results.load(results.STORED))


if __name__ == "__main__":
    main()
