"""Field types that several kinds of parts have in common."""

from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from sabir.base.values import JSONDocumentField

NonEmpty = Annotated[str, StringConstraints(min_length=1)]
"""A pydantic field type: a string of valid Unicode with at least one character."""
Text = Annotated[str, StringConstraints(min_length=0)]
"""A pydantic field type: a string of valid Unicode, which may be empty."""
State: TypeAlias = JSONDocumentField | None
"""A pydantic field type: a vendor's JSON, stored as JSONText, or None."""
