"""What is said of a case that did not simply pass: in words, and with the author's own line of code.

Broken            as it says itself            any other error   what, and where in the author's code it was raised
a skip            is none: opt out by xfail    a success         of what was expected to fail: the entry has to go
"""

from collections.abc import Mapping
from pathlib import Path
from traceback import walk_tb

import pytest

from sabir_testing.broken import Broken

_NOT_THE_AUTHORS = ("site-packages", "dist-packages", "<frozen", "<string>")
_HERE = str(Path(__file__).parent)
MOST_FRAMES = 3


def told(error: BaseException) -> str:
    """An error in words: a Broken's own, else its kind and the lines of the author's code that it came through."""
    if isinstance(error, Broken):
        return str(error)
    lines = "\n".join(f"  {line}" for line in _lines(error))
    return f"{type(error).__name__}: {error}\n\nraised at:\n{lines}"


def _lines(error: BaseException) -> list[str]:
    """The last frames that are the author's, and the very last of all."""
    import sabir

    packages = (_HERE, str(Path(sabir.__file__).parent), str(Path(pytest.__file__).parent.parent), *_NOT_THE_AUTHORS)
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    own = [each for each in frames if not any(part in each[0] for part in packages)]
    shown = list(dict.fromkeys([*own[-MOST_FRAMES:], frames[-1]])) if frames else []
    return [f"{file}:{line}, in {name}" for file, line, name in shown]


def told_of_skip(report: pytest.TestReport, suite: str, case: str) -> str | None:
    """What to write instead of a skip; None for one within the kit: of a marker, or where there is nothing to ask."""
    where = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    if str(where).startswith(_HERE):
        return None
    return how_to_opt_out(suite, case)


def how_to_opt_out(suite: str, case: str) -> str:
    """What to write instead of a skip."""
    return f"{suite} skips {case}; to opt out of a case, write xfail = {{{case!r}: 'the reason'}}"


def told_of_success(suite: str, xfail: Mapping[str, str], case: str) -> str:
    """What to take away where a case holds that was expected to fail."""
    entry = case if case in xfail else case.partition("[")[0]
    rows = "" if entry == case else "; an entry without a row expects every row to fail: name those that do"
    reason = xfail.get(entry, "none")
    return f"{case} holds now; take {entry!r} out of {suite}.xfail, which gives the reason: {reason}{rows}"
