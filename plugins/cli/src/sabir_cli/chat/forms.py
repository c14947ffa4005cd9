"""The form that an answer must have: a type of Python, or a JSON schema from a file.

module:Model ──▶ the type that it names          schema.json ──▶ a type that is checked by that schema
"""

import re
from pathlib import Path
from typing import Any

from pydantic_core import core_schema
from sabir.authoring import decode_json, one_line
from sabir.errors import NotJSON

from sabir_cli.inputs import load_named, read_bytes
from sabir_cli.output import UsageError


def load_form(given: str) -> Any:  # a type, which may be any
    """The type that a file or `module:Model` gives; raises UsageError."""
    if given.endswith(".json") or Path(given).is_file():
        return _of_schema(given)
    return load_named(given, "--output", "Model")


def _of_schema(file: str) -> type:
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        schema = decode_json(read_bytes(file, "a JSON schema"))
    except NotJSON as error:
        raise UsageError(f"--output {file!r} is no JSON: {error}; give a JSON schema") from None
    if not isinstance(schema, dict):
        raise UsageError(f"--output {file!r} holds no JSON object; give a JSON schema")
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise UsageError(f"--output {file!r} is no JSON schema: {one_line(error.message, 200)}; mend it") from None
    validator = kind(schema, registry=Registry())  # nothing that it refers to is fetched

    def check(value: Any) -> Any:  # whatever JSON holds
        if error := best_match(validator.iter_errors(value)):
            raise ValueError(f"{error.json_path}: {error.message}")
        return value

    checked = core_schema.no_info_after_validator_function(check, core_schema.any_schema())
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(schema.get("title") or Path(file).stem))  # what vendors take as a name
    hooks = {
        "__get_pydantic_core_schema__": lambda *_: checked,
        "__get_pydantic_json_schema__": lambda *_: schema,
    }
    return type(name, (), {hook: staticmethod(function) for hook, function in hooks.items()})
