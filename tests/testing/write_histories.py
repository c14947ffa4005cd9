"""Writes the histories that the kit ships: the project's cassettes, decoded.

    python -m tests.testing.write_histories

cassettes/<dialect>/<case>.yaml ─▶ the last request (decode_history) and its answer (decode) ─▶ recorded/<dialect>.json
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sabir
import sabir_testing
from sabir.calling.pure import PureDialect
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Target
from sabir_testing.cassettes import RecordedExchange, exchanges, provenance_of
from sabir_testing.histories.samples import ENDPOINT, FOLDER

CASSETTES = Path(__file__).parents[2] / "cassettes"
DIALECTS = tuple(sorted(path.name for path in CASSETTES.iterdir() if path.is_dir()))
SHIPPED = Path(sabir_testing.__file__).parent / FOLDER
STREAMED = "_streamed"
"""What the names of streamed cases end with; they say the same as the whole ones."""


def document(dialect: str) -> dict[str, Any]:
    """All that is shipped of a dialect."""
    return {"dialect": dialect, "cases": dict(_cases(dialect))}


def text(dialect: str) -> str:
    """The file's text."""
    return json.dumps(document(dialect), ensure_ascii=False, indent=1) + "\n"


def _cases(dialect: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((CASSETTES / dialect).glob("*.yaml")):
        last = exchanges(path)[-1]
        if last.status >= 400 or path.stem.endswith(STREAMED):
            continue
        provenance = dict(provenance_of(path))
        history = _named(path.stem, _history(dialect, provenance["model"], last), last)
        yield path.stem, {"provenance": provenance, "messages": json.loads(sabir.dumps(history))}


def _history(dialect: str, model: str, exchange: RecordedExchange) -> list[Message]:
    """What was asked, and what was answered."""
    provider = dialect.partition(".")[0]
    spoken = sabir.dialect(dialect)
    target = Target(provider=provider, dialect=dialect, model=model, endpoint=ENDPOINT)
    pure = PureDialect(spoken.dialect, target, spoken.provider)
    asked = pure.decode_history(exchange.request_body).messages
    return [*asked, *pure.decode(exchange.response_body).messages]


def _named(case: str, history: Sequence[Message], exchange: RecordedExchange) -> list[Message]:
    """The messages under ids that are the same at every writing; so are calls' ids that no wire gave."""
    recorded = f"{exchange.request_body!r} {exchange.response_body!r}"
    chosen = (message.call or message.result for message in history)
    ids = dict.fromkeys(each.invocation_id for each in chosen if each and each.invocation_id not in recorded)
    given = {made: f"{case}-call-{number}" for number, made in enumerate(ids, start=1)}
    return [_renamed(message, f"{case}-{at}", given) for at, message in enumerate(history, start=1)]


def _renamed(message: Message, name: str, given: Mapping[str, str]) -> Message:
    chosen = message.call or message.result
    if chosen is None or chosen.invocation_id not in given:
        return message.model_copy(update={"id": name})
    payload = chosen.model_copy(update={"invocation_id": given[chosen.invocation_id]})
    return message.model_copy(update={"id": name, "payload": payload})


def main() -> None:
    """Write them all."""
    SHIPPED.mkdir(exist_ok=True)
    for dialect in DIALECTS:
        path = SHIPPED / f"{dialect}.json"
        path.write_text(text(dialect), "utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
