"""The command `sabir check`: sends about twelve cheap questions to a service, and prints how it answers them.

MODEL ──plan, estimate──▶ confirm ──▶ rows, one after the other ──▶ table or JSON, exit code
                                                  └── --save FOLDER: cassettes for ProviderConformance
"""

import difflib
import json as json_text
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import sabir
from sabir.authoring import load_entry_point, one_line
from sabir.errors import SettingsInvalid

from sabir_testing.live.display import document, header, row_lines, summary_lines
from sabir_testing.live.questions import ROW_NAMES, USAGE, USAGE_ROWS, Estimate, estimate, plan
from sabir_testing.live.running import LiveCheck, require_key

MODEL_VARIABLE = "SABIR_MODEL"
INTERRUPTED = 130


def check(  # each parameter is a flag
    model: str | None = None,
    /,
    *,
    only: list[str] | None = None,
    base_url: str | None = None,
    save: Path | None = None,
    yes: bool = False,
    json: bool = False,
) -> int:
    """Ask a real service about twelve cheap questions, and print which of them it answers correctly.

    The estimated calls, tokens and cost are printed first, and the command asks before it starts. It needs the
    provider's key. A question that the model or its API does not support is not sent. The exit code is 0 if no
    question failed.

    Args:
        model: provider:model. Default: $SABIR_MODEL.
        only: The name of a question, such as "stream"; repeat it for several. Default: all questions.
        base_url: URL of a compatible API.
        save: A folder for the exchanges, without keys, as cassettes that ProviderConformance replays.
        yes: Start without asking.
        json: Print one JSON document instead of the table.
    """
    name = model or os.environ.get(MODEL_VARIABLE)
    if not name:
        raise SettingsInvalid(f"no model is set; write sabir check provider:model, or set {MODEL_VARIABLE}")
    wanted = _check_names(only or ())
    if save is not None:
        _check_folder(save)
    with _open_adapter(name, base_url) as adapter:
        rows = plan(adapter, wanted)
        expected = estimate(adapter, rows)
        if expected.calls:
            require_key(adapter)
            if not _confirm(name, expected, yes):
                return 1
        server = "the service of --base-url, not a vendor's own service" if base_url else ""
        with_usage = not only or USAGE in only
        run = LiveCheck(adapter, rows, save, server, with_usage)
        try:
            _run(run, quietly=json)
        except KeyboardInterrupt:  # between two questions
            run.interrupted = True
    if json:
        print(json_text.dumps(document(run, expected), ensure_ascii=False, indent=2), flush=True)
    else:
        print(*summary_lines(run), sep="\n", flush=True)
    failed = any(row.outcome == "failed" for row in run.results)
    return INTERRUPTED if run.interrupted else int(failed)


def _open_adapter(model: str, base_url: str | None) -> sabir.ModelAdapter:
    """Return the model's adapter. If sabir-cli is installed, it opens the adapter as for its own commands, with the
    facts about models and the profile from the user's settings file.
    """
    for point in entry_points(group="sabir.settings", name="open_adapter"):
        adapter: sabir.ModelAdapter = load_entry_point(point, named=True)(model, base_url)
        return adapter
    return sabir.adapter(model, base_url=base_url)


def _check_names(names: Sequence[str]) -> list[str]:
    """Return the rows to send for `--only`. The row USAGE needs the rows of USAGE_ROWS."""
    for name in names:
        if name not in ROW_NAMES:
            near = difflib.get_close_matches(name, ROW_NAMES, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(map(repr, ROW_NAMES))}"
            raise SettingsInvalid(f"--only {name!r} is not a question; {remedy}")
    return [*names, *(USAGE_ROWS if USAGE in names else ())]


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise SettingsInvalid(f"--save {str(folder)!r} is not a folder; choose a folder")


def _confirm(model: str, expected: Estimate, yes: bool) -> bool:
    if not yes and not sys.stdin.isatty():
        raise SettingsInvalid(f"{model}: {expected}: nobody can confirm the start here; pass --yes")
    _write_line(f"{model}: {expected}")
    if yes:
        return True
    sys.stderr.write("Start? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _run(run: LiveCheck, *, quietly: bool) -> None:
    """Run the check, and print each row when it is finished. On a terminal, one line says what is being asked."""
    shows_progress = sys.stderr.isatty()
    if not quietly:
        print(header(), flush=True)

    def begin(name: str) -> None:
        if shows_progress:
            sys.stderr.write(f"\r\x1b[K{one_line(name, 60)} …")
            sys.stderr.flush()

    for row in run.run(begin):
        if shows_progress:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        if not quietly:
            print(*row_lines(row), sep="\n", flush=True)


def _write_line(text: str) -> None:
    sys.stderr.write(text + "\n")
