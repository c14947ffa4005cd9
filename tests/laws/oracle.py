"""A strict oracle for request bodies, made of the vendor SDK's own request types.

A plain TypeAdapter of those TypedDicts is nearly useless: `Iterable[...]` becomes a lazy iterator and unknown keys
pass. So their core schema is rewritten: generators become lists, typed dicts forbid extra keys unless they declare
otherwise, and arms of pydantic models (which only responses have) leave the unions. It uses pydantic-core's own
schema format and is for tests alone.
"""

import json
from functools import cache
from typing import Any

import pydantic_core
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import SchemaValidator


def strict(schema: Any) -> Any:
    """Return a core schema whose typed dictionaries forbid extra keys, and whose iterables are lists."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if isinstance(schema, tuple):
        return tuple(strict(item) for item in schema)
    if not isinstance(schema, dict):
        return schema
    rewritten = {key: strict(value) for key, value in schema.items()}
    match rewritten.get("type"):
        case "generator":
            kept = {key: rewritten[key] for key in ("items_schema", "ref") if key in rewritten}
            return {"type": "list", **kept}
        case "typed-dict":
            declared = rewritten.get("extra_behavior") or (rewritten.get("config") or {}).get("extra_fields_behavior")
            return {**rewritten, "extra_behavior": "allow" if declared == "allow" else "forbid"}
        case "union":
            arms = [arm for arm in rewritten["choices"] if not _is_model(arm)]
            return {**rewritten, "choices": arms or rewritten["choices"]}
    return rewritten


def _is_model(schema: Any) -> bool:
    schema = schema[0] if isinstance(schema, tuple) else schema
    return isinstance(schema, dict) and (
        schema.get("type") in ("model", "is-instance")
        or (schema.get("type") == "definition-ref" and "param" not in str(schema).lower())
    )


def _validator(kind: Any) -> SchemaValidator:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return SchemaValidator(strict(adapter.core_schema))


def _contents_validator() -> SchemaValidator:
    """Of the SDK's pydantic models, which forbid what they do not know; it has none for the whole request."""
    from google.genai import types

    fields = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    optional: dict[str, Any] = {name: (kind | None, None) for name, kind in fields.items()}
    request = create_model("request", __config__=ConfigDict(extra="forbid"), **optional)
    return SchemaValidator(TypeAdapter(request).core_schema)


@cache
def validators() -> dict[str, SchemaValidator]:
    """One strict validator for each dialect's request body."""
    from anthropic.types import message_create_params
    from openai.types.chat import completion_create_params
    from openai.types.responses import response_create_params

    return {
        "openai.chat": _validator(completion_create_params.CompletionCreateParamsNonStreaming),
        "openai.responses": _validator(response_create_params.ResponseCreateParamsNonStreaming),
        "anthropic.messages": _validator(message_create_params.MessageCreateParamsNonStreaming),
        "google.generate_content": _contents_validator(),
    }


@cache
def beta_validator() -> SchemaValidator:
    """Of Anthropic's requests with betas, such as MCP servers."""
    from anthropic.types.beta import message_create_params

    return _validator(message_create_params.MessageCreateParamsNonStreaming)


def check_request(dialect: str, body: bytes) -> None:
    """AssertionError with the first faults and the body, unless the SDK's own types take it."""
    parsed = json.loads(body)
    whole = {name: value for name, value in parsed.items() if name != "stream"}  # a long answer streams, whoever asks
    is_beta = dialect == "anthropic.messages" and "mcp_servers" in parsed
    try:
        (beta_validator() if is_beta else validators()[dialect]).validate_python(whole, strict=False)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:6]]
        raise AssertionError(f"{dialect} refuses {json.dumps(parsed)[:2000]}:\n" + "\n".join(faults)) from None


__all__ = ["check_request", "pydantic_core", "validators"]
