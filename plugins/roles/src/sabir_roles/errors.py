"""The errors of this package: library errors that are also ValueErrors, each with a text of one line."""

from typing import NoReturn

from pydantic import ValidationError
from sabir.authoring import describe_validation_error, one_line
from sabir.errors import SabirError


class RoleError(SabirError, ValueError):
    """A message with a role, or its manager, got an invalid argument; nothing was changed."""


class TemplateFailed(RoleError):
    """A template cannot be compiled or rendered; the message names the template, and the variable that it lacks."""


def refuse_invalid(kind: str, error: ValidationError) -> NoReturn:
    """Raise pydantic's error as a RoleError of one line."""
    raise RoleError(one_line(f"{kind}: {describe_validation_error(error)}".replace("Value error, ", ""))) from None
