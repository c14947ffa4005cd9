"""The type of an answer that --output names: a Python type, or a type created from a file with a JSON schema.

module:Model ──▶ the Python type           schema.json ──▶ a type whose values the schema validates
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import GetJsonSchemaHandler
from pydantic_core import core_schema
from sabir.authoring import decode_json, one_line
from sabir.errors import NotJSON

from sabir_cli.inputs import load_named, read_bytes
from sabir_cli.output import UsageError


def load_output_type(name: str) -> Any:  # Any: a type
    """Return the type that `module:Model` names, or create a type from a file with a JSON schema. Raises UsageError for
    an unknown name or an unusable schema.
    """
    if name.endswith(".json") or Path(name).is_file():
        return _type_of_schema(name)
    return load_named(name, "--output", "Model")


def _type_of_schema(file: str) -> type:
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        schema = decode_json(read_bytes(file, "a JSON schema"))
    except NotJSON as error:
        raise UsageError(f"--output {file!r} is not JSON: {error}; name a file with a JSON schema") from None
    if not isinstance(schema, dict):
        raise UsageError(f"--output {file!r} is not a JSON object; name a file with a JSON schema")
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        reason = one_line(error.message, 200)
        raise UsageError(f"--output {file!r} is not a valid JSON schema: {reason}; correct the file") from None
    validator = kind(schema, registry=Registry())  # an empty registry: references to URLs are not fetched

    def check(value: Any) -> Any:  # any JSON
        if error := best_match(validator.iter_errors(value)):
            raise ValueError(f"{error.json_path}: {error.message}")
        return value

    title = str(schema.get("title") or Path(file).stem)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", title)  # only characters that vendors accept
    referenced = _referenced_schemas(schema, file)

    def describe(_schema: object, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the file's schema. Each part to which a reference points becomes a definition in pydantic's schema.

        pydantic collects the definitions under `$defs` and names them itself, so each reference is replaced by the
        fields with which pydantic refers to the definition.
        """
        replacements: dict[str, dict[str, Any]] = {}
        for number, reference in enumerate(referenced):
            short = reference.rpartition("/")[2].strip("#") or name
            definition = core_schema.any_schema(ref=f"{short}:{number}")
            replacements[reference] = handler(core_schema.chain_schema([definition]))
        for reference, target in referenced.items():
            definition_fields = _inline_references(_without_definitions(target), replacements)
            handler.resolve_ref_schema(replacements[reference]).update(definition_fields)
        root = schema
        for _ in referenced:  # as the root of a schema, pydantic does not accept a reference
            if isinstance(root_reference := root.get("$ref"), str):
                root = {**referenced[root_reference], **{key: field for key, field in root.items() if key != "$ref"}}
        root = _without_definitions(root) if replacements else schema
        return cast("dict[str, Any]", _inline_references(root, replacements))

    checked = core_schema.no_info_after_validator_function(check, core_schema.any_schema())
    hooks: dict[str, Any] = {
        "__get_pydantic_core_schema__": staticmethod(lambda *_: checked),
        "__get_pydantic_json_schema__": staticmethod(describe),
    }
    return type(name, (), hooks)


def _referenced_schemas(schema: dict[str, Any], file: str) -> dict[str, Any]:
    """Return reference → the part of the schema to which it points, also for references within these parts.

    Raises UsageError for a reference that does not point to a schema in the file.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource = DRAFT202012.detect(schema).create_resource(schema)
    resolver = Registry[Any]().with_resource("", resource).resolver_with_root(resource)
    schemas: dict[str, Any] = {}
    remaining = [*_find_references(schema)]
    while remaining:
        if (reference := remaining.pop(0)) in schemas:
            continue
        try:
            target = schemas[reference] = resolver.lookup(reference).contents
        except Unresolvable:
            target = None
        if not isinstance(target, dict):
            remedy = "put that schema under $defs in the file, and refer to it as #/$defs/NAME"
            raise UsageError(f"--output {file!r} refers to {reference!r}, which is not a schema in the file; {remedy}")
        remaining.extend(_find_references(target))
    return schemas


def _find_references(value: Any) -> Iterator[str]:  # any JSON
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        value = [*value.values()]
    if isinstance(value, list):
        for element in value:
            yield from _find_references(element)


def _without_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without its fields `$defs` and `definitions`."""
    return {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}


def _inline_references(value: Any, replacements: Mapping[str, Mapping[str, Any]]) -> Any:  # any JSON
    """Return a part of the schema with each reference replaced by its fields in `replacements`."""
    if isinstance(value, list):
        return [_inline_references(element, replacements) for element in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _inline_references(element, replacements) for key, element in value.items()}
    return {**fields, **replacements[value["$ref"]]} if isinstance(value.get("$ref"), str) else fields
