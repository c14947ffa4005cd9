"""Writes the published JSON schema of the protocol: `python -m tests.actors.write_schema`.

    any of request, response, error  +  for each type: if an envelope is of that type, its data is …

The data of another type is open. Which phase types there are is the chain's affair, not the schema's.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from sabir_actors import TYPES, ErrorResponse, Message, Response

from tests.docs.sources import paragraph

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "actor-protocol-schema.json"
ENVELOPES: tuple[type[Message] | type[Response], ...] = (Message, Response, ErrorResponse)


class _Untitled(GenerateJsonSchema):
    """Fields without titles: these only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> dict[str, Any]:
    """The schema of one message, as `serialize_message` writes it."""
    rules = [("request", name, each.data) for name, each in TYPES.items()]
    rules += [
        ("response", name, model) for name, model in {x.response: x.response_data for x in TYPES.values()}.items()
    ]
    rules = [rule for rule in rules if rule[1]]
    rules.append(("error", "ERROR", TYPES["ERROR"].data))
    models = dict.fromkeys([*ENVELOPES, *(model for _, _, model in rules)])
    refs, definitions = models_json_schema([(model, "validation") for model in models], schema_generator=_Untitled)
    for definition in definitions["$defs"].values():
        definition["description"] = paragraph(definition["description"])

    def ref(model: type[BaseModel]) -> Any:
        return refs[model, "validation"]

    for model in ENVELOPES:
        envelope = definitions["$defs"][ref(model)["$ref"].rpartition("/")[2]]
        kind = envelope["properties"]["envelope"]["default"]
        envelope["properties"]["envelope"] = {"const": kind}
        if kind == "response":
            envelope["properties"]["type"]["not"] = {"const": "ERROR"}
        envelope["required"] = sorted({*envelope.get("required", ()), "envelope", "id", "timestamp", "type", "data"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A message between actors",
        "oneOf": [ref(model) for model in ENVELOPES],
        "allOf": [
            {
                "if": {"properties": {"envelope": {"const": kind}, "type": {"const": name}}},
                "then": {"properties": {"data": ref(model)}},
            }
            for kind, name, model in rules
        ],
        **definitions,
    }


def rendered() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(rendered(), "utf-8")
