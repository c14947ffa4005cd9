"""The method batchEmbedContents, as the operation `google.embeddings`.

    texts   one request each, at most 100 in a batch      kind   `taskType`, or the beginning of the text (Embedding 2)

Google embeds only the beginning of a long text, and does not report this, so an estimate reports it as a loss.
https://ai.google.dev/gemini-api/docs/embeddings
"""

from array import array
from collections.abc import Iterator
from urllib.parse import unquote

from sabir import Usage
from sabir.authoring import (
    Decoded,
    DecodeScope,
    EmbeddingCall,
    EmbeddingVectors,
    JSONValue,
    Operation,
    OperationRequest,
    RequestScope,
    first_whole_number,
    list_or_empty,
    object_or_empty,
)
from sabir.errors import SettingsInvalid

from sabir_google.errors import ERRORS
from sabir_google.native import VERTEX
from sabir_google.request import model_path
from sabir_google.settings import GoogleEmbeddingSettings

TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
"""Kind of a text → its `taskType`."""
PROMPTS = {"query": "task: search result | query: {}", "document": "title: none | text: {}"}
"""Kind of a text → the text to send, for models that ignore `taskType`. The vendor's page above lists these forms."""
PROMPT_FACT = "kind_in_text"
"""Name of a fact in models.toml, for models to which the kind of a text is sent as part of the text."""
BYTES_OF_A_TOKEN = 4
"""About how many bytes a token has, by the vendor's page about tokens. For estimates."""


def encode(call: EmbeddingCall, scope: RequestScope) -> OperationRequest:
    """Return the request of a call. Texts that are probably too long are losses. Raises SettingsInvalid for Vertex AI,
    which has another method.
    """
    if VERTEX in scope.quirks:
        raise SettingsInvalid(
            "google has embeddings with an API key only; Vertex AI, the client= here, has other methods"
        )
    path = model_path(scope.target)
    common: dict[str, JSONValue] = {"model": unquote(path).removeprefix("/v1beta/")}
    if call.dimensions is not None and scope.supports("dimensions", "dimensions"):
        common["outputDimensionality"] = call.dimensions
    prompt = "{}"
    if call.kind is not None and scope.model_info.facts.get(PROMPT_FACT):
        prompt = PROMPTS[call.kind]
    elif call.kind is not None:
        common["taskType"] = TASKS[call.kind]
    settings = scope.read_vendor(GoogleEmbeddingSettings)
    common |= {"taskType": settings["task_type"]} if "task_type" in settings else {}
    requests: list[JSONValue] = [
        {**common, "content": {"parts": [{"text": prompt.format(text)}]}} for text in call.texts
    ]
    for index, tokens in _long_texts(call, scope.model_info.context_tokens):
        reason = f"it has about {tokens:,} tokens; the model reads only the first {scope.model_info.context_tokens:,}"
        scope.losses.add("downgraded", reason, path=f"texts[{index}]")
    return OperationRequest(f"{path}:batchEmbedContents", {"requests": requests})


def _long_texts(call: EmbeddingCall, limit: int | None) -> Iterator[tuple[int, int]]:
    """Yield the position and the estimated tokens of each text with more tokens than `limit`; none for None."""
    for index, text in enumerate(call.texts, call.first_index):
        if limit is not None and len(text) * 4 > limit * BYTES_OF_A_TOKEN:  # at most four bytes each
            tokens = len(text.encode("utf-8", "surrogatepass")) // BYTES_OF_A_TOKEN
            if tokens > limit:
                yield index, tokens


def decode(body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    """Read the vectors of a response, and the tokens if Google reports them."""
    response = scope.read_object(body)
    if error := response.get("error"):
        raise ERRORS.report(error, scope)
    entries = map(object_or_empty, list_or_empty(response.get("embeddings")))
    vectors = [array("f", list_or_empty(each.get("values"))).tobytes() for each in entries]
    return Decoded(EmbeddingVectors.join(vectors), _read_usage(response.get("usageMetadata")))


def _read_usage(figures: JSONValue) -> Usage:
    usage = object_or_empty(figures)
    input_tokens = first_whole_number(usage.get("promptTokenCount"))
    return Usage() if input_tokens is None else Usage.unchecked(usage, input_tokens=input_tokens, output_tokens=0)


EMBEDDINGS: Operation[EmbeddingCall, EmbeddingVectors] = Operation(
    name="google.embeddings",
    encode=encode,
    decode=decode,
    decode_error=ERRORS.decode,
    limits={"texts": 100},  # "at most 100 requests can be in one batch", says the API's error
)
"""The operation of the Gemini API. https://ai.google.dev/api/embeddings"""
