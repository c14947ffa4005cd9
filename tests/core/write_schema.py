"""Writes the published JSON schema of a history: `python -m tests.core.write_schema`."""

import json
from pathlib import Path

from sabir.vocabulary.history import schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "message-schema.json"


def rendered() -> str:
    """The schema as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.parent.mkdir(parents=True, exist_ok=True)
    PUBLISHED.write_text(rendered(), "utf-8")
