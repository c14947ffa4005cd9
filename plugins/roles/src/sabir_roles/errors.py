"""The errors of this package. Each is a SabirError and a ValueError, with a message of one line."""

from typing import NoReturn

from pydantic import ValidationError
from sabir.authoring import describe_validation_error, one_line
from sabir.errors import SabirError


class RoleError(SabirError, ValueError):
    """Raised for an invalid argument or invalid content of a message or a manager. The error text says what to pass. A
    call that raises for an argument changes nothing.
    """


class TemplateFailed(RoleError):
    """Raised for a template that does not exist, cannot be compiled or rendered, or exceeds a limit, and for a value
    that is not a template. The error text gives the reason, such as a missing variable.
    """


def refuse_invalid(kind: str, error: ValidationError) -> NoReturn:
    """Raise a RoleError with one line for a ValidationError of pydantic. `kind` is the name of the invalid object."""
    raise RoleError(one_line(f"{kind}: {describe_validation_error(error)}".replace("Value error, ", ""))) from None
