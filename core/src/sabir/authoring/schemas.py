"""Convert a JSON schema to the form that an API accepts. The rules of each API are data.

    schema ──fit_schema(schema, rule)──▶ FittedSchema(schema, changes, names)      what to send, and every change
                                       ▶ FittedSchema(refusal="the reason")        the API has no schema of this meaning

Law: if a schema is not refused, each keyword is sent, or a SchemaChange names it with its place. Only other spellings
of the same schema need no SchemaChange: a target in place of its reference, the single schema of `allOf` in place of
`allOf`, `type` of an object, `additionalProperties: false` in an object that does not say whether it is open, empty
`properties`, and a removed default of null if null means absent.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from sabir.authoring.schema_parts import (  # isort: skip
    LISTS, MAPS, ONES, TYPED, UNIONS, Schema, admits_null, either, endless_reference, has_lookaround, has_type,
    is_object, keywords, as_list, as_mapping, rename_reference, resolve, short_json, target_of, with_names, join_path,
    without_keywords,
)  # fmt: skip
from sabir.base.failures import LossKind
from sabir.base.values import JSONValue, encode_json
from sabir.contract.turns import IdentifierRule, LossLog

Limited: TypeAlias = Literal["levels", "properties", "enumerated values", "characters"]

_BESIDE_REFERENCE = frozenset({"$defs", "$ref", "definitions"})
"""Keywords that may always stand next to a reference."""
_MOST_NESTED = 20
"""How many levels of unions inside unions are merged at the root."""


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """Which JSON schemas an API accepts in one place, for example for an option's parameters. Passed to `fit_schema`.
    The default accepts every schema, but a list of `items` is sent as `prefixItems`.

    `keywords` are the keywords that the API reads; None means all. `values` maps a keyword to a function that returns
    whether the API accepts the keyword's value. `unread` is for other keywords and values: "sent" sends them anyway,
    with a change; "described" moves them into the description; "refused" refuses the schema. `annotations` are keywords
    without meaning for the API, which are left out.

    `root` "object" requires an object as the root. `not_at_root` (only with `root` "object") are keywords that the root
    must not have; unions among them are merged into the root's properties. `names` is the rule for property names of
    the root; None accepts all. `one_of` "as_any_of" usually sends `oneOf` as `anyOf`. `items` says which arrays need
    the keyword `items`: no array ("any"), arrays with `prefixItems` ("of_tuples"), or all arrays ("of_all").

    `closed` True requires `additionalProperties: false` in objects; with `closed`, `required` True requires that all
    properties are required. `references` "any" accepts all references, "recursive" only references to places inside the
    schema, "finite" only such references that do not recurse. `lone_reference` True allows no other keyword next to a
    reference.
    """

    keywords: frozenset[str] | None = None
    values: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)
    unread: Literal["sent", "described", "refused"] = "sent"
    annotations: frozenset[str] = frozenset()
    root: Literal["any", "object"] = "any"
    not_at_root: frozenset[str] = frozenset()
    names: IdentifierRule | None = None
    one_of: Literal["sent", "as_any_of"] = "sent"
    items: Literal["any", "of_tuples", "of_all"] = "any"
    closed: bool = False
    required: bool = False
    references: Literal["any", "recursive", "finite"] = "any"
    lone_reference: bool = False
    lookaround: bool = True
    """Whether the API accepts a `pattern` with lookahead or lookbehind. If False, such a pattern counts as unread."""
    most: Mapping[Limited, int] = field(default_factory=dict)
    """Limits for the complete schema: "levels" (of nested objects), "properties", "enumerated values" or "characters" →
    maximum. Counted characters are those of names of properties and definitions, and of enumerated values. A schema
    over a limit is refused. Levels and properties are counted only with `closed`.
    """


class SchemaChange(NamedTuple):
    """One difference between the schema of the program and the schema that is sent.

    `kind` is the kind of the loss and `reason` the text for the user. `path` is the place in the original schema, ""
    for the root. `narrows` is True if some values match the original schema, but not the sent one.
    """

    kind: LossKind
    path: str
    reason: str
    narrows: bool = False


class FittedSchema(NamedTuple):
    """A JSON schema in the form that an API accepts, and the changes. Returned by `fit_schema`."""

    schema: dict[str, Any]
    """The schema to send. Empty if the API cannot accept the schema, or if the schema has no keywords."""
    changes: tuple[SchemaChange, ...] = ()
    """The differences from the original schema."""
    names: Mapping[str, str] = {}
    """Property name that is sent → original name, for the names that differ."""
    refusal: str = ""
    """Why the API cannot accept the schema; "" if it can."""
    optional: int = 0
    """The number of properties that are not required. 0 unless the rule has `closed` True and `required` False."""
    unions: int = 0
    """The number of schemas, the root included, with several schemas in `anyOf` or a list of types."""

    @property
    def narrows(self) -> bool:
        """Whether some values match the original schema but not the one to send."""
        return any(change.narrows for change in self.changes)

    def parameters(self, losses: LossLog, path: str) -> dict[str, Any]:
        """Report all changes as losses and return the schema to send for an option's parameters. If the API cannot
        accept the schema, add a loss and return the schema of an object with any content.

        `path` is the place of the schema in the request, for the losses.
        """
        self.report(losses, path)
        if self.refusal:
            losses.add("downgraded", f"the schema was sent as an object with any content: {self.refusal}", path=path)
        return self.schema or {"type": "object", "properties": {}}

    def report(self, losses: LossLog, path: str) -> None:
        """Report all changes as losses. `path` is the place of the schema in the request."""
        for change in self.changes:
            losses.add(change.kind, change.reason, path=".".join(filter(None, (path, change.path))))


def fit_schema(schema: Schema, rule: SchemaRule) -> FittedSchema:
    """Return the JSON schema in the form that an API accepts, with every change. The argument is not modified.

    If the rule refuses the schema, or the schema exceeds a limit, `schema` of the result is empty and `refusal` gives
    the reason.

    >>> from sabir.authoring import SchemaRule, fit_schema
    >>> fit_schema({"type": "array"}, SchemaRule(items="of_all")).schema
    {'type': 'array', 'items': {}}
    """
    walk = _Walk(schema, rule)
    try:
        fitted = walk.fit()
    except _Refused as reason:
        return FittedSchema({}, refusal=str(reason))
    except RecursionError:
        return FittedSchema({}, refusal="the schema is nested too deeply")
    return FittedSchema(fitted, tuple(dict.fromkeys(walk.changes)), walk.names, "", walk.optional, walk.unions)


class _Refused(Exception):
    """Raised inside `fit_schema` if the API has no schema of the same meaning."""


class _Walk:
    """One pass over a schema, which collects the changes and counts properties, levels, values and characters."""

    def __init__(self, schema: Schema, rule: SchemaRule) -> None:
        self.schema = schema
        self.rule = rule
        self.changes: list[SchemaChange] = []
        self.names: dict[str, str] = {}
        self.optional = self.unions = 0
        self._counts: Counter[Limited] = Counter()

    def fit(self) -> dict[str, Any]:
        """Return the schema to send. Raises _Refused if the API has no such schema."""
        rule, root = self.rule, self.schema
        if rule.references == "finite" and (reason := endless_reference(root)):
            raise _Refused(reason)
        if rule.root == "object":
            root = self._as_object(root)
        if rule.names:
            root = self._rename_properties(root, rule.names)
        return dict(self._fit_node(root, "", 0, ()))

    def change(self, kind: LossKind, path: str, reason: str, *, narrows: bool = False) -> None:
        """Record a change at the place `path` of the original schema."""
        self.changes.append(SchemaChange(kind, path, reason, narrows))

    def _as_object(self, root: Schema) -> Schema:
        """Return the root as the schema of an object: with resolved references, merged unions, `type` and
        `properties`.
        """
        seen = set[str]()
        while (reference := root.get("$ref")) is not None:
            if reference in seen or (target := target_of(self.schema, reference)) is None:
                self._refuse_strict(f"{reference} names nothing in the schema, or itself")
                self.change("downgraded", "$ref", f"the root cannot be a '$ref': {reference} names no object")
                root = without_keywords(root, "$ref")
                break
            seen.add(reference)
            root = {**target, **without_keywords(root, "$ref")}
        for name in root.keys() & self.rule.not_at_root:
            self._refuse_strict(f"the root has {name!r}")
        root = self._merge_unions(root, 0)
        if root.get("type", "object") != "object" or (self._refuses and "type" not in root):
            raise _Refused("the root is not an object")
        is_bare = self.rule.closed or "properties" in root or bool(root.keys() & {*UNIONS})
        return {"type": "object", **root} if is_bare else {"type": "object", **root, "properties": {}}

    def _merge_unions(self, root: Schema, level: int) -> Schema:
        """Return the root without the keywords that it must not have, but with the properties of the branches of its
        unions.
        """
        removed = [name for name in root if name in self.rule.not_at_root]
        merged = without_keywords(root, *removed)
        for name in removed:
            branches = [self._resolve_branch(each, level) for each in as_list(root[name])] if name in UNIONS else []
            if name in UNIONS and not any(map(is_object, [merged, *branches])):
                raise _Refused("the root is not an object")
            variants: dict[str, list[JSONValue]] = {}
            for branch in branches:
                for key, schema in as_mapping(branch.get("properties")).items():
                    variants.setdefault(key, []).append(schema)
            own = as_mapping(merged.get("properties"))
            further = {key: either(schemas) for key, schemas in variants.items() if key not in own}
            if further:
                merged["properties"] = {**own, **further}
            names = [{*as_list(branch.get("required"))} for branch in branches if branch.get("type") != "null"]
            shared = (set.union if name == "allOf" else set.intersection)(*names) if names else set()
            if more := [key for key in merged.get("properties", {}) if key in shared]:
                merged["required"] = list(dict.fromkeys([*as_list(merged.get("required")), *more]))
            if level == 0:
                self._report_merged(name, root[name])
        return merged

    def _report_merged(self, name: str, value: JSONValue) -> None:
        also = "; its properties were added to the object" if name in UNIONS else ""
        names = ", ".join(map(repr, keywords({name: value})))
        self.change("downgraded", name, f"the API does not accept {name!r} at the root{also}; {names} is not enforced")

    def _resolve_branch(self, branch: JSONValue, level: int) -> Schema:
        schema = {} if level == _MOST_NESTED else resolve(self.schema, branch)
        return self._merge_unions(schema, level + 1) if schema.keys() & self.rule.not_at_root & {*UNIONS} else schema

    def _rename_properties(self, root: Schema, rule: IdentifierRule) -> Schema:
        """Return the root with property names that the API accepts."""
        properties = as_mapping(root.get("properties"))
        wire: dict[str, str] = {}
        for name in properties:
            fitted, occurrence = rule.fit(name), 0
            while fitted != name and (fitted in properties or fitted in self.names):
                fitted, occurrence = rule.derive(name, occurrence), occurrence + 1
            if fitted != name:
                wire[name], self.names[fitted] = fitted, name
                reason = f"the name {name!r} was sent as {fitted!r}, which the API accepts"
                self.change("rewritten", f"properties.{name}", reason)
        return with_names(root, wire) if wire else root

    def _inline_reference(self, schema: Schema, path: str, depth: int, trail: tuple[str, ...]) -> Any:
        """Return the fitted schema in place of a reference with other keywords next to it; None if the reference may
        stay.
        """
        reference = schema["$ref"]
        target = target_of(self.schema, reference)
        if self.rule.references == "recursive" and target is None:
            raise _Refused(f"{reference} names nothing in the schema")
        others = [name for name in schema if name not in _BESIDE_REFERENCE]
        if not self.rule.lone_reference or not others:
            return None
        if target is not None and reference not in trail:
            merged = {**target, **without_keywords(schema, "$ref")}
            return self._fit_node(merged, path, depth, (*trail, reference))
        self._refuse_strict(f"{path} refers to {reference} in a circle and has other keywords next to the reference")
        for name in others:
            self.change("dropped", join_path(path, name), f"the API does not accept {name!r} next to a '$ref'")
        return self._fit_node(without_keywords(schema, *others), path, depth, trail)

    @property
    def _refuses(self) -> bool:
        return self.rule.unread == "refused"

    def _refuse_strict(self, reason: str) -> None:
        if reason and self._refuses:
            raise _Refused(reason)

    def _fit_node(self, schema: JSONValue, path: str, depth: int, trail: tuple[str, ...]) -> Any:
        """Return the schema at the place `path`, and all schemas inside it, in the form that the API accepts.

        `depth` is the number of objects around it, and `trail` has the references that were replaced by their targets
        on the way to it.
        """
        rule, where = self.rule, path or "the root"
        if not isinstance(schema, Mapping):
            self._refuse_strict(f"{where} is {schema!r}, which is not a schema object")
            if schema is not True or rule.unread == "sent":
                return schema
            schema = {}
        schema = self._simplify(schema, path)
        if "$ref" in schema and (inlined := self._inline_reference(schema, path, depth, trail)) is not None:
            return inlined
        if rule.closed and not schema.keys() & TYPED and "properties" not in schema:
            self._refuse_strict(f"{where} accepts any value")
            self.change("downgraded", path, "a schema without a type constrains nothing")
        schema = self._add_items(schema, path)
        fitted: dict[str, Any] = {}
        described: list[str] = []
        for name, value in schema.items():
            at = join_path(path, name)
            if not self._accepts(name, value, schema):
                self._refuse_strict(f"{where} has {name!r}: {short_json(value)}, which strict schemas cannot contain")
                reason = "was moved to the description" if rule.unread == "described" else "is ignored by the API"
                self.change("downgraded", at, f"{', '.join(map(repr, keywords({name: value})))} {reason}")
                if rule.unread == "described":
                    described.append(f"{name}: {encode_json(value)}")
                    continue
            fitted[name] = self._fit_value(name, value, at, depth, trail)
        if described:
            fitted["description"] = f"{schema.get('description', '')} ({', '.join(described)})".strip()
        if rule.closed:
            self._close_object(fitted, schema, path, depth)
        self.unions += len(as_list(fitted.get("anyOf"))) > 1 or not isinstance(fitted.get("type", ""), str)
        return fitted

    def _simplify(self, schema: Schema, path: str) -> Schema:
        """Return the schema without annotations, without unions of one schema, and without a default of null that means
        absent.
        """
        rule = self.rule
        plain = dict(schema)
        for name in [name for name in schema if name in rule.annotations]:
            self.change("rewritten", join_path(path, name), f"{name!r} was removed", narrows=name == "examples")
            del plain[name]
        if rule.required and plain.get("default", True) is None and admits_null(plain):
            del plain["default"]
        # Without a discriminator, `anyOf` accepts more values than `oneOf`.
        is_chosen = "discriminator" in plain or not self._refuses
        if rule.one_of == "as_any_of" and "oneOf" in plain and "anyOf" not in plain and is_chosen:
            also = ", without its 'discriminator'" if plain.pop("discriminator", None) is not None else ""
            plain["anyOf"] = plain.pop("oneOf")
            self.change("rewritten", join_path(path, "oneOf"), f"'oneOf' was sent as 'anyOf'{also}")
        members = plain.get("allOf")
        if rule.closed and isinstance(members, list | tuple):
            if len(members) == 1 and isinstance(members[0], Mapping):
                del plain["allOf"]
                for name in (name for name, value in members[0].items() if plain.get(name, value) != value):
                    reason = f"{name!r} of 'allOf' was removed, because {name!r} next to 'allOf' differs"
                    self.change("downgraded", join_path(path, f"allOf[0].{name}"), reason, narrows=True)
                return self._simplify({**members[0], **plain}, path)
            # A reference inside `allOf` is replaced by its target, because APIs with `allOf` refuse references in it.
            plain["allOf"] = [resolve(self.schema, each) for each in members]
        return plain

    def _add_items(self, schema: Schema, path: str) -> Schema:
        """Return an array's schema with `items` if the API requires `items`. A list of `items` becomes `prefixItems`,
        as in the newest version of JSON schema.
        """
        items, members, at = schema.get("items"), as_list(schema.get("prefixItems")), join_path(path, "items")
        if isinstance(items, list | tuple):
            members, items = [*items], schema.get("additionalItems")
            schema = {**without_keywords(schema, "items", "additionalItems"), "prefixItems": members}
            schema = schema if items is None else {**schema, "items": items}
            self.change("rewritten", at, "a list of 'items' was sent as 'prefixItems', 'additionalItems' as 'items'")
        wanted = self.rule.items
        if items is None and has_type(schema, "array"):
            self._refuse_strict(f"{path or 'the root'} is an array whose items have no schema")
        if wanted == "any" or isinstance(items, Mapping):
            return schema
        if not members and not (wanted == "of_all" and has_type(schema, "array")):
            return schema
        if items is False and "maxItems" not in schema:
            schema = {**schema, "maxItems": len(members)}
        accepted = "any of the 'prefixItems'" if members and items is not True else "any value"
        self.change("rewritten", at, f"the API requires 'items'; 'items' that accept {accepted} were added")
        return {**schema, "items": either(members) if members and items is not True else {}}

    def _accepts(self, name: str, value: JSONValue, schema: Schema) -> bool:
        """Return whether the API reads the keyword `name` with this value in a schema."""
        rule = self.rule
        if name == "oneOf" and "anyOf" in schema and rule.one_of == "as_any_of":
            return False
        if name == "pattern" and not rule.lookaround and has_lookaround(value):
            return False
        test = rule.values.get(name)
        return (rule.keywords is None or name in rule.keywords) and (test is None or test(value))

    def _fit_value(self, name: str, value: JSONValue, path: str, depth: int, trail: tuple[str, ...]) -> Any:
        """Return the value of the keyword `name`, with the schemas inside it fitted. Counts enumerated values and
        characters.
        """
        if name in MAPS and isinstance(value, Mapping):
            inner = depth + 1 if name == "properties" else 0
            self._add_count("characters", sum(map(len, value)))
            return {key: self._fit_node(each, join_path(path, key), inner, trail) for key, each in value.items()}
        if name in MAPS and self.rule.unread != "sent":
            raise _Refused(f"{path} is not an object")
        if name in LISTS and isinstance(value, list | tuple):
            return [self._fit_node(each, f"{path}[{index}]", depth, trail) for index, each in enumerate(value)]
        if name in ONES and not (name == "additionalProperties" and self.rule.closed):
            return self._fit_node(value, path, depth, trail)
        if name in ("enum", "const"):
            values = as_list(value) if name == "enum" else [value]
            self._add_count("enumerated values", len(values) if name == "enum" else 0)
            self._add_count("characters", sum(len(str(each)) for each in values))
        if name == "$ref" and self.names and isinstance(value, str):
            return rename_reference(value, {original: wire for wire, original in self.names.items()})
        return value

    def _close_object(self, fitted: dict[str, Any], schema: Schema, path: str, depth: int) -> None:
        """Add `additionalProperties: false` and `required` to the schema of an object, and count its properties and
        level.
        """
        where, properties = path or "the root", schema.get("properties")
        if not (has_type(schema, "object") or "properties" in schema):
            if fitted.pop("additionalProperties", None) is not None:
                reason = "'additionalProperties' was removed, because the schema is not of an object"
                self.change("downgraded", join_path(path, "additionalProperties"), reason)
            return
        additional = schema.get("additionalProperties")
        is_open = additional not in (None, False)
        if is_open and (self._refuses or not properties):
            raise _Refused(f"{where} allows properties of any name")
        if properties is None and additional is None:
            raise _Refused(f"{where} is an object whose properties are not listed")
        if is_open:
            names = ", ".join(map(repr, keywords({"additionalProperties": additional})))
            reason = f"the object was limited to its listed properties; not sent: {names}"
            self.change("downgraded", join_path(path, "additionalProperties"), reason, narrows=True)
        self._add_count("properties", len(properties or ()))
        self._counts["levels"] = depth
        self._add_count("levels", 1)
        required = as_list(schema.get("required"))
        missing = [name for name in properties or () if name not in required]
        if not self.rule.required:
            self.optional += len(missing)
            fitted |= {"additionalProperties": False} | ({} if "type" in fitted else {"type": "object"})
            return
        for name in missing:
            inner = (properties or {})[name]
            if "$ref" in as_mapping(inner) and (reason := endless_reference(self.schema, inner)):
                raise _Refused(f"{where} would contain {name!r} endlessly: {reason}")
            if not (admits_null(inner) and inner.get("default") is None):
                reason = (
                    f"{name!r} is optional and was made required, because strict schemas have no optional properties"
                )
                self.change("rewritten", join_path(path, f"properties.{name}"), reason, narrows=True)
        closed = {"required": [*(properties or ())], "additionalProperties": False}
        fitted.update(properties=fitted.get("properties", {}), **closed)

    def _add_count(self, what: Limited, number: int) -> None:
        """Add to the count of `what`. Raises _Refused if the count exceeds the rule's limit."""
        self._counts[what] += number
        if self._counts[what] > self.rule.most.get(what, self._counts[what]):
            raise _Refused(f"the schema has more than {self.rule.most[what]:,} {what}")
