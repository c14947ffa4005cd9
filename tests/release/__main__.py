"""`nox -s release`: rehearse a release, or write what all packages state alike.

--dry ──▶ build, check, install, order        --version, --repository ──▶ pyproject.toml of every package
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.architecture.project import ROOT
from tests.release.numbers import set_repository, set_version
from tests.release.rehearsal import rehearse


def main(arguments: list[str]) -> int:
    """Parse the arguments of the session and run what they name; return the exit code."""
    parser = argparse.ArgumentParser(prog="nox -s release --", description="Nothing here uploads: that needs a person.")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--dry", action="store_true", help="build, check and install everything; print the order")
    chosen.add_argument("--version", metavar="X.Y.Z", help="write this version to all packages and ranges")
    chosen.add_argument("--repository", metavar="URL", help="write the repository's address to all packages")
    options = parser.parse_args(arguments)
    if options.dry:
        with tempfile.TemporaryDirectory() as archives:
            return rehearse(Path(archives))
    try:
        changed = set_version(options.version) if options.version else set_repository(options.repository)
    except ValueError as error:
        parser.error(str(error))
    print(*(path.relative_to(ROOT).as_posix() for path in changed), f"{len(changed)} files changed", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
