"""The results at rest: one JSON file with a cell a line, the versions of the libraries, and the day."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "explanation" / "referee"
STORED = FOLDER / "results.json"


def store(path: Path, played: dict[str, Any]) -> None:
    """Write the results, with each cell and each recorded conversation on a line."""
    lists = {name: ",\n".join(map(_line, value)) for name, value in played.items() if isinstance(value, list)}
    rest = [f"{_line(name)}: {_line(value)}" for name, value in played.items() if name not in lists]
    lines = [*rest, *(f"{_line(name)}: [\n{text}\n]" for name, text in lists.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def load(path: Path) -> dict[str, Any]:
    """Return stored results."""
    played: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return played


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
