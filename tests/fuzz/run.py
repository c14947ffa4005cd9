"""One body through its decoder, and many: what came of each, and what must not come of any.

changed body ──▶ decode · stream in chunks of any size · decode_history ──▶ reply or request │ SabirError │ Fault

A text that was decoded before the change, and still stands in the body after it, is decoded again, or a loss is told. A
reply that says other words for its events' and blocks' kinds is none of that wire: those of a stream stay.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import sabir
from sabir.calling.pure import PureDialect
from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope
from sabir.errors import SabirError
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import Reply

from tests.fuzz.mutations import MARK, broken, changed, marked
from tests.fuzz.seeds import Seed

MOST_SHOWN = 20


@dataclass(frozen=True)
class Fault:
    seed: Seed
    body: bytes
    what: str


@dataclass
class Run:
    """What came of all: `counts` by dialect, kind and outcome."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)


def read(seed: Seed, body: bytes, lots: random.Random) -> Reply | DecodedHistory:
    """What a body is decoded to; raises what the decoder raises."""
    pure = sabir.dialect(seed.dialect)
    match seed.kind:
        case "whole":
            return pure.decode(body)
        case "request":
            return pure.decode_history(body)
        case _:
            return _read_stream(pure, body, lots)


def _read_stream(pure: PureDialect, body: bytes, lots: random.Random) -> Reply:
    state = StreamState(pure.dialect, DecodeScope(pure.target))
    size = lots.choice((7, 100, 10_000, len(body) or 1))
    for at in range(0, len(body), size):
        for _ in state.feed(body[at : at + size]):
            pass
    for _ in state.close():
        pass
    return state.reply()


def fuzz(seeds: Sequence[Seed], count: int, seed: int) -> Run:
    """Read so many changed bodies; the same ones for the same seed."""
    lots, run = random.Random(seed), Run()
    for _ in range(count):
        chosen = lots.choice(seeds)
        outcome = _try(chosen, lots, run)
        run.counts[chosen.dialect, chosen.kind, outcome] += 1
    return run


def _try(seed: Seed, lots: random.Random, run: Run) -> str:
    if lots.random() < 0.3:
        return _outcome(seed, broken(lots, seed.body), lots, run)[0]
    found = marked(lots, seed.body)
    if found is None:
        return _outcome(seed, changed(lots, seed.body), lots, run)[0]
    body, *kept = found
    before = _outcome(seed, body, lots, run)[1]
    body = changed(lots, body, (kept[0], kept[1]), names_kinds=seed.kind != "streamed")
    outcome, after = _outcome(seed, body, lots, run)
    if before is None or after is None or MARK not in before.model_dump_json():
        return outcome
    is_told = any(loss not in before.losses for loss in after.losses)
    if MARK.encode() in body and MARK not in after.model_dump_json() and not is_told:
        run.faults.append(Fault(seed, body, "a text is lost, and no loss says so"))
        return "lost"
    return outcome


def _outcome(seed: Seed, body: bytes, lots: random.Random, run: Run) -> tuple[str, Reply | DecodedHistory | None]:
    try:
        read_as = read(seed, body, lots)
        read_as.model_dump_json()
        return "decoded", read_as
    except SabirError:
        return "refused", None
    except Exception as error:
        run.faults.append(Fault(seed, body, f"{type(error).__name__}: {error}"))
        return "surprised", None
