"""Writes history files: every kind of payload and part, and what a newer version might have written.

history.json, history.jsonl     the same messages, as an array and as lines
newer.json, newer.jsonl         fields, kinds, hints and a schema number that this version does not know
"""

import json
from pathlib import Path
from typing import Any

import sabir
from sabir import Message, Origin

from tests.frozen.programs import PIXEL
from tests.frozen.writing.conversations import FOUND, SIGNED

ORIGINS = {
    name: Origin(provider=provider, dialect=name, endpoint=endpoint, model=model, response_id=f"{provider}-1")
    for name, provider, endpoint, model in (
        ("openai.responses", "openai", "https://api.openai.com/v1", "gpt-5"),
        ("openai.chat", "openai", "https://api.openai.com/v1", "gpt-4o"),
        ("anthropic.messages", "anthropic", "https://api.anthropic.com", "claude-sonnet-4-5"),
        ("google.generate_content", "google", "https://generativelanguage.googleapis.com", "gemini-2.5-pro"),
    )
}


def _says(dialect: str, *parts: Any) -> Message:
    return Message(policy="llm", origin=ORIGINS[dialect], payload=sabir.PartsPayload(parts=parts))


def _calls(dialect: str, number: int, **fields: Any) -> Message:
    payload = sabir.OptionCallPayload(invocation_id=f"call-{number}", option_name="weather", **fields)
    return Message(policy="llm", origin=ORIGINS[dialect], payload=payload)


def _answers(number: int, **fields: Any) -> Message:
    payload = sabir.OptionResultPayload(invocation_id=f"call-{number}", option_name="weather", **fields)
    return Message(policy="weather", payload=payload)


def messages() -> list[Message]:
    """One history with everything that this version writes."""
    pdf = "data:application/pdf;base64,JVBERi0xLjQK"
    vendor = {"openai": {"detail": "low"}}
    media = (
        sabir.MediaPart(modality="image", url=PIXEL, mime="image/png", prompt_hint="a dot", vendor=vendor),
        sabir.MediaPart(modality="image", url="https://example.org/sky.jpg", id="sky"),
        sabir.MediaPart(modality="document", url=pdf, name="ticket.pdf"),
        sabir.MediaPart(modality="audio", url="data:audio/wav;base64,UklGRiQAAABXQVZF"),
        sabir.MediaPart(modality="video", url="provider-file:google/files/7"),
    )
    call, result = (
        {"type": kind, "id": "s1", **fields}
        for kind, fields in (
            ("server_tool_use", {"name": "web_search", "input": {"query": "Rome"}}),
            ("web_search_tool_result", {"tool_use_id": "s1", "content": []}),
        )
    )
    return [
        sabir.system("Be brief."),
        sabir.user("What is this?", *media, "\U0001f600 ü \u2028 \x00"),
        _says("anthropic.messages", sabir.ReasoningPart(text="A dot.", state=SIGNED),
              sabir.ReasoningPart(state={"redacted": "c2VjcmV0"}), sabir.TextPart(text="A red dot.")),
        sabir.user("Weather in Rome and Oslo?"),
        _says("openai.responses", sabir.ReasoningPart(state={"id": "rs_1", "encrypted_content": "c2VjcmV0"})),
        _calls("openai.responses", 1, arguments={"city": "Rome", "days": [1, 2.5, None, True]}),
        _calls("openai.responses", 2, arguments={"city": "Oslo"}, raw_arguments='{ "city" : "Oslo" }'),
        _answers(1, result={"sky": "rain", "degrees": 1e16}),
        _answers(2, parts=(sabir.TextPart(text="snow"), media[0])),
        _says("openai.responses", sabir.TextPart(text="Rain in Rome.", citations=(FOUND,))),
        sabir.user("And in Bern?"),
        _calls("google.generate_content", 3, arguments={"city": "Bern"}, state={"thought_signature": "c2ln"}),
        _answers(3, is_error=True, error_type="timeout", error_message="no answer"),
        _calls("openai.chat", 4, arguments={}, raw_arguments='{"city": "Be', invalid_arguments=True),
        _answers(4, is_error=True, error_type="invalid_arguments", error_message="the arguments are no JSON object"),
        _says("google.generate_content", sabir.RefusalPart(text="I may not say that.")),
        sabir.user("Search."),
        _says("anthropic.messages",
              sabir.OpaquePart(dialect="anthropic.messages", block=call, pair_id="s1", pair="opens"),
              sabir.OpaquePart(dialect="anthropic.messages", block=result, pair_id="s1", pair="closes"),
              sabir.TextPart(text="Nothing was found.")),
        sabir.user("Thanks.").model_copy(update={"policy": "guest", "role_hint_for_llm": "assistant", "step_num": 3}),
        _calls("anthropic.messages", 5, arguments={"city": "abandoned"}),
        sabir.user("Never mind."),
    ]  # fmt: skip


def newer() -> list[dict[str, Any]]:
    """The same as plain data, with what a newer writer might add."""
    stored: list[dict[str, Any]] = [message.model_dump(mode="json", exclude_none=True) for message in messages()]
    stored[0] |= {"schema": 2, "tone": {"calm": None}}
    stored[1]["payload"]["parts"] += [
        {"kind": "smell", "of": ["rain", None], "strength": 1.5},
        {"kind": "media", "modality": "hologram", "url": "holo:7", "depth": 3},
    ]
    stored[2]["payload"]["parts"][0]["font"] = "serif"
    stored[2]["origin"]["region"] = "eu"
    stored[3]["role_hint_for_llm"] = "conductor"
    stored[5]["payload"]["priority"] = 3
    stored[-1]["payload"] = {"kind": "gesture", "gesture": "wave", "parts": [None]}
    return [*stored, sabir.user("Bye.").model_dump(mode="json", exclude_none=True)]


def write(folder: Path) -> None:
    """The four files, into a folder."""
    history = messages()
    sabir.save(folder / "history.json", history)
    sabir.save(folder / "history.jsonl", history)
    lines = [json.dumps(each, ensure_ascii=False) for each in newer()]
    (folder / "newer.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8", newline="\n")
    (folder / "newer.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
