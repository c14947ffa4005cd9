"""JSON schemas as OpenAI's strict mode takes them, where that is possible.

    schema ──make_strict──▶ StrictSchema(schema, strict=True, changes, left_out)   every reply fits the given one, too
                          ▶ StrictSchema(as given, strict=False, why not)

Strict schemas are a subset: every object closed, every property required, no root union, no keyword but those in
STRICT_KEYWORDS (https://developers.openai.com/api/docs/guides/structured-outputs). A schema is only ever narrowed, and
each of its keywords is kept or reported, except a default of null where null means absent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sabir.authoring import JSONValue

STRICT_KEYWORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "default",
})  # fmt: skip
_ANNOTATIONS = frozenset({"examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_MOST_LEVELS, _MOST_PROPERTIES, _MOST_VALUES = 10, 5000, 1000


class StrictSchema(NamedTuple):
    """A schema to send, whether strictly, and why not or what changed."""

    schema: JSONValue
    strict: bool
    reasons: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Keywords that constrain nothing and that strict schemas do not have, each with its place."""


class _NotStrict(Exception):
    """The schema has a constraint that strict mode cannot express."""


def make_strict(schema: Mapping[str, Any]) -> StrictSchema:
    """The schema in strict form; unchanged and not strict if its meaning cannot be kept.

    `reasons` names what was narrowed in a strict schema (an optional property that became required), or the one
    reason why a schema cannot be strict.
    """
    walk = _Walk(schema)
    try:
        root = walk.node(walk.inlined(schema) if "$ref" in schema else schema, "the root", 0, ())
        if root.get("type") != "object":
            raise _NotStrict("the root is no object")
        if "anyOf" in root:
            raise _NotStrict("the root is a union")
    except _NotStrict as reason:
        return StrictSchema(dict(schema), False, (str(reason),))
    except RecursionError:
        return StrictSchema(dict(schema), False, ("it is nested too deeply",))
    return StrictSchema(root, True, tuple(dict.fromkeys(walk.changes)), tuple(dict.fromkeys(walk.left_out)))


