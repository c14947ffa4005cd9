"""References of JSON schemas."""

from sabir.authoring.schema_parts import resolve

CIRCLE = {"$defs": {"a": {"$ref": "#/$defs/b", "title": "A"}, "b": {"$ref": "#/$defs/a", "type": "object"}}}


def test_a_circle_of_references_ends_with_the_keywords_on_its_way() -> None:
    """The first reference that comes again stays, so that a recursive schema is neither endless nor lost."""
    resolved = resolve(CIRCLE, {"$ref": "#/$defs/a", "description": "mine"})

    assert resolved == {"$ref": "#/$defs/a", "type": "object", "title": "A", "description": "mine"}
