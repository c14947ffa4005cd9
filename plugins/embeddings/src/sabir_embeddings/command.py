"""The command `sabir embed`: prints the vectors of texts as JSON Lines.

texts, --file FILE …, or the lines of standard input ──estimate──▶ over --cap? ──▶ embed_sync ──▶ a line for each text
"""

import json
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, NamedTuple

from sabir import Origin, Rendering, Reply, Usage
from sabir.authoring import EmbeddingKind, installed_hooks, one_line
from sabir.errors import SettingsInvalid

from sabir_embeddings.embedder import embedder
from sabir_embeddings.splitting import count_bytes
from sabir_embeddings.vectors import Embeddings

MODEL_VARIABLE = "SABIR_EMBEDDING_MODEL"
"""The environment variable with the default of --model."""
BYTES_OF_A_TOKEN = 4
"""About how many bytes of English text a token has. For the estimate of tokens."""


class _InputText(NamedTuple):
    """A text, and the field of its output line that says where it comes from: "text" or "file"."""

    text: str
    field: str
    name: str


def embed(  # each parameter is a flag
    *texts: str,
    file: list[Path] | None = None,
    model: str | None = None,
    kind: EmbeddingKind | None = None,
    dimensions: int | None = None,
    output: Path | None = None,
    at_once: int = 4,
    cap: float | None = None,
    strict: bool = False,
) -> int:
    """Print the vectors of texts.

    Each line of the output is a JSON object with the field "text" (or "file") and the field "embedding". Without texts
    and files, each line of standard input that is not blank is a text. The estimated tokens and cost are printed first.

    Args:
        texts: The texts.
        file: A file whose content is one text. May be given several times.
        model: provider:model. Default: $SABIR_EMBEDDING_MODEL.
        kind: "query" or "document", for models that embed questions and their answers differently.
        dimensions: The length of the vectors. By default the model's own.
        output: The file for the vectors. By default they are printed.
        at_once: The maximum number of requests at the same time.
        cap: US dollars. A higher estimate is refused. Needs the package sabir-prices.
        strict: Refuse a request with a loss, for example if the model ignores --dimensions.
    """
    sources = [*(_InputText(text, "text", text) for text in texts), *map(_read_file, file or ())]
    sources = sources or [_InputText(line, "text", line) for line in sys.stdin.read().splitlines() if line.strip()]
    name = model or os.environ.get(MODEL_VARIABLE)
    if not name:
        raise SettingsInvalid(f"no model is set; pass --model provider:model, or set {MODEL_VARIABLE}")
    contents = [source.text for source in sources]
    with embedder(name, at_once=at_once, strict=strict) as llm:
        renderings = llm.render(contents, kind=kind, dimensions=dimensions)
        _report(_describe_estimate(contents, renderings, cap))
        vectors = llm.embed_sync(contents, kind=kind, dimensions=dimensions)
    for loss in vectors.losses:
        _report(str(loss))
    _write_vectors(sources, vectors, output)
    cost = "cost unknown" if vectors.cost is None else f"cost ${vectors.cost:.6f}"
    _report(f"{len(vectors)} vectors of {vectors.dimensions} numbers, {vectors.usage}, {cost}")
    return 0


def _read_file(path: Path) -> _InputText:
    try:
        return _InputText(path.read_text("utf-8"), "file", str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{str(path)!r} cannot be read: {one_line(error)}; pass a text file in UTF-8") from None


def _describe_estimate(texts: Sequence[str], renderings: Sequence[Rendering], cap: float | None) -> str:
    """Return one line about the expected tokens and cost. Raises SettingsInvalid if the cost exceeds the cap."""
    tokens = sum(-(-count_bytes(text) // BYTES_OF_A_TOKEN) for text in texts)
    cost = _expected_cost(renderings[0], tokens) if renderings else Decimal(0)
    price = "cost unknown" if cost is None else f"about ${cost:.6f}"
    estimate = f"{len(texts):,} texts, {len(renderings):,} requests, about {tokens:,} tokens, {price}"
    if cap is not None and cost is None:
        remedy = "install sabir-prices if it is missing, or leave --cap out"
        raise SettingsInvalid(f"--cap needs the model's prices, which are unknown; {remedy}")
    if cap is not None and cost is not None and cost > cap:
        raise SettingsInvalid(f"{estimate}, more than --cap {cap}; embed fewer texts, or raise --cap")
    return estimate


def _expected_cost(rendering: Rendering, tokens: int) -> Decimal | None:
    """Return the price in US dollars by the installed cost hook; None if it is unknown."""
    fields = {name: getattr(rendering.target, name) for name in ("provider", "dialect", "endpoint", "model")}
    usage = Usage(input_tokens=tokens, output_tokens=0)
    return installed_hooks().cost(Reply(messages=(), finish_reason="stop", usage=usage, origin=Origin(**fields)))


def _write_vectors(sources: Sequence[_InputText], vectors: Embeddings, output: Path | None) -> None:
    """Write a line for each text to a file, or print the lines. Raises SettingsInvalid if writing the file fails."""
    if output is None:
        _write_lines(sources, vectors, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            _write_lines(sources, vectors, file)
    except OSError as error:
        raise SettingsInvalid(f"{str(output)!r} cannot be written: {error.strerror}; pass another --output") from None


def _write_lines(sources: Sequence[_InputText], vectors: Embeddings, file: IO[str]) -> None:
    for source, vector in zip(sources, vectors, strict=True):
        line = {source.field: source.name, "embedding": list(_short_floats(vector))}
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _short_floats(vector: "memoryview[float]") -> Iterator[float]:
    """Yield the numbers of a vector with few digits, from which the same 32-bit floats can be read again."""
    for number in vector:
        short = float(f"{number:.8g}")
        yield short if struct.pack("f", short) == struct.pack("f", number) else float(f"{number:.9g}")


def _report(text: str) -> None:
    sys.stderr.write(text + "\n")
