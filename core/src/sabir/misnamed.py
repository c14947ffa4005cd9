"""Arguments under another library's name: met with an error that names sabir's word.

llm.complete(chat, tools=[…])  ──▶  Misnamed: complete() takes no `tools`; pass options=[…] …
"""

import difflib
from collections.abc import Mapping

from sabir.errors import Misnamed
from sabir.settings import Settings

_OPTIONS = "pass options=[…]: what a model may choose is an option here"
_CHOICE = "pass settings=sabir.Settings(option_choice=…)"
_FORMAT = "pass settings=sabir.Settings(response_format=…) and read reply.parse(…)"
_LENGTH = "pass settings=sabir.Settings(max_output_tokens=…)"
_CONVERSATION = "give the conversation first: a str, or messages made by sabir.user(…) and its siblings"
_INSTRUCTIONS = "begin the conversation with sabir.system(…)"
_MODEL = "name the model once: sabir.adapter('provider:model')"
_STREAM = "call stream(…) or stream_sync(…)"
_SETTINGS = "pass settings=sabir.Settings(…)"

REMEDIES: Mapping[str, str] = {
    "tools": _OPTIONS, "functions": _OPTIONS, "function_declarations": _OPTIONS,
    "tool_choice": _CHOICE, "function_call": _CHOICE, "functions_call": _CHOICE, "tool_config": _CHOICE,
    "parallel_tool_calls": "pass settings=sabir.Settings(parallel_options=…)",
    "response_model": _FORMAT, "output_type": _FORMAT, "output_config": _FORMAT, "text_format": _FORMAT,
    "max_tokens": _LENGTH, "max_completion_tokens": _LENGTH, "max_output": _LENGTH,
    "stop_sequences": "pass settings=sabir.Settings(stop=…)",
    "reasoning": "pass settings=sabir.Settings(reasoning_effort=…)",
    "thinking": "pass settings=sabir.Settings(reasoning_effort=…)",
    "max_retries": "pass settings=sabir.Settings(retries=…)",
    "input": _CONVERSATION, "prompt": _CONVERSATION, "contents": _CONVERSATION, "history": _CONVERSATION,
    "message": _CONVERSATION,
    "system": _INSTRUCTIONS, "instructions": _INSTRUCTIONS, "system_instruction": _INSTRUCTIONS,
    "system_prompt": _INSTRUCTIONS,
    "model": _MODEL, "stream": _STREAM, "config": _SETTINGS, "generation_config": _SETTINGS,
    "extra_query": "put it into the adapter's base_url or client",
    "api_base": "pass base_url=…", "endpoint": "pass base_url=…", "url": "pass base_url=…",
    "key": "pass api_key=…", "token": "pass api_key=…", "http_client": "pass client=, the vendor SDK's client",
    "policy": "pass speaks_as=…", "provider": _MODEL,
}  # fmt: skip
"""Another library's word → what to write instead."""

_SETTING_NAMES = frozenset(field.alias or name for name, field in Settings.model_fields.items())


def refuse_misnamed(function: str, misnamed: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Raise Misnamed for the first argument whose name a function does not know, with the right word."""
    for name in misnamed:
        if name not in known:
            raise Misnamed(f"{function}() takes no `{name}`; {_remedy(name, known)}")


def _remedy(name: str, known: tuple[str, ...]) -> str:
    if name in _SETTING_NAMES:
        return f"pass settings=sabir.Settings({name}=…)"
    if name in REMEDIES:
        return REMEDIES[name]
    near = difflib.get_close_matches(name, [*known, *_SETTING_NAMES], n=1)
    if near and near[0] not in known:
        return f"did you mean settings=sabir.Settings({near[0]}=…)?"
    return f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known)}"
