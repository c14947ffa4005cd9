"""Measure with Python's profiler in which modules sabir spends its time, print tables and store them.

    python -m benchmarks.profiles        prints tables, writes docs/explanation/performance/profiles.json

A share counts the time in a module's own functions. The profiler overstates the cost of small functions, so shares show
where to look first and not how much time a change would save.
"""

import cProfile
import json
import os
import pstats
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sabir
from sabir.contract.scope import DecodeScope
from sabir.reading.incoming import StreamState

from benchmarks import answers, results, work
from benchmarks.contenders import sabir as contender
from benchmarks.tables import markdown
from benchmarks.work import Given

STORED = results.FOLDER / "profiles.json"
SHOWN = 8


class Case(NamedTuple):
    """What is profiled: a task of sabir's, how often, and by what its calls are counted."""

    title: str
    task: str
    given: Given
    runs: int
    units: int
    unit: str


CHAT, ANTHROPIC, GOOGLE = "openai.chat", "anthropic.messages", "google.generate_content"
AGENTS = [Given(wire, 1000, talk=work.AGENTS) for wire in work.WIRES]
CASES = (
    Case("Render afresh, `openai.chat`", "render", Given(CHAT, 1000), 50, 1000, "message"),
    *(Case(f"Render the agents' conversation afresh, `{each.wire}`", "render", each, 20, 1000, "message")
      for each in AGENTS),
    Case("Render warm, `openai.chat`, 1,000 messages", "render_warm", Given(CHAT, 1000), 500, 1, "request"),
    Case("Callers that share a history, `openai.chat`, each", "shared", AGENTS[0], 10, work.CALLERS, "request"),
    Case("A whole call, `openai.chat`, 10 messages", "call", Given(CHAT, 10), 500, 1, "call"),
    Case("An agent loop of 100 turns, `openai.chat`", "loop", Given(CHAT, 100), 5, 100, "turn"),
    Case("Decode a text and five calls, `openai.chat`", "decode", Given(CHAT, 1), 1000, 1, "reply"),
    Case("Decode a text and five calls, `anthropic.messages`", "decode", Given(ANTHROPIC, 1), 1000, 1, "reply"),
    Case("A stream without its socket, `google.generate_content`", "stream", Given(GOOGLE, 2000), 10, 2000, "event"),
)  # fmt: skip


def streaming(given: Given) -> Callable[[], object]:
    """What is left of a stream without its socket: bytes to the whole reply."""
    dialect, chunks = sabir.dialect(given.wire), answers.stream(given.wire, given.size)

    def run() -> object:
        state = StreamState(dialect.dialect, DecodeScope(target=dialect.target))
        state.skip_events()
        for chunk in chunks:
            for _ in state.feed(chunk):
                pass
        for _ in state.close():
            pass
        return state.reply()

    return run


TASKS = {**contender.CONTENDERS["sabir"].tasks, "stream": streaming}


def imported() -> dict[str, Any]:
    """What an import of sabir and an adapter takes beside pydantic's, module by module, by Python's own account."""
    script = (
        "import pydantic\nclass Model(pydantic.BaseModel): x: int\nimport sabir\nsabir.adapter('openai.chat:gpt-4.1')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    least: dict[str, int] = {}
    for _ in range(5):
        command = [sys.executable, "-X", "importtime", "-c", script]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr
        lines = [re.match(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", line) for line in said.splitlines()]
        named = [(line[2], int(line[1])) for line in lines if line]
        begun = next(at for at, (name, _) in enumerate(named) if name.startswith("sabir"))
        for name, own in named[begun:]:
            least[name] = min(least.get(name, own), own)
    whole = sum(least.values())
    shown = sorted(least.items(), key=lambda each: -each[1])[:SHOWN]
    return {
        "title": "Import, an adapter of `openai.chat`, beside pydantic", "unit": "ms",
        "modules": [[f"`{name}`", own / whole, own / 1000] for name, own in shown],
    }  # fmt: skip


def profiled(case: Case) -> dict[str, Any]:
    """Each module's share of the time, and how often its functions are called."""
    run = TASKS[case.task](case.given)
    renew = getattr(run, "renew", lambda: None)
    renew()
    run()
    profiler = cProfile.Profile()
    for _ in range(case.runs):
        renew()
        profiler.enable()
        run()
        profiler.disable()
    shares: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for (file, _, function), (_, count, own, *_) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        module = module_of(file, function)
        shares[module] += own
        calls[module] += count
    whole = sum(shares.values())
    found = [[module, own / whole, calls[module] / case.runs / case.units] for module, own in shares.most_common(SHOWN)]
    return {"title": case.title, "unit": case.unit, "modules": found}


def module_of(file: str, function: str) -> str:
    """The module of a function; of one in C, its own name."""
    if file == "~":
        named = re.search(r"'(\w+)' of '([\w.]+)'|built-in (?:method )?([\w.]+)", function)
        name = (named[3] or f"{named[2]}.{named[1]}") if named else function
        return f"`{name.removeprefix('pydantic_core._pydantic_core.')}`, in C"
    path = Path(file).with_suffix("")
    packages = [at for at, part in enumerate(path.parts) if part in ("src", "site-packages") or part[:7] == "python3"]
    return f"`{'.'.join(path.parts[packages[-1] + 1 :])}`" if packages else f"`{path.name.strip('<>')}`"


def as_tables(profiles: list[dict[str, Any]]) -> str:
    """Return one Markdown table per profile."""
    tables = []
    for profile in profiles:
        unit = profile["unit"]
        lines = [[profile["title"], "share", "ms" if unit == "ms" else f"calls per {unit}"]]
        lines += [[module, f"{share:.0%}", f"{count:.3g}"] for module, share, count in profile["modules"]]
        tables.append(markdown(lines))
    return "\n\n".join(tables)


def main() -> None:
    """Profile all cases, store the result and print it."""
    profiles = [*map(profiled, CASES), imported()]
    STORED.write_text(json.dumps(profiles, indent=1) + "\n", "utf-8")
    print(as_tables(profiles))


if __name__ == "__main__":
    main()
