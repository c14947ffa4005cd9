"""What the mock answers, all of it our own invention: for each question of the cases that are its to answer."""

from typing import Any

from tests.recorded.wires import WIRES

RETRY_AFTER = 7
SIGNATURE = "bm90LWEtdmVuZG9ycy1zaWduYXR1cmU="
"""A text that no vendor signed."""
USAGE = {"input_tokens": 14, "output_tokens": 21}
THOUGHT = {"reasoning": "91 is 7 times 13. So it has divisors besides 1 and itself.", "reasoningSignature": SIGNATURE}
GEMINI = WIRES["google.generate_content"].vendor_model
UMBRELLA = "umbrella in Paris"
CALL = {
    "reasoning": "The weather decides. I have to look it up.",
    "reasoningSignature": SIGNATURE,
    "toolCalls": [{"id": "call_1", "name": "weather", "arguments": {"city": "Paris"}}],
}
RAIN = {"city": "Paris"}, {"city": "Rome"}
BOTH = {"toolCalls": [{"id": f"call_{at}", "name": "weather", "arguments": each} for at, each in enumerate(RAIN, 1)]}
MISSING: dict[str, tuple[str, str]] = {
    "gpt-missing": ("model_not_found", "The model `gpt-missing` does not exist."),
    "claude-sonnet-5-missing": ("not_found_error", "model: claude-sonnet-5-missing"),
    "gemini-missing": ("NOT_FOUND", "models/gemini-missing is not found."),
}
"""Model that there is not → how its vendor says so."""
REFUSALS: dict[str, tuple[str, int, str]] = {
    "openai.chat": ("rate_limit_exceeded", 503, "service_unavailable"),
    "openai.responses": ("rate_limit_exceeded", 503, "service_unavailable"),
    "anthropic.messages": ("rate_limit_error", 529, "overloaded_error"),
    "google.generate_content": ("RESOURCE_EXHAUSTED", 503, "UNAVAILABLE"),
}
"""Dialect → the vendor's word for too many requests; its status and word for too much to do."""


def fixtures() -> dict[str, Any]:
    """The mock's own format: the first entry that matches answers."""
    entries: list[dict[str, Any]] = [
        _entry("Is 91 a prime", {**THOUGHT, "content": "No: 91 is 7 × 13."}),
        _entry(UMBRELLA, {"content": "Yes, it rains in Paris."}, hasToolResult=True),
        # Left to itself, the mock ends such an answer on Gemini's wire with a reason that Gemini does not have.
        _entry(UMBRELLA, {**CALL, "finishReason": "stop"}, model=GEMINI),
        _entry(UMBRELLA, CALL),
        *(
            _entry("weather in Paris", {"error": {"type": kind, "message": message}, "status": 404}, model=model)
            for model, (kind, message) in MISSING.items()
        ),
        _entry("Ask for both at once", {**BOTH, "finishReason": "stop"}, model=GEMINI),
        _entry("Ask for both at once", BOTH),
        _entry("weather in Paris", {"content": "Grey clouds over Paris, 18 °C."}, hasToolResult=True),
        _entry("Which colour", {"content": "Red."}),
        _entry("Eiffel Tower", {"content": '{"city": "Paris", "country": "France"}'}),
    ]
    for model, (limit, status, overload) in {WIRES[name].vendor_model: row for name, row in REFUSALS.items()}.items():
        limited = {"error": {"type": limit, "message": "Too many requests; wait."}, "status": 429}
        overloaded = {"error": {"type": overload, "message": "Overloaded"}, "status": status}
        entries.append(_entry("requests are left", {**limited, "retryAfter": RETRY_AFTER}, model=model))
        entries.append(_entry("room for one more", overloaded, model=model))
    return {"fixtures": entries}


def _entry(question: str, response: dict[str, Any], **match: Any) -> dict[str, Any]:
    usage = {} if "error" in response else {"usage": USAGE, "id": "mock_1"}
    return {"match": {"userMessage": question, **match}, "response": {**response, **usage}}
