"""MessageManager under the module name `sabir_roles.message_manager`, for programs that import it from there."""

from sabir_roles.manager import MessageManager

__all__ = ["MessageManager"]
