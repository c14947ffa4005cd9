"""The manager under the module name that the document's example imports."""

from sabir_roles.manager import MessageManager

__all__ = ["MessageManager"]
