"""MessageManager, importable from the module name of earlier programs."""

from sabir_roles.manager import MessageManager

__all__ = ["MessageManager"]