def as_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an option's parameters, not strict, in the wire's form: its root is an object with properties.

    A reference at the root, as in a recursive model, is replaced by its target; one without a target stays.
    """
    walk, found, seen = _Walk(schema), dict(schema), set[str]()
    while "$ref" in found and (reference := str(found["$ref"])) not in seen:
        seen.add(reference)
        try:
            found = walk.inlined(found)
        except _NotStrict:
            break
    if "$ref" in found:
        return found
    found.setdefault("type", "object")
    return {**found, "properties": found.get("properties", {})} if found["type"] == "object" else found


class _Walk:
    """One pass over a schema, counting what strict mode limits."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.changes: list[str] = []
        self.left_out: list[str] = []
        self.properties = 0
        self.values = 0

    def node(self, schema: JSONValue, path: str, depth: int, inlining: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise _NotStrict(f"{path} is {schema!r}, no schema")
        found = self._plain(schema, path)
        if "$ref" in found and len(found) > 1:
            reference = str(found["$ref"])
            if reference in inlining:
                raise _NotStrict(f"{path} refers to {reference} and adds to it, in a circle")
            return self.node(self.inlined(found), path, depth, (*inlining, reference))
        if "$ref" in found:
            self.inlined(found)
        self._check(found, path)
        strict = {name: self._keyword(name, value, path, depth, inlining) for name, value in found.items()}
        if _is(found, "object") or "properties" in found:
            self._close(strict, found, path, depth)
        return strict

    def inlined(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A schema with its reference replaced by the reference's target; the schema's own keywords win."""
        reference = schema["$ref"]
        if reference != "#" and not str(reference).startswith("#/"):
            raise _NotStrict(f"{reference} names nothing in the schema")
        target: Any = self.root
        for escaped in str(reference).removeprefix("#").strip("/").split("/"):
            step = escaped.replace("~1", "/").replace("~0", "~")
            if step and not (isinstance(target, Mapping) and step in target):
                raise _NotStrict(f"{reference} names nothing in the schema")
            target = target[step] if step else target
        if not isinstance(target, Mapping):
            raise _NotStrict(f"{reference} names no schema")
        return {**target, **{name: value for name, value in schema.items() if name != "$ref"}}

    def _plain(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """The schema without annotations, single-member unions and a default that has no effect."""
        found = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
        for name in filter(_ANNOTATIONS.__contains__, schema):
            (self.changes if name == "examples" else self.left_out).append(f"{path} loses {name!r}")
        if found.get("default", True) is None and _admits_null(found):
            del found["default"]
        if "oneOf" in found and "discriminator" in found and "anyOf" not in found:
            del found["discriminator"]
            found["anyOf"] = found.pop("oneOf")
            self.left_out.append(f"{path} loses 'discriminator', and its 'oneOf' is an 'anyOf'")
        union = found.get("allOf")
        if isinstance(union, list | tuple) and len(union) == 1 and isinstance(union[0], Mapping):
            del found["allOf"]
            twice = [name for name, value in union[0].items() if found.get(name, value) != value]
            self.changes += [f"{path} loses the {name!r} of its 'allOf'" for name in twice]
            return self._plain({**union[0], **found}, path)
        return found

    def _check(self, found: Mapping[str, Any], path: str) -> None:
        unknown = next((name for name in found if name not in STRICT_KEYWORDS), None)
        form = found.get("format", "date")
        self.values += len(_listed(found.get("enum")))
        refusals = {
            f"{path} uses {unknown!r}, which strict schemas do not have": unknown is not None,
            f"{path} accepts any value": not {"type", "anyOf", "$ref", "enum", "const"}.intersection(found),
            f"{path} has the format {form!r}, which strict schemas do not have": not isinstance(form, str)
            or form not in _FORMATS,
            f"{path} is an array of anything": _is(found, "array") and "items" not in found,
            f"it has more than {_MOST_VALUES} enumerated values": self.values > _MOST_VALUES,
        }
        for reason in (reason for reason, holds in refusals.items() if holds):
            raise _NotStrict(reason)

    def _keyword(self, name: str, value: JSONValue, path: str, depth: int, inlining: tuple[str, ...]) -> JSONValue:
        if name in ("properties", "$defs", "definitions"):
            inner = depth + 1 if name == "properties" else 0
            if not isinstance(value, Mapping):
                raise _NotStrict(f"{path} has {name} that are no object")
            where = "" if path == "the root" else f"{path}."
            return {key: self.node(item, f"{where}{key}", inner, inlining) for key, item in value.items()}
        if name == "items":
            return self.node(value, f"{path}[]", depth, inlining)
        if name == "anyOf":
            return [
                self.node(item, f"{path} ({number})", depth, inlining) for number, item in enumerate(_listed(value), 1)
            ]
        return value

    def _close(self, strict: dict[str, Any], found: Mapping[str, Any], path: str, depth: int) -> None:
        properties = found.get("properties")
        if found.get("additionalProperties", False) is not False:
            raise _NotStrict(f"{path} takes properties of any name")
        if properties is None and "additionalProperties" not in found:
            raise _NotStrict(f"{path} is an object of anything")
        properties = properties or {}
        self.properties += len(properties)
        if depth >= _MOST_LEVELS or self.properties > _MOST_PROPERTIES:
            raise _NotStrict(f"it nests deeper than {_MOST_LEVELS} or has more than {_MOST_PROPERTIES} properties")
        required = _listed(found.get("required"))
        for name, schema in properties.items():
            if name not in required and not (_admits_null(schema) and schema.get("default") is None):
                self.changes.append(f"{path}: {name!r} is optional and became required")
        strict.update(properties=strict.get("properties", {}), required=list(properties), additionalProperties=False)


def _admits_null(schema: JSONValue) -> bool:
    if not isinstance(schema, Mapping):
        return False
    is_null = _is(schema, "null") or None in _listed(schema.get("enum"))
    return is_null or any(map(_admits_null, _listed(schema.get("anyOf"))))


def _is(schema: Mapping[str, Any], name: str) -> bool:
    return name == schema.get("type") or name in _listed(schema.get("type"))


def _listed(value: JSONValue) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
