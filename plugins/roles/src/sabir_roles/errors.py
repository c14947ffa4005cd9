"""The errors of this package. Each is a SabirError and a ValueError, with a message of one line."""

from typing import NoReturn

from pydantic import ValidationError
from sabir.authoring import describe_validation_error, one_line
from sabir.errors import SabirError


class RoleError(SabirError, ValueError):
    """Raised for an invalid argument of a message or a manager. Nothing was changed."""


class TemplateFailed(RoleError):
    """Raised for a template that cannot be compiled or rendered. Names the template and the missing variable."""


def refuse_invalid(kind: str, error: ValidationError) -> NoReturn:
    """Raise a RoleError of one line for a ValidationError of pydantic."""
    raise RoleError(one_line(f"{kind}: {describe_validation_error(error)}".replace("Value error, ", ""))) from None
